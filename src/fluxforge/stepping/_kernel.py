"""Explicit linear schemes on the host: sweeps of sparse rows compiled by numba, several operations a sweep, in threads.

Importing this module imports numba, and the first call compiles, in about two seconds. Compiled code is not cached on
disk, since numba reads its cache with pickle.

The operations of many steps follow each other in one sequence. Those that read neighbours are its fronts; neighbours
are at most `reach` places away in memory. So front s + 1 may follow `reach` places behind front s: `depth` of them go
through the mesh together, and the rows they share come from memory once. Threads share the cells in ranges. Within a
range, front s leaves out s · reach cells at either end that has a neighbouring range, whose values it would need. The
wedges that are left out there are filled when all ranges are done.

A field may be written where it was read before: every front that gathers it comes before the one that writes it again,
and so is at least `reach` places ahead of it.
"""

import inspect
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeVar, cast

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from fluxforge._types import State
from fluxforge.stepping._kernel_layout import (
    ARRIVED,
    BLOCK,
    GIVEN_UP,
    LANES,
    LINE,
    TAKEN,
    Plan,
    allowed_threads,
    banded_order,
    cheapest_program,
    plan_sweeps,
)
from fluxforge.stepping._kernel_program import Program
from fluxforge.stepping._linear import Stages
from fluxforge.stepping._stepper import AbstractStepper

# A thread that waits for others looks this many times before it lets other programs run.
SPINS_PER_YIELD = 200
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _compile(function: _Function) -> _Function:
    """Compile on first call. `unwrap` removes the run-time type checks of the tests, which cannot be compiled."""
    # "contract" alone: a product and a sum may be fused, but sums are not reordered.
    compiled: Any = njit(nogil=True, fastmath={"contract"})(inspect.unwrap(function))
    return cast(_Function, compiled)


def _primitive(function: Callable[..., Any]) -> Any:
    """Make a function, which generates LLVM instructions, callable from compiled code."""
    return intrinsic(inspect.unwrap(function))


_give_way = types.ExternalFunction("sched_yield", types.intc())


@_primitive
def _count(context: Any, array: Any, place: Any) -> Any:
    """array[place] += 1, atomically, returning the old value; threads that read the sum see all earlier writes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", builder.gep(data, [arguments[1]]), one, "seq_cst")

    return types.int64(array, place), generate


@_primitive
def _look(context: Any, array: Any, place: Any) -> Any:
    """array[place], read from memory at every call."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(builder.gep(data, [arguments[1]]), "seq_cst", 8)

    return types.int64(array, place), generate


@_primitive
def _lanes(
    context: Any,
    slots: Any,
    index: Any,
    weight: Any,
    field: Any,
    scale: Any,
    other: Any,
    share: Any,
    target: Any,
    cell: Any,
) -> Any:
    """target_P = share · other_P + scale · Σ_k weight_Pk (field_Nk − field_P) for the LANES cells P from `cell` on.

    Written out because compilers either leave such a loop scalar, with a load for every weight, or use the processor's
    gather instructions, which on some processors take longer than as many loads.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        width, at = len(signature.args[0]), arguments[8]
        first = builder.mul(at, emit.whole(width))
        centre = emit.load(3, at)
        total = ir.Constant(emit.lanes, [0.0] * LANES)
        for k in range(width):
            place = builder.add(first, emit.whole(LANES * k))
            change = builder.fsub(emit.gather(place), centre)
            total = emit.add_product(total, emit.load(2, place), change)
        kept = builder.fmul(emit.spread(arguments[6]), emit.load(5, at))
        result = emit.add_product(kept, emit.spread(arguments[4]), total)
        builder.store(result, emit.vector(7, at), align=emit.bytes)
        return context.get_dummy_value()

    return types.void(slots, index, weight, field, scale, other, share, target, cell), generate


class _Emitter:
    """Addresses and loads of `_lanes`."""

    whole, half = ir.IntType(64), ir.IntType(32)

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.builder = builder
        arrays = (1, 2, 3, 5, 7)
        self.data = {k: context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in arrays}
        number = self.data[3].type.pointee
        self.lanes, self.bytes = ir.VectorType(number, LANES), signature.args[3].dtype.bitwidth // 8

    def vector(self, array: int, place: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(self.data[array], [place]), self.lanes.as_pointer())

    def load(self, array: int, place: Any) -> Any:
        return self.builder.load(self.vector(array, place), align=self.bytes)

    def spread(self, value: Any) -> Any:
        """One number in all lanes."""
        one = self.builder.insert_element(ir.Constant(self.lanes, ir.Undefined), value, self.half(0))
        return self.builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(self.half, LANES), [0] * LANES))

    def add_product(self, total: Any, a: Any, b: Any) -> Any:
        """Sum of `total` and a b, rounded once where the processor can."""
        return self.builder.fadd(total, self.builder.fmul(a, b, flags=("contract",)), flags=("contract",))

    def gather(self, place: Any) -> Any:
        """The field at LANES neighbours; two indices are loaded at once, the first in the lower half."""
        builder, seen = self.builder, ir.Constant(self.lanes, ir.Undefined)
        pairs = builder.bitcast(builder.gep(self.data[1], [place]), self.whole.as_pointer())
        for j in range(LANES):
            pair = builder.load(builder.gep(pairs, [self.whole(j // 2)]), align=4)
            mine = builder.lshr(pair, self.whole(32)) if j % 2 else builder.and_(pair, self.whole(0xFFFFFFFF))
            seen = builder.insert_element(seen, builder.load(builder.gep(self.data[3], [mine])), self.half(j))
        return seen


@_compile
def _wait(shared: np.ndarray, wanted: int) -> bool:
    """Wait until `wanted` arrivals are counted; False if the run was given up."""
    _count(shared, ARRIVED)
    spins = 0
    while _look(shared, ARRIVED) < wanted:
        if _look(shared, GIVEN_UP) != 0:
            return False
        spins += 1
        if spins > SPINS_PER_YIELD:
            _give_way()
    return True


@_compile
def _add(target: np.ndarray, field: np.ndarray, share: Any, low: int, high: int) -> None:
    """Add share · field to the target."""
    targets, fields = target[low:high], field[low:high]
    for i in range(high - low):
        targets[i] += share * fields[i]


@_compile
def _set(target: np.ndarray, field: np.ndarray, share: Any, low: int, high: int) -> None:
    """Set the target to share · field."""
    targets, fields = target[low:high], field[low:high]
    for i in range(high - low):
        targets[i] = share * fields[i]


@_compile
def _place(number: int, step: int) -> int:
    """The row of a field: 0 and 1 are T and T_new, which are exchanged at every step."""
    return number ^ (step & 1) if number < 2 else number


@_compile
def _operate(plan: Plan, place: int, low: int, high: int) -> None:
    """Apply a front and the operations that follow without reading neighbours to the cells from `low` to `high`."""
    count = len(plan.fronts) - 1
    step, front = place // count, place % count
    for operation in range(plan.fronts[front], plan.fronts[front + 1]):
        matrix, gathered, written, begin, end = plan.operations[operation]
        target = plan.fields[_place(written, step)]
        other, share = plan.fields[_place(plan.term_fields[begin], step)], plan.term_shares[begin]
        if matrix < 0:
            _set(target, other, share, low, high)
        else:
            index, weight, scale = plan.columns[matrix], plan.weight[matrix], plan.scales[operation]
            field = plan.fields[_place(gathered, step)]
            for cell in range(low, high, LANES):
                _lanes(plan.slots, index, weight, field, scale, other, share, target, cell)
        for term in range(begin + 1, end):
            _add(target, plan.fields[_place(plan.term_fields[term], step)], plan.term_shares[term], low, high)


@_compile
def _sweep(plan: Plan, begin: int, deep: int, start: int, stop: int, grow_low: int, grow_high: int) -> None:
    """Apply fronts begin … begin + deep of the sequence, the s-th on start − s · grow_low … stop + s · grow_high."""
    position = min(start, start - (deep - 1) * grow_low)
    furthest = max(stop, stop + (deep - 1) * grow_high) + (deep - 1) * plan.reach
    while position < furthest:
        for s in range(deep):
            low = max(position - s * plan.reach, start - s * grow_low)
            high = min(position - s * plan.reach + BLOCK, stop + s * grow_high)
            if low < high:
                _operate(plan, begin + s, low, high)
        position += BLOCK


@_compile
def run(plan: Plan, steps: int, shared: np.ndarray) -> bool:
    """One thread's part of `steps` steps; False if the run was given up.

    A thread that has finished a range of cells takes the next one.
    """
    total, arrivals, taken = (len(plan.fronts) - 1) * steps, 0, 0
    groups, parts, reach = plan.cells // LANES, plan.parts, plan.reach
    for begin in range(0, total, plan.depth):
        deep = min(plan.depth, total - begin)
        for wedges in range(2 if deep > 1 and parts > 1 else 1):
            # Each thread finally draws a number beyond the last range, which tells it that no range is left.
            number = _count(shared, TAKEN) - taken
            while number < parts - wedges:
                low, high = number * groups // parts * LANES, (number + 1) * groups // parts * LANES
                if wedges == 1:
                    _sweep(plan, begin, deep, high, high, reach, reach)
                else:
                    cut_low, cut_high = (reach if number > 0 else 0), (reach if number < parts - 1 else 0)
                    _sweep(plan, begin, deep, low, high, -cut_low, -cut_high)
                number = _count(shared, TAKEN) - taken
            taken += parts - wedges + plan.threads
            arrivals += plan.threads
            if plan.threads > 1 and not _wait(shared, arrivals):
                return False
    return True


class KernelStepper(AbstractStepper):
    """Many steps in one call of compiled code, on the host; JAX cannot trace it, unlike `LinearStepper`.

    The results are those of `LinearStepper` to round-off: the same sums, with f_N − f_P in place of f_N.
    """

    engine: ClassVar[str] = "kernel"
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

    def bytes_per_cell(self, cells: int) -> float:
        """Memory traffic of a step, in bytes per cell, if nothing stayed in the cache from one step to the next."""
        return float(self.work.program.bytes_per_cell(self.work.dtype.itemsize))

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
        """The field after `steps` steps."""
        cells, fields = self.program.cells, self.plan.fields
        with self._lock:
            fields[0, :cells] = T
            _run_in_threads(self.plan, steps)
            return fields[steps % 2, :cells].copy()


def _run_in_threads(plan: Plan, steps: int) -> None:
    """Run the steps in the planned number of threads; all stop if one cannot be started, or on Ctrl-C."""
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
    """Lay out the assembled stages of an explicit linear scheme, in the form that moves the fewest bytes."""
    kind = np.dtype(dtype)
    program = cheapest_program(stages, source, kind.itemsize)
    return KernelStepper(Workspace(program, banded_order(program), kind, threads or allowed_threads()))
