"""Certificates of schemes: the measurements in their order, and the check of the claims against the results."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import sympy as sp

from fluxforge._arguments import check_flag, check_function, check_text
from fluxforge.certify._certificate import Certificate, Request
from fluxforge.certify._claims import check_certificate, claim_line
from fluxforge.certify._equations import ModifiedEquation
from fluxforge.certify._evidence import Line, Progress, Recorder
from fluxforge.certify._families import (
    Levels,
    choose_levels,
    default_graph,
    rough_tetrahedra_graph,
    small_graph,
    study_graph,
)
from fluxforge.certify._problems import carried_values, differentiate_solution
from fluxforge.certify._properties import Stability, TransientGrowth
from fluxforge.certify._refinement import refine_family, refine_own_meshes
from fluxforge.certify._studies import PatchTest
from fluxforge.certify._summary import summarise
from fluxforge.certify.conservation import conservation_line, measure_conservation
from fluxforge.certify.cost import compare_costs, cost_line, linearity_line, measure_cost, measure_linearity
from fluxforge.certify.flux import Flux, flux_of, named_limiter, states_of, steps_like_euler
from fluxforge.certify.growth import (
    MOST_CELLS,
    maximum_line,
    measure_maximum_principle,
    measure_transient_growth,
    transient_line,
)
from fluxforge.certify.limiter import limited_bound_line, limiter_line, limiter_region
from fluxforge.certify.modified import choose_lattices, is_own_symbolically, modified_equation, modified_line
from fluxforge.certify.order import check_sequence, measure_time_order, time_line
from fluxforge.certify.patch import alignment, alignment_line, choose_worse, patch_line, residuals_line, run_patch_tests
from fluxforge.certify.riemann import layer_line, riemann_line, solve_boundary_layer, solve_riemann
from fluxforge.certify.semidiscrete import compare_rate, compare_system, generator_line, rate_line
from fluxforge.certify.stability import find_largest_step, measure_stability, stability_line
from fluxforge.certify.transport import Monotonicity, TransportProperties
from fluxforge.certify.two_point import (
    bound_line,
    bound_step,
    entropy_line,
    examine_e_condition,
    examine_monotonicity,
    find_peclet_limit,
    identity_line,
    is_antisymmetric,
    is_consistent,
    monotone_line,
)
from fluxforge.certify.units import measure_units, units_line
from fluxforge.errors import ExpressionError, InputError
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import squares
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._read import as_mesh
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._document import find
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._scheme import Hop, Scheme

# Limits of a certificate, which factorises matrices of its meshes.
LARGEST_MESH = 20_000
MOST_MESHES = 8


def verify(
    scheme: str | os.PathLike[str] | Scheme,
    *,
    equation: str | os.PathLike[str] | Equation | None = None,
    families: tuple[str, ...] | None = None,
    levels: int | None = None,
    quick: bool = False,
    mesh: Mesh | str | os.PathLike[str] | None = None,
    meshes: Sequence[str | os.PathLike[str] | Mesh] = (),
    exact: str | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """Certify a scheme: a built-in name, a `scheme.json` or a Scheme; of a built-in method, for an `equation`.

    `families` and `levels` limit the refinement studies, `quick` makes them smaller. With `mesh`, the lines that need
    no refinement (stencil, conservation, patch tests, largest stable step, maximum principle) are established on it,
    and the refinement studies are left out. With `meshes`, paths or meshes from coarse to fine, the errors, rates and
    order of steady states on them take the place of the families; `exact` is then the solution, a formula of x and y.

    Claims that are left out this way do not affect the verdict; a claim that should have been measured and could not be
    makes it "not established". Raises InputError for options that exclude each other and for meshes that are too large.
    """
    scheme = find(scheme, equation)
    check_flag(quick, "quick"), check_function(progress, "progress")
    mesh = None if mesh is None else as_mesh(mesh)
    if mesh is not None and meshes:
        raise InputError("give one mesh or a sequence of meshes, not both")
    if (meshes or mesh is not None) and (families is not None or levels is not None):
        why = "meshes= takes the place of the families" if meshes else "mesh= certifies without refinement"
        raise InputError(f"{why}: leave out families and levels")
    if exact is not None:
        check_text(exact, "exact")
        if not meshes:
            raise InputError("an exact solution is used with a sequence of meshes only: give meshes too")
        try:
            differentiate_solution(exact)
        except ExpressionError as error:
            raise ExpressionError(f"exact: {error}") from error
    sequence = _load_meshes(meshes)
    if families is None and scheme.equation.velocity is not None and linear_stages(scheme) is None:
        # Marching costs more than solving, and lines of cells run through squares only.
        families = ("squares",) if quick or Hop.LINE in scheme.hops() else ("squares", "right", "equilateral")
    alone = mesh is not None or bool(sequence)
    chosen = () if alone else choose_levels(families, levels, quick=quick, dimension=scheme.dimension)
    for one in (*sequence, *([mesh] if mesh is not None else [])):
        if len(one.cells) > LARGEST_MESH:
            raise InputError(
                f"{one.origin}: has {len(one.cells)} cells; certificates are computed for at most {LARGEST_MESH}"
            )
    if sequence:
        check_sequence(sequence, exact, scheme.equation)
    request = Request(scheme, mesh, chosen, sequence, exact, quick)
    with jax.enable_x64(True):
        return Verification(request, progress).run()


def _load_meshes(meshes: Sequence[str | os.PathLike[str] | Mesh]) -> tuple[Mesh, ...]:
    """The meshes, those given as paths read from files; raises InputError unless they are a sequence of 2 to 8."""
    if isinstance(meshes, str | os.PathLike | Mesh) or not isinstance(meshes, Sequence):
        raise InputError("meshes should be a sequence of at least two meshes or paths, from coarse to fine")
    if meshes and not 2 <= len(meshes) <= MOST_MESHES:
        raise InputError(
            f"meshes should be a sequence of 2 to {MOST_MESHES} meshes, from coarse to fine; got {len(meshes)}"
        )
    return tuple(as_mesh(one, f"meshes[{k}]") for k, one in enumerate(meshes))


def _state_values(values: Mapping[sp.Symbol, sp.Expr], line: Callable[..., Line]) -> Callable[..., Line]:
    """The function `line`, with the values of parameters for which something was established added to the evidence."""

    def with_values(*about: Any) -> Line:
        made = line(*about)
        given = ", ".join(f"{v} = {float(value):g}" for v, value in values.items())
        return replace(made, evidence=f"{made.evidence}; for {given}") if given else made

    return with_values


class Verification:
    """Measures the properties of one scheme; `run` returns its certificate.

    Most `_ask_…` methods take the certificate so far and return it with more results. Questions are asked in the order
    of the certificate's lines.
    """

    def __init__(self, request: Request, progress: Progress | None) -> None:
        self.request = request
        self.scheme = request.scheme
        self.mesh = request.mesh
        self.dimension = request.dimension
        self.words = self.scheme.equation.words
        self.parameters = self.scheme.equation.example(self.dimension)
        self.linear = linear_stages(self.scheme) is not None
        refined = sum(len(levels.sizes) for levels in request.families) + len(request.meshes)
        questions = (12 if self.mesh is None else 9) + refined
        self.recorder = Recorder(linear=self.linear, questions=questions, progress=progress)
        # Lines of cells run through quadrilaterals only.
        self.on_lines = Hop.LINE in self.scheme.hops()
        if self.mesh is not None:
            self.graph, self.where = dual(self.mesh), f"on {self.mesh.origin}"
        elif self.on_lines:
            self.graph, self.where = dual(squares(8)), "on 8 × 8 squares"
        else:
            self.graph, self.where = default_graph(self.dimension), "on an irregular mesh"
        # The mesh for conservation and patch tests; None stands for their own irregular mesh of the plane.
        self.rough: Mesh | DualGraph | None = self.mesh
        if self.mesh is None and self.dimension == 3:
            self.rough = rough_tetrahedra_graph()

    def run(self) -> Certificate:
        """Measure all properties, then compare the claims with the results."""
        mesh = None if self.mesh is None else self.mesh.origin
        certificate = Certificate(scheme=self.scheme.name, quick=self.request.quick, mesh=mesh)
        certificate = self._ask_operator(certificate)
        certificate = self._ask_small_steps(certificate)
        certificate = self._ask_steps(certificate)
        certificate = self._ask_refinement(certificate)
        certificate = self._ask_cost(certificate)
        symbolic = self._check_symbolically(certificate.modified)
        claims = check_certificate(certificate, self.request, self.recorder.reasons, symbolic=symbolic)
        lines = (*self.recorder.lines, *map(claim_line, claims))
        certificate = replace(certificate, claims=claims, lines=lines)
        return replace(certificate, summary=summarise(certificate, self.scheme))

    def _ask_operator(self, certificate: Certificate) -> Certificate:
        """Linearity, conservation and units of one step."""
        s, where, p, ask = self.scheme, self.where, self.parameters, partial(self.recorder.ask, always=True)
        measure_it = partial(measure_linearity, s, self.graph, parameters=p)
        linearity = ask("linearity", measure_it, linearity_line, where, self.words.unknown)
        measure = partial(measure_conservation, s, self.rough, parameters=p)
        conservation = ask("conservation", measure, conservation_line, where)
        units = ask("units", lambda: measure_units(s, self._study_graph()), units_line, self.words)
        return replace(certificate, linearity=linearity, conservation=conservation, units=units)

    def _ask_small_steps(self, certificate: Certificate) -> Certificate:
        """The limit of small steps: patch tests, the semi-discrete system, and the fluxes of transport."""
        s, p, ask = self.scheme, self.parameters, self.recorder.ask
        patch, system, rate = self._ask_patch(), None, None
        if patch is not None:
            graph = study_graph(self.dimension)
            system = ask("generator", lambda: compare_system(s, graph, patch, parameters=p), generator_line, self.words)
        if not self.linear and (not s.equation.linear or s.equation.velocity is not None):
            rate = ask("generator", lambda: compare_rate(s, self._study_graph(), parameters=p), rate_line, always=True)
        tensor = self.recorder.attempt("flux of the tensor", lambda: alignment(s, self.graph, parameters=p))
        if tensor is not None:
            self.recorder.lines.append(alignment_line(tensor, self.where))
        transport = self._ask_transport(s.equation)
        return replace(certificate, patch=patch, semidiscrete=system, rate=rate, transport=transport)

    def _ask_transport(self, equation: Equation) -> TransportProperties | None:
        """Flux, limiter, Riemann problems and boundary layer; None for an equation without transport."""
        if equation.velocity is None:
            return None
        s, ask = self.scheme, partial(self.recorder.ask, always=True)
        flux, limiter, states = flux_of(s), named_limiter(s), states_of(equation)
        properties = TransportProperties(states) if flux is None else self._ask_flux(flux)
        if limiter is not None:
            region = ask("limiter", lambda: limiter_region(limiter.phi), limiter_line)
            one_stage = len(s.stages) == 1
            if region is not None and region.holds and one_stage:
                ask("total variation", lambda: region, lambda _: limited_bound_line())
            properties = replace(properties, limiter=region, limited_steps=region is not None and one_stage)
        only_transports = equation.diffusion == 0 and equation.reaction == 0 and equation.capacity == 1
        if only_transports and self.mesh is None and self.dimension == 2:
            given = partial(_state_values, carried_values(equation))
            studies = ask("Riemann problems", lambda: solve_riemann(s, states), given(riemann_line))
            properties = replace(properties, riemann=studies or ())
        scalar = equation.diffusion != 0 and equation.diffusion_tensor is None
        if scalar and equation.linear and equation.reaction == 0 and self.linear:
            ask("boundary layer", lambda: solve_boundary_layer(s), layer_line)
        return properties

    def _ask_flux(self, flux: Flux) -> TransportProperties:
        """Consistency, monotonicity, E-condition and total variation of a two-point flux."""
        ask, states = partial(self.recorder.ask, always=True), flux.states
        both = ask("flux", lambda: (is_consistent(flux), is_antisymmetric(flux)), lambda answer: identity_line(*answer))
        consistent, antisymmetric = (None, None) if both is None else both

        def measure() -> tuple[Monotonicity, float | None]:
            answer = examine_monotonicity(flux)
            return answer, find_peclet_limit(flux) if answer.holds is False and flux.diffuses else None

        given = partial(_state_values, flux.constants)
        slopes = ask("monotonicity", measure, given(lambda answer: monotone_line(answer[0], answer[1], states)))
        monotone, limit = (None, None) if slopes is None else slopes
        entropy = bound = None
        if monotone is not None and not flux.diffuses:
            entropy = ask("E-flux", lambda: examine_e_condition(flux, monotone), given(entropy_line))
            if monotone.holds and steps_like_euler(self.scheme):
                swaps, top = antisymmetric is not None and antisymmetric.holds, monotone.scale
                measure_bound = partial(bound_step, flux, top, antisymmetric=swaps)
                bound = ask("total variation", measure_bound, given(bound_line), states)
        return TransportProperties(states, consistent, antisymmetric, monotone, limit, entropy, bound)

    def _ask_steps(self, certificate: Certificate) -> Certificate:
        """Properties that depend on Δt: order in time, largest stable step, transient growth, maximum principle."""
        s, p, where, words, ask = self.scheme, self.parameters, self.where, self.words, self.recorder.ask
        if self.mesh is None:
            graph = study_graph(self.dimension)
            study = ask("order in time", lambda: measure_time_order(s, graph, parameters=p), time_line)
            certificate = replace(certificate, time=study)
        find_limit = partial(measure_stability, s, self.graph, parameters=p)
        stability = ask("stability", find_limit, stability_line, where, words)
        growth = self._ask_transient(stability)
        find_principle = partial(measure_maximum_principle, s, self.graph, parameters=p)
        maximum = ask("maximum principle", find_principle, maximum_line, where, words)
        return replace(certificate, stability=stability, transient=growth, maximum=maximum)

    def _ask_refinement(self, certificate: Certificate) -> Certificate:
        """Modified equations on lattices, errors on families of meshes and on the user's own sequence."""
        modified = self._ask_modified() if self.mesh is None else {}
        space = {
            levels.family: refine_family(self.request, self.recorder, levels, certificate.patch)
            for levels in self.request.families
        }
        if not self.linear and self.scheme.equation.velocity is None:
            # Nothing was measured: only the lines with the reasons remain.
            space = {}
        meshes = refine_own_meshes(self.request, self.recorder)
        return replace(certificate, modified=modified, space=space, meshes=meshes)

    def _ask_cost(self, certificate: Certificate) -> Certificate:
        """Cost of a step; in a full certificate in the plane, also the error at equal cost."""
        s, p, curves = self.scheme, self.parameters, None
        if self.linear and self.mesh is None and not self.request.quick and self.dimension == 2:
            curves = self.recorder.attempt("cost at equal accuracy", lambda: compare_costs(s, parameters=p))
        measure = partial(measure_cost, s, self.graph, parameters=p)
        cost = self.recorder.ask("cost of a step", measure, cost_line, curves or (), s.name, always=True)
        return replace(certificate, cost=cost, curves=curves or ())

    def _study_graph(self) -> DualGraph:
        """The graph on which rates of change are compared."""
        return self.graph if self.on_lines else study_graph(self.dimension)

    def _ask_patch(self) -> PatchTest | None:
        """The patch test with held walls or with mixed ones, whichever is worse; residuals have a line of their own."""
        mesh = Levels("irregular", (9,)).mesh(9) if self.rough is None else self.rough
        tests = self.recorder.ask("patch tests", lambda: run_patch_tests(self.scheme, mesh), patch_line, self.where)
        if tests is None:
            return None
        self.recorder.lines.append(residuals_line(tests, self.where, self.words))
        return choose_worse(*tests)

    def _ask_transient(self, stability: Stability | None) -> TransientGrowth | None:
        """Transient growth on the given mesh if it is small enough for a dense matrix, otherwise on a small one."""
        p = self.parameters
        if self.mesh is not None and self.graph.cells <= MOST_CELLS:
            graph, known, where = self.graph, stability, self.where
        else:
            graph, known = small_graph(self.dimension), None
            where = "on 72 jittered triangles" if self.dimension == 2 else f"on {graph.cells} jittered tetrahedra"

        def measure() -> TransientGrowth:
            largest = find_largest_step(self.scheme, graph, parameters=p) if known is None else known.dt_max
            return measure_transient_growth(self.scheme, graph, largest=largest, parameters=p)

        return self.recorder.ask("transient growth", measure, transient_line, where, self.words)

    def _ask_modified(self) -> dict[str, ModifiedEquation]:
        """The modified equations of a linear scheme by lattice; lattices where none can be derived are left out."""
        equations, own = {}, self.scheme.equation
        if not self.linear and not own.linear:
            self.recorder.add_unknown("modified equation", "not defined: the equation is not linear in its unknown")
        for lattice in choose_lattices(own, self.dimension):
            name = f"modified equation, {lattice}"
            self.recorder.announce(name)
            derive = partial(modified_equation, self.scheme, lattice)
            equation = self.recorder.attempt(name, derive) if self.linear else None
            if equation is not None:
                equations[lattice] = equation
                self.recorder.lines.append(modified_line(lattice, equation, heat=own == HEAT))
        return equations

    def _check_symbolically(self, modified: dict[str, ModifiedEquation]) -> bool | None:
        """For equations other than heat, whether the formulas are right for every value of the parameters."""
        if self.scheme.equation == HEAT:
            return None
        return self.recorder.attempt("generator", lambda: is_own_symbolically(self.scheme, modified))
