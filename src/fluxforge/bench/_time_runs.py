"""Runs to one time with the same number of operator applications, on meshes small enough to know exp(tL) exactly."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fluxforge._types import CellField
from fluxforge.bench._carried import Carried
from fluxforge.bench._time_case import FIELDS, Step, TimeCase, change_error
from fluxforge.bench._time_methods import (
    Method,
    carried_method,
    implicit_method,
    is_resolved,
    krylov_method,
    most_optimal,
    polynomial_method,
    tableau_method,
)
from fluxforge.bench._time_rows import RunRow
from fluxforge.scheme import rkl2_tableau
from fluxforge.scheme._tableau import TABLEAUX, rkc2_tableau
from fluxforge.stepping._exponential import (
    ImplicitStep,
    chebyshev_exponential,
    nearest_polynomial,
    optimal_interval,
    optimal_polynomial,
)

BUDGETS = (4.0, 1.0)
"""Operator applications per Fourier step: two stages at half a Fourier step, and four stages at four."""
_STAGES = (4, 8, 16)
_SERIES = (4, 16, 64)
_IMPLICIT_STEPS = (8, 32, 128)
_KRYLOV = 60
# A field is said to blow up where it exceeds its initial values so many times.
_BLOWN = 1e3


@dataclass(frozen=True)
class _Spectrum:
    """A = V^−½ Q diag(values) Qᵀ V^½."""

    values: np.ndarray
    vectors: np.ndarray
    root: np.ndarray

    def apply(self, factor: Callable[[np.ndarray], np.ndarray], T: CellField) -> CellField:
        return np.asarray((self.vectors @ (factor(self.values) * (self.vectors.T @ (self.root * T)))) / self.root)


def measure_runs(case: TimeCase, end_time: float, carried: Sequence[Carried]) -> Iterator[RunRow]:
    """Rows of both fields and budgets; on a mesh whose step is longer than the run there are none."""
    length = end_time / case.fourier_step
    values, vectors = np.linalg.eigh(case.symmetric.toarray())
    spectrum = _Spectrum(np.minimum(values, 0.0), vectors, np.sqrt(case.graph.V))
    fields = {kind: case.field(kind) for kind in FIELDS}
    exact = {kind: spectrum.apply(lambda z: np.exp(length * z), T) for kind, T in fields.items()}
    for budget in BUDGETS:
        for method, steps in _planned(case, length, budget, carried):
            fourier = length / steps
            step = method.make(case, fourier)
            run = _runner(method, step, steps, spectrum, fourier)
            for kind, T in fields.items():
                seconds = _time(step, T)
                last, applications = run(T)
                bounded = np.isfinite(last).all() and np.abs(last).max() <= _BLOWN * np.abs(T).max()
                yield RunRow(
                    mesh=case.name,
                    cells=case.graph.cells,
                    field=kind,
                    budget=budget,
                    family=method.family,
                    method=method.name,
                    steps=steps,
                    fourier=fourier,
                    applications=applications,
                    error=change_error(last, exact[kind], T) if bounded else None,
                    seconds=seconds * steps,
                )


def _planned(case: TimeCase, length: float, budget: float, carried: Sequence[Carried]) -> Iterator[tuple[Method, int]]:
    """Methods with the number of steps that the budget allows; those left out that would not be stable."""

    def steps_of(stages: int) -> int:
        return max(1, round(budget * length / stages))

    def reach_of(stages: int) -> float:
        return case.reach * length / steps_of(stages)

    for name in ("midpoint", "rk4"):
        s = len(TABLEAUX[name].rows)
        if reach_of(s) <= TABLEAUX[name].stable_to:
            yield tableau_method(name, TABLEAUX[name]), steps_of(s)
    for s in _STAGES:
        for family, make in (("rkl2", rkl2_tableau), ("rkc2", rkc2_tableau)):
            if reach_of(s) <= make(s).stable_to:
                yield tableau_method(family, make(s)), steps_of(s)
        if s <= most_optimal() and reach_of(s) <= optimal_interval(s):
            yield polynomial_method("optimal", f"optimal-{s}", optimal_polynomial(s)), steps_of(s)
        if is_resolved(chebyshev_exponential(s, reach_of(s))):
            yield polynomial_method("minimax", f"minimax-{s}", nearest_polynomial(s, reach_of(s))), steps_of(s)
    for s in _SERIES:
        yield polynomial_method("chebyshev", f"chebyshev-{s}", chebyshev_exponential(s, reach_of(s))), steps_of(s)
    if budget == min(BUDGETS):
        yield krylov_method(_KRYLOV), steps_of(_KRYLOV)
        for name in ("crank-nicolson", "tr-bdf2"):
            for steps in _IMPLICIT_STEPS:
                yield implicit_method(name), steps
    for each in carried:
        low, high = each.fourier
        if low <= length / steps_of(each.stages) <= high * 1.01:
            yield carried_method(each), steps_of(each.stages)


def _runner(
    method: Method, step: Step, steps: int, spectrum: _Spectrum, fourier: float
) -> Callable[[CellField], tuple[CellField, float]]:
    """From initial values to the last ones and the number of applications.

    A polynomial of the operator acts mode by mode. The matrix of a step with local coefficients is raised to a power:
    it takes as many products as the number of steps has binary digits.
    """
    if method.factor is not None:
        factor, used = method.factor, float(steps * method.stages)
        return lambda T: (spectrum.apply(lambda z: factor(fourier * z) ** steps, T), used)
    if method.family == "local":
        matrix = np.stack([step(column) for column in np.eye(len(spectrum.values))], axis=1)
        with np.errstate(all="ignore"):
            whole = np.linalg.matrix_power(matrix, steps)
        return lambda T: (whole @ T, float(steps * method.stages))

    def run(T: CellField) -> tuple[CellField, float]:
        before = step.work.applications if isinstance(step, ImplicitStep) else 0.0
        for _ in range(steps):
            T = step(T)
        return T, step.work.applications - before if isinstance(step, ImplicitStep) else float(steps * method.stages)

    return run


def _time(step: Step, T: CellField) -> float:
    found = []
    for _ in range(3):
        start = time.perf_counter()
        step(T)
        found.append(time.perf_counter() - start)
    return min(found)
