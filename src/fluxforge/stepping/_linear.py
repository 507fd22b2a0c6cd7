"""Explicit linear schemes: stage by stage, or all stages as one sparse row per cell, whichever moves fewer bytes."""

from collections.abc import Mapping
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array, eye_array

from fluxforge.stepping._assemble import AffineMap, compose
from fluxforge.stepping._rows import StageRows, stage_bytes, stage_rows
from fluxforge.stepping._stepper import LinearStepper, Order

Stages = tuple[Mapping[str, AffineMap], ...]
# One row per cell is taken where it moves at most that share of the bytes: it reads cells that are further apart, so
# that a few bytes less are not yet less time.
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
            whole = compose(stages, n)
            found = lay_out(({"T_new": AffineMap({"T": whole.M, "S": whole.N}, whole.b)},))
            if stage_bytes(found[0], n, kind.itemsize) <= most:
                rows = found
    return LinearStepper(stages=rows, order=Order.of(order), always=jnp.asarray(True), dtype=dtype)


def least_bytes(stages: Stages, n: int, width: int) -> int:
    """A lower bound on what all stages move as one row per cell, from the rows of a few cells.

    A product of the stages of eight rounds of messages would have some hundred entries in every row, and take longer
    than the steps it is meant for.
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
    # Slots are as many as the longest row has entries besides its diagonal; T is read and T_new written.
    slots = int(np.diff(rows.indptr).max(initial=1)) - 1
    return n * (slots * (width + INDEX_BYTES) + 2 * width)
