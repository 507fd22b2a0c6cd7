"""The paper's memory figure: what each scheme needs, over mesh size and time step, measured and counted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jax
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge.data._meshes import generate_meshes
from fluxforge.paper.studies._measures import graph_of
from fluxforge.paper.studies._records import Claim, Measurements, Verdict, open_measurements
from fluxforge.paper.studies._tasks import Footprint, Task, count_bytes, measure_tasks
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping._solvers import Solver

NAME = "memory"
SEED = 1


@dataclass(frozen=True)
class Subject:
    """What is measured: a scheme, and for an implicit one its solver."""

    scheme: str | None
    solver: Solver | None = None


SUBJECTS: Mapping[str, Subject] = {
    **{
        name: Subject(name)
        for name in ("euler", "midpoint", "midpoint-printed", "two-hop", "two-hop-printed", "rkl2-8")
    },
    "crank-nicolson, LU": Subject("crank-nicolson", "direct"),
    "crank-nicolson, CG": Subject("crank-nicolson", "cg"),
}
# On fewer cells than these the compiler's own memory, which changes with their number, is larger than any scheme's.
SIZES: Mapping[str, tuple[int, ...]] = {
    "quick": (10_000, 30_000, 60_000, 100_000),
    "paper": (10_000, 30_000, 100_000, 200_000),
}
# Two time steps, far apart, at which every scheme is stable.
FOURIER = (0.125, 0.75)
DISCOVERED = ("midpoint-printed", "two-hop-printed")
# Much lower: at most that share of the other's bytes per cell.
MUCH_LOWER = 0.5
# Does not depend on Δt: on the largest mesh bytes per cell differ by less than that share, or by fewer than two fields.
SAME, SAME_BYTES = 0.1, 16.0


class Counted(Struct, frozen=True):
    """Bytes of the arrays that a scheme holds on a mesh."""

    bytes: float


class Row(Struct, frozen=True):
    """Bytes of one scheme on one mesh with one step: measured with its assembly, while it steps, and counted."""

    scheme: str
    wanted: int
    cells: int
    fourier: float
    whole: int
    stepping: int
    counted: float


class BytesPerCell(Struct, frozen=True):
    """Slopes over the mesh sizes, None of a single size; and on the largest mesh by step, while stepping."""

    stepping: float | None
    whole: float | None
    counted: float | None
    largest_by_step: dict[str, float]
    sizes: int


class Result(Struct, frozen=True):
    """The result of the study."""

    experiment: str
    preset: str
    fractions: list[float]
    baseline: list[Footprint]
    rows: list[Row]
    bytes_per_cell: dict[str, BytesPerCell]
    choices: dict[str, str]


@dataclass(frozen=True)
class Config:
    """Mesh sizes, steps in Fourier steps, and how many processes measure at once: memory has no clock to disturb."""

    preset: str = "quick"
    changes: recipe.Changes = field(default_factory=dict)
    cells: tuple[int, ...] | None = None
    fractions: tuple[float, ...] = FOURIER
    subjects: tuple[str, ...] = tuple(SUBJECTS)
    workers: int | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of cells given, or the preset's."""
        return SIZES[self.preset] if self.cells is None else self.cells

    def steps(self, cells: int) -> tuple[float, ...]:
        """The steps on a mesh: all of them, but for a quick answer only the first on any but the largest."""
        return self.fractions[:1] if self.preset == "quick" and cells < max(self.sizes) else self.fractions


def run(config: Config, folder: Path | None = None, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """A process per scheme, mesh and step; measurements that the folder holds are read."""
    with jax.enable_x64(True), open_measurements(None if folder is None else folder / "grid", warn) as held:
        bare = {cells: _task(None, cells, fraction=0.0) for cells in config.sizes}
        wanted = {
            (name, cells, fraction): _task(name, cells, fraction=fraction)
            for cells in config.sizes
            for name in config.subjects
            for fraction in config.steps(cells)
        }
        for k, cells in enumerate(config.sizes):
            tell(f"mesh of {cells} cells", k, len(config.sizes))
            generate_meshes([{"kind": "irregular", "cells": cells, "seed": SEED, "engine": "builtin"}])
        tasks = [*bare.values(), *wanted.values()]
        found = measure_tasks(tasks, Footprint, held, tell=tell, workers=config.workers)
        counted = {(name, cells): _count(name, cells, held) for cells in config.sizes for name in config.subjects}
    baseline = dict(zip(bare, found, strict=False))
    rows = [
        _row(where, one, baseline=baseline[where[1]], counted=counted[where[:2]])
        for where, one in zip(wanted, found[len(bare) :], strict=True)
    ]
    return Result(
        experiment=NAME,
        preset=config.preset,
        fractions=list(config.fractions),
        baseline=[replace(one, wanted=cells) for cells, one in baseline.items()],
        rows=rows,
        bytes_per_cell={name: _fit_bytes(rows, name) for name in config.subjects},
        choices=CHOICES,
    )


CHOICES = {
    "measured": "peak resident memory of a process per scheme, mesh and step, less what it was once the mesh, its "
    "graph and JAX were there; on a system that cannot forget a peak, less that of a process that stops there",
    "stepping": "the peak while it steps, once all is assembled, compiled and factorised; whole: with that",
    "counted": "bytes of the arrays it holds: coefficients, indices, fields; LU by the non-zeros of its factors",
    "bytes per cell": "the slope of a least-squares line through all mesh sizes; what does not grow is its intercept",
    "time step": "no explicit scheme holds anything that depends on Δt: two steps are measured to show it",
}


def _task(name: str | None, cells: int, *, fraction: float) -> Task:
    subject = SUBJECTS[name] if name is not None else Subject(None)
    return Task(
        task="memory",
        baseline="its own mark",
        cells=cells,
        seed=SEED,
        fourier=fraction,
        scheme=subject.scheme,
        solver=subject.solver,
    )


def _count(name: str, cells: int, held: Measurements) -> float:
    subject = SUBJECTS[name]
    task = Task(task="counted", cells=cells, seed=SEED, scheme=subject.scheme, solver=subject.solver)
    scheme = BUILT_IN[subject.scheme or ""]
    found = held.measure_once(
        task.title, task, Counted, lambda: Counted(count_bytes(scheme, graph_of(cells, SEED), subject.solver))
    )
    return found.bytes


def _row(where: tuple[str, int, float], one: Footprint, *, baseline: Footprint, counted: float) -> Row:
    name, cells, fraction = where
    # Processes differ by megabytes before they begin: where peaks can be forgotten, each is its own baseline.
    whole = one.whole - (one.start if one.forgets else baseline.whole)
    stepping = one.stepping - (one.start if one.forgets else baseline.stepping)
    return Row(name, cells, one.cells, fraction, whole, stepping, counted)


def _fit_bytes(rows: Sequence[Row], name: str) -> BytesPerCell:
    """Bytes per cell over all sizes, at the first step; and on the largest mesh alone, for each step."""
    own = [row for row in rows if row.scheme == name]
    first = [row for row in own if row.fourier == own[0].fourier]
    cells, largest = [row.cells for row in first], max(row.cells for row in own)
    return BytesPerCell(
        stepping=_slope(cells, [row.stepping for row in first]),
        whole=_slope(cells, [row.whole for row in first]),
        counted=_slope(cells, [row.counted for row in first]),
        largest_by_step={f"{row.fourier:g}": row.stepping / row.cells for row in own if row.cells == largest},
        sizes=len(first),
    )


def _slope(cells: Sequence[int], values: Sequence[float]) -> float | None:
    return float(np.polyfit(cells, values, 1)[0]) if len(set(cells)) > 1 else None


def judge(result: Result) -> list[Claim]:
    """The claim on memory against each solver of Crank–Nicolson by itself."""
    return [_judge_memory(result, solver) for solver in ("LU", "CG")]


def _memory_shares(result: Result, solver: str) -> Iterator[tuple[str, float | None, float | None]]:
    """Measured and counted bytes per cell of each discovered scheme over Crank–Nicolson's."""
    other = result.bytes_per_cell[f"crank-nicolson, {solver}"]
    for name in DISCOVERED:
        own = result.bytes_per_cell[name]
        yield name, _share(own.stepping, other.stepping), _share(own.counted, other.counted)


def _share(own: float | None, other: float | None) -> float | None:
    return None if own is None or other is None or other <= 0 else own / other


def _judge_memory(result: Result, solver: str) -> Claim:
    """Holds if measured and counted bytes agree that it is much lower, for both schemes; in part if for some.

    How much it takes to assemble a scheme is ours to mend, and no property of it: it is told, not judged.
    """
    found = list(_memory_shares(result, solver))
    much = [share is not None and share <= MUCH_LOWER for _, *shares in found for share in shares]
    verdict: Verdict = "holds" if all(much) else "holds under a condition" if any(much) else "does not hold"
    other = result.bytes_per_cell[f"crank-nicolson, {solver}"]
    parts = [
        f"{name} {_format_bytes(result.bytes_per_cell[name].stepping)} measured, "
        f"{_format_bytes(result.bytes_per_cell[name].counted)} counted, "
        f"{_format_bytes(result.bytes_per_cell[name].whole)} while it is assembled"
        for name, *_ in found
    ]
    evidence = (
        f"bytes per cell: {'; '.join(parts)}; Crank–Nicolson by {solver} {_format_bytes(other.stepping)}, "
        f"{_format_bytes(other.counted)} and {_format_bytes(other.whole)} "
        f"(much lower: at most {MUCH_LOWER:.0%} of the first two); {_describe_time_step(result)}"
    )
    text = "the discovered schemes offer a much lower memory consumption"
    return Claim(f"less memory than Crank–Nicolson by {solver}", f"{text} (than CN, by {solver})", verdict, evidence)


def _format_bytes(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}"


def _describe_time_step(result: Result) -> str:
    """Whether the time step matters to an explicit scheme, in words."""
    gaps, same = [], True
    for name, fits in result.bytes_per_cell.items():
        values = fits.largest_by_step.values()
        if not name.startswith("crank-nicolson"):
            gaps.append(max(values) - min(values))
            same &= gaps[-1] <= max(SAME * max(values), SAME_BYTES)
    steps = " and ".join(f"{fraction:g}" for fraction in result.fractions)
    said = "no explicit scheme's memory depends on Δt" if same else "an explicit scheme's memory depends on Δt"
    return f"{said}: at {steps} Fourier steps it differs by at most {max(gaps, default=0.0):.0f} bytes per cell"
