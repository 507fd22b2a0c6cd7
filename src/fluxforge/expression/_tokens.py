"""Text → tokens: numbers, names, operators, nothing else."""

import re
from typing import Literal, NamedTuple

from fluxforge.errors import ExpressionError
from fluxforge.expression._errors import error_at, excerpt, visible
from fluxforge.expression._limits import MAX_CHARACTERS, MAX_NODES

_BLANKS = " \t"
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|[-+*/^(),])"
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
        hint = "a formula has numbers, names, + - * / ** ( ) and commas only"
        raise error_at(text, at + 1, f"unexpected character '{visible(text[at])}'", hint)
    kind: Kind = "number" if match["number"] else "name" if match["name"] else "operator"
    return Token(kind, match[0], at + 1)


def _check_size(text: str, tokens: list[Token]) -> None:
    if not tokens:
        raise ExpressionError(f"the formula {excerpt(text, 1)} is empty")
    nodes = sum(token.text not in ("(", ")", ",") for token in tokens)
    if nodes > MAX_NODES:
        raise ExpressionError(f"the formula {excerpt(text, 1)} has more than {MAX_NODES} numbers, names and operators")
