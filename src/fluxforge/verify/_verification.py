"""A certificate in the making: every question in turn, each with its line."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from fluxforge.errors import FluxforgeError
from fluxforge.mesh import DualGraph, Mesh, dual
from fluxforge.scheme import Scheme, linear_stages
from fluxforge.verify import _lines, _space_lines
from fluxforge.verify._certificate import Certificate, FamilyResult, worst_study
from fluxforge.verify._claims import ClaimCheck, Measured, SpaceFinding, check_claims, space_claim
from fluxforge.verify._evidence import Line, unknown
from fluxforge.verify._families import Levels
from fluxforge.verify._problems import PROBLEMS
from fluxforge.verify._rates import LEAST_LEVELS
from fluxforge.verify.conservation import conservation
from fluxforge.verify.cost import cost, error_against_cost
from fluxforge.verify.diffusivity import effective_diffusivity
from fluxforge.verify.linearity import linearity
from fluxforge.verify.maximum import maximum_principle
from fluxforge.verify.modified import ModifiedEquation, square_equation, triangle_equation
from fluxforge.verify.order import SpaceStudy, mesh_studies, space_studies
from fluxforge.verify.patch import PatchTest, patch_test, worse
from fluxforge.verify.semidiscrete import SemiDiscrete, semidiscrete
from fluxforge.verify.stability import Stability, default_graph, stability
from fluxforge.verify.time_order import TimeStudy, study_graph, time_order
from fluxforge.verify.transient import MOST_CELLS, TransientGrowth, small_graph, transient_growth
from fluxforge.verify.units import Units, units

T = TypeVar("T")
# Told which question is asked now, its number, and how many there are.
Progress = Callable[[str, int, int], None]

NOT_LINEAR = "the scheme is not linear in T, so it has no matrix to ask"
NO_FACTOR = "the scheme is not a function of one operator, so it has no R(z)"
# K/α is read off at this α: a scheme that forgets α shows.
ALPHA = PROBLEMS[-1].diffusivity


@dataclass(frozen=True)
class Request:
    """What to certify, on what, and how thoroughly."""

    scheme: Scheme
    mesh: Mesh | None
    families: tuple[Levels, ...]
    meshes: tuple[Mesh, ...]
    exact: str | None
    quick: bool


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
        self.graph: DualGraph = default_graph() if self.mesh is None else dual(self.mesh)
        self.where = "on an irregular mesh" if self.mesh is None else f"on {self.mesh.origin}"

    def tell(self, question: str) -> None:
        """Count a question and pass it on."""
        self.asked += 1
        if self.progress is not None:
            self.progress(question, self.asked, max(self.questions, self.asked))

    def run(self) -> Certificate:
        """Ask every question in turn."""
        s, g, where = self.scheme, self.graph, self.where
        reach = self._ask("linearity", lambda: linearity(s, g), lambda f: _lines.linearity_line(f, where), always=True)
        kept = self._ask(
            "conservation",
            lambda: conservation(s, self.mesh),
            lambda f: _lines.conservation_line(f, where),
            always=True,
        )
        same = self._ask("units", lambda: units(s), _lines.units_line, always=True)
        patch = self._patch()
        system = None
        if patch is not None:
            system = self._ask("generator", lambda: semidiscrete(s, study_graph(), patch), _lines.generator_line)
        time = self._ask("order in time", lambda: time_order(s), _lines.time_line) if self.mesh is None else None
        steady = self._ask("stability", lambda: stability(s, g), lambda f: _lines.stability_line(f, where))
        growth = self._transient(steady)
        maximum = self._ask(
            "maximum principle", lambda: maximum_principle(s, g), lambda f: _lines.maximum_line(f, where)
        )
        modified = self._modified() if self.mesh is None else {}
        space = {levels.family: self._family(levels, patch) for levels in self.request.families}
        meshes = self._meshes()
        curves = error_against_cost(s) if self.linear and self.mesh is None and not self.quick else ()
        price = self._ask("cost of a step", lambda: cost(s, g), lambda f: _lines.cost_line(f, curves, s.name))
        checks = self._claims(
            conservative=None if kept is None else kept.holds,
            patch=patch,
            time=time,
            generator=_generator(system, same),
            steady=steady,
            space=space,
        )
        return Certificate(
            scheme=s.name,
            quick=self.quick,
            lines=tuple(self.lines),
            claims=checks,
            linearity=reach,
            conservation=kept,
            time=time,
            semidiscrete=system,
            space=space if self.linear else {},
            modified=modified,
            stability=steady,
            maximum=maximum,
            cost=price,
            curves=curves,
            mesh=None if self.mesh is None else self.mesh.origin,
            units=same,
            transient=growth,
            meshes=meshes,
        )

    def _claims(
        self,
        *,
        conservative: bool | None,
        patch: PatchTest | None,
        time: TimeStudy | None,
        generator: bool | None,
        steady: Stability | None,
        space: dict[str, FamilyResult],
    ) -> tuple[ClaimCheck, ...]:
        """Every claim against what was measured, a line each."""
        measured = Measured(
            conservative=conservative,
            linear_exact=None if patch is None else patch.exact(1),
            time_order=None if time is None else time.order,
            generator=generator,
            stable_to=None if steady is None else steady.interval,
            space={family: _finding(found) for family, found in space.items() if found.study is not None},
            left_out=self._left_out(),
            reasons=self._claim_reasons(steady, space),
        )
        checks = check_claims(self.scheme.claims, measured)
        self.lines += [_lines.claim_line(check) for check in checks]
        return checks

    def _left_out(self) -> dict[str, str]:
        """Claims that the user did not ask about, with the reason."""
        levels = {one.family: len(one.sizes) for one in self.request.families}
        found = {}
        for family in self.scheme.claims.space:
            if family not in levels:
                found[space_claim(family)] = "the family was not asked for"
            elif levels[family] < LEAST_LEVELS:
                found[space_claim(family)] = f"an order needs {LEAST_LEVELS} levels, {levels[family]} were asked for"
        if self.mesh is not None:
            found["time_order"] = "one mesh was asked for, without studies in time"
        return found

    def _claim_reasons(self, steady: Stability | None, space: dict[str, FamilyResult]) -> dict[str, str]:
        """Why claims were not established, by the names of the claims."""
        questions = {
            "conservative": ("conservation",),
            "linear_exact": ("patch tests",),
            "generator": ("patch tests", "generator", "units"),
            "time_order": ("order in time",),
            "stable_to": ("stability",),
        } | {space_claim(family): (family,) for family in space}
        found = {
            claim: next((self.reasons[name] for name in names if name in self.reasons), "")
            for claim, names in questions.items()
        }
        if steady is not None and steady.interval is None and not found["stable_to"]:
            found["stable_to"] = NO_FACTOR
        for claim in found:
            found[claim] = found[claim] or "the rates do not settle"
        return found

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
        except (FluxforgeError, ArithmeticError, ValueError, RuntimeError) as error:
            self._unknown(name, " ".join(str(error).split()) or type(error).__name__)
            return None

    def _unknown(self, name: str, reason: str) -> None:
        self.reasons[name] = reason
        self.lines.append(unknown(name, reason))

    def _patch(self) -> PatchTest | None:
        """The worse of held and mixed walls; residuals get a line of their own."""
        mesh = Levels("irregular", (9,)).mesh(9) if self.mesh is None else self.mesh
        tests = self._ask(
            "patch tests",
            lambda: tuple(patch_test(self.scheme, mesh, walls=walls) for walls in ("held", "mixed")),
            lambda found: _space_lines.patch_line(found, self.where),
        )
        if tests is None:
            return None
        self.lines.append(_space_lines.residuals_line(tests, self.where))
        return worse(*tests)

    def _transient(self, steady: Stability | None) -> TransientGrowth | None:
        """On the mesh given if it is small, otherwise on a small one."""
        if self.mesh is not None and self.graph.cells <= MOST_CELLS:
            graph, limit, where = self.graph, steady, self.where
        else:
            graph, limit, where = small_graph(), None, "on 72 jittered triangles"
        return self._ask(
            "transient growth",
            lambda: transient_growth(self.scheme, graph, limit=limit),
            lambda found: _lines.transient_line(found, where),
        )

    def _modified(self) -> dict[str, ModifiedEquation]:
        found = {}
        for name, ask in (("squares", square_equation), ("equilateral", triangle_equation)):
            self.tell(f"modified equation, {name}")
            equation = self._try(f"modified equation, {name}", partial(ask, self.scheme)) if self.linear else None
            if equation is not None:
                found[name] = equation
                self.lines.append(_lines.modified_line(name, equation))
        return found

    def _family(self, levels: Levels, patch: PatchTest | None) -> FamilyResult:
        """Refine one family. Linear fields kept on an irregular mesh are kept on all: a quick run asks no further."""
        if not self.linear:
            self._unknown(levels.family, NOT_LINEAR)
            return FamilyResult(None, None, None)
        if patch is not None and not patch.exact(1):
            patch = None
        studies = self._try(levels.family, lambda: space_studies(self.scheme, levels, progress=self.tell))
        if not self.quick:
            patch = self._try(f"patch tests, {levels.family}", partial(_patch_of_family, self.scheme, levels))
        tensor = self._try(
            f"diffusivity, {levels.family}", lambda: effective_diffusivity(self.scheme, levels, diffusivity=ALPHA)
        )
        found = FamilyResult(None if studies is None else worst_study(studies), patch, tensor, studies or ())
        if studies is not None:
            self.lines.append(_space_lines.space_line(levels.family, found))
        if patch is not None and not self.quick:
            self.lines.append(_space_lines.residuals_line((patch,), f"on {levels.family}, n = {levels.sizes[0]}"))
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
        self.lines += [_space_lines.mesh_line(study) for study in found or ()]
        return found or ()


def _patch_of_family(scheme: Scheme, levels: Levels) -> PatchTest:
    mesh = levels.mesh(levels.sizes[0])
    return worse(*(patch_test(scheme, mesh, walls=walls) for walls in ("held", "mixed")))


def _generator(system: SemiDiscrete | None, same: Units | None) -> bool | None:
    """The right system, in any units; one that is wrong in either is wrong, whether or not the other is known."""
    known = [found.holds for found in (system, same) if found is not None]
    if False in known:
        return False
    return True if system is not None and same is not None else None


def _finding(found: FamilyResult) -> SpaceFinding:
    assert found.study is not None
    rates = found.study.l2
    return SpaceFinding(rates.order, rates.exact, found.fails)
