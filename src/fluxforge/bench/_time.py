"""`fluxforge bench time`: local coefficients, compared with fixed polynomials and other methods.

Single steps are measured on a mesh of any size; runs to one end time with the same number of operator applications, on
meshes that are small enough for an eigendecomposition of L.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fluxforge._types import CellField
from fluxforge.bench._carried import Carried, kept_formulas, read_carried
from fluxforge.bench._time_case import FIELDS, MESHES, Step, TimeCase, best_polynomial, change_error, make_case
from fluxforge.bench._time_methods import (
    STAGES,
    Method,
    carried_method,
    carried_substeps,
    fitted_methods,
    highest_optimal_degree,
    implicit_method,
    is_resolved,
    krylov_method,
    polynomial_method,
    short_methods,
    stabilised_methods,
    tableau_method,
)
from fluxforge.bench._time_rows import RunRow, TimeRow, conclude
from fluxforge.errors import InputError
from fluxforge.scheme._tableau import TABLEAUX, rkc2_tableau, rkl2_tableau
from fluxforge.stepping._exponential import (
    ImplicitStep,
    chebyshev_exponential,
    nearest_polynomial,
    optimal_polynomial,
)

FOURIER = (0.5, 4.0)
END_TIME = 0.02
MOST_CELLS_OF_RUNS = 1_000
BUDGETS = (4.0, 1.0)
"""Operator applications per Fourier step: two stages at half a Fourier step, and four stages at four."""
_STAGES = (4, 8, 16)
_SERIES = (4, 16, 64)
_IMPLICIT_STEPS = (8, 32, 128)
_KRYLOV = 60
# A run has blown up if max |T| exceeds that of the initial field by this factor.
_BLOW_UP_RATIO = 1e3


Progress = Callable[[str], None]


@dataclass(frozen=True)
class TimeBench:
    """The rows of single steps and of runs, conclusions as sentences, and the ratio of cell sizes of each mesh."""

    meshes: dict[str, float]
    rows: tuple[TimeRow, ...]
    runs: tuple[RunRow, ...]
    conclusions: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        return {"time": asdict(self)}


def bench_time(
    cells: int = 10_000,
    *,
    meshes: Sequence[str] = MESHES,
    runs: Sequence[Path] = (),
    end_time: float | None = END_TIME,
    progress: Progress | None = None,
) -> TimeBench:
    """Measure one step of 0.5 and of 4 Fourier steps by every method, and runs to `end_time` with equal work.

    The methods include the formulas stored in the package and the networks of the run folders `runs`. Runs are on a
    mesh of at most 1,000 cells; with `end_time` None there are none. Raises InputError for an unknown mesh, or for a
    run folder whose network is not in the form of a flux.
    """
    if not 50 <= cells <= 1_000_000:
        raise InputError(f"cells should be between 50 and 1e6, got {cells}")
    if unknown := [name for name in meshes if name not in MESHES]:
        raise InputError(f"mesh: there is no mesh {unknown[0]!r}; choose from {', '.join(MESHES)}")
    tell = progress or (lambda _: None)
    carried = [*kept_formulas().values(), *(each for folder in runs for each in read_carried(folder))]
    rows: list[TimeRow] = []
    run_rows: list[RunRow] = []
    ratios = {}
    for name in dict.fromkeys(meshes):
        tell(f"{name} mesh")
        case = make_case(name, cells)
        ratios[name] = case.size_ratio
        for fourier in FOURIER:
            tell(f"{name} mesh, steps of {fourier:g} Fourier steps")
            rows += _measure_steps(case, fourier, carried)
        if end_time is not None:
            tell(f"{name} mesh, runs")
            small = case if cells <= MOST_CELLS_OF_RUNS else make_case(name, MOST_CELLS_OF_RUNS)
            run_rows += measure_runs(small, end_time, carried)
    return TimeBench(ratios, tuple(rows), tuple(run_rows), conclude(rows, run_rows))


def _measure_steps(case: TimeCase, fourier: float, carried: Sequence[Carried]) -> Iterator[TimeRow]:
    fields = {kind: case.field(kind) for kind in FIELDS}
    exact = {kind: case.resolve(T, fourier) for kind, T in fields.items()}
    for method, substeps in _list_methods(case, fourier, carried):
        start = time.perf_counter()
        step = method.make(case, fourier / substeps)
        # The first step includes what a method computes only once.
        step(fields["smooth"])
        setup = time.perf_counter() - start
        for kind, T in fields.items():
            yield _measure(case, fourier, method, substeps, step, kind, T, exact[kind], setup)
    for kind, T in fields.items():
        for s in (s for s in STAGES if s <= 8):
            best = best_polynomial(case, T, exact[kind], fourier=fourier, degree=s)
            method = polynomial_method("oracle", f"oracle-{s}", best)
            yield _measure(case, fourier, method, 1, method.make(case, fourier), kind, T, exact[kind], 0.0)


def _list_methods(case: TimeCase, fourier: float, carried: Sequence[Carried]) -> Iterator[tuple[Method, int]]:
    reach = case.reach * fourier
    yield from short_methods(reach)
    for method in stabilised_methods(reach):
        yield method, 1
    for method in fitted_methods(reach, fourier):
        yield method, 1
    for size in STAGES:
        yield krylov_method(size), 1
    for name in ("crank-nicolson", "tr-bdf2"):
        for substeps in (1, 2, 4):
            yield implicit_method(name), substeps
    for each in carried:
        for substeps in carried_substeps(each, fourier):
            yield carried_method(each), substeps


def _measure(
    case: TimeCase,
    fourier: float,
    method: Method,
    substeps: int,
    step: Step,
    kind: str,
    T: CellField,
    exact: CellField,
    setup: float,
) -> TimeRow:
    after, applications = _count_work(method, step, T, substeps)
    return TimeRow(
        mesh=case.name,
        cells=case.graph.cells,
        field=kind,
        fourier=fourier,
        family=method.family,
        method=method.name,
        stages=method.stages,
        substeps=substeps,
        applications=applications,
        error=_finite_or_none(change_error(after, exact, T)),
        error_volume=_finite_or_none(change_error(after, exact, T, case.graph.V)),
        seconds=_least_seconds(step, T, substeps, rounds=9),
        setup_seconds=setup,
    )


def _repeat(step: Step, T: CellField, times: int) -> CellField:
    for _ in range(times):
        T = step(T)
    return T


def _count_work(method: Method, step: Step, T: CellField, times: int) -> tuple[CellField, float]:
    """The field after `times` steps, and the number of applications of the operator."""
    before = step.applications if isinstance(step, ImplicitStep) else 0.0
    T = _repeat(step, T, times)
    return T, step.applications - before if isinstance(step, ImplicitStep) else float(times * method.stages)


def _least_seconds(step: Step, T: CellField, times: int, *, rounds: int) -> float:
    """The least seconds that `times` steps take, over `rounds` rounds."""

    def measure() -> float:
        start = time.perf_counter()
        _repeat(step, T, times)
        return time.perf_counter() - start

    return min(measure() for _ in range(rounds))


def _finite_or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None


@dataclass(frozen=True)
class _Spectrum:
    """A = V^−½ Q diag(values) Qᵀ V^½."""

    values: np.ndarray
    vectors: np.ndarray
    root: np.ndarray

    def apply(self, factor: Callable[[np.ndarray], np.ndarray], T: CellField) -> CellField:
        return np.asarray((self.vectors @ (factor(self.values) * (self.vectors.T @ (self.root * T)))) / self.root)


def measure_runs(case: TimeCase, end_time: float, carried: Sequence[Carried]) -> Iterator[RunRow]:
    """Run all methods to `end_time` for both fields and budgets; methods that would not be stable are left out."""
    length = end_time / case.fourier_step
    values, vectors = np.linalg.eigh(case.symmetric.toarray())
    spectrum = _Spectrum(np.minimum(values, 0.0), vectors, np.sqrt(case.graph.V))
    fields = {kind: case.field(kind) for kind in FIELDS}
    exact = {kind: spectrum.apply(lambda z: np.exp(length * z), T) for kind, T in fields.items()}
    for budget in BUDGETS:
        for method, steps in _plan_runs(case, length, budget, carried):
            fourier = length / steps
            step = method.make(case, fourier)
            run = _make_runner(method, step, steps, spectrum, fourier)
            for kind, T in fields.items():
                last, applications = run(T)
                bounded = np.isfinite(last).all() and np.abs(last).max() <= _BLOW_UP_RATIO * np.abs(T).max()
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
                    seconds=_least_seconds(step, T, 1, rounds=3) * steps,
                )


def _plan_runs(
    case: TimeCase, length: float, budget: float, carried: Sequence[Carried]
) -> Iterator[tuple[Method, int]]:
    """The methods with the number of steps that the budget allows, without those that would not be stable."""

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
        if s <= highest_optimal_degree() and reach_of(s) <= optimal_polynomial(s).reach:
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


def _make_runner(
    method: Method, step: Step, steps: int, spectrum: _Spectrum, fourier: float
) -> Callable[[CellField], tuple[CellField, float]]:
    """A function from the initial field to the last one and the number of applications.

    A polynomial of the operator is evaluated mode by mode. For a step with local coefficients the power of its matrix
    is computed, with a number of products like log₂ of the number of steps.
    """
    if method.factor is not None:
        factor, used = method.factor, float(steps * method.stages)
        return lambda T: (spectrum.apply(lambda z: factor(fourier * z) ** steps, T), used)
    if method.family == "local":
        matrix = np.stack([step(column) for column in np.eye(len(spectrum.values))], axis=1)
        with np.errstate(all="ignore"):
            whole = np.linalg.matrix_power(matrix, steps)
        return lambda T: (whole @ T, float(steps * method.stages))
    return lambda T: _count_work(method, step, T, steps)
