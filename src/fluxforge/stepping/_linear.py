"""Linear schemes on the device: sparse rows in fixed slots, so that a product is a few gathers through memory in order.

Explicit schemes are such products; implicit ones with a symmetric system are solved by conjugate gradients.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.sparse import csr_array, eye_array

from fluxforge._types import State
from fluxforge.errors import InputError
from fluxforge.graph._padded_graph import put
from fluxforge.stepping._assemble import AffineMap, Operator, compose, exchange_rows, symmetric_system
from fluxforge.stepping._solvers import TOLERANCES
from fluxforge.stepping._stepper import DeviceStepper, Order, invert_order

Slot: TypeAlias = Float[Array, " cells"]


class Term(eqx.Module):
    """diagonal · f_P + Σ_k off[k] · f_{index[k]} for one field f; a uniform diagonal is one number.

    In differences it is diagonal · f_P + Σ_k off[k] · (f_{index[k]} − f_P), which keeps constants exactly.
    """

    field: str = eqx.field(static=True)
    diagonal: Slot | Float[Array, ""] | None
    off: tuple[Slot, ...]
    in_differences: bool = eqx.field(static=True)

    @property
    def present(self) -> bool:
        """Whether the field has any coefficient that is not 0."""
        return self.diagonal is not None or bool(self.off)


class StageRows(eqx.Module):
    """A stage of a linear scheme: all its outputs read their neighbours through the same `index`.

    Slots are separate arrays, not columns of one: each is then read from memory once, in order.
    """

    index: tuple[Int[Array, " cells"], ...]
    terms: dict[str, tuple[Term, ...]]
    constant: dict[str, Slot | None]

    def __call__(self, fields: Mapping[str, State]) -> dict[str, State]:
        """The outputs of this stage."""
        return {name: self._output(name, fields) for name in self.terms}

    def _output(self, name: str, fields: Mapping[str, State]) -> State:
        constant = self.constant[name]
        parts: list[Slot] = [] if constant is None else [constant]
        for term in self.terms[name]:
            field = fields[term.field]
            if term.diagonal is not None:
                parts.append(term.diagonal * field)
            # `off` is empty where the field enters through the diagonal alone.
            seen = (_gather(field, i) for i in self.index)
            sent = (each - field for each in seen) if term.in_differences else seen
            parts += [c * each for c, each in zip(term.off, sent, strict=False)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


def _gather(field: State, index: Int[Array, " cells"]) -> State:
    """field[index] without checks of the indices, all of which are valid here."""
    return jnp.asarray(field).at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def stage_rows(
    stage: Mapping[str, AffineMap],
    *,
    source: Float[np.ndarray, " cells"],
    order: Int[np.ndarray, " cells"] | None,
    dtype: np.dtype,
    in_differences: bool = False,
) -> StageRows:
    """Lay a stage out in slots, the source folded into the constant, cells in the given order.

    With `in_differences`, off-diagonal entries multiply f_N − f_P instead of f_N.
    """
    n = len(source)
    place = _Placement(order, dtype)
    matrices = {
        (name, field): matrix
        for name, affine in stage.items()
        for field, matrix in affine.matrices.items()
        if field != "S"
    }
    used = _pattern(matrices.values(), n)
    rows, columns, _ = _entries(used)
    slot = np.arange(len(rows)) - used.indptr[rows]
    width = int(slot.max(initial=-1)) + 1
    index = np.tile(np.arange(n), (width, 1))
    index[slot, rows] = columns
    keys = rows * n + columns
    terms: dict[str, list[Term]] = {name: [] for name in stage}
    for (name, field), matrix in matrices.items():
        terms[name].append(
            _term(field, matrix, keys=keys, slot=slot, width=width, place=place, in_differences=in_differences)
        )
    return StageRows(
        index=tuple(place.indices(column) for column in index),
        terms={name: tuple(parts) for name, parts in terms.items()},
        constant={
            name: _constant(affine, source, place, always=not any(term.present for term in terms[name]))
            for name, affine in stage.items()
        },
    )


def stage_bytes(stage: StageRows, cells: int, width: int) -> int:
    """Bytes that one stage of a linear scheme reads and writes, for floats of `width` bytes."""
    held = sum(array.nbytes for array in jax.tree.leaves(stage))
    read = {term.field for terms in stage.terms.values() for term in terms}
    return held + (len(read) + len(stage.terms)) * cells * width


class _Placement:
    """Puts cell arrays into the order and precision of the stepper."""

    def __init__(self, order: Int[np.ndarray, " cells"] | None, dtype: np.dtype) -> None:
        self.order, self.dtype = order, dtype
        self.rank = None if order is None else invert_order(order)

    def values(self, column: np.ndarray) -> Slot:
        return put(column if self.order is None else column[self.order], self.dtype)

    def indices(self, column: np.ndarray) -> Int[Array, " cells"]:
        return put(column if self.rank is None else self.rank[column[self.order]], np.int32)


def _pattern(matrices: Iterable[csr_array], n: int) -> csr_array:
    """The off-diagonal entries that any of the matrices has, row by row."""
    used = csr_array((n, n), dtype=np.int8)
    for matrix in matrices:
        rows, columns, values = _entries(matrix)
        kept = (rows != columns) & (values != 0)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=n))])
        used = used + csr_array((np.ones(kept.sum(), np.int8), columns[kept], indptr), shape=(n, n))
    used.sort_indices()
    return used


def _entries(matrix: csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    return rows, matrix.indices.astype(np.int64), matrix.data


def _term(
    field: str,
    matrix: csr_array,
    *,
    keys: np.ndarray,
    slot: np.ndarray,
    width: int,
    place: _Placement,
    in_differences: bool,
) -> Term:
    n = matrix.shape[0]
    rows, columns, values = _entries(matrix)
    aside = (rows != columns) & (values != 0)
    where = np.searchsorted(keys, rows[aside] * n + columns[aside])
    off = np.zeros((width, n))
    off[slot[where], rows[aside]] = values[aside]
    diagonal = matrix.diagonal()
    return Term(
        field=field,
        diagonal=_diagonal(diagonal, place),
        off=tuple(place.values(column) for column in off) if aside.any() else (),
        in_differences=in_differences,
    )


def _diagonal(diagonal: np.ndarray, place: _Placement) -> Slot | Float[Array, ""] | None:
    if (diagonal == diagonal[0]).all():
        return None if diagonal[0] == 0 else jnp.asarray(diagonal[0], place.dtype)
    return place.values(diagonal)


def _constant(affine: AffineMap, source: np.ndarray, place: _Placement, *, always: bool) -> Slot | None:
    total = affine.constant + (affine.matrices["S"] @ source if "S" in affine.matrices else 0.0)
    return place.values(total) if always or total.any() else None


class LinearStepper(DeviceStepper):
    """An explicit linear scheme: all coefficients are evaluated beforehand, and a step consists of gathers and sums."""

    stages: tuple[StageRows, ...]
    always: Bool[Array, ""]
    cells: int = eqx.field(static=True)

    def count_cells(self) -> int:
        """The number of cells that a field has."""
        return self.cells

    def bytes_per_cell(self, cells: int) -> float:
        """Memory traffic of a step, in bytes per cell."""
        return sum(stage_bytes(stage, cells, np.dtype(self.dtype).itemsize) for stage in self.stages) / cells

    def advance(self, T: State) -> State:
        """One step: the stages, one after the other."""
        fields = {"T": T}
        for stage in self.stages:
            fields |= self._run_stage(stage, fields)
        return fields["T_new"]

    def _run_stage(self, stage: StageRows, fields: dict[str, State]) -> dict[str, State]:
        """Evaluate a stage so that it is not fused with the next one.

        On the CPU, XLA would fuse it into the gathers of the next stage and compute it again for every neighbour. It
        cannot if the stage is a branch whose condition is known only at run time.
        """

        def plain(held: dict[str, State]) -> dict[str, State]:
            return stage(held)

        def alone(held: dict[str, State]) -> dict[str, State]:
            return jax.lax.cond(self.always, plain, lambda held: dict.fromkeys(stage.terms, held["T"]), held)

        return jax.lax.platform_dependent(fields, cpu=alone, default=plain)


Stages = tuple[Mapping[str, AffineMap], ...]
# All stages are merged into one row per cell if that moves at most this share of the bytes: the row reads cells that
# are further apart, so that slightly fewer bytes do not take less time.
MOST_OF_STAGED = 0.75
SAMPLED_ROWS = 64
INDEX_BYTES = 4


def linear_stepper(
    stages: Stages,
    *,
    source: Float[np.ndarray, " cells"],
    order: Int[np.ndarray, " cells"] | None,
    dtype: Literal["float32", "float64"],
) -> LinearStepper:
    """Lay out the assembled stages of an explicit linear scheme."""
    kind, n = np.dtype(dtype), len(source)

    def lay_out(each: Stages) -> tuple[StageRows, ...]:
        return tuple(stage_rows(stage, source=source, order=order, dtype=kind) for stage in each if stage)

    rows = lay_out(stages)
    if len(rows) > 1:
        most = MOST_OF_STAGED * sum(stage_bytes(stage, n, kind.itemsize) for stage in rows)
        if least_bytes(stages, n, kind.itemsize) <= most:
            merged = lay_out(merge_stages(stages, n))
            if stage_bytes(merged[0], n, kind.itemsize) <= most:
                rows = merged
    return LinearStepper(stages=rows, order=Order.of(order), always=jnp.asarray(True), cells=n, dtype=dtype)


def merge_stages(stages: Stages, n: int) -> Stages:
    """All stages of n cells merged into one: a row of the whole step per cell."""
    whole = compose(stages, n)
    return ({"T_new": AffineMap({"T": whole.M, "S": whole.N}, whole.b)},)


def least_bytes(stages: Stages, n: int, width: int) -> int:
    """A lower bound on the bytes that all stages, merged into one row per cell, move: from the rows of a few cells.

    With eight rounds of messages every row of the merged step would have some hundred entries, and merging would take
    longer than the steps it is meant for.
    """
    sample = np.unique(np.linspace(0, n - 1, SAMPLED_ROWS).astype(np.int64))
    seen = {"T_new": csr_array(eye_array(n, format="csr")[sample])}
    for stage in reversed(stages):
        for name, affine in stage.items():
            if (rows := seen.pop(name, None)) is not None:
                for field, matrix in affine.matrices.items():
                    reached = rows @ matrix
                    seen[field] = seen[field] + reached if field in seen else reached
    rows = seen.get("T")
    if rows is None:
        return 0
    rows = csr_array(rows)
    rows.eliminate_zeros()
    # There are as many slots as the longest row has entries besides its diagonal; T is read and T_new written.
    slots = int(np.diff(rows.indptr).max(initial=1)) - 1
    return n * (slots * (width + INDEX_BYTES) + 2 * width)


class ConjugateGradientStepper(DeviceStepper):
    """Matrix-free conjugate gradients on V·(the system), Jacobi-preconditioned, started from the last step."""

    left: StageRows
    exchange: StageRows
    volume: State
    constant: State
    diagonal: State
    theta: float = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)

    def count_cells(self) -> int:
        """The number of cells that a field has."""
        return len(self.volume)

    def advance(self, T: State) -> State:
        """One step."""
        middle, _ = jax.scipy.sparse.linalg.cg(
            lambda x: self.left({"T": x})["T_new"],
            self.volume * (T + self.theta * self.constant),
            x0=T,
            tol=self.tolerance,
            M=lambda x: x / self.diagonal,
        )
        return T + (self.exchange({"T": middle})["T_new"] + self.constant)


def conjugate_gradient_stepper(
    step: Operator,
    *,
    V: Float[np.ndarray, " cells"],
    source: Float[np.ndarray, " cells"],
    order: np.ndarray | None,
    dtype: Literal["float32", "float64"],
    name: str,
) -> ConjugateGradientStepper:
    """Lay V·(the system) out in slots; InputError unless it is symmetric with a positive diagonal."""
    left = symmetric_system(step, V)
    if left is None or left.diagonal().min() <= 0:
        raise InputError(
            f"scheme {name!r} has no symmetric positive definite matrix on this mesh: use the direct solver, "
            "bicgstab or gmres"
        )
    lay = partial(stage_rows, source=np.zeros(len(V)), order=order, dtype=np.dtype(dtype))
    volume, constant, diagonal = (
        put(each if order is None else each[order], dtype) for each in (V, step.N @ source + step.b, left.diagonal())
    )
    nothing = np.zeros(len(V))
    return ConjugateGradientStepper(
        left=lay({"T_new": AffineMap({"T": left}, nothing)}),
        exchange=lay({"T_new": AffineMap({"T": exchange_rows(step)}, nothing)}, in_differences=True),
        volume=volume,
        constant=constant,
        diagonal=diagonal,
        order=Order.of(order),
        theta=step.theta,
        tolerance=TOLERANCES[dtype],
        dtype=dtype,
    )
