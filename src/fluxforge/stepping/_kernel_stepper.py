"""Explicit linear schemes on the host, by the compiled sweeps of `_kernel`."""

import importlib.util
import os
import threading
from collections.abc import Mapping
from typing import Literal

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from fluxforge._types import State
from fluxforge.stepping._assemble import AffineMap, compose
from fluxforge.stepping._kernel_layout import GIVEN_UP, LINE, Plan, measure_reach, plan_sweeps
from fluxforge.stepping._kernel_program import Program, make_program
from fluxforge.stepping._linear import MOST_OF_STAGED, least_bytes
from fluxforge.stepping._stepper import AbstractStepper

Stages = tuple[Mapping[str, AffineMap], ...]
# Threads are started at every call and wait for each other: on fewer cells that takes longer than a step.
LEAST_CELLS = 20_000
# Compiling takes about two seconds; on two cores the kernel saves about a nanosecond per cell and round of messages.
LEAST_UPDATES = 2_000_000_000


class KernelStepper(AbstractStepper):
    """Many steps in one call of compiled code, on the host. It cannot be traced by JAX: `stepper` gives one that can.

    The results are those of `LinearStepper` to round-off: the same sums, of f_N − f_P in place of f_N.
    """

    work: "Workspace" = eqx.field(static=True)

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """A field from the mesh's order to the stepper's."""
        field, order = np.asarray(T, self.work.dtype), self.work.order
        return field.copy() if order is None else field[order]

    def leave(self, T: State) -> State:
        """A field from the stepper's order to the mesh's."""
        order = self.work.order
        if order is None:
            return T
        field = np.empty_like(np.asarray(T))
        field[order] = T
        return field

    def advance(self, T: State) -> State:
        """One step, in the stepper's own order of cells."""
        return self.repeat(T, 1)

    def repeat(self, T: State, steps: int) -> State:
        """Many steps, in the stepper's own order of cells."""
        return self.work.run(np.asarray(T), steps)


class Workspace:
    """A program in memory, and the threads that run it; compared by identity, so that it can be a static field."""

    def __init__(self, program: Program, order: np.ndarray | None, dtype: np.dtype, threads: int) -> None:
        self.program, self.order, self.dtype = program, order, dtype
        self.plan = plan_sweeps(program, order=order, dtype=dtype, threads=threads)
        self._lock = threading.Lock()

    def run(self, T: np.ndarray, steps: int) -> np.ndarray:
        """The field after that many steps."""
        cells, fields = self.program.cells, self.plan.fields
        with self._lock:
            fields[0, :cells] = T
            _run(self.plan, steps)
            return fields[steps % 2, :cells].copy()


def _run(plan: Plan, steps: int) -> None:
    """The steps in as many threads as planned; threads give up together where one cannot be started, or on Ctrl-C."""
    from fluxforge.stepping._kernel import run

    shared = np.zeros(3 * LINE // 8, np.int64)
    if plan.threads == 1:
        run(plan, steps, shared)
        return
    run(plan, 0, shared)  # compile before threads wait for each other
    started: list[threading.Thread] = []
    try:
        for _ in range(plan.threads):
            worker = threading.Thread(target=run, args=(plan, steps, shared), daemon=True)
            worker.start()
            started.append(worker)
        for worker in started:
            worker.join()
    except BaseException:
        shared[GIVEN_UP] = 1
        for worker in started:
            worker.join()
        raise


def kernel_stepper(
    stages: Stages,
    *,
    source: Float[np.ndarray, " cells"],
    dtype: Literal["float32", "float64"],
    threads: int | None = None,
) -> KernelStepper:
    """Lay out the assembled stages of an explicit linear scheme, in the form that moves fewer bytes."""
    kind = np.dtype(dtype)
    program = _cheapest_program(stages, source, kind.itemsize)
    return KernelStepper(Workspace(program, _banded_order(program), kind, threads or allowed_threads()))


def _cheapest_program(stages: Stages, source: np.ndarray, width: int) -> Program:
    """Stage by stage, or all stages as one row per cell."""
    program, n = make_program(stages, source), len(source)
    most = MOST_OF_STAGED * program.bytes_per_cell(width)
    if len(stages) == 1 or least_bytes(stages, n, width) > n * most:
        return program
    whole = compose(stages, n)
    found = make_program(({"T_new": AffineMap({"T": whole.M, "S": whole.N}, whole.b)},), source)
    return found if found.bytes_per_cell(width) <= most else program


def _banded_order(program: Program) -> Int[np.ndarray, " cells"] | None:
    """Cells in Cuthill's and McKee's order, in which neighbours are few places apart; None where that gains little."""
    if not program.matrices:
        return None
    off = max((matrix.off for matrix in program.matrices), key=lambda off: off.nnz)
    order = np.asarray(reverse_cuthill_mckee(csr_array(off), symmetric_mode=False), np.int64)
    return order if 1.25 * measure_reach(off, order) < measure_reach(off, None) else None


def allowed_threads() -> int:
    """The cores this process may use, and no more than the environment says for XLA (PJRT_NPROC) and OpenMP."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = (os.environ.get(name, "") for name in ("PJRT_NPROC", "OMP_NUM_THREADS"))
    return max(1, min([cores, *(int(text) for text in given if text.isdigit())]))


def kernel_pays(rounds: int, cells: int, steps: int) -> bool:
    """Whether compiling takes less time than it saves in that many steps of that many rounds of messages."""
    # Threads that wait let others run by a function of POSIX.
    found = hasattr(os, "sched_yield") and importlib.util.find_spec("numba") is not None
    return found and cells >= LEAST_CELLS and rounds * cells * steps >= LEAST_UPDATES
