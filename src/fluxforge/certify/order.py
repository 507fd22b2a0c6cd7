"""Order in space: errors of steady states on manufactured solutions, family by family or mesh by mesh."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fluxforge.certify._evidence import LEAST_LEVELS, Line, Rates, Verdict, number, rates_in_words
from fluxforge.certify._families import Levels, count_cells
from fluxforge.certify._problems import SINES, Problem, problems_of, scaled_to
from fluxforge.certify._steady import steady_state
from fluxforge.errors import InputError
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._scheme import Scheme

# An order is quoted only if the error at the finest level is below this share of the solution.
LARGEST_ERROR = 0.1
# Orders of a user's own sequence are quoted from this many meshes.
LEAST_MESHES = 3


@dataclass(frozen=True)
class SpaceStudy:
    """Relative errors of the steady state of the scheme's equation for one manufactured u.

    The error is against u at the centroids: L2 is volume-weighted, both are relative to the norm of u. On random
    families it is the root mean square over several meshes of each size.
    """

    family: str
    cells: tuple[int, ...]
    l2: Rates
    linf: Rates
    problem: str = SINES.name


def space_order(
    scheme: Scheme, levels: Levels, *, parameters: Settings | None = None, progress: Callable[[str], None] | None = None
) -> SpaceStudy:
    """Refine one family with u = sin πx sin πy, the solution of the published errors.

    This solution is zero on the walls and symmetric in x and y, so it cannot tell every wrong scheme: certificates use
    `space_studies`.
    """
    problem = replace(SINES, equation=scheme.equation, parameters=parameters)
    return _refine(scheme, levels, (problem,), progress=progress, below=np.inf)[0]


def space_studies(
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
        meshes = [levels.refine_to(n, seed) for seed in levels.seeds]
        errors = np.array([[problem_errors(scheme, mesh, problem) for problem in problems] for mesh in meshes])
        cells.append(round(float(np.mean([count_cells(mesh) for mesh in meshes]))))
        mean = np.mean(errors**2, axis=0)
        together.append(np.sqrt(mean))
        if len(meshes) > 1:
            # Half the relative standard error of the mean square is that of its root.
            scatter.append(0.5 * np.std(errors**2, axis=0, ddof=1) / np.sqrt(len(meshes)) / np.maximum(mean, 1e-300))
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
        return tuple(scaled_to(problem, meshes[-1]) for problem in problems_of(equation))
    problem = Problem(exact, exact, equation=equation)
    for mesh in meshes:
        problem.source(problem.graph(mesh))
    return (problem,)


def mesh_studies(
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
        errors.append([problem_errors(scheme, mesh, problem) for problem in problems])
    found = _Errors([len(mesh.cells) for mesh in meshes], np.array(errors), np.empty(0))
    return _studies("meshes", found, problems, below=LARGEST_ERROR, least=LEAST_MESHES)


def steady_errors(scheme: Scheme, mesh: Mesh, *, parameters: Settings | None = None) -> tuple[float, float]:
    """Relative L2 and L∞ error of the steady state u = sin πx sin πy on one mesh."""
    return problem_errors(scheme, mesh, replace(SINES, equation=scheme.equation, parameters=parameters))


def problem_errors(scheme: Scheme, mesh: Mesh | DualGraph, problem: Problem) -> tuple[float, float]:
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
    return Line(f"your meshes, {study.problem}: {outcome}", verdict, study_in_words(study, named=False), method)


def study_in_words(study: SpaceStudy, *, named: bool = True) -> str:
    """Errors, rates and order of a study, with the name of its problem unless `named` is false."""
    errors = " ".join(f"{error:.3e}" for error in study.l2.errors)
    cells = f"{study.cells[0]}–{study.cells[-1]} cells"
    text = f"L2 {errors} ({cells}), {rates_in_words(study.l2)}"
    if not study.l2.errors[-1] <= study.l2.below:
        text += f", above {study.l2.below:.0%} of the solution"
    text += f", L∞ {study.linf.errors[-1]:.3e} at the finest, order {number(study.linf.order)}"
    return f"{study.problem}: {text}" if named else text
