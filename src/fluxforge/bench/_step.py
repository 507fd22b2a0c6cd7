"""`fluxforge bench step`: cells per second of our steps, of SciPy and FiPy, and of a vector add, in the same run."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from scipy.sparse import csr_array

from fluxforge.bench._carried import kept_formulas
from fluxforge.bench._rows import load_fipy
from fluxforge.errors import InputError
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import right_triangles
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import fourier_step
from fluxforge.scheme._document import find
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping._assemble import operator
from fluxforge.stepping._build import run_stepper
from fluxforge.stepping._stepper import STEPS_PER_TURN, AbstractStepper

SCHEMES = tuple(name for name, scheme in BUILT_IN.items() if not scheme.name.endswith("-printed"))
SLOPE_CELLS = (10_000, 100_000, 1_000_000, 10_000_000)
FIPY_MOST_CELLS = 100_000
# Number of steps for which steppers are chosen: for short runs `simulate` does not compile a kernel.
STEPS_OF_A_RUN = 10**9

Progress = Callable[[str], None]


@dataclass(frozen=True)
class StepRow:
    """The speed of a scheme's step, computed `by` the host's `kernel`, `XLA`, or the `solver` of an implicit scheme.

    `bytes_per_cell` is the number of bytes that an explicit step must move; `bandwidth_share` is the speed relative to
    a vector add that moves as many. Both are None for implicit schemes.
    """

    cells_per_s: float
    seconds_per_step: float
    bytes_per_cell: float | None
    bandwidth_share: float | None
    by: str


@dataclass(frozen=True)
class StepRatios:
    """Speeds of euler over those of peers; None if a peer is not installed."""

    euler_over_scipy: float
    euler_over_fipy: float | None


@dataclass(frozen=True)
class StepBench:
    """The measurements of `bench_step`; the fields are those of the JSON document."""

    cells: int
    mesh_seconds: float
    device: str
    precision: str
    schemes: Mapping[str, StepRow]
    scipy_csr_cells_per_s: float
    bandwidth_gb_per_s: float
    roofline_fraction: float
    shuffled_cells_per_s: float
    fipy_cells_per_s: float | None
    fipy_cells: int | None
    ratios: StepRatios
    slope: float | None


def bench_step(
    cells: int = 1_000_000,
    *,
    schemes: Sequence[str] = SCHEMES,
    slope: bool = True,
    progress: Progress | None = None,
) -> StepBench:
    """Time the steps of schemes, euler first, on a mesh of right triangles with about `cells` cells.

    `roofline_fraction` is the rate at which euler moves the bytes of its step, over the bandwidth of a vector add that
    moves as many; for the other explicit schemes it is their `bandwidth_share`. `shuffled_cells_per_s` is euler's speed
    on the same mesh with cells in random order, which the stepper renumbers. `slope` is that of log(time / time of a
    vector add of the same bytes) against log(cells), plus 1. `mesh_seconds` is the time to build the mesh and its dual
    graph. Raises InputError for an unknown scheme or a number of cells outside 100 to 1e8.
    """
    if not 100 <= cells <= 100_000_000:
        raise InputError(f"cells should be between 100 and 1e8, got {cells}")
    others = [name for name in schemes if name != "euler"]
    if unknown := [name for name in others if name not in BUILT_IN and name not in kept_formulas()]:
        known = ", ".join((*BUILT_IN, *kept_formulas()))
        raise InputError(f"schemes: there is no built-in scheme {unknown[0]!r}; choose from {known}")
    tell = progress or (lambda _: None)
    tell("mesh")
    start = time.perf_counter()
    graph = dual(_mesh(cells))
    mesh_seconds = time.perf_counter() - start
    dt = 0.5 * fourier_step(graph)
    T = np.random.default_rng(0).random(graph.cells)
    tell("vector add, SciPy and euler")
    euler = _stepper("euler", graph, dt)
    moved = euler.bytes_per_cell(graph.cells)
    assert moved is not None
    scipy = scipy_product(operator(find("euler"), graph, dt=dt).M, T)
    seconds = best_seconds({**_tasks(euler, graph, T), "scipy": scipy})
    bandwidth = 24 * round(moved * graph.cells / 24) / seconds["add"]
    rows = {"euler": _row(graph, euler, seconds["step"], seconds["add"])}
    for name in others:
        tell(name)
        rows[name] = _measure_scheme(name, graph, dt, T)
    tell("euler, cells in random order")
    shuffled = _repeat(_stepper("euler", dual(_shuffle_cells(_mesh(cells))), dt), T)
    shuffled_seconds = best_seconds({"euler": shuffled}, rounds=3)["euler"]
    tell("FiPy")
    fipy_cells = min(graph.cells, FIPY_MOST_CELLS)
    peer = fipy_step(fipy_cells, dt=0.1 / fipy_cells)
    fipy = None if peer is None else fipy_cells / best_seconds({"fipy": peer}, rounds=3)["fipy"]
    speed, scipy_speed = rows["euler"].cells_per_s, graph.cells / seconds["scipy"]
    return StepBench(
        cells=graph.cells,
        mesh_seconds=mesh_seconds,
        device=str(jax.devices()[0]),
        precision="float64",
        schemes=rows,
        scipy_csr_cells_per_s=scipy_speed,
        bandwidth_gb_per_s=bandwidth / 1e9,
        roofline_fraction=moved * graph.cells / seconds["step"] / bandwidth,
        shuffled_cells_per_s=graph.cells / shuffled_seconds,
        fipy_cells_per_s=fipy,
        fipy_cells=None if peer is None else fipy_cells,
        ratios=StepRatios(speed / scipy_speed, None if fipy is None else speed / fipy),
        slope=_fit_slope(tell) if slope else None,
    )


def _measure_scheme(name: str, graph: DualGraph, dt: float, T: np.ndarray) -> StepRow:
    """Time the step of a scheme and, if it is explicit, a vector add that moves as many bytes."""
    step = _stepper(name, graph, dt)
    tasks = _tasks(step, graph, T)
    seconds = best_seconds(tasks, rounds=5 if "add" in tasks else 3)
    return _row(graph, step, seconds["step"], seconds.get("add"))


def _tasks(step: AbstractStepper, graph: DualGraph, T: np.ndarray) -> dict[str, Callable[[int], object]]:
    """The functions to time: the step and, if it is explicit, a vector add that moves as many bytes."""
    moved = step.bytes_per_cell(graph.cells)
    add = {} if moved is None else {"add": vector_add(round(moved * graph.cells / 24))}
    return {**add, "step": _repeat(step, T)}


def _stepper(name: str, graph: DualGraph, dt: float) -> AbstractStepper:
    kept = kept_formulas().get(name)
    scheme = find(name) if kept is None else kept.scheme()
    return run_stepper(scheme, graph, dt, steps=STEPS_OF_A_RUN)


def _row(graph: DualGraph, step: AbstractStepper, seconds: float, add: float | None) -> StepRow:
    moved = step.bytes_per_cell(graph.cells)
    by = "solver" if moved is None else step.engine
    return StepRow(graph.cells / seconds, seconds, moved, None if add is None else add / seconds, by)


def _mesh(cells: int) -> Mesh:
    return right_triangles(max(2, round(math.sqrt(cells / 2))))


def _shuffle_cells(mesh: Mesh) -> Mesh:
    order = np.random.default_rng(0).permutation(len(mesh.cells))
    return Mesh(mesh.points, mesh.cells[order], mesh.boundary, origin=f"{mesh.origin}, shuffled")


def _repeat(step: AbstractStepper, T: np.ndarray) -> Callable[[int], object]:
    state = step.enter(T)
    return lambda steps: jax.block_until_ready(step.repeat(state, steps))


def _fit_slope(tell: Progress) -> float:
    """Slope of log time over log cells, relative to a vector add of the same bytes, so that cache effects cancel."""
    points = []
    for cells in SLOPE_CELLS:
        tell(f"euler on {cells:.0e} cells")
        graph = dual(_mesh(cells))
        step = _stepper("euler", graph, 0.5 * fourier_step(graph))
        seconds = best_seconds(_tasks(step, graph, np.random.default_rng(0).random(graph.cells)), rounds=5)
        points.append((math.log(graph.cells), math.log(seconds["step"] / seconds["add"])))
    logs, ratios = np.array(points).T
    return float(np.polyfit(logs, ratios, 1)[0] + 1.0)


def vector_add(count: int) -> Callable[[int], object]:
    """A function that repeats a ← a + b on `count` float64 numbers each, which moves 24 bytes per number.

    The loop has as many additions per turn as that of our steps, with barriers so that they are not merged.
    """
    a, b = jnp.zeros(count), jnp.full(count, 1e-9)
    turn = 1 if jax.default_backend() == "cpu" else STEPS_PER_TURN

    @jax.jit
    def run(a: Array, b: Array, steps: Int[Array, ""]) -> Array:
        def add_turn(_: Any, a: Array) -> Array:
            for _ in range(turn):
                a = jax.lax.optimization_barrier(a + b)
            return a

        return jax.lax.fori_loop(0, -(-steps // turn), add_turn, a)

    return lambda steps: jax.block_until_ready(run(a, b, jnp.asarray(steps)))


def scipy_product(M: csr_array, T: np.ndarray) -> Callable[[int], object]:
    """A function that repeats T ← M T with SciPy's compressed sparse rows."""

    def run(steps: int) -> np.ndarray:
        field = T
        for _ in range(steps):
            field = M @ field
        return field

    return run


def fipy_step(cells: int, dt: float) -> Callable[[int], object] | None:
    """A function that repeats FiPy's explicit step of diffusion on about `cells` squares; None without FiPy."""
    fipy = load_fipy()
    if fipy is None:
        return None
    n = round(np.sqrt(cells))
    mesh = fipy.Grid2D(nx=n, ny=n, dx=1.0 / n, dy=1.0 / n)
    T = fipy.CellVariable(mesh=mesh, value=0.5, hasOld=False)
    T.constrain(0.0, mesh.exteriorFaces)
    equation = fipy.TransientTerm() == fipy.ExplicitDiffusionTerm(coeff=1.0)

    def run(equation: object, steps: int) -> None:
        for _ in range(steps):
            equation.solve(var=T, dt=dt)  # type: ignore[attr-defined]

    return partial(run, equation)


ROUNDS = 7
LEAST_SECONDS = 0.1


def best_seconds(tasks: Mapping[str, Callable[[int], object]], *, rounds: int = ROUNDS) -> dict[str, float]:
    """The least seconds per repetition of each task over the rounds; a task is a function of the number of repetitions.

    Per round each task is repeated for at least LEAST_SECONDS, after a run for compilation. Tasks alternate, so that
    noise affects them alike.
    """
    counts = {name: _count_repetitions(task) for name, task in tasks.items()}
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task(counts[name])
            best[name] = min(best[name], (time.perf_counter() - start) / counts[name])
    return best


def _count_repetitions(task: Callable[[int], object]) -> int:
    """The number of repetitions that take at least LEAST_SECONDS, a power of two found by doubling.

    One repetition is not timed alone, since the start of a task may take longer. From 16 on it is a multiple of 16,
    since steps may be taken in groups of two or eight.
    """
    task(2)
    count, seconds = 2, 0.0
    while seconds < LEAST_SECONDS:
        start = time.perf_counter()
        task(count)
        seconds = time.perf_counter() - start
        count *= 2
    return count // 2
