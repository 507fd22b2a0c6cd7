"""Measurements as tasks, in this process or each in a new one; the memory of a stepper.

A measurement of memory needs a process that did nothing else, and one on a large mesh can have a core to itself.
"""

import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeVar

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from msgspec import Struct

from fluxforge.certify.cost import measure_cost
from fluxforge.data._meshes import generate_meshes
from fluxforge.errors import FluxforgeError
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import fourier_step
from fluxforge.paper.studies._measures import graph_of, measure_grid, space_error, step_of
from fluxforge.paper.studies._records import Measurements
from fluxforge.run._progress import Progress
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping._build import stepper
from fluxforge.stepping._solvers import Solver

STEPS = 3
R = TypeVar("R")


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One measurement: its kind, and everything that its numbers depend on. Fields that it does not need are absent.

    `scheme` names a built-in scheme or a network, whose weights have the digest `weights`; None stands for a process
    that makes the mesh and nothing else.
    """

    task: Literal["grid", "space", "clock", "memory", "counted"]
    scheme: str | None
    cells: int
    seed: int
    weights: str | None = None
    solver: Solver | None = None
    baseline: str | None = None
    fourier: float | None = None
    fractions: tuple[float, ...] = ()
    end: float = 0.0
    until: float = 0.0
    fraction: float = 0.0

    @property
    def title(self) -> str:
        """What is measured, in words."""
        if self.task in ("memory", "counted"):
            return f"memory: {self.scheme or 'mesh alone'} {self.solver or ''}, {self.cells} cells"
        return f"{self.task}: {self.scheme}, {self.cells} cells"


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


def footprint(task: Task) -> Footprint:
    """`start`: before there is a stepper; `whole`: the peak while it is made and steps; `stepping`: while it steps.

    Without a scheme the process makes the mesh and its graph, has JAX compute something, and stops there: what it
    holds is subtracted from the others.
    """
    graph = graph_of(task.cells, task.seed)
    T = np.random.default_rng(0).standard_normal(graph.cells)
    jax.block_until_ready(jax.jit(lambda x: 2.0 * x)(jnp.asarray(T)))
    exact = forget_peak()
    start = peak()
    if task.scheme is None or task.fourier is None:
        return Footprint(graph.cells, start, peak(), peak(), exact)
    dt = task.fourier * fourier_step(graph)
    solver: Solver = task.solver or "auto"
    step = step_of(BUILT_IN[task.scheme], graph, dt, source=np.ones(graph.cells), solver=solver)
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


def count_bytes(scheme: Scheme, graph: DualGraph, solver: str | None) -> float:
    """Coefficients, indices and fields, as certificates count them for explicit schemes and LU; for CG, here."""
    if solver != "cg":
        return measure_cost(scheme, graph).memory * graph.cells
    step = stepper(scheme, graph, 0.5 * fourier_step(graph), source=np.ones(graph.cells), solver="cg", renumber=False)
    held = sum(array.nbytes for array in jax.tree.leaves(step) if isinstance(array, jax.Array))
    return float(held + CG_FIELDS * graph.cells * 8)


def measure_task(task: Task) -> Struct:
    """A task on a built-in scheme, measured in this process."""
    if task.task == "memory":
        return footprint(task)
    scheme = BUILT_IN[task.scheme or ""]
    if task.task == "grid":
        return measure_grid(scheme, cells=task.cells, seed=task.seed, fractions=task.fractions, end=task.end)
    return space_error(scheme, cells=task.cells, seed=task.seed, fraction=task.fraction, until=task.until)


def run_child(task: Task) -> bytes:
    """Measure a task in a new process, and return what it measured as JSON; raises FluxforgeError if it fails."""
    command = [sys.executable, "-c", "from fluxforge.paper.studies._tasks import main; main()"]
    done = subprocess.run(command, input=msgspec.json.encode(task), capture_output=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.decode().strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise FluxforgeError(f"the measurement of {task.scheme} on {task.cells} cells failed: {last}")
    return done.stdout


def run_children(tasks: Sequence[Task], *, workers: int | None) -> Iterator[tuple[int, bytes]]:
    """Measure several tasks at once, by default as many as there are cores; (index, JSON) of each as it ends."""
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        waiting = {pool.submit(run_child, task): k for k, task in enumerate(tasks)}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            # Tasks that have not begun would only delay an error, or a caller that has stopped reading.
            for each in waiting:
                each.cancel()


def measure_tasks(
    tasks: Sequence[Task],
    kind: type[R],
    held: Measurements,
    *,
    tell: Progress,
    workers: int | None,
    here: Callable[[Task], R] | None = None,
    is_apart: Callable[[Task], bool] = lambda _: True,
) -> list[R]:
    """Each task as the folder holds it, or measured and kept: by `here`, or in a new process if it is apart."""
    found = [held.read(task.title, task, kind) for task in tasks]
    missing = [k for k, one in enumerate(found) if one is None]
    apart = [k for k in missing if here is None or is_apart(tasks[k])]
    done = 0
    for k in missing:
        if here is not None and k not in apart:
            tell(tasks[k].title, done, len(missing))
            found[k] = held.keep(tasks[k].title, tasks[k], here(tasks[k]))
            done += 1
    # Meshes go into the cache first, so that processes beside each other do not each make them.
    for cells, seed in dict.fromkeys((tasks[k].cells, tasks[k].seed) for k in apart):
        generate_meshes([{"kind": "irregular", "cells": cells, "seed": seed, "engine": "builtin"}])
    for at, text in run_children([tasks[k] for k in apart], workers=workers):
        task = tasks[apart[at]]
        found[apart[at]] = held.keep(task.title, task, msgspec.json.decode(text, type=kind))
        done += 1
        tell(task.title, done, len(missing))
    return [one for one in found if one is not None]


def main() -> None:
    """Read a task from the standard input, and write what it measured to the standard output, both as JSON."""
    jax.config.update("jax_enable_x64", True)
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    plain = msgspec.to_builtins(measure_task(task))
    json.dump(plain, sys.stdout, allow_nan=False)
