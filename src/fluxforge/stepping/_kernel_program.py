"""An explicit linear scheme as a short list of operations on the cells, which share as few sparse matrices as possible.

target = scale · Σ_N w_PN (f_N − f_P) + Σ share · field_P,  the fields among T, earlier targets and constants.

Stages of a Runge–Kutta method apply the same matrix, times a number, to sums of fields: the matrix is stored once, and
a sum to which it is applied is a field of its own, written along with the last field that enters it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array

from fluxforge.stepping._assemble import AffineMap

EPS = float(np.finfo(float).eps)
INDEX_BYTES = 4


@dataclass(frozen=True)
class Matrix:
    """Σ_N off_PN (f_N − f_P) + excess_P f_P."""

    off: csr_array
    excess: Float[np.ndarray, " cells"]

    @property
    def slots(self) -> int:
        """The most entries of a row; the excess is an entry too, with a neighbour that is always zero."""
        return int((np.diff(self.off.indptr) + (self.excess != 0)).max(initial=0))


@dataclass(frozen=True)
class Operation:
    """target = scale · (matrix applied to `gathered`) + Σ share · field_P; no matrix where `matrix` is None."""

    target: int
    terms: tuple[tuple[int, float], ...]
    matrix: int | None = None
    gathered: int = 0
    scale: float = 1.0

    def at_places(self, places: Mapping[int, int]) -> "Operation":
        """The same operation on fields in other places."""
        terms = tuple((places[number], share) for number, share in self.terms)
        return Operation(places[self.target], terms, self.matrix, places[self.gathered], self.scale)


@dataclass
class Program:
    """The operations of one step in order. Field 0 is T, field 1 is T_new; `constants` are fields never written."""

    cells: int
    matrices: list[Matrix] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    constants: dict[int, Float[np.ndarray, " cells"]] = field(default_factory=dict)
    fields: int = 2

    @property
    def slots(self) -> int:
        """The most entries of a row of any matrix."""
        return max((matrix.slots for matrix in self.matrices), default=0)

    def fronts(self) -> list[int]:
        """The indices of the first operation and of those that read neighbours, and the number of operations."""
        reading = (k for k, operation in enumerate(self.operations) if operation.matrix is not None and k > 0)
        return [0, *reading, len(self.operations)]

    def bytes_per_cell(self, width: int) -> int:
        """Bytes moved by a step: per front, every coefficient, index and field read once, every target written once."""
        fronts = self.fronts()
        return sum(self._front_bytes(self.operations[a:b], width) for a, b in pairwise(fronts))

    def _front_bytes(self, operations: list[Operation], width: int) -> int:
        written = {operation.target for operation in operations}
        read = {number for operation in operations for number, _ in operation.terms}
        read |= {operation.gathered for operation in operations if operation.matrix is not None}
        entries = self.slots * sum(operation.matrix is not None for operation in operations)
        return entries * (width + INDEX_BYTES) + (len(read - written) + len(written)) * width


def make_program(stages: tuple[Mapping[str, AffineMap], ...], source: Float[np.ndarray, " cells"]) -> Program:
    """The operations of assembled stages, the source folded into the constants."""
    builder = _ProgramBuilder(Program(len(source)), source)
    for stage in stages:
        for name, affine in stage.items():
            builder.add_output(name, affine)
    return _reuse_fields(builder.program)


def _reuse_fields(program: Program) -> Program:
    """The same program with fewer fields: a field that no later front reads is reused for the next target.

    It is reused by a later front, not in the same: the field that a front gathers is still read behind its current
    cell.
    """
    fronts = program.fronts()
    front_of = [front for front in range(len(fronts) - 1) for _ in range(fronts[front], fronts[front + 1])]
    last: dict[int, int] = {}
    for operation, front in zip(program.operations, front_of, strict=True):
        last |= dict.fromkeys((operation.target, operation.gathered, *(number for number, _ in operation.terms)), front)
    # T and T_new are read and written by other steps too; constants are never written.
    places = {number: number for number in (0, 1)}
    places |= {number: k for k, number in enumerate(program.constants, start=2)}
    count = len(places)
    free: dict[int, int] = {}
    for operation, front in zip(program.operations, front_of, strict=True):
        if operation.target not in places:
            place = next((place for place, until in free.items() if until < front), count)
            count += place == count
            places[operation.target] = place
            free[place] = last[operation.target]
    return Program(
        program.cells,
        program.matrices,
        [operation.at_places(places) for operation in program.operations],
        {places[number]: values for number, values in program.constants.items()},
        count,
    )


@dataclass(frozen=True)
class _Part:
    """A matrix of a stage as scale · (a stored matrix) + own · identity."""

    matrix: int | None
    scale: float
    own: float


class _ProgramBuilder:
    """Builds a program; records the fields known so far by name, and the sums of fields that are already written."""

    def __init__(self, program: Program, source: np.ndarray) -> None:
        self.program, self.source = program, source
        self.numbers = {"T": 0}
        self.sums: dict[tuple[tuple[int, float], ...], int] = {}
        self.products: dict[tuple[int, int], Operation] = {}

    def add_output(self, name: str, affine: AffineMap) -> None:
        """Add the operations that write one output of a stage."""
        own: dict[int, float] = {}
        gathered: dict[int, dict[int, float]] = {}
        for field_name, matrix in affine.matrices.items():
            if field_name == "S":
                continue
            number, part = self.numbers[field_name], self._part(csr_array(matrix))
            if part.own != 0:
                own[number] = part.own
            if part.matrix is not None:
                gathered.setdefault(part.matrix, {})[number] = part.scale
        constant = affine.constant + (affine.matrices["S"] @ self.source if "S" in affine.matrices else 0.0)
        if constant.any():
            own |= dict([self._constant(constant)])
        products = [(matrix, *self._sum(shares)) for matrix, shares in gathered.items()]
        target = 1 if name == "T_new" else self._new_field()
        self._write(target, own, [it for it in products if not self._reuse_product(own, *it)])
        self.numbers[name] = target

    def _write(self, target: int, own: dict[int, float], products: list[tuple[int, int, float]]) -> None:
        terms = tuple((number, share) for number, share in own.items() if share != 0) or ((0, 0.0),)
        if not products:
            self.program.operations.append(Operation(target, terms))
        for matrix, gathered, scale in products:
            self.program.operations.append(Operation(target, terms, matrix, gathered, scale))
            terms = ((target, 1.0),)
        # A target of one product and constants alone is a rate: later outputs read the product from it.
        if len(products) == 1 and all(number in self.program.constants or not share for number, share in own.items()):
            self.products[products[0][:2]] = self.program.operations[-1]

    def _reuse_product(self, own: dict[int, float], matrix: int, gathered: int, scale: float) -> bool:
        """Add an earlier target that holds the product to `own`, less its other terms; False if there is none."""
        earlier = self.products.get((matrix, gathered))
        if earlier is None:
            return False
        ratio = scale / earlier.scale
        own[earlier.target] = own.get(earlier.target, 0.0) + ratio
        for number, share in earlier.terms:
            rest = own.get(number, 0.0) - ratio * share
            own[number] = 0.0 if abs(rest) <= _ENTRY_TOLERANCE * abs(ratio * share) else rest
        return True

    def _constant(self, values: np.ndarray) -> tuple[int, float]:
        """The field of a constant, and its share: a multiple of a stored constant, or a new field."""
        for number, known in self.program.constants.items():
            largest = int(np.abs(known).argmax())
            share = float(values[largest] / known[largest])
            if (np.abs(values - share * known) <= _ENTRY_TOLERANCE * np.abs(values)).all():
                return number, share
        number = self._new_field()
        self.program.constants[number] = values
        return number, 1.0

    def _sum(self, shares: dict[int, float]) -> tuple[int, float]:
        """The field to gather and its scale: the only field, or a field that is written for the sum."""
        (first, scale), *others = shares.items()
        if not others:
            return first, scale
        key = ((first, 1.0), *((number, share / scale) for number, share in others))
        if key not in self.sums:
            self.sums[key] = self._new_field()
            self.program.operations.append(Operation(self.sums[key], key))
        return self.sums[key], scale

    def _new_field(self) -> int:
        self.program.fields += 1
        return self.program.fields - 1

    def _part(self, matrix: csr_array) -> _Part:
        off, total = _split_row_sums(matrix)
        if not off.nnz and (total == total[0]).all():
            return _Part(None, 0.0, float(total[0]))
        for number, known in enumerate(self.program.matrices):
            if (part := _multiple(off, total, known, number)) is not None:
                return part
        own = _most_frequent_value(total)
        self.program.matrices.append(Matrix(off, total - own))
        return _Part(len(self.program.matrices) - 1, 1.0, own)


def _split_row_sums(matrix: csr_array) -> tuple[csr_array, np.ndarray]:
    """The off-diagonal entries, and the sums of the rows.

    Sums that differ from 0 or 1 by round-off only are set to these values: otherwise the difference would change a
    constant field at every step, always in the same direction.
    """
    matrix.sum_duplicates()
    n = matrix.shape[0]
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    kept = (rows != matrix.indices) & (matrix.data != 0)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=n))])
    off = csr_array((matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape)
    total = np.bincount(rows, matrix.data, minlength=n)
    size = np.bincount(rows, np.abs(matrix.data), minlength=n)
    for exact in (0.0, 1.0):
        total[np.abs(total - exact) <= 8.0 * EPS * np.maximum(size, exact)] = exact
    return off, total


def _most_frequent_value(values: np.ndarray) -> float:
    """The most frequent value of the cells; rows that are cut off by walls are few."""
    distinct, count = np.unique(values, return_counts=True)
    return float(distinct[count.argmax()])


# Entries that are the same product of numbers, multiplied in another order, differ by a few roundings.
_ENTRY_TOLERANCE = 16.0 * EPS


def _multiple(off: csr_array, total: np.ndarray, known: Matrix, number: int) -> _Part | None:
    """The matrix as a multiple of a known one plus a multiple of the identity; None if it is not."""
    same_places = np.array_equal(off.indptr, known.off.indptr) and np.array_equal(off.indices, known.off.indices)
    if not off.nnz or not same_places:
        return None
    largest = int(np.abs(known.off.data).argmax())
    scale = float(off.data[largest] / known.off.data[largest])
    if (np.abs(off.data - scale * known.off.data) > _ENTRY_TOLERANCE * np.abs(off.data)).any():
        return None
    quiet = known.excess == 0
    own = _most_frequent_value(total[quiet]) if quiet.any() else _most_frequent_value(total)
    # A row's sum is rounded in the size of its entries.
    size = np.asarray(abs(off).sum(axis=1)) + np.abs(total) + abs(own)
    if (np.abs(total - own - scale * known.excess) > _ENTRY_TOLERANCE * size).any():
        return None
    return _Part(number, scale, own)
