"""Order in space of schemes that are not linear: a manufactured solution that is steady, marched for several crossings.

A linear scheme's steady state is solved for; here the solution itself is the initial state, its source is switched on,
and the field is marched until what flows in has crossed the domain twice. What is left is the steady state's error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fluxforge.certify._evidence import LEAST_LEVELS, Rates
from fluxforge.certify._families import Levels, count_cells
from fluxforge.certify._problems import Problem, problems_of
from fluxforge.certify.order import LARGEST_ERROR, SpaceStudy
from fluxforge.errors import NumericalError
from fluxforge.expression._evaluate import evaluate
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import reference_step
from fluxforge.pde._equation import differentiate
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._stepper import general_stepper

# Crossings of the domain after which the initial state has left it.
CROSSINGS = 2.0
# Share of the reference step at which our explicit schemes are stable; and the largest number of steps of a march.
FRACTION, MOST_STEPS = 0.4, 40_000


@dataclass(frozen=True)
class _Error:
    l2: float
    linf: float


def marched_studies(
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
        mesh = levels.refine_to(n)
        cells.append(count_cells(mesh))
        errors.append(_march(scheme, problem.graph(mesh), problem))
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
