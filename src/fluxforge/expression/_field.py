"""A formula of the coordinates → a function of arrays: initial temperatures, sources, boundary values."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluxforge.errors import ExpressionError
from fluxforge.expression._errors import excerpt
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import COORDINATES, symbols_of


def field(text: str, variables: Sequence[str] = COORDINATES[:2]) -> Callable[..., np.ndarray]:
    """f(x, y) = text: a function of as many arrays (or numbers) as there are variables.

    It returns float64 of the shape its arguments broadcast to, and raises an `ExpressionError` that names a point
    where the formula is not finite.
    """
    symbols = symbols_of(variables)
    expr = parse(text, symbols)

    def function(*coordinates: Any) -> np.ndarray:
        if len(coordinates) != len(symbols):
            raise ExpressionError(
                f"the formula {excerpt(text, 1)} is a function of {', '.join(symbols)}: give one array each"
            )
        arrays = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in coordinates))
        with np.errstate(all="ignore"):
            values = evaluate(expr, dict(zip(symbols.values(), arrays, strict=True)), np)
        result = np.array(np.broadcast_to(values, arrays[0].shape), dtype=np.float64)
        _check_finite(result, text, dict(zip(symbols, arrays, strict=True)))
        return result

    return function


def _check_finite(result: np.ndarray, text: str, coordinates: dict[str, np.ndarray]) -> None:
    bad = np.argwhere(~np.isfinite(result))
    if len(bad):
        point = tuple(bad[0])
        where = ", ".join(f"{name} = {float(values[point])!r}" for name, values in coordinates.items())
        raise ExpressionError(f"the formula {excerpt(text, 1)} is {float(result[point])} at {where}")
