"""Order in space and in time.

In space: errors of steady states on manufactured solutions, family by family or mesh by mesh. A linear scheme's steady
state is solved for. A scheme that is not linear is marched: the exact solution is the initial state, its source is
switched on, and after the inflow has crossed the domain twice, the remaining difference is the error of the steady
state.

In time: relative to the exact solution of the scheme's own semi-discrete system, by Taylor coefficients and observed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fluxforge.certify._evidence import Line, Verdict
from fluxforge.certify._families import Levels, study_graph
from fluxforge.certify._problems import SINES, Problem, carried_flux, problems_of, scale_to_mesh, with_study_walls
from fluxforge.certify._studies import LEAST_LEVELS, Rates, SpaceStudy, TimeStudy, format_order
from fluxforge.certify._systems import exact_solution, march, steady_solver, study_step
from fluxforge.errors import InputError, NumericalError
from fluxforge.expression._evaluate import evaluate
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._norms import relative_l2, relative_max
from fluxforge.mesh._parameters import Settings, reference_step
from fluxforge.pde._equation import HEAT, Equation, differentiate
from fluxforge.scheme._linear import HIGHEST_ORDER, one_cell_order
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import generator, operator, sides
from fluxforge.stepping._stepper import general_stepper

# announce(text) is called before each measurement.
Announce = Callable[[str], None]

# An order is quoted only if the error at the finest level is below this share of the solution.
LARGEST_ERROR = 0.1
# Orders of a user's own sequence are quoted from this many meshes.
LEAST_MESHES = 3


def measure_space_order(scheme: Scheme, levels: Levels) -> SpaceStudy:
    """Refine one family with u = sin πx sin πy, the solution of the published errors.

    This solution is zero on the walls and symmetric in x and y, so it does not reveal every error: certificates use
    `study_family`.
    """
    problem = replace(SINES, equation=scheme.equation)
    return _refine(scheme, levels, (problem,), progress=None, below=np.inf)[0]


def study_family(scheme: Scheme, levels: Levels, *, progress: Announce | None = None) -> tuple[SpaceStudy, ...]:
    """Refine one family: one study per manufactured problem of the scheme's equation, all on the same meshes."""
    problems = problems_of(scheme.equation, levels.dimension)
    return _refine(scheme, levels, problems, progress=progress, below=LARGEST_ERROR)


def _refine(
    scheme: Scheme, levels: Levels, problems: tuple[Problem, ...], *, progress: Announce | None, below: float
) -> tuple[SpaceStudy, ...]:
    cells, rms, scatter = [], [], []
    for n in levels.sizes:
        if progress is not None:
            progress(f"space order, {levels.family}, n = {n}")
        graphs = [levels.graph(n, seed) for seed in levels.seeds]
        errors = np.array(
            [[measure_problem_errors(scheme, graph, problem) for problem in problems] for graph in graphs]
        )
        cells.append(round(float(np.mean([graph.cells for graph in graphs]))))
        mean = np.mean(errors**2, axis=0)
        rms.append(np.sqrt(mean))
        if len(graphs) > 1:
            # Half the relative standard error of the mean square is that of its root.
            scatter.append(0.5 * np.std(errors**2, axis=0, ddof=1) / np.sqrt(len(graphs)) / np.maximum(mean, 1e-300))
    table = _Errors(cells, np.array(rms), np.array(scatter))
    return _studies(levels.family, table, problems, below=below, least=LEAST_LEVELS, dimension=levels.dimension)


@dataclass(frozen=True)
class _Errors:
    """Errors and their relative standard errors (if any), by level, problem and norm: L2, then L∞."""

    cells: list[int]
    value: np.ndarray
    scatter: np.ndarray


def _studies(
    family: str, errors: _Errors, problems: tuple[Problem, ...], *, below: float, least: int, dimension: int = 2
) -> tuple[SpaceStudy, ...]:
    """One study per problem."""
    h = tuple(float(np.sqrt(1.0 / count) if dimension == 2 else count ** (-1 / dimension)) for count in errors.cells)

    def rates(k: int, norm: int) -> Rates:
        value = tuple(float(e) for e in errors.value[:, k, norm])
        scatter = tuple(float(e) for e in errors.scatter[:, k, norm]) if errors.scatter.size else ()
        return Rates(h, value, below=below, least=least, scatter=scatter)

    return tuple(
        SpaceStudy(family, tuple(errors.cells), rates(k, 0), rates(k, 1), problem.name)
        for k, problem in enumerate(problems)
    )


def check_sequence(meshes: Sequence[Mesh], exact: str | None, equation: Equation = HEAT) -> tuple[Problem, ...]:
    """The problems to be solved on the given meshes, from coarse to fine.

    With `exact`, a formula of x and y, this is the one problem with that solution, given on every wall; otherwise the
    manufactured problems of the equation in the coordinates of the finest mesh's bounding box. Raises InputError for
    fewer than two meshes or meshes that do not get finer, ExpressionError for a solution that is not finite on one.
    """
    if len(meshes) < 2:
        raise InputError("a sequence of meshes needs at least two of them, from coarse to fine")
    for before, mesh in pairwise(meshes):
        if len(mesh.cells) <= len(before.cells):
            raise InputError(
                f"{mesh.origin}: has {len(mesh.cells)} cells, no more than the mesh before it: order the meshes "
                "from coarse to fine"
            )
    if exact is None:
        return tuple(scale_to_mesh(problem, meshes[-1]) for problem in problems_of(equation))
    problem = Problem(exact, exact, equation=equation)
    for mesh in meshes:
        problem.source(problem.graph(mesh))
    return (problem,)


def study_meshes(
    scheme: Scheme, meshes: Sequence[Mesh], *, exact: str | None = None, progress: Announce | None = None
) -> tuple[SpaceStudy, ...]:
    """Errors of steady states on the given meshes, a study per problem of `check_sequence`; raises as that does."""
    problems = check_sequence(meshes, exact, scheme.equation)
    errors = []
    for mesh in meshes:
        if progress is not None:
            progress(f"steady states on {mesh.origin}")
        errors.append([measure_problem_errors(scheme, mesh, problem) for problem in problems])
    table = _Errors([len(mesh.cells) for mesh in meshes], np.array(errors), np.empty(0))
    return _studies("meshes", table, problems, below=LARGEST_ERROR, least=LEAST_MESHES)


def measure_steady_errors(scheme: Scheme, mesh: Mesh, *, parameters: Settings | None = None) -> tuple[float, float]:
    """Relative L2 and L∞ error of the steady state u = sin πx sin πy on one mesh."""
    return measure_problem_errors(scheme, mesh, replace(SINES, equation=scheme.equation, parameters=parameters))


def measure_problem_errors(scheme: Scheme, mesh: Mesh | DualGraph, problem: Problem) -> tuple[float, float]:
    """Relative L2 and L∞ error of the steady state of a manufactured problem on one mesh."""
    graph = problem.graph(mesh)
    u = problem.solution(graph)
    solve = steady_solver(scheme, graph, parameters=problem.settings(graph.dimension))
    return _relative_errors(solve(problem.source(graph)), u, graph.V)


def _relative_errors(u: np.ndarray, exact: np.ndarray, V: np.ndarray) -> tuple[float, float]:
    """The L2 and L∞ norms of the error of u, relative to those of the exact solution."""
    return relative_l2(u, exact, V), relative_max(u, exact)


def mesh_line(study: SpaceStudy) -> Line:
    """The line on errors and rates of one problem on the user's own meshes."""
    rates = study.l2
    method = f"steady states on each mesh; an order needs three meshes and a last error below {LARGEST_ERROR:.0%}"
    verdict = Verdict.MEASURED if rates.convergent else Verdict.FAILS if rates.stalled else Verdict.UNKNOWN
    name = f"your meshes, {study.problem}: {rates.outcome}"
    return Line(name, verdict, describe_study(study, named=False), method)


def describe_study(study: SpaceStudy, *, named: bool = True) -> str:
    """Errors, rates and order of a study, with the name of its problem unless `named` is false."""
    errors = " ".join(f"{error:.3e}" for error in study.l2.errors)
    cells = f"{study.cells[0]}–{study.cells[-1]} cells"
    text = f"L2 {errors} ({cells}), {study.l2}"
    if not study.l2.errors[-1] <= study.l2.below:
        text += f", above {study.l2.below:.0%} of the solution"
    text += f", L∞ {study.linf.errors[-1]:.3e} at the finest, order {format_order(study.linf.order)}"
    return f"{study.problem}: {text}" if named else text


# Number of crossings of the domain after which the initial state has left it.
CROSSINGS = 2.0
# The fraction of the reference step at which our explicit schemes are stable; the largest number of steps of a march.
FRACTION, MOST_STEPS = 0.4, 40_000


def study_marched(scheme: Scheme, levels: Levels, *, progress: Announce | None = None) -> SpaceStudy:
    """Study the problem with u given on every wall and constant parameters, marched in time to its steady state.

    Raises NumericalError if a march would take too many steps, or if the field is not finite.
    """
    problem = replace(problems_of(scheme.equation, levels.dimension)[0], mixed=False)
    cells, errors = [], []
    for n in levels.sizes:
        if progress is not None:
            progress(f"space order, {levels.family}, n = {n}")
        graph = problem.graph(levels.graph(n))
        cells.append(graph.cells)
        errors.append(_march(scheme, graph, problem))
    h = tuple(count ** (-1 / levels.dimension) for count in cells)
    l2, linf = (Rates(h, values, below=LARGEST_ERROR) for values in zip(*errors, strict=True))
    return SpaceStudy(levels.family, tuple(cells), l2, linf, "marched to steady state")


def _march(scheme: Scheme, graph: DualGraph, problem: Problem) -> tuple[float, float]:
    """Relative L2 and L∞ error after a march from the solution itself."""
    u, settings = problem.solution(graph), problem.settings(graph.dimension)
    dt = FRACTION * reference_step(scheme.equation, graph, settings, u)
    steps = math.ceil(CROSSINGS * _crossing_time(scheme, graph, problem, u) / dt)
    if not 0 < steps <= MOST_STEPS:
        raise NumericalError(f"marching to the steady state would take {steps} steps, which is too many")
    stepper = general_stepper(scheme, graph, dt=dt, parameters=settings, source=problem.source(graph), dtype="float64")
    after = np.asarray(stepper.rollout(u, steps))
    if not np.isfinite(after).all():
        raise NumericalError(f"the field is not finite after {steps} steps of {FRACTION:g} reference steps")
    return _relative_errors(after, u, graph.V)


def _crossing_time(scheme: Scheme, graph: DualGraph, problem: Problem, u: np.ndarray) -> float:
    """The time in which slow states, those at the 5 % quantile of |f′|, cross the domain."""
    equation = scheme.equation
    assert equation.velocity is not None
    settings = problem.settings(graph.dimension)
    a = np.asarray(settings[equation.velocity], float)
    slope = np.abs(evaluate(differentiate(carried_flux(equation, settings), equation.u), {equation.u: u}, np))
    span = graph.centre.max(axis=0) - graph.centre.min(axis=0)
    slowest = float(np.quantile(slope, 0.05)) * float(np.abs(a).max())
    if slowest == 0:
        raise NumericalError("no time in which the solution crosses the domain is defined: a f'(u) is 0")
    return float(span.max() / slowest)


# Values of Δt, each half of the one before; the finest may reach round-off.
LEVELS = 7
# Taylor coefficients come from this many points on a circle of half the Fourier step. Aliasing is below 0.41^POINTS
# = 4e-13 of the first pole's (Crank-Nicolson, |z| = 2), round-off below eps·k!/0.8^k = 1e-13 for k ≤ 6.
POINTS = 32
SAME_SERIES = 1e-9


def measure_time_order(
    scheme: Scheme, graph: DualGraph | None = None, *, parameters: Settings | None = None
) -> TimeStudy:
    """Errors at t = 2 Δt_Fourier, Δt being a quarter of the Fourier step, halved six times; and Taylor coefficients."""
    graph = study_graph() if graph is None else graph
    fourier = study_step(scheme, graph, parameters)
    rng = np.random.default_rng(0)
    T0, S = rng.standard_normal(graph.cells), rng.standard_normal(graph.cells)
    zero = np.zeros(graph.cells)
    system = generator(scheme, graph, parameters=parameters)
    runs = {"free": (T0, zero), "driven": (zero, S)}
    errors: dict[str, list[float]] = {name: [] for name in runs}
    steps = [8 * 2**k for k in range(LEVELS)]
    for count in steps:
        dt = 2 * fourier / count
        step = operator(scheme, graph, dt=dt, parameters=parameters)
        for name, (start, source) in runs.items():
            exact = exact_solution(system, start, source, 2 * fourier)
            apart = march(step, start, source, count) - exact
            errors[name].append(float(np.abs(apart).max() / max(np.abs(exact).max(), 1e-300)))
    sizes = tuple(1.0 / count for count in steps)
    free, driven = (_drop_round_off(Rates(sizes, tuple(errors[name]))) for name in runs)
    series = measure_series_order(scheme, parameters=parameters, dimension=graph.dimension)
    return TimeStudy(free, driven, one_cell_order(scheme), series)


def measure_series_order(scheme: Scheme, *, parameters: Settings | None = None, dimension: int = 2) -> int | None:
    """The number of Taylor coefficients in Δt of T' = M T + N S + b that are those of the exact solution, up to 6.

    M_k = G^k/k!, N_k = G^(k−1)s/k! and b_k = G^(k−1)r/k!, with the coefficients from complex steps around a circle; on
    an irregular mesh with Dirichlet and Neumann walls, compared to 1e-9 of the largest entry. None for a step that is
    not analytic in Δt, as with √Δt or log Δt in a coefficient.
    """
    graph = with_study_walls(study_graph(dimension))
    system = generator(scheme, graph, parameters=parameters)
    S = np.random.default_rng(0).standard_normal(graph.cells)
    longest = 0.5 * study_step(scheme, graph, parameters)
    # Poles of implicit methods may lie inside the first circle. Smaller ones lose digits of the high coefficients.
    radii = (longest, longest / 2, longest / 4)
    circles = ((radius, _taylor_coefficients(scheme, graph, S, radius, parameters)) for radius in radii)
    radius, coefficients = next(((radius, each) for radius, each in circles if each is not None), (longest, None))
    if coefficients is None:
        return None
    G = system.M.toarray() * radius
    power = np.eye(graph.cells)
    columns = np.stack([system.N @ S, system.b], axis=1) * radius
    for k in range(1, HIGHEST_ORDER + 1):
        wanted = np.hstack([power @ G, power @ columns]) / math.factorial(k)
        blocks = (slice(0, graph.cells), slice(graph.cells, -1), slice(-1, None))
        for block in blocks:
            apart = np.abs(coefficients[k][:, block] - wanted[:, block]).max()
            if not apart <= SAME_SERIES * max(
                np.abs(wanted[:, block]).max(), np.abs(coefficients[k][:, block]).max(), 1e-30
            ):
                return k - 1
        power = power @ G
    return HIGHEST_ORDER


def _taylor_coefficients(
    scheme: Scheme, graph: DualGraph, S: np.ndarray, radius: float, parameters: Settings | None
) -> np.ndarray | None:
    """The coefficients of (Δt/radius)^k of the columns M, N S and b, by the discrete Fourier transform.

    None if the coefficient of k = 0 is not that of the step with Δt = 0, the identity: then the circle encloses a pole
    or crosses a branch cut.
    """
    values = []
    # The values at conjugate Δt are conjugate: half the circle is enough.
    for k in range(POINTS // 2 + 1):
        step = operator(scheme, graph, dt=radius * np.exp(2j * np.pi * k / POINTS), parameters=parameters)
        columns = np.stack([step.N @ S, step.b], axis=1)
        left, right = (side.toarray() for side in sides(step))
        both = np.hstack([right, columns])
        values.append(both if step.theta == 0 else np.linalg.solve(left, both))
    coefficients = np.fft.hfft(np.array(values), n=POINTS, axis=0) / POINTS
    start = np.eye(graph.cells, graph.cells + 2)
    return coefficients[: HIGHEST_ORDER + 1] if np.abs(coefficients[0] - start).max() <= SAME_SERIES else None


def _drop_round_off(rates: Rates) -> Rates:
    """Drop the finest levels whose errors are near round-off, as long as four remain."""
    keep = len(rates.errors)
    while keep > 4 and rates.errors[keep - 1] < 1e-12 and not rates.exact:
        keep -= 1
    return Rates(rates.sizes[:keep], rates.errors[:keep])


def time_line(study: TimeStudy) -> Line:
    """The line on the order in time."""
    evidence = f"free run {study.free}; driven run {study.driven}"
    exact = study.exact_order
    if exact is not None:
        evidence = f"Taylor coefficients of a step agree with the exact solution's up to Δt^{exact}; {evidence}"
        if study.observed is not None and abs(study.observed - exact) > 0.1:
            evidence += f"; at these Δt it looks like {study.observed:.2f}"
    verdict = Verdict.MEASURED if study.order is not None else Verdict.FAILS
    method = "R(z) against eᶻ exactly; Taylor coefficients on a mesh; runs against the matrix exponential of its own G"
    return Line(f"order in time {format_order(study.order)}", verdict, evidence, method)
