"""`fluxforge bench step`: cells per second of our steps, beside SciPy, FiPy and a vector add in the same run."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
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
# What is measured is the step of a long run: `simulate` does not compile a kernel for a few steps.
STEPS_OF_A_RUN = 10**9

Progress = Callable[[str], None]


def bench_step(
    cells: int = 1_000_000,
    *,
    schemes: Sequence[str] = SCHEMES,
    slope: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Time the schemes' steps, euler's first, on a mesh of right triangles with about that many cells.

    `roofline_fraction` is euler's: the bytes its step must move, over the bandwidth of a vector add that moves as
    many; each explicit scheme's own is its `bandwidth_share`. `shuffled_cells_per_s` is euler's on the same mesh with
    its cells in random order, which the stepper renumbers. `slope` is that of log(time ÷ time of a vector add of the
    same bytes) against log(cells), plus 1. `mesh_seconds` is the time to build the mesh and its dual graph.
    """
    if not 100 <= cells <= 100_000_000:
        raise InputError(f"cells should be between 100 and 1e8, got {cells}")
    others = [name for name in schemes if name != "euler"]
    if unknown := [name for name in others if name not in BUILT_IN and name not in kept_formulas()]:
        known = ", ".join((*BUILT_IN, *kept_formulas()))
        raise InputError(f"schemes: no built-in scheme {unknown[0]!r}; there are {known}")
    tell = progress or (lambda _: None)
    tell("mesh")
    start = time.perf_counter()
    graph = dual(_mesh(cells))
    mesh_seconds = time.perf_counter() - start
    dt = 0.5 * fourier_step(graph)
    T = np.random.default_rng(0).random(graph.cells)
    tell("vector add, SciPy and euler")
    result = {"cells": graph.cells, "mesh_seconds": mesh_seconds, **_euler(graph, dt, T)}
    for name in others:
        tell(name)
        result["schemes"][name] = _measured(name, graph, dt, T)
    tell("euler, cells in random order")
    shuffled = _repeat(_stepper("euler", dual(_shuffled(_mesh(cells))), dt), T)
    result["shuffled_cells_per_s"] = graph.cells / best_seconds({"euler": shuffled}, rounds=3)["euler"]
    tell("FiPy")
    result |= _fipy(min(graph.cells, FIPY_MOST_CELLS))
    euler = result["schemes"]["euler"]["cells_per_s"]
    result["ratios"] = {
        "euler_over_scipy": euler / result["scipy_csr_cells_per_s"],
        "euler_over_fipy": None if result["fipy_cells_per_s"] is None else euler / result["fipy_cells_per_s"],
    }
    result["slope"] = _slope(tell) if slope else None
    return result


def _euler(graph: DualGraph, dt: float, T: np.ndarray) -> dict[str, Any]:
    """Euler's step beside a vector add that moves as many bytes, and SciPy's product."""
    euler = _stepper("euler", graph, dt)
    moved = euler.bytes_per_cell(graph.cells)
    assert moved is not None
    scipy = scipy_product(operator(find("euler"), graph, dt=dt).M, T)
    seconds = best_seconds({**_tasks(euler, graph, T), "scipy": scipy})
    bandwidth = 24 * round(moved * graph.cells / 24) / seconds["add"]
    return {
        "device": str(jax.devices()[0]),
        "precision": "float64",
        "schemes": {"euler": _row(graph, euler, seconds["step"], seconds["add"])},
        "scipy_csr_cells_per_s": graph.cells / seconds["scipy"],
        "bandwidth_gb_per_s": bandwidth / 1e9,
        "roofline_fraction": moved * graph.cells / seconds["step"] / bandwidth,
    }


def _measured(name: str, graph: DualGraph, dt: float, T: np.ndarray) -> dict[str, Any]:
    """A scheme's step beside a vector add that moves as many bytes, where it is explicit."""
    step = _stepper(name, graph, dt)
    tasks = _tasks(step, graph, T)
    seconds = best_seconds(tasks, rounds=5 if "add" in tasks else 3)
    return _row(graph, step, seconds["step"], seconds.get("add"))


def _tasks(step: AbstractStepper, graph: DualGraph, T: np.ndarray) -> dict[str, Callable[[int], object]]:
    """The step, and a vector add that moves as many bytes where the step is explicit."""
    moved = step.bytes_per_cell(graph.cells)
    add = {} if moved is None else {"add": vector_add(round(moved * graph.cells / 24))}
    return {**add, "step": _repeat(step, T)}


def _stepper(name: str, graph: DualGraph, dt: float) -> AbstractStepper:
    kept = kept_formulas().get(name)
    scheme = find(name) if kept is None else kept.scheme()
    return run_stepper(scheme, graph, dt, steps=STEPS_OF_A_RUN)


def _row(graph: DualGraph, step: AbstractStepper, seconds: float, add: float | None) -> dict[str, Any]:
    """`by` says what steps: the `kernel` on the host, `XLA`, or for an implicit scheme its `solver`."""
    moved = step.bytes_per_cell(graph.cells)
    by = "solver" if moved is None else step.engine
    return {
        "cells_per_s": graph.cells / seconds,
        "seconds_per_step": seconds,
        "bytes_per_cell": moved,
        "bandwidth_share": None if add is None else add / seconds,
        "by": by,
    }


def _mesh(cells: int) -> Mesh:
    return right_triangles(max(2, round(math.sqrt(cells / 2))))


def _shuffled(mesh: Mesh) -> Mesh:
    order = np.random.default_rng(0).permutation(len(mesh.cells))
    return Mesh(mesh.points, mesh.cells[order], mesh.boundary, origin=f"{mesh.origin}, shuffled")


def _repeat(step: AbstractStepper, T: np.ndarray) -> Callable[[int], object]:
    state = step.enter(T)
    return lambda steps: jax.block_until_ready(step.repeat(state, steps))


def _fipy(cells: int) -> dict[str, Any]:
    run = fipy_step(cells, dt=0.1 / cells)
    if run is None:
        return {"fipy_cells_per_s": None, "fipy_cells": None}
    return {"fipy_cells_per_s": cells / best_seconds({"fipy": run}, rounds=3)["fipy"], "fipy_cells": cells}


def _slope(tell: Progress) -> float:
    """Time relative to a vector add of the same bytes, so that caches cancel out."""
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
    """A ← a + b on `count` float64 numbers each: 24 bytes a number.

    As many additions in each turn of the loop as our steps, each an addition of its own.
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
    """T ← M T by SciPy's compressed sparse rows."""

    def run(steps: int) -> np.ndarray:
        field = T
        for _ in range(steps):
            field = M @ field
        return field

    return run


def fipy_step(cells: int, dt: float) -> Callable[[int], object] | None:
    """FiPy's explicit diffusion on as many squares; None where FiPy is not installed."""
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
    """Seconds per repetition of each task, a function of how often to repeat; the smallest over the rounds counts.

    Each task is run often enough per round to be seen by the clock, and once beforehand to be compiled.
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
    """How many repetitions last long enough: doubled until they do, since what starts them may take longer than one.

    A multiple of sixteen from there on: steps may come in pairs, or in groups of eight.
    """
    task(2)
    count, seconds = 2, 0.0
    while seconds < LEAST_SECONDS:
        start = time.perf_counter()
        task(count)
        seconds = time.perf_counter() - start
        count *= 2
    return count // 2
