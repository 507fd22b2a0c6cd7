"""Text → tokens, with limits on the size of the text; error messages that show the place in the text."""

import re
from typing import Any, Literal, NamedTuple, TypeAlias

from fluxforge._files import escape_unprintable
from fluxforge.errors import ExpressionError
from fluxforge.expression._symbols import MAX_CHARACTERS, MAX_NODES

# Characters of a formula that a message quotes.
_MOST_QUOTED = 60


def excerpt(text: str, column: int) -> str:
    """The part of the text around a column (from 1), quoted, with … where it was cut."""
    start = max(0, min(column - 1 - _MOST_QUOTED // 2, len(text) - _MOST_QUOTED))
    stop = start + _MOST_QUOTED
    return f'"{"…" if start else ""}{escape_unprintable(text[start:stop])}{"…" if stop < len(text) else ""}"'


def error_at(text: str, column: int, what: str, hint: str = "") -> ExpressionError:
    """The error `what at column 5 of "2*x+foo"; hint`."""
    return ExpressionError(f"{what} at column {column} of {excerpt(text, column)}" + (f"; {hint}" if hint else ""))


_BLANKS = " \t"
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|[<>=!]=|[-+*/^(),<>])"
)

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
        raise error_at(text, at + 1, f"unexpected character '{escape_unprintable(text[at])}'", hint)
    kind: Kind = "number" if match["number"] else "name" if match["name"] else "operator"
    return Token(kind, match[0], at + 1)


def _check_size(text: str, tokens: list[Token]) -> None:
    if not tokens:
        raise ExpressionError(f"the formula {excerpt(text, 1)} is empty")
    nodes = sum(token.text not in ("(", ")", ",") for token in tokens)
    if nodes > MAX_NODES:
        raise ExpressionError(f"the formula {excerpt(text, 1)} has more than {MAX_NODES} numbers, names and operators")


Texts: TypeAlias = str | tuple[str | tuple[str, ...], ...]
"""A formula, a tuple of formulas, or a tuple of rows of formulas, as texts."""


# A tensor is rows of formulas; nothing has more indices.
_MOST_INDICES = 2


def split_components(text: str) -> Texts:
    """`(-y, x)` → `("-y", "x")`, `((2, 1), (1, 3))` → a tuple of rows; a single formula → its text.

    The brackets around the whole may be left out: `-y, x`. Commas in the brackets of a function belong to it. Raises
    ExpressionError for characters that no formula has, an empty component, and brackets that do not match.
    """
    parts: Texts = _split(text, tokenize(text)[:-1], _MOST_INDICES)
    return parts


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
        raise error_at(text, tokens[0].column, "an empty component")
    return parts


def split_outside_brackets(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that are not inside brackets, of a text that need not be a formula."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
