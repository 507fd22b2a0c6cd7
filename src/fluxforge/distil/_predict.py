"""A formula on a table."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.distil._table import Table
from fluxforge.errors import ExpressionError
from fluxforge.expression import evaluate

_NONE: Mapping[sp.Symbol, np.ndarray] = MappingProxyType({})


def predict(
    expr: sp.Expr, table: Table, constants: Mapping[sp.Symbol, Float[np.ndarray, "batch 1"]] = _NONE
) -> Float[np.ndarray, "*batch rows"]:
    """f(X; c) in float64, a row for each of a batch of constants; nan or infinite where the formula has no value."""
    try:
        with np.errstate(all="ignore"):
            f = evaluate(expr, {**table.values, **constants}, np)
    except ExpressionError:
        f = np.nan
    shapes = [table.y.shape, *(batch.shape for batch in constants.values())]
    return np.broadcast_to(np.asarray(f, dtype=np.float64), np.broadcast_shapes(*shapes))
