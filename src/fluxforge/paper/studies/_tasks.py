"""Measurements in processes of their own, JSON in and JSON out; the memory of a stepper.

A measurement of memory needs a process that did nothing else, and one of a large mesh can have a core to itself.
"""

import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from fluxforge.certify.cost import cost
from fluxforge.errors import FluxforgeError
from fluxforge.mesh import DualGraph, fourier_step
from fluxforge.paper.studies._measures import Subject, graph_of, residuals, space_error, step_of, time_errors
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import stepper

STEPS = 3


class Footprint(Struct, frozen=True):
    """Peak resident bytes of a process: before there is a stepper, with its assembly, and while it steps.

    `forgets` says whether the system can start the mark of the peak anew; `wanted` is the number of cells asked for.
    """

    cells: int
    start: int
    whole: int
    stepping: int
    forgets: bool = True
    wanted: int = 0


def footprint(words: Mapping[str, Any]) -> Footprint:
    """`start`: before there is a stepper; `whole`: the peak while it is made and steps; `stepping`: while it steps.

    Without a scheme the process makes the mesh and its graph, has JAX compute something, and stops there: what it
    holds is subtracted from the others.
    """
    graph = graph_of(words["cells"], words["seed"])
    T = np.random.default_rng(0).standard_normal(graph.cells)
    jax.block_until_ready(jax.jit(lambda x: 2.0 * x)(jnp.asarray(T)))
    exact = forget_peak()
    start = peak()
    if words["scheme"] is None:
        return Footprint(graph.cells, start, peak(), peak(), exact)
    dt = words["fourier"] * fourier_step(graph)
    step = step_of(
        BUILT_IN[words["scheme"]], graph, dt, source=np.ones(graph.cells), solver=words.get("solver", "auto")
    )
    # Compiled before it is watched: a compiler's memory is no scheme's.
    after = jax.block_until_ready(step.repeat(step.enter(T), 1))
    whole = peak()
    forget_peak()
    jax.block_until_ready(step.repeat(after, STEPS))
    return Footprint(graph.cells, start, whole, peak(), exact)


def peak() -> int:
    """The most memory the process has had, in bytes.

    From Linux's own mark where there is one: ru_maxrss begins with the memory of the process that started this one.
    """
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    import resource  # not on every system, and only a measurement needs it

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def forget_peak() -> bool:
    """Give freed memory back and start the high-water mark anew; whether the system can, as Linux does."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


# Beside T and the right side, conjugate gradients hold x, r, p, A p and the preconditioned residual.
CG_FIELDS = 7


def counted_bytes(scheme: Scheme, graph: DualGraph, solver: str | None) -> float:
    """Coefficients, indices and fields, as certificates count them for explicit schemes and LU; for CG, here."""
    if solver != "cg":
        return cost(scheme, graph).memory * graph.cells
    step = stepper(scheme, graph, 0.5 * fourier_step(graph), source=np.ones(graph.cells), solver="cg", renumber=False)
    held = sum(array.nbytes for array in jax.tree.leaves(step) if isinstance(array, jax.Array))
    return float(held + CG_FIELDS * graph.cells * 8)


Task = Callable[[Mapping[str, Any]], dict[str, Any]]


def grid_of(subject: Subject, words: Mapping[str, Any]) -> dict[str, Any]:
    """Residuals and errors in time of one scheme on one mesh, for every step."""
    where = {name: words[name] for name in ("cells", "seed", "fractions")}
    rows = zip(time_errors(subject, **where, end=words["end"]), residuals(subject, **where), strict=True)
    return {"rows": [one | other for one, other in rows]}


def space_of(subject: Subject, words: Mapping[str, Any]) -> dict[str, Any]:
    """The error of one scheme against the equation on one mesh."""
    found = space_error(subject, **{name: words[name] for name in ("cells", "seed", "fraction", "until")})
    return asdict(found)


TASKS: Mapping[str, Task] = {
    "grid": lambda words: grid_of(BUILT_IN[words["scheme"]], words),
    "space": lambda words: space_of(BUILT_IN[words["scheme"]], words),
    "memory": lambda words: asdict(footprint(words)),
}


def in_child(words: Mapping[str, Any]) -> dict[str, Any]:
    """Measure these words in a new process."""
    command = [sys.executable, "-c", "from fluxforge.paper.studies._tasks import main; main()"]
    done = subprocess.run(command, input=json.dumps(words), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise FluxforgeError(f"the measurement of {words.get('scheme')} on {words.get('cells')} cells failed: {last}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def in_children(many: Sequence[Mapping[str, Any]], *, workers: int | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Measure several at once, by default as many as there are cores: which one, and what it gave, as they end."""
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        waiting = {pool.submit(in_child, words): k for k, words in enumerate(many)}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            # What has not begun would only delay the error, or the reader who left.
            for each in waiting:
                each.cancel()


def main() -> None:
    """Read the words of a measurement, write what it gave."""
    import jax

    jax.config.update("jax_enable_x64", True)
    words = json.load(sys.stdin)
    result = TASKS[words["task"]](words)
    json.dump(result, sys.stdout, allow_nan=False)
