"""Fields over cells, from whatever the caller has."""

import numpy as np

from fluxforge.errors import InputError
from fluxforge.mesh import DualGraph, Value, evaluate_at


def field_on_cells(value: Value | np.ndarray, graph: DualGraph, what: str) -> np.ndarray:
    """A field over cells from whatever the caller gave."""
    if not isinstance(value, np.ndarray):
        return evaluate_at(value, graph.x, what)
    if value.dtype.kind not in "fiu" or value.shape != (graph.cells,) or not np.isfinite(value).all():
        kind = "" if value.dtype.kind in "fiu" else f"{value.dtype} "
        shown = f"an array of {kind}shape {value.shape}"
        raise InputError(f"{what} should be {graph.cells} finite numbers, got {shown}")
    return value.astype(float)
