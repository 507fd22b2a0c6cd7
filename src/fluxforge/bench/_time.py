"""`fluxforge bench time`: coefficients that follow the local Fourier number, beside fixed polynomials and others."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fluxforge._types import CellField
from fluxforge.bench._carried import Carried, kept_formulas, read_carried
from fluxforge.bench._time_case import FIELDS, MESHES, Step, TimeCase, change_error, make_case
from fluxforge.bench._time_fit import best_polynomial
from fluxforge.bench._time_methods import (
    STAGES,
    Method,
    carried_method,
    carried_substeps,
    fitted_methods,
    implicit_method,
    krylov_method,
    polynomial_method,
    short_methods,
    stabilised_methods,
)
from fluxforge.bench._time_rows import RunRow, TimeRow
from fluxforge.bench._time_runs import measure_runs
from fluxforge.bench._time_verdicts import conclude
from fluxforge.errors import InputError
from fluxforge.stepping._exponential import ImplicitStep

FOURIER = (0.5, 4.0)
END_TIME = 0.02
MOST_CELLS_OF_RUNS = 1_000
_ROUNDS = 9

Progress = Callable[[str], None]


@dataclass(frozen=True)
class TimeBench:
    """All rows, the runs, and what follows from them in words; `meshes` gives the ratio of sizes of each mesh."""

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
    """One step of 0.5 and of 4 Fourier steps by every method, and runs to `end_time` with equal work; None for no runs.

    The formulas kept in the package take part, and the networks of the run folders `runs`. Runs are on a mesh of at
    most 1,000 cells. Raises InputError for a mesh that is not there or a run that has no network in the form of a flux.
    """
    if not 50 <= cells <= 1_000_000:
        raise InputError(f"cells should be between 50 and 1e6, got {cells}")
    if unknown := [name for name in meshes if name not in MESHES]:
        raise InputError(f"mesh: no mesh {unknown[0]!r}; there are {', '.join(MESHES)}")
    tell = progress or (lambda _: None)
    carried = [*kept_formulas().values(), *(each for folder in runs for each in read_carried(folder))]
    rows: list[TimeRow] = []
    found: list[RunRow] = []
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
            found += measure_runs(small, end_time, carried)
    return TimeBench(ratios, tuple(rows), tuple(found), conclude(rows, found))


def _measure_steps(case: TimeCase, fourier: float, carried: Sequence[Carried]) -> Iterator[TimeRow]:
    fields = {kind: case.field(kind) for kind in FIELDS}
    exact = {kind: case.resolve(T, fourier) for kind, T in fields.items()}
    for method, substeps in _methods(case, fourier, carried):
        start = time.perf_counter()
        step = method.make(case, fourier / substeps)
        # What a method computes once, it computes at its first step.
        repeat(step, fields["smooth"], 1)
        setup = time.perf_counter() - start
        for kind, T in fields.items():
            yield _measure(case, fourier, method, substeps, step, kind, T, exact[kind], setup)
    for kind, T in fields.items():
        for s in (s for s in STAGES if s <= 8):
            best = best_polynomial(case, T, exact[kind], fourier=fourier, degree=s)
            method = polynomial_method("oracle", f"oracle-{s}", best)
            yield _measure(case, fourier, method, 1, method.make(case, fourier), kind, T, exact[kind], 0.0)


def _methods(case: TimeCase, fourier: float, carried: Sequence[Carried]) -> Iterator[tuple[Method, int]]:
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
    if isinstance(step, ImplicitStep):
        step.work.applications = 0.0
    found = repeat(step, T, substeps)
    if isinstance(step, ImplicitStep):
        applications = step.work.applications
    else:
        assert method.applications is not None
        applications = float(method.applications * substeps)
    seconds = min(_time(step, T, substeps) for _ in range(_ROUNDS))
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
        error=_finite(change_error(found, exact, T)),
        error_volume=_finite(change_error(found, exact, T, case.graph.V)),
        seconds=seconds,
        setup_seconds=setup,
    )


def repeat(step: Step, T: CellField, times: int) -> CellField:
    """Many steps."""
    for _ in range(times):
        T = step(T)
    return T


def _time(step: Step, T: CellField, substeps: int) -> float:
    start = time.perf_counter()
    repeat(step, T, substeps)
    return time.perf_counter() - start


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
