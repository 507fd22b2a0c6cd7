"""A certificate in the making: every question in turn, each with its line."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from fluxforge.certify._ask_transport import ask_transport, transport_claims
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._claims import (
    ClaimCheck,
    Measured,
    Request,
    check_claims,
    claim_line,
    claim_reasons,
    generator_holds,
    left_out,
    space_finding,
)
from fluxforge.certify._evidence import NUMERICAL_FAILURES, Line, unknown
from fluxforge.certify._families import LATTICES, Levels, enlarge_levels, rough_tetrahedra
from fluxforge.certify._family import FamilyResult, space_line, worst_study
from fluxforge.certify._problems import PROBLEMS
from fluxforge.certify._summary import summarise
from fluxforge.certify.conservation import conservation, conservation_line
from fluxforge.certify.cost import CostCurve, cost, cost_line, error_against_cost, linearity, linearity_line
from fluxforge.certify.effective import effective_diffusion, effective_equation
from fluxforge.certify.growth import (
    MOST_CELLS,
    TransientGrowth,
    maximum_line,
    maximum_principle,
    small_graph,
    transient_growth,
    transient_line,
)
from fluxforge.certify.march import marched_studies
from fluxforge.certify.modified import ModifiedEquation, is_own_symbolically, lattice_equations, modified_line
from fluxforge.certify.order import SpaceStudy, mesh_line, mesh_studies, space_studies
from fluxforge.certify.patch import PatchTest, alignment, alignment_line, patch_line, patch_tests, residuals_line, worse
from fluxforge.certify.rate import rate_line, rate_of_change
from fluxforge.certify.semidiscrete import generator_line, semidiscrete
from fluxforge.certify.stability import Stability, default_graph, stability, stability_line
from fluxforge.certify.time_order import study_graph, time_line, time_order
from fluxforge.certify.units import units, units_line
from fluxforge.mesh import DualGraph, Mesh, dual, squares
from fluxforge.pde import HEAT
from fluxforge.scheme import Hop, linear_stages

T = TypeVar("T")
# Told which question is asked now, its number, and how many there are.
Progress = Callable[[str, int, int], None]

NOT_LINEAR = "the scheme is not linear in T, so it has no matrix to ask"
# K is read off with parameters of this size: a scheme that forgets a factor shows.
SCALE = PROBLEMS[-1].scale


class Verification:
    """Collects results and lines; what cannot be established becomes a line that says why."""

    def __init__(self, request: Request, progress: Progress | None) -> None:
        self.request = request
        self.scheme = request.scheme
        self.mesh = request.mesh
        self.quick = request.quick
        self.progress = progress
        self.asked = 0
        refined = sum(len(levels.sizes) for levels in request.families) + len(request.meshes)
        self.questions = (9 if self.mesh is not None else 12) + refined
        self.lines: list[Line] = []
        self.reasons: dict[str, str] = {}
        self.linear = linear_stages(self.scheme) is not None
        self.dimension = request.dimension
        self.words = self.scheme.equation.words
        self.parameters = self.scheme.equation.example(self.dimension)
        # Lines of cells run through quadrilaterals only.
        self.on_lines = Hop.LINE in self.scheme.hops()
        graph = dual(squares(8)) if self.on_lines else default_graph(self.dimension)
        self.graph: DualGraph = graph if self.mesh is None else dual(self.mesh)
        default = "on 8 × 8 squares" if self.on_lines else "on an irregular mesh"
        self.where = default if self.mesh is None else f"on {self.mesh.origin}"
        # Where nothing else is given, in space: cells of no symmetry.
        self.rough: Mesh | DualGraph | None = self.mesh
        if self.mesh is None and self.dimension == 3:
            self.rough = rough_tetrahedra()

    def tell(self, question: str) -> None:
        """Count a question and pass it on."""
        self.asked += 1
        if self.progress is not None:
            self.progress(question, self.asked, max(self.questions, self.asked))

    def run(self) -> Certificate:
        """Ask every question in turn, then compare the claims with the answers."""
        answers = self._measure()
        checks = self._check_claims(answers)
        certificate = replace(answers, claims=checks, lines=tuple(self.lines))
        return replace(certificate, summary=summarise(certificate, self.scheme))

    def _measure(self) -> Certificate:
        s, g, where = self.scheme, self.graph, self.where
        p = {"parameters": self.parameters}
        reach = self._ask("linearity", lambda: linearity(s, g, **p), lambda f: linearity_line(f, where), always=True)
        kept = self._ask(
            "conservation",
            lambda: conservation(s, self.rough, **p),
            lambda f: conservation_line(f, where),
            always=True,
        )
        size, words = self.dimension, self.words
        same = self._ask(
            "units", lambda: units(s, size, self._study_graph()), lambda f: units_line(f, words), always=True
        )
        patch = self._patch()
        system = None
        if patch is not None:
            system = self._ask(
                "generator",
                lambda: semidiscrete(s, study_graph(size), patch, **p),
                lambda f: generator_line(f, words),
            )
        rate = None
        if not self.linear and (not s.equation.linear or s.equation.velocity is not None):
            rate = self._ask("generator", lambda: rate_of_change(s, self._study_graph(), **p), rate_line, always=True)
        self._alignment()
        transport = ask_transport(s, self._ask, refine=self.mesh is None and size == 2)
        time = (
            self._ask(
                "order in time",
                lambda: time_order(s, study_graph(size), parameters=self.parameters),
                time_line,
            )
            if self.mesh is None
            else None
        )
        steady = self._ask("stability", lambda: stability(s, g, **p), lambda f: stability_line(f, where, words))
        growth = self._transient(steady)
        maximum = self._ask(
            "maximum principle", lambda: maximum_principle(s, g, **p), lambda f: maximum_line(f, where, words)
        )
        modified = self._modified() if self.mesh is None else {}
        space = {levels.family: self._family(levels, patch) for levels in self.request.families}
        meshes = self._meshes()
        curves: tuple[CostCurve, ...] = ()
        if self.linear and self.mesh is None and not self.quick and self.dimension == 2:
            curves = self._try("cost at equal accuracy", lambda: error_against_cost(s, **p)) or ()
        price = self._ask("cost of a step", lambda: cost(s, g, **p), lambda f: cost_line(f, curves, s.name))
        return Certificate(
            scheme=s.name,
            quick=self.quick,
            lines=(),
            claims=(),
            linearity=reach,
            conservation=kept,
            time=time,
            semidiscrete=system,
            space=space if self.linear or s.equation.velocity is not None else {},
            modified=modified,
            stability=steady,
            maximum=maximum,
            cost=price,
            curves=curves,
            mesh=None if self.mesh is None else self.mesh.origin,
            units=same,
            transient=growth,
            meshes=meshes,
            rate=rate,
            patch=patch,
            transport=transport,
        )

    def _check_claims(self, found: Certificate) -> tuple[ClaimCheck, ...]:
        """Every claim against what was measured, a line each."""
        measured = Measured(
            conservative=None if found.conservation is None else found.conservation.holds,
            linear_exact=None if found.patch is None else found.patch.exact(1),
            time_order=None if found.time is None else found.time.order,
            generator=generator_holds(found.rate or found.semidiscrete, found.units, self._symbolic(found.modified)),
            stable_to=None if found.stability is None else found.stability.interval,
            space={family: space_finding(one) for family, one in found.space.items() if one.study is not None},
            left_out=left_out(self.request),
            reasons=claim_reasons(self.reasons, found.stability, self.request.families),
        )
        checks = (*check_claims(self.scheme.claims, measured), *transport_claims(self.scheme, found.transport))
        self.lines += [claim_line(check) for check in checks]
        return checks

    def _ask(self, name: str, measure: Callable[[], T], line: Callable[[T], Line], *, always: bool = False) -> T | None:
        """Measure and write the line; a scheme that gives no answer gets a line with the reason, never a traceback."""
        self.tell(name)
        if not (self.linear or always):
            self._unknown(name, NOT_LINEAR)
            return None
        found = self._try(name, measure)
        if found is not None:
            self.lines.append(line(found))
        return found

    def _try(self, name: str, measure: Callable[[], T]) -> T | None:
        try:
            with np.errstate(all="ignore"):
                return measure()
        except NUMERICAL_FAILURES as error:
            self._unknown(name, " ".join(str(error).split()) or type(error).__name__)
            return None

    def _unknown(self, name: str, reason: str) -> None:
        self.reasons[name] = reason
        self.lines.append(unknown(name, reason))

    def _study_graph(self) -> DualGraph:
        """Where rates of change are compared."""
        return self.graph if self.on_lines else study_graph(self.dimension)

    def _patch(self) -> PatchTest | None:
        """The worse of held and mixed walls; residuals get a line of their own."""
        mesh = Levels("irregular", (9,)).mesh(9) if self.rough is None else self.rough
        tests = self._ask(
            "patch tests",
            lambda: patch_tests(self.scheme, mesh),
            lambda found: patch_line(found, self.where),
        )
        if tests is None:
            return None
        self.lines.append(residuals_line(tests, self.where, self.words))
        return worse(*tests)

    def _alignment(self) -> None:
        """A line for an equation with a tensor whose flux reads two points."""
        found = self._try("flux of the tensor", lambda: alignment(self.scheme, self.graph, parameters=self.parameters))
        if found is not None:
            self.lines.append(alignment_line(found, self.where))

    def _transient(self, steady: Stability | None) -> TransientGrowth | None:
        """On the mesh given if it is small, otherwise on a small one."""
        if self.mesh is not None and self.graph.cells <= MOST_CELLS:
            graph, limit, where = self.graph, steady, self.where
        else:
            graph, limit = small_graph(self.dimension), None
            where = "on 72 jittered triangles" if self.dimension == 2 else f"on {graph.cells} jittered tetrahedra"
        return self._ask(
            "transient growth",
            lambda: transient_growth(self.scheme, graph, limit=limit, parameters=self.parameters),
            lambda found: transient_line(found, where, self.words),
        )

    def _modified(self) -> dict[str, ModifiedEquation]:
        found = {}
        of = self.scheme.equation
        if not self.linear and not of.linear:
            self._unknown("modified equation", "not defined: the equation is not linear in its unknown")
        for name, ask in lattice_equations(of, self.dimension).items():
            self.tell(f"modified equation, {name}")
            equation = self._try(f"modified equation, {name}", partial(ask, self.scheme)) if self.linear else None
            if equation is not None:
                found[name] = equation
                self.lines.append(modified_line(name, equation, heat=of == HEAT))
        return found

    def _symbolic(self, modified: dict[str, ModifiedEquation]) -> bool | None:
        """Of other equations than heat, whether the formulas are right for every value of the parameters."""
        if self.scheme.equation == HEAT:
            return None
        return self._try("generator", lambda: is_own_symbolically(self.scheme, modified))

    def _family(self, levels: Levels, patch: PatchTest | None) -> FamilyResult:
        """Refine one family. Linear fields kept on an irregular mesh are kept on all: a quick run asks no further."""
        if not self.linear:
            return self._marched(levels)
        if patch is not None and not patch.exact(1):
            patch = None
        studies = self._space_studies(levels)
        if not self.quick:
            patch = self._try(
                f"patch tests, {levels.family}",
                lambda: worse(*patch_tests(self.scheme, levels.refined(levels.sizes[0]))),
            )
        equation, tensor = self.scheme.equation, None
        scaled = equation.example(self.dimension, SCALE)
        effective = None
        if equation.only_diffuses:
            tensor = self._try(
                f"diffusivity, {levels.family}", lambda: effective_diffusion(self.scheme, levels, parameters=scaled)
            )
        if equation != HEAT and levels.family in LATTICES:
            effective = self._try(
                f"effective equation, {levels.family}",
                lambda: effective_equation(self.scheme, levels.family, parameters=scaled),
            )
        worst = None if studies is None else worst_study(studies)
        found = FamilyResult(worst, patch, tensor, studies or (), equation.only_diffuses, effective)
        if studies is not None:
            self.lines.append(space_line(levels.family, found, self.words))
        if patch is not None and not self.quick:
            where = f"on {levels.family}, n = {levels.sizes[0]}"
            self.lines.append(residuals_line((patch,), where, self.words))
        return found

    def _space_studies(self, levels: Levels) -> tuple[SpaceStudy, ...] | None:
        """A study per problem.

        The small random meshes of a quick run scatter. Where the scheme claims an order that they neither show nor
        refute, the sizes of a full certificate decide.
        """
        studies = self._try(levels.family, lambda: space_studies(self.scheme, levels, progress=self.tell))
        larger = enlarge_levels(levels) if self.quick and self.scheme.claims.space.get(levels.family) else None
        if studies is None or larger is None or all(each.l2.convergent or each.l2.stalled for each in studies):
            return studies
        self.questions += len(larger.sizes)
        return self._try(levels.family, lambda: space_studies(self.scheme, larger, progress=self.tell))

    def _marched(self, levels: Levels) -> FamilyResult:
        """Of a scheme of transport that is not linear, the errors of marched solutions."""
        if self.scheme.equation.velocity is None:
            self._unknown(levels.family, NOT_LINEAR)
            return FamilyResult(None, None, None)
        studies = self._try(levels.family, lambda: marched_studies(self.scheme, levels, progress=self.tell))
        if studies is None:
            return FamilyResult(None, None, None)
        found = FamilyResult(studies[0], None, None, studies, only_diffuses=False)
        self.lines.append(space_line(levels.family, found, self.words))
        return found

    def _meshes(self) -> tuple[SpaceStudy, ...]:
        """The user's own sequence."""
        if not self.request.meshes:
            return ()
        name = "your meshes"
        if not self.linear:
            self._unknown(name, NOT_LINEAR)
            return ()
        own, exact = self.request.meshes, self.request.exact
        found = self._try(name, lambda: mesh_studies(self.scheme, own, exact=exact, progress=self.tell))
        self.lines += [mesh_line(study) for study in found or ()]
        return found or ()
