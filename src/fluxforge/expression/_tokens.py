"""Text → tokens, with limits on its size; error messages that show the place in the text."""

import re
import sys
from typing import Literal, NamedTuple

from fluxforge.errors import ExpressionError
from fluxforge.expression._symbols import visible

MAX_CHARACTERS = 10_000
MAX_DEPTH = 50
MAX_NODES = 5_000
MAX_EXPONENT = 16
MAX_BITS = 256
"""Bits of the numerator and of the denominator of any exact number, written or computed."""

MAX_DIGITS = 77
"""Digits of a literal integer: 10**77 has 256 bits, so that every number which is computed can also be written."""

MAX_DEGREE, MAX_FRACTIONS = 64, 6
"""Total degree, and sums within denominators within denominators: SymPy's time is exponential in both."""

SMALLEST, LARGEST = sys.float_info.min, sys.float_info.max
"""Normal doubles: below the first a decimal loses digits, beyond the second it is infinite."""

EXACT_BELOW = 1e15
"""A decimal with an integer value smaller than this is that integer: 2.0*x is 2*x."""


_SHOWN = 60


class RefusalError(ValueError):
    """An operation that is refused. The parser catches it and adds the column."""


def excerpt(text: str, column: int) -> str:
    """The part of the text around a column (from 1), quoted, with … where it was cut."""
    start = max(0, min(column - 1 - _SHOWN // 2, len(text) - _SHOWN))
    stop = start + _SHOWN
    return f'"{"…" if start else ""}{visible(text[start:stop])}{"…" if stop < len(text) else ""}"'


def error_at(text: str, column: int, what: str, hint: str = "") -> ExpressionError:
    """`what at column 5 of "2*x+foo"; hint`."""
    return ExpressionError(f"{what} at column {column} of {excerpt(text, column)}" + (f"; {hint}" if hint else ""))


_BLANKS = " \t"
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|[<>=!]=|[-+*/^(),<>])"
)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

Kind = Literal["number", "name", "operator", "end"]


class Token(NamedTuple):
    """A piece of the text and its column, counted from 1."""

    kind: Kind
    text: str
    column: int


def tokenize(text: str) -> list[Token]:
    """The tokens of a formula, closed by an `end` token; `^` reads as `**`."""
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(
            f"the formula {excerpt(text, 1)} has {len(text)} characters; at most {MAX_CHARACTERS} are read"
        )
    tokens, at = [], _skip_blanks(text, 0)
    while at < len(text):
        tokens.append(_token_at(text, at))
        if len(tokens) > 2 * MAX_NODES:
            break
        at = _skip_blanks(text, at + len(tokens[-1].text))
    _check_size(text, tokens)
    powers = [token._replace(text="**") if token.text == "^" else token for token in tokens]
    return [*powers, Token("end", "", len(text) + 1)]


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _token_at(text: str, at: int) -> Token:
    match = _TOKEN.match(text, at)
    if match is None:
        hint = "a formula has numbers, names, + - * / ** ( ) < <= > >= and commas only"
        raise error_at(text, at + 1, f"unexpected character '{visible(text[at])}'", hint)
    kind: Kind = "number" if match["number"] else "name" if match["name"] else "operator"
    return Token(kind, match[0], at + 1)


def _check_size(text: str, tokens: list[Token]) -> None:
    if not tokens:
        raise ExpressionError(f"the formula {excerpt(text, 1)} is empty")
    nodes = sum(token.text not in ("(", ")", ",") for token in tokens)
    if nodes > MAX_NODES:
        raise ExpressionError(f"the formula {excerpt(text, 1)} has more than {MAX_NODES} numbers, names and operators")
