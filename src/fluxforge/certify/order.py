"""Order in space: errors of steady states on manufactured solutions, family by family or mesh by mesh."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fluxforge.certify._evidence import Line, Verdict
from fluxforge.certify._families import Levels
from fluxforge.certify._problems import SINES, Problem, problems_of, scale_to_mesh
from fluxforge.certify._studies import LEAST_LEVELS, Rates, SpaceStudy, describe_rates, format_order
from fluxforge.certify._systems import steady_state
from fluxforge.errors import InputError, NumericalError
from fluxforge.expression._evaluate import evaluate
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings, reference_step
from fluxforge.pde._equation import HEAT, Equation, differentiate
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._stepper import general_stepper

# An order is quoted only if the error at the finest level is below this share of the solution.
LARGEST_ERROR = 0.1
# Orders of a user's own sequence are quoted from this many meshes.
LEAST_MESHES = 3


def measure_space_order(
    scheme: Scheme, levels: Levels, *, parameters: Settings | None = None, progress: Callable[[str], None] | None = None
) -> SpaceStudy:
    """Refine one family with u = sin πx sin πy, the solution of the published errors.

    This solution is zero on the walls and symmetric in x and y, so it cannot tell every wrong scheme: certificates use
    `study_family`.
    """
    problem = replace(SINES, equation=scheme.equation, parameters=parameters)
    return _refine(scheme, levels, (problem,), progress=progress, below=np.inf)[0]


def study_family(
    scheme: Scheme,
    levels: Levels,
    *,
    problems: tuple[Problem, ...] | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[SpaceStudy, ...]:
    """Refine one family; a study per manufactured problem of the scheme's equation, on the same meshes."""
    problems = problems_of(scheme.equation, levels.dimension) if problems is None else problems
    return _refine(scheme, levels, problems, progress=progress, below=LARGEST_ERROR)


def _refine(
    scheme: Scheme,
    levels: Levels,
    problems: tuple[Problem, ...],
    *,
    progress: Callable[[str], None] | None,
    below: float,
) -> tuple[SpaceStudy, ...]:
    cells, together, scatter = [], [], []
    for n in levels.sizes:
        if progress is not None:
            progress(f"space order, {levels.family}, n = {n}")
        graphs = [levels.graph(n, seed) for seed in levels.seeds]
        errors = np.array(
            [[measure_problem_errors(scheme, graph, problem) for problem in problems] for graph in graphs]
        )
        cells.append(round(float(np.mean([graph.cells for graph in graphs]))))
        mean = np.mean(errors**2, axis=0)
        together.append(np.sqrt(mean))
        if len(graphs) > 1:
            # Half the relative standard error of the mean square is that of its root.
            scatter.append(0.5 * np.std(errors**2, axis=0, ddof=1) / np.sqrt(len(graphs)) / np.maximum(mean, 1e-300))
    found = _Errors(cells, np.array(together), np.array(scatter))
    return _studies(levels.family, found, problems, below=below, least=LEAST_LEVELS, dimension=levels.dimension)


@dataclass(frozen=True)
class _Errors:
    """Errors and their relative standard errors (if any), by level, problem and norm: L2, then L∞."""

    cells: list[int]
    value: np.ndarray
    scatter: np.ndarray


def _studies(
    family: str, found: _Errors, problems: tuple[Problem, ...], *, below: float, least: int, dimension: int = 2
) -> tuple[SpaceStudy, ...]:
    """One study per problem."""
    h = tuple(float(np.sqrt(1.0 / count) if dimension == 2 else count ** (-1 / dimension)) for count in found.cells)

    def rates(k: int, norm: int) -> Rates:
        value = tuple(float(e) for e in found.value[:, k, norm])
        scatter = tuple(float(e) for e in found.scatter[:, k, norm]) if found.scatter.size else ()
        return Rates(h, value, below=below, least=least, scatter=scatter)

    return tuple(
        SpaceStudy(family, tuple(found.cells), rates(k, 0), rates(k, 1), problem.name)
        for k, problem in enumerate(problems)
    )


def check_sequence(meshes: Sequence[Mesh], exact: str | None, equation: Equation = HEAT) -> tuple[Problem, ...]:
    """The problems to be solved on the given meshes, from coarse to fine.

    With `exact`, a formula of x and y, the one problem whose solution it is, held on every wall; otherwise the two
    manufactured problems in the coordinates of the finest mesh's bounding box. Raises InputError for fewer than two
    meshes or meshes that do not get finer, ExpressionError for a solution that is not finite on one of them.
    """
    if len(meshes) < 2:
        raise InputError("a sequence of meshes needs at least two of them, from coarse to fine")
    for before, mesh in pairwise(meshes):
        if len(mesh.cells) <= len(before.cells):
            raise InputError(
                f"{mesh.origin}: has {len(mesh.cells)} cells, no more than the mesh before it: coarse meshes come first"
            )
    if exact is None:
        return tuple(scale_to_mesh(problem, meshes[-1]) for problem in problems_of(equation))
    problem = Problem(exact, exact, equation=equation)
    for mesh in meshes:
        problem.source(problem.graph(mesh))
    return (problem,)


def study_meshes(
    scheme: Scheme,
    meshes: Sequence[Mesh],
    *,
    exact: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[SpaceStudy, ...]:
    """Errors of steady states on the given meshes; a study per problem of `check_sequence`, and its exceptions."""
    problems = check_sequence(meshes, exact, scheme.equation)
    errors = []
    for mesh in meshes:
        if progress is not None:
            progress(f"steady states on {mesh.origin}")
        errors.append([measure_problem_errors(scheme, mesh, problem) for problem in problems])
    found = _Errors([len(mesh.cells) for mesh in meshes], np.array(errors), np.empty(0))
    return _studies("meshes", found, problems, below=LARGEST_ERROR, least=LEAST_MESHES)


def measure_steady_errors(scheme: Scheme, mesh: Mesh, *, parameters: Settings | None = None) -> tuple[float, float]:
    """Relative L2 and L∞ error of the steady state u = sin πx sin πy on one mesh."""
    return measure_problem_errors(scheme, mesh, replace(SINES, equation=scheme.equation, parameters=parameters))


def measure_problem_errors(scheme: Scheme, mesh: Mesh | DualGraph, problem: Problem) -> tuple[float, float]:
    """Relative L2 and L∞ error of the steady state of a manufactured problem on one mesh."""
    graph = problem.graph(mesh)
    u = problem.solution(graph)
    T = steady_state(scheme, graph, problem.source(graph), parameters=problem.settings(graph.dimension))
    apart, V = T - u, graph.V
    return float(np.sqrt(V @ apart**2 / (V @ u**2))), float(np.abs(apart).max() / np.abs(u).max())


def mesh_line(study: SpaceStudy) -> Line:
    """Errors and rates of one problem on the user's own meshes."""
    rates = study.l2
    if rates.exact:
        outcome = "exact"
    elif rates.order is not None:
        outcome = f"converges, order {rates.order:.2f}"
    else:
        outcome = "does not converge" if rates.stalled else "no order established"
    method = f"steady states on each mesh; an order needs three meshes and a last error below {LARGEST_ERROR:.0%}"
    verdict = Verdict.MEASURED if rates.convergent else Verdict.FAILS if rates.stalled else Verdict.UNKNOWN
    return Line(f"your meshes, {study.problem}: {outcome}", verdict, describe_study(study, named=False), method)


def describe_study(study: SpaceStudy, *, named: bool = True) -> str:
    """Errors, rates and order of a study, with the name of its problem unless `named` is false."""
    errors = " ".join(f"{error:.3e}" for error in study.l2.errors)
    cells = f"{study.cells[0]}–{study.cells[-1]} cells"
    text = f"L2 {errors} ({cells}), {describe_rates(study.l2)}"
    if not study.l2.errors[-1] <= study.l2.below:
        text += f", above {study.l2.below:.0%} of the solution"
    text += f", L∞ {study.linf.errors[-1]:.3e} at the finest, order {format_order(study.linf.order)}"
    return f"{study.problem}: {text}" if named else text


# Crossings of the domain after which the initial state has left it.
CROSSINGS = 2.0
# Share of the reference step at which our explicit schemes are stable; and the largest number of steps of a march.
FRACTION, MOST_STEPS = 0.4, 40_000


@dataclass(frozen=True)
class _Error:
    l2: float
    linf: float


def study_marched(
    scheme: Scheme, levels: Levels, *, progress: Callable[[str], None] | None = None
) -> tuple[SpaceStudy, ...]:
    """One study per family, of the problem that holds u on every wall; parameters are constant.

    Raises NumericalError where a march does not end or the field is not finite.
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
    l2, linf = (
        Rates(h, tuple(getattr(error, norm) for error in errors), below=LARGEST_ERROR, least=LEAST_LEVELS)
        for norm in ("l2", "linf")
    )
    return (SpaceStudy(levels.family, tuple(cells), l2, linf, "marched to steady state"),)


def _march(scheme: Scheme, graph: DualGraph, problem: Problem) -> _Error:
    u, settings = problem.solution(graph), problem.settings(graph.dimension)
    dt = FRACTION * reference_step(scheme.equation, graph, settings, u)
    steps = math.ceil(CROSSINGS * _crossing_time(scheme, graph, problem, u) / dt)
    if not 0 < steps <= MOST_STEPS:
        raise NumericalError(f"a march of {steps} steps is too long")
    stepper = general_stepper(scheme, graph, dt=dt, parameters=settings, source=problem.source(graph), dtype="float64")
    apart = np.asarray(stepper.rollout(u, steps)) - u
    if not np.isfinite(apart).all():
        raise NumericalError(f"the field is not finite after {steps} steps of {FRACTION:g} reference steps")
    V = graph.V
    return _Error(float(np.sqrt(V @ apart**2 / (V @ u**2))), float(np.abs(apart).max() / np.abs(u).max()))


def _crossing_time(scheme: Scheme, graph: DualGraph, problem: Problem, u: np.ndarray) -> float:
    """The time in which the slowest state crosses the domain."""
    equation = scheme.equation
    assert equation.velocity is not None
    a = np.asarray(problem.settings(graph.dimension)[equation.velocity], float)
    slope = np.abs(evaluate(differentiate(equation.transported, equation.u), {equation.u: u}, np))
    span = graph.centre.max(axis=0) - graph.centre.min(axis=0)
    slowest = float(np.quantile(slope, 0.05)) * float(np.abs(a).max())
    if slowest == 0:
        raise NumericalError("nothing is carried")
    return float(span.max() / slowest)
