"""The measurements of a certificate in their order, and the check of the claims against the results."""

from dataclasses import replace
from functools import partial

from fluxforge.certify._ask_transport import ask_transport, transport_claims
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._claims import (
    Measured,
    Request,
    check_claims,
    claim_line,
    claim_reasons,
    claims_left_out,
    generator_holds,
    space_finding,
)
from fluxforge.certify._families import Levels, rough_tetrahedra
from fluxforge.certify._recorder import Progress, Recorder
from fluxforge.certify._refinement import refine_family, refine_own_meshes
from fluxforge.certify._summary import summarise
from fluxforge.certify.conservation import conservation, conservation_line
from fluxforge.certify.cost import cost, cost_line, error_against_cost, linearity, linearity_line
from fluxforge.certify.growth import (
    MOST_CELLS,
    maximum_line,
    maximum_principle,
    small_graph,
    transient_growth,
    transient_line,
)
from fluxforge.certify.modified import ModifiedEquation, is_own_symbolically, lattice_equations, modified_line
from fluxforge.certify.patch import PatchTest, alignment, alignment_line, patch_line, patch_tests, residuals_line, worse
from fluxforge.certify.rate import rate_line, rate_of_change
from fluxforge.certify.semidiscrete import generator_line, semidiscrete
from fluxforge.certify.stability import default_graph, stability, stability_line
from fluxforge.certify.time_order import study_graph, time_line, time_order
from fluxforge.certify.units import units, units_line
from fluxforge.mesh._dual import DualGraph, dual
from fluxforge.mesh._families import squares
from fluxforge.mesh._mesh import Mesh
from fluxforge.pde._equation import HEAT
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._symbols import Hop


class Verification:
    """Measures the properties of one scheme; `run` returns its certificate.

    Each `_ask_…` takes the certificate so far and returns it with more answers. The order of the questions is that of
    the lines of the certificate.
    """

    def __init__(self, request: Request, progress: Progress | None) -> None:
        self.request = request
        self.scheme = request.scheme
        self.mesh = request.mesh
        self.dimension = request.dimension
        self.words = self.scheme.equation.words
        self.parameters = self.scheme.equation.example(self.dimension)
        refined = sum(len(levels.sizes) for levels in request.families) + len(request.meshes)
        self.linear = linear_stages(self.scheme) is not None
        self.recorder = Recorder(
            linear=self.linear, questions=(9 if self.mesh is not None else 12) + refined, progress=progress
        )
        # Lines of cells run through quadrilaterals only.
        self.on_lines = Hop.LINE in self.scheme.hops()
        if self.mesh is not None:
            self.graph, self.where = dual(self.mesh), f"on {self.mesh.origin}"
        elif self.on_lines:
            self.graph, self.where = dual(squares(8)), "on 8 × 8 squares"
        else:
            self.graph, self.where = default_graph(self.dimension), "on an irregular mesh"
        # Where conservation and patch tests are measured; None stands for their own irregular mesh of the plane.
        self.rough: Mesh | DualGraph | None = self.mesh
        if self.mesh is None and self.dimension == 3:
            self.rough = rough_tetrahedra()

    def run(self) -> Certificate:
        """Ask every question in turn, then compare the claims with the answers."""
        mesh = None if self.mesh is None else self.mesh.origin
        certificate = Certificate(scheme=self.scheme.name, quick=self.request.quick, mesh=mesh)
        certificate = self._ask_operator(certificate)
        certificate = self._ask_small_steps(certificate)
        certificate = self._ask_steps(certificate)
        certificate = self._ask_refinement(certificate)
        certificate = self._ask_cost(certificate)
        certificate = self._check_claims(certificate)
        certificate = replace(certificate, lines=tuple(self.recorder.lines))
        return replace(certificate, summary=summarise(certificate, self.scheme))

    def _ask_operator(self, certificate: Certificate) -> Certificate:
        """Linearity, conservation and units of one step."""
        s, where, p, ask = self.scheme, self.where, self.parameters, self.recorder.ask
        return replace(
            certificate,
            linearity=ask(
                "linearity",
                lambda: linearity(s, self.graph, parameters=p),
                lambda answer: linearity_line(answer, where),
                always=True,
            ),
            conservation=ask(
                "conservation",
                lambda: conservation(s, self.rough, parameters=p),
                lambda answer: conservation_line(answer, where),
                always=True,
            ),
            units=ask(
                "units",
                lambda: units(s, self.dimension, self._study_graph()),
                lambda answer: units_line(answer, self.words),
                always=True,
            ),
        )

    def _ask_small_steps(self, certificate: Certificate) -> Certificate:
        """The limit of small steps: patch tests, the semi-discrete system, and the fluxes of transport."""
        s, p, ask = self.scheme, self.parameters, self.recorder.ask
        patch, system, rate = self._ask_patch(), None, None
        if patch is not None:
            system = ask(
                "generator",
                lambda: semidiscrete(s, study_graph(self.dimension), patch, parameters=p),
                lambda answer: generator_line(answer, self.words),
            )
        if not self.linear and (not s.equation.linear or s.equation.velocity is not None):
            rate = ask(
                "generator", lambda: rate_of_change(s, self._study_graph(), parameters=p), rate_line, always=True
            )
        tensor = self.recorder.attempt("flux of the tensor", lambda: alignment(s, self.graph, parameters=p))
        if tensor is not None:
            self.recorder.lines.append(alignment_line(tensor, self.where))
        transport = ask_transport(s, ask, refine=self.mesh is None and self.dimension == 2)
        return replace(certificate, patch=patch, semidiscrete=system, rate=rate, transport=transport)

    def _ask_steps(self, certificate: Certificate) -> Certificate:
        """What depends on Δt: order in time, largest stable step, transient growth, maximum principle."""
        s, p, ask = self.scheme, self.parameters, self.recorder.ask
        if self.mesh is None:
            graph = study_graph(self.dimension)
            order = ask("order in time", lambda: time_order(s, graph, parameters=p), time_line)
            certificate = replace(certificate, time=order)
        certificate = replace(
            certificate,
            stability=ask(
                "stability",
                lambda: stability(s, self.graph, parameters=p),
                lambda answer: stability_line(answer, self.where, self.words),
            ),
        )
        certificate = self._ask_transient(certificate)
        maximum = ask(
            "maximum principle",
            lambda: maximum_principle(s, self.graph, parameters=p),
            lambda answer: maximum_line(answer, self.where, self.words),
        )
        return replace(certificate, maximum=maximum)

    def _ask_refinement(self, certificate: Certificate) -> Certificate:
        """Modified equations on lattices, errors on families of meshes and on the user's own sequence."""
        modified = self._ask_modified() if self.mesh is None else {}
        space = {
            levels.family: refine_family(self.request, self.recorder, levels, certificate.patch)
            for levels in self.request.families
        }
        return replace(
            certificate,
            modified=modified,
            space=space if self.linear or self.scheme.equation.velocity is not None else {},
            meshes=refine_own_meshes(self.request, self.recorder),
        )

    def _ask_cost(self, certificate: Certificate) -> Certificate:
        """Cost of a step; of a full certificate in the plane, also the error at equal cost."""
        s, p, curves = self.scheme, self.parameters, None
        if self.linear and self.mesh is None and not self.request.quick and self.dimension == 2:
            curves = self.recorder.attempt("cost at equal accuracy", lambda: error_against_cost(s, parameters=p))
        price = self.recorder.ask(
            "cost of a step",
            lambda: cost(s, self.graph, parameters=p),
            lambda answer: cost_line(answer, curves or (), s.name),
        )
        return replace(certificate, cost=price, curves=curves or ())

    def _check_claims(self, certificate: Certificate) -> Certificate:
        """Every claim against what was measured, a line each."""
        space = certificate.space.items()
        measured = Measured(
            conservative=None if certificate.conservation is None else certificate.conservation.holds,
            linear_exact=None if certificate.patch is None else certificate.patch.exact(1),
            time_order=None if certificate.time is None else certificate.time.order,
            generator=generator_holds(
                certificate.rate or certificate.semidiscrete, certificate.units, self._symbolic(certificate.modified)
            ),
            stable_to=None if certificate.stability is None else certificate.stability.interval,
            space={family: space_finding(result) for family, result in space if result.study is not None},
            left_out=claims_left_out(self.request),
            reasons=claim_reasons(self.recorder.reasons, certificate.stability, self.request.families),
        )
        checks = (*check_claims(self.scheme.claims, measured), *transport_claims(self.scheme, certificate.transport))
        self.recorder.lines += [claim_line(check) for check in checks]
        return replace(certificate, claims=checks)

    def _study_graph(self) -> DualGraph:
        """Where rates of change are compared."""
        return self.graph if self.on_lines else study_graph(self.dimension)

    def _ask_patch(self) -> PatchTest | None:
        """The worse of held and mixed walls; residuals get a line of their own."""
        mesh = Levels("irregular", (9,)).mesh(9) if self.rough is None else self.rough
        tests = self.recorder.ask(
            "patch tests", lambda: patch_tests(self.scheme, mesh), lambda answer: patch_line(answer, self.where)
        )
        if tests is None:
            return None
        self.recorder.lines.append(residuals_line(tests, self.where, self.words))
        return worse(*tests)

    def _ask_transient(self, certificate: Certificate) -> Certificate:
        """Transient growth on the given mesh if it is small enough for a dense matrix, otherwise on a small one."""
        if self.mesh is not None and self.graph.cells <= MOST_CELLS:
            graph, limit, where = self.graph, certificate.stability, self.where
        else:
            graph, limit = small_graph(self.dimension), None
            where = "on 72 jittered triangles" if self.dimension == 2 else f"on {graph.cells} jittered tetrahedra"
        growth = self.recorder.ask(
            "transient growth",
            lambda: transient_growth(self.scheme, graph, limit=limit, parameters=self.parameters),
            lambda answer: transient_line(answer, where, self.words),
        )
        return replace(certificate, transient=growth)

    def _ask_modified(self) -> dict[str, ModifiedEquation]:
        """The modified equation on every lattice, as far as the scheme has one."""
        equations, own = {}, self.scheme.equation
        if not self.linear and not own.linear:
            self.recorder.add_unknown("modified equation", "not defined: the equation is not linear in its unknown")
        for lattice, derive in lattice_equations(own, self.dimension).items():
            name = f"modified equation, {lattice}"
            self.recorder.announce(name)
            equation = self.recorder.attempt(name, partial(derive, self.scheme)) if self.linear else None
            if equation is not None:
                equations[lattice] = equation
                self.recorder.lines.append(modified_line(lattice, equation, heat=own == HEAT))
        return equations

    def _symbolic(self, modified: dict[str, ModifiedEquation]) -> bool | None:
        """Of other equations than heat, whether the formulas are right for every value of the parameters."""
        if self.scheme.equation == HEAT:
            return None
        return self.recorder.attempt("generator", lambda: is_own_symbolically(self.scheme, modified))
