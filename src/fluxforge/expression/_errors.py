"""One-line messages that show where a formula is wrong."""

import difflib
from collections.abc import Iterable

from fluxforge.errors import ExpressionError

_SHOWN = 60
_LISTED = 12


class RefusalError(ValueError):
    """What is wrong with an operation, before the parser has added the place."""


def visible(text: str) -> str:
    r"""The text on one line: whatever does not print is escaped (`\n`, `\x00`, `\u202e`)."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def excerpt(text: str, column: int) -> str:
    """The part of the text around a column (from 1), quoted, with … where it was cut."""
    start = max(0, min(column - 1 - _SHOWN // 2, len(text) - _SHOWN))
    stop = start + _SHOWN
    return f'"{"…" if start else ""}{visible(text[start:stop])}{"…" if stop < len(text) else ""}"'


def error_at(text: str, column: int, what: str, hint: str = "") -> ExpressionError:
    """`what at column 5 of "2*x+foo"; hint`."""
    return ExpressionError(f"{what} at column {column} of {excerpt(text, column)}" + (f"; {hint}" if hint else ""))


def known_names(wanted: str, names: Iterable[str]) -> str:
    """`known: …`, the names closest to the wanted one first."""
    ordered = sorted(names)
    close = difflib.get_close_matches(wanted[:40], ordered, n=3)
    listed = [*close, *(name for name in ordered if name not in close)]
    return f"known: {', '.join(listed[:_LISTED]) or 'none'}" + (", …" if len(listed) > _LISTED else "")
