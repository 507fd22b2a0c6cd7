"""`FIELD=VALUE` as it is typed on a command line."""

import tomllib
from collections.abc import Iterable
from typing import Any

from fluxforge.errors import RecipeError
from fluxforge.recipe._messages import Place, found, visible

# What begins like this is meant as TOML: an error in it is told, not taken as a word.
_OPENINGS = ("[", "{", '"', "'")


def assignments(texts: Iterable[str], where: str = "command line") -> dict[str, Any]:
    """Fields and their values from texts `FIELD=VALUE`, for `override`.

    A value is written as in TOML: `500`, `true`, `"pairs"`, `[0.1, 0.5]`, `{weight = 1e-6}`. A text that is not TOML,
    such as `direct`, is taken as a string. Raises RecipeError for a text without `=` or without a field, for a list, a
    table or a quoted string that is not TOML, and for a field that is given twice.
    """
    found: dict[str, Any] = {}
    for text in texts:
        field, value = _split(text, where)
        if field in found:
            raise Place(where).at(field).refuse("is given twice")
        found[field] = value
    return found


def _split(text: str, where: str) -> tuple[str, Any]:
    field, equals, value = (part.strip() for part in text.partition("="))
    if not field or not equals:
        raise RecipeError(f"{where}: expected FIELD=VALUE, such as training.steps=500, got {found(text)}")
    return field, _value(field, value, where)


def _value(field: str, text: str, where: str) -> Any:
    try:
        document = tomllib.loads(f"value = {text}\n")
    except (ValueError, RecursionError) as error:
        if not text or text.startswith(_OPENINGS):
            why = "is empty" if not text else f"is not TOML ({visible(str(error))})"
            raise Place(where).at(field).refuse(f"the value {why}") from error
        return text
    if document.keys() != {"value"}:
        raise Place(where).at(field).refuse("the value holds more than one line; give one --set for each field")
    return document["value"]
