"""Formulas as fields: functions of arrays, and the components `(-y, x)` of vectors and tensors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import COORDINATES, symbols_of
from fluxforge.expression._tokens import Token, error_at, excerpt, tokenize

Components: TypeAlias = sp.Expr | tuple[sp.Expr | tuple[sp.Expr, ...], ...]
"""A formula, or a tuple of formulas or of tuples."""

Texts: TypeAlias = str | tuple[str | tuple[str, ...], ...]
"""The same as texts."""

# A tensor is rows of formulas; nothing has more indices.
_DEEPEST = 2


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


def split_components(text: str) -> Texts:
    """`(-y, x)` → `("-y", "x")`, `((2, 1), (1, 3))` → a tuple of rows; a single formula → its text.

    The brackets around the whole may be left out: `-y, x`. Commas in the brackets of a function belong to it. Raises
    ExpressionError for a text that is no formula by its characters, and for brackets that do not match.
    """
    parts: Texts = _split(text, tokenize(text)[:-1], _DEEPEST)
    return parts


def parse_components(text: str, symbols: Mapping[str, sp.Symbol] | Iterable[str]) -> Components:
    """A formula, or a tuple of formulas, each read by `parse`; an error names the component."""
    read: Components = _parse(split_components(text), symbols if isinstance(symbols, Mapping) else list(symbols), ())
    return read


def _parse(texts: Texts, symbols: Mapping[str, sp.Symbol] | Iterable[str], at: tuple[int, ...]) -> Any:
    if isinstance(texts, tuple):
        return tuple(_parse(part, symbols, (*at, k)) for k, part in enumerate(texts, start=1))
    try:
        return parse(texts, symbols)
    except ExpressionError as error:
        where = f"component {', '.join(map(str, at))}: " if at else ""
        raise ExpressionError(f"{where}{error}") from error


def _split(text: str, tokens: list[Token], deepest: int) -> Any:
    if deepest:
        inner = tokens[1:-1] if _is_enclosed(tokens) else tokens
        parts = _between_commas(text, inner)
        if len(parts) > 1:
            return tuple(_split(text, part, deepest - 1) for part in parts)
    first, last = tokens[0], tokens[-1]
    return text[first.column - 1 : last.column - 1 + len(last.text)]


def _is_enclosed(tokens: list[Token]) -> bool:
    """Whether the first bracket is closed by the last token, and not before, as it is in `(x), (y)`."""
    depth = 0
    for k, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return k > 1 and k == len(tokens) - 1
    return False


def _between_commas(text: str, tokens: list[Token]) -> list[list[Token]]:
    """The tokens between the commas that stand in no bracket."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0:
            raise error_at(text, token.column, "unexpected ')'")
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    if len(parts) > 1 and not all(parts):
        raise error_at(text, tokens[0].column, "a component that is empty")
    return parts
