"""Messages of RecipeError, on one line: where, which field, what was expected and what the document holds."""

import difflib
import math
import numbers
from collections.abc import Iterable, Mapping
from datetime import date, time
from typing import NamedTuple

from fluxforge._files import escape_unprintable
from fluxforge.errors import RecipeError

# Characters of a word from a document that a message quotes.
LONGEST = 60


class Place(NamedTuple):
    """A field of a document: the file or command line that sets it, and its dotted name."""

    where: str
    field: str = ""

    @property
    def inside(self) -> str:
        """The prefix of the names of fields inside this one."""
        return f"{self.field}." if self.field else ""

    def at(self, name: object) -> "Place":
        """The field of that name inside this one."""
        return self._replace(field=f"{self.inside}{shorten(name)}")

    def item(self, index: int) -> "Place":
        """An item of the list that this field holds."""
        return self._replace(field=f"{self.field}[{index}]")

    def refuse(self, what: str) -> RecipeError:
        """The error `my.toml: field 'training.steps': expected …, got …`; `what` follows the name of the field."""
        named = f"field '{self.field}': " if self.field else ""
        return RecipeError(f"{escape_unprintable(self.where)}: {named}{what}")


def shorten(word: object) -> str:
    """A word from a document for a message: escaped, and cut after LONGEST characters."""
    text = word if isinstance(word, str) else type(word).__name__
    return escape_unprintable(text[:LONGEST]) + ("…" if len(text) > LONGEST else "")


def describe_value(value: object) -> str:
    """A short description of a value from a document, to stand in a message after "got"."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case str():
            return f"'{shorten(value)}'"
        case numbers.Real():
            return _number(value)
        case Mapping():
            return "a table"
        case list() | tuple():
            return "a list"
        case date() | time():
            return "a date or time"
    return f"a {shorten(type(value).__name__)}"


def _number(value: numbers.Real) -> str:
    try:
        return shorten(str(value))
    except ValueError:  # Python does not print whole numbers of thousands of digits.
        return "a number of thousands of digits"


def closest(word: object, words: Iterable[str], prefix: str = "") -> str:
    """` (did you mean '…'?)`, or nothing where no word is close."""
    close = difflib.get_close_matches(word[:LONGEST], words, n=1) if isinstance(word, str) else []
    return f" (did you mean '{prefix}{close[0]}'?)" if close else ""


def join_words(words: Iterable[object], last: str = "or") -> str:
    """`'a', 'b' or 'c'`, with numbers bare."""
    *head, tail = (describe_value(word) for word in words)
    return f"{', '.join(head)} {last} {tail}" if head else tail


def to_finite(value: object) -> float | None:
    """The value as a float, or None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    # Adding zero makes −0 the same recipe as 0.
    return number + 0.0 if math.isfinite(number) else None


# The fields that clash, and why.
Clash = tuple[tuple[str, ...], str]
