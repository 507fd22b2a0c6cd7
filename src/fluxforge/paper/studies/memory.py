"""The paper's memory figure: memory of each scheme over mesh size and Δt, measured and counted."""

import ctypes
import gc
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from fluxforge.certify.cost import measure_cost
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import fourier_step
from fluxforge.paper.studies._measures import make_graph, make_irregular, make_stepper
from fluxforge.paper.studies._records import Claim, StudyConfig, to_verdict
from fluxforge.paper.studies._tasks import Measurements, Task, measure_tasks, open_measurements
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping._build import stepper
from fluxforge.stepping._solvers import Solver

NAME = "memory"
SEED = 1
# Number of steps over which the peak of memory is measured.
STEPS = 3


@dataclass(frozen=True)
class Subject:
    """A scheme whose memory is measured, None for the mesh alone, and the solver of an implicit scheme."""

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
# Numbers of cells. With fewer, the compiler's memory, which depends on the number, exceeds that of every scheme.
SIZES: Mapping[str, tuple[int, ...]] = {
    "quick": (10_000, 30_000, 60_000, 100_000),
    "paper": (10_000, 30_000, 100_000, 200_000),
}
# Two very different Δt, in Fourier steps, at which every scheme is stable.
FOURIER = (0.125, 0.75)
DISCOVERED = ("midpoint-printed", "two-hop-printed")
# "Much lower": at most this share of the bytes per cell of Crank–Nicolson.
LOWER_SHARE = 0.5
# Memory does not depend on Δt if bytes per cell on the largest mesh differ by at most this share, or by two fields.
SAME, SAME_BYTES = 0.1, 16.0


class Counted(Struct, frozen=True):
    """Total bytes of the arrays of a scheme on a mesh."""

    bytes: float


class Footprint(Struct, frozen=True):
    """Peak resident bytes of a process: before there is a stepper, with its assembly, and while it steps.

    These are `start`, `whole` and `stepping`. `forgets` says whether the operating system can reset the peak; `wanted`
    is the requested number of cells.
    """

    cells: int
    start: int
    whole: int
    stepping: int
    forgets: bool = True
    wanted: int = 0


class Row(Struct, frozen=True):
    """Bytes of a scheme on one mesh with one Δt: measured with its assembly, measured while it steps, and counted."""

    scheme: str
    wanted: int
    cells: int
    fourier: float
    whole: int
    stepping: int
    counted: float


class BytesPerCell(Struct, frozen=True):
    """Slopes of bytes over cells, None for a single size; and bytes per cell on the largest mesh, by Δt."""

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
class Config(StudyConfig):
    """Mesh sizes, Δt in Fourier steps, and number of parallel processes, which would disturb times but not memory."""

    cells: tuple[int, ...] | None = None
    fractions: tuple[float, ...] = FOURIER
    subjects: tuple[str, ...] = tuple(SUBJECTS)
    workers: int | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The requested numbers of cells: `cells` if given, otherwise those of the preset."""
        return SIZES[self.preset] if self.cells is None else self.cells

    def steps(self, cells: int) -> tuple[float, ...]:
        """The Δt for a mesh: all of them, but with the preset `quick` only the first unless the mesh is the largest."""
        return self.fractions[:1] if self.preset == "quick" and cells < max(self.sizes) else self.fractions


def run(config: Config, folder: Path, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Measure each scheme, mesh and Δt in a process of its own; measurements stored in the folder are read."""
    with jax.enable_x64(True), open_measurements(folder, warn) as held:
        bare = {cells: _make_task(Subject(None), cells, fraction=0.0) for cells in config.sizes}
        runs = {
            (name, cells, fraction): _make_task(SUBJECTS[name], cells, fraction=fraction)
            for cells in config.sizes
            for name in config.subjects
            for fraction in config.steps(cells)
        }
        for k, cells in enumerate(config.sizes):
            tell(f"mesh of {cells} cells", k, len(config.sizes))
            make_irregular(cells, SEED)
        tasks = [*bare.values(), *runs.values()]
        footprints = measure_tasks(tasks, Footprint, held, measure=measure_footprint, tell=tell, workers=config.workers)
        counted = {(name, cells): _count_once(name, cells, held) for cells in config.sizes for name in config.subjects}
    baseline = dict(zip(bare, footprints, strict=False))
    rows = [
        _make_row(where, one, baseline=baseline[where[1]], counted=counted[where[:2]])
        for where, one in zip(runs, footprints[len(bare) :], strict=True)
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
    "measured": "peak resident memory of a process per scheme, mesh and step, minus that with the "
    "mesh, its graph and JAX alone; where a peak cannot be reset, minus that of a process that stops there",
    "stepping": "the peak of the steps, after assembly, compilation and factorisation; whole: including these",
    "counted": "bytes of the arrays it holds: coefficients, indices, fields; LU by the non-zeros of its factors",
    "bytes per cell": "the slope of a least-squares line through all mesh sizes; constant memory is its intercept",
    "time step": "arrays of explicit schemes do not depend on Δt, which is tested with two time steps",
}


def _make_task(subject: Subject, cells: int, *, fraction: float) -> Task:
    return Task(
        task="memory",
        baseline="its own mark",
        cells=cells,
        seed=SEED,
        fourier=fraction,
        scheme=subject.scheme,
        solver=subject.solver,
    )


def _count_once(name: str, cells: int, held: Measurements) -> float:
    subject = SUBJECTS[name]
    task = Task(task="counted", cells=cells, seed=SEED, scheme=subject.scheme, solver=subject.solver)
    scheme = BUILT_IN[subject.scheme or ""]
    counted = held.measure_once(
        task.title, task, Counted, lambda: Counted(count_bytes(scheme, make_graph(cells, SEED), subject.solver))
    )
    return counted.bytes


def _make_row(where: tuple[str, int, float], one: Footprint, *, baseline: Footprint, counted: float) -> Row:
    name, cells, fraction = where
    # Processes differ by megabytes at their start: where the peak can be reset, each is its own baseline.
    whole = one.whole - (one.start if one.forgets else baseline.whole)
    stepping = one.stepping - (one.start if one.forgets else baseline.stepping)
    return Row(name, cells, one.cells, fraction, whole, stepping, counted)


def measure_footprint(task: Task) -> Footprint:
    """Measure the peak memory of this process for a task: before there is a stepper, with its assembly, while it steps.

    Without a scheme the process only makes the mesh and its graph and runs one JAX function: its peak is the baseline
    of the other processes.
    """
    graph = make_graph(task.cells, task.seed)
    T = np.random.default_rng(0).standard_normal(graph.cells)
    jax.block_until_ready(jax.jit(lambda x: 2.0 * x)(jnp.asarray(T)))
    exact = forget_peak()
    start = read_peak()
    if task.scheme is None or task.fourier is None:
        return Footprint(graph.cells, start, read_peak(), read_peak(), exact)
    dt = task.fourier * fourier_step(graph)
    solver: Solver = task.solver or "auto"
    step = make_stepper(BUILT_IN[task.scheme], graph, dt, source=np.ones(graph.cells), solver=solver)
    # The first step is compiled; the memory of the compiler is not counted as the scheme's.
    after = jax.block_until_ready(step.repeat(step.enter(T), 1))
    whole = read_peak()
    forget_peak()
    jax.block_until_ready(step.repeat(after, STEPS))
    return Footprint(graph.cells, start, whole, read_peak(), exact)


def read_peak() -> int:
    """The peak resident memory of this process in bytes.

    It is VmHWM on Linux, since ru_maxrss starts with the memory of the parent process.
    """
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    import resource  # imported here, since not every system has it

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def forget_peak() -> bool:
    """Return freed memory to the system and reset the peak; returns whether the system can do that, as Linux can."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


# Number of fields for conjugate gradients: T, the right-hand side, x, r, p, A p and the preconditioned residual.
CG_FIELDS = 7


def count_bytes(scheme: Scheme, graph: DualGraph, solver: str | None) -> float:
    """Bytes of coefficients, indices and fields: as in certificates for explicit schemes and LU, here for CG."""
    if solver != "cg":
        return measure_cost(scheme, graph).memory * graph.cells
    step = stepper(scheme, graph, 0.5 * fourier_step(graph), source=np.ones(graph.cells), solver="cg", renumber=False)
    array_bytes = sum(array.nbytes for array in jax.tree.leaves(step) if isinstance(array, jax.Array))
    return float(array_bytes + CG_FIELDS * graph.cells * 8)


def _fit_bytes(rows: Sequence[Row], name: str) -> BytesPerCell:
    """Bytes per cell of a scheme: slopes over all sizes at the first Δt, and on the largest mesh for each Δt."""
    own = [row for row in rows if row.scheme == name]
    first = [row for row in own if row.fourier == own[0].fourier]
    cells, largest = [row.cells for row in first], max(row.cells for row in own)
    return BytesPerCell(
        stepping=_fit_slope(cells, [row.stepping for row in first]),
        whole=_fit_slope(cells, [row.whole for row in first]),
        counted=_fit_slope(cells, [row.counted for row in first]),
        largest_by_step={f"{row.fourier:g}": row.stepping / row.cells for row in own if row.cells == largest},
        sizes=len(first),
    )


def _fit_slope(cells: Sequence[int], values: Sequence[float]) -> float | None:
    return float(np.polyfit(cells, values, 1)[0]) if len(set(cells)) > 1 else None


def judge(result: Result) -> list[Claim]:
    """The claim on memory, judged against Crank–Nicolson by LU and by CG separately."""
    return [_judge_memory(result, solver) for solver in ("LU", "CG")]


def _is_much_lower(own: float | None, other: float | None) -> bool:
    return own is not None and other is not None and other > 0 and own / other <= LOWER_SHARE


def _judge_memory(result: Result, solver: str) -> Claim:
    """Holds if measured and counted bytes are much lower for both schemes; under a condition if only some are.

    The memory of assembling a scheme depends on our code, not on the scheme: it is reported, not judged.
    """
    fits, other = result.bytes_per_cell, result.bytes_per_cell[f"crank-nicolson, {solver}"]
    much = [
        _is_much_lower(getattr(fits[name], key), getattr(other, key))
        for name in DISCOVERED
        for key in ("stepping", "counted")
    ]
    parts = [
        f"{name} {_format_bytes(fits[name].stepping)} measured, {_format_bytes(fits[name].counted)} counted, "
        f"{_format_bytes(fits[name].whole)} while it is assembled"
        for name in DISCOVERED
    ]
    evidence = (
        f"bytes per cell: {'; '.join(parts)}; Crank–Nicolson by {solver} {_format_bytes(other.stepping)}, "
        f"{_format_bytes(other.counted)} and {_format_bytes(other.whole)} "
        f"(much lower: at most {LOWER_SHARE:.0%} of the first two); {_describe_time_step(result)}"
    )
    text = "the discovered schemes offer a much lower memory consumption"
    return Claim(
        f"less memory than Crank–Nicolson by {solver}",
        f"{text} (than CN, by {solver})",
        to_verdict(all(much), any(much)),
        evidence,
    )


def _format_bytes(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}"


def _describe_time_step(result: Result) -> str:
    """A sentence on whether the memory of explicit schemes depends on Δt, and by how much it differs."""
    gaps, same = [], True
    for name, fits in result.bytes_per_cell.items():
        values = fits.largest_by_step.values()
        if not name.startswith("crank-nicolson"):
            gaps.append(max(values) - min(values))
            same &= gaps[-1] <= max(SAME * max(values), SAME_BYTES)
    steps = " and ".join(f"{fraction:g}" for fraction in result.fractions)
    sentence = "no explicit scheme's memory depends on Δt" if same else "an explicit scheme's memory depends on Δt"
    return f"{sentence}: at {steps} Fourier steps it differs by at most {max(gaps, default=0.0):.0f} bytes per cell"
