"""Rows, fields and operations in memory, as the compiled sweeps of `_kernel` read them."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from fluxforge.stepping._kernel_program import Matrix, Program, make_program
from fluxforge.stepping._linear import MOST_OF_STAGED, Stages, least_bytes, merge_stages
from fluxforge.stepping._stepper import invert_order

# Cells computed together, and cells after which the next front has its turn; a turn costs as much as two hundred cells.
LANES, BLOCK = 8, 2048
# Bytes of a cache line, and the indices of the shared counters, each in a cache line of its own.
LINE = 64
ARRIVED, GIVEN_UP, TAKEN = 0, 8, 16
# More ranges of cells than threads: if other programs slow down a thread, the others take over its ranges.
PARTS_PER_THREAD = 2
LEAST_CELLS_PER_THREAD = 4096
# Where the system states the size of a core's second-level cache, the share of the cache that rows and fields of the
# active fronts may fill, and the size in bytes that is assumed if the system does not state it.
SECOND_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
SHARE_OF_CACHE = 1.0
USUAL_CACHE = 2**19
MOST_DEPTH = 32


class Plan(NamedTuple):
    """Data that all threads read: rows and fields in memory, the operations of a step as tables, and ranges of cells.

    `slots` is a tuple of as many numbers as a row has slots, so that their number is known to the compiler. A row of
    `operations` holds the matrix (−1 for none), the gathered field, the target, and the range of its terms.
    """

    slots: tuple[int, ...]
    columns: np.ndarray
    weight: np.ndarray
    fields: np.ndarray
    operations: np.ndarray
    scales: np.ndarray
    term_fields: np.ndarray
    term_shares: np.ndarray
    fronts: np.ndarray
    cells: int
    reach: int
    depth: int
    parts: int
    threads: int


def plan_sweeps(program: Program, *, order: np.ndarray | None, dtype: np.dtype, threads: int) -> Plan:
    """Lay a program out in memory, cells in the given order."""
    cells, slots = _round_up(program.cells), max(program.slots, 1)
    rows = [_lay_out(matrix, slots, order, dtype) for matrix in program.matrices]
    empty = np.zeros((0, cells * slots))
    reach = _round_up(max((measure_reach(matrix.off, order) for matrix in program.matrices), default=0))
    threads = max(1, min(threads, cells // LEAST_CELLS_PER_THREAD))
    parts = 1 if threads == 1 else PARTS_PER_THREAD * threads
    held = len(rows) * slots * (dtype.itemsize + 4) + program.fields * dtype.itemsize
    terms = [term for operation in program.operations for term in operation.terms]
    return Plan(
        slots=(0,) * slots,
        columns=np.stack([index for index, _ in rows]) if rows else empty.astype(np.uint32),
        weight=np.stack([weight for _, weight in rows]) if rows else empty.astype(dtype),
        fields=_fields(program, order, dtype),
        operations=_operations(program),
        scales=np.array([operation.scale for operation in program.operations], dtype),
        term_fields=np.array([number for number, _ in terms], np.int64),
        term_shares=np.array([share for _, share in terms], dtype),
        fronts=np.array(program.fronts(), np.int64),
        cells=cells,
        reach=reach,
        depth=_depth(held, reach, cells // parts),
        parts=parts,
        threads=threads,
    )


def _round_up(cells: int) -> int:
    return -(-cells // LANES) * LANES


def _lay_out(matrix: Matrix, slots: int, order: np.ndarray | None, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours and weights of LANES cells at a time, slot by slot.

    An unused slot has the cell itself as neighbour and no weight. The excess e_P is a slot too, since e_P f_P is
    −e_P (0 − f_P): its neighbour is a place behind the last cell where every field is zero. Cells at a wall have a slot
    free for it.
    """
    n = len(matrix.excess)
    cells, rank = _round_up(n), _rank(order, n)
    counts = np.diff(matrix.off.indptr)
    rows = np.repeat(np.arange(n), counts)
    slot = np.arange(len(rows)) - matrix.off.indptr[rows]
    index = np.repeat(np.arange(cells, dtype=np.uint32)[:, None], slots, axis=1)
    weight = np.zeros((cells, slots), dtype)
    index[rank[rows], slot] = rank[matrix.off.indices]
    weight[rank[rows], slot] = matrix.off.data
    cut = np.flatnonzero(matrix.excess)
    index[rank[cut], counts[cut]] = cells
    weight[rank[cut], counts[cut]] = -matrix.excess[cut]
    return _arrange_by_lanes(index), _arrange_by_lanes(weight)


def _arrange_by_lanes(rows: np.ndarray) -> np.ndarray:
    cells, slots = rows.shape
    return rows.reshape(cells // LANES, LANES, slots).swapaxes(1, 2).ravel()


def _rank(order: np.ndarray | None, n: int) -> Int[np.ndarray, " cells"]:
    """The new place of each cell."""
    return np.arange(n) if order is None else invert_order(order)


def _fields(program: Program, order: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
    """A row for each field, with a place behind the last cell that stays zero.

    A row is an odd number of cache lines long, so that a cell's places in the fields do not fall on one place of the
    cache.
    """
    lines = -(-(_round_up(program.cells) + 1) * dtype.itemsize // LINE)
    fields = np.zeros((program.fields, (lines + 1 - lines % 2) * LINE // dtype.itemsize), dtype)
    for number, values in program.constants.items():
        fields[number, : program.cells] = values if order is None else values[order]
    return fields


def _operations(program: Program) -> Int[np.ndarray, "operations 5"]:
    table, terms = np.zeros((len(program.operations), 5), np.int64), 0
    for k, each in enumerate(program.operations):
        matrix = -1 if each.matrix is None else each.matrix
        table[k] = matrix, each.gathered, each.target, terms, terms + len(each.terms)
        terms += len(each.terms)
    return table


def measure_reach(off: csr_array, order: np.ndarray | None) -> int:
    """The largest distance in memory, in cells, between a cell and one of its neighbours."""
    rank = _rank(order, off.shape[0])
    return int(np.abs(np.repeat(rank, np.diff(off.indptr)) - rank[off.indices]).max(initial=0))


def _depth(bytes_per_cell: int, reach: int, cells: int) -> int:
    """The number of fronts that go through a range of cells together, so that shared data stay in the core's cache."""
    room = int(SHARE_OF_CACHE * second_cache_bytes() / bytes_per_cell) - BLOCK
    # The wedges at either end of a range must not meet.
    return int(np.clip(min(room, cells // 2) // max(reach, 1), 1, MOST_DEPTH))


def second_cache_bytes() -> int:
    """The size of a core's second-level cache, in bytes."""
    try:
        return int(SECOND_CACHE.read_text().strip().removesuffix("K")) * 1024
    except (OSError, ValueError):
        return USUAL_CACHE


def cheapest_program(stages: Stages, source: np.ndarray, width: int) -> Program:
    """The program that moves the fewest bytes: stage by stage, or all stages merged into one row per cell."""
    program, n = make_program(stages, source), len(source)
    most = MOST_OF_STAGED * program.bytes_per_cell(width)
    if len(stages) == 1 or least_bytes(stages, n, width) > n * most:
        return program
    merged = make_program(merge_stages(stages, n), source)
    return merged if merged.bytes_per_cell(width) <= most else program


def banded_order(program: Program) -> Int[np.ndarray, " cells"] | None:
    """The reverse Cuthill-McKee order of the cells, in which neighbours are close; None if it gains little."""
    if not program.matrices:
        return None
    off = max((matrix.off for matrix in program.matrices), key=lambda off: off.nnz)
    order = np.asarray(reverse_cuthill_mckee(csr_array(off), symmetric_mode=False), np.int64)
    return order if 1.25 * measure_reach(off, order) < measure_reach(off, None) else None


def allowed_threads() -> int:
    """The number of cores this process may use, at most the numbers that PJRT_NPROC (XLA) and OMP_NUM_THREADS give."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    settings = (os.environ.get(name, "") for name in ("PJRT_NPROC", "OMP_NUM_THREADS"))
    return max(1, min([cores, *(int(text) for text in settings if text.isdigit())]))
