"""TOML text of recipes: reading `FIELD=VALUE`, writing tables, and changing fields of a text but not its comments."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from fluxforge._files import escape_unprintable
from fluxforge.errors import RecipeError
from fluxforge.recipe._messages import Place, describe_value
from fluxforge.recipe._recipe import Changes, Table

# A value that begins like this is parsed as TOML: a syntax error in it is reported, not read as a string.
_OPENINGS = ("[", "{", '"', "'")
_COMMAND_LINE = "command line"


def assignments(texts: Iterable[str]) -> Changes:
    """Fields and their values from texts `FIELD=VALUE`, for `override`.

    A value is written as in TOML: `500`, `true`, `"pairs"`, `[0.1, 0.5]`, `{weight = 1e-6}`. A text that is not TOML,
    such as `direct`, is taken as a string. Raises RecipeError for a text without `=` or without a field, for a list, a
    table or a quoted string that is not TOML, and for a field that is given twice.
    """
    given: dict[str, Any] = {}
    for text in texts:
        field, equals, value = (part.strip() for part in text.partition("="))
        if not field or not equals:
            raise RecipeError(
                f"{_COMMAND_LINE}: expected FIELD=VALUE, such as training.steps=500, got {describe_value(text)}"
            )
        place = Place(_COMMAND_LINE).at(field)
        if field in given:
            raise place.refuse("is given twice")
        given[field] = _parse_value(value, place)
    return given


def _parse_value(text: str, place: Place) -> Any:
    try:
        document = tomllib.loads(f"value = {text}\n")
    except (ValueError, RecursionError) as error:
        if not text or text.startswith(_OPENINGS):
            why = "is empty" if not text else f"is not TOML ({escape_unprintable(str(error))})"
            raise place.refuse(f"the value {why}") from error
        return text
    if document.keys() != {"value"}:
        raise place.refuse("the value has more than one line; give one --set for each field")
    return document["value"]


_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?")


def set_fields(text: str, changes: Changes) -> str:
    """The TOML text of a recipe with `changes` written into it, comments kept.

    For a text in an unusual layout, such as several sections on one line, the result may be wrong: the caller has to
    read it and compare.
    """
    lines = text.splitlines()
    for field, value in changes.items():
        if isinstance(value, Mapping):
            rows = (f"{name} = {to_toml_value(each)}" for name, each in value.items())
            lines = [*_remove_section(lines, field), "", f"[{field}]", *rows]
        else:
            lines = _set_field(lines, field, value)
    return "\n".join(lines) + "\n"


def to_toml(table: Table) -> str:
    """A table as TOML with every field written out; fields that are None are left out."""
    return "\n".join(_tables(table, "")).lstrip("\n") + "\n"


def _tables(table: Mapping[str, object], name: str) -> list[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in table.items() if key not in inner and value is not None}
    lines = ["", f"[{name}]"] if name and (plain or not inner) else []
    lines += [f"{key} = {to_toml_value(value)}" for key, value in plain.items()]
    for key, value in inner.items():
        # An empty dictionary, such as the arms of a recipe that has none, is the default and is skipped.
        lines += _tables(value, f"{name}.{key}" if name else key) if value or key not in ("arms", "parameters") else []
    return lines


def to_toml_value(value: Any) -> str:
    """A value as TOML on one line, as it is written after `--set FIELD=`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {to_toml_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_toml_value, value)) + "]"
    # Texts, numbers and booleans are written in TOML as in JSON.
    return json.dumps(value, ensure_ascii=False)


def _find_block(lines: list[str], section: str) -> tuple[int, int] | None:
    """The range (first line, line after the last) of a section's own fields, or None; "" is the top of the file."""
    headers = [(k, match[1].strip()) for k, line in enumerate(lines) if (match := _HEADER.fullmatch(line))]
    starts = [(-1, ""), *headers]
    for (k, name), after in zip(starts, [k for k, _ in headers] + [len(lines)], strict=True):
        if name == section:
            return k + 1, after
    return None


def _set_field(lines: list[str], field: str, value: Any) -> list[str]:
    section, _, name = field.rpartition(".")
    if (block := _find_block(lines, section)) is None:
        return [*lines, "", f"[{section}]", f"{name} = {to_toml_value(value)}"]
    first, after = block
    for k in range(first, after):
        if re.match(rf"\s*{re.escape(name)}\s*=", lines[k]):
            return [*lines[:k], f"{name} = {to_toml_value(value)}{_find_comment(lines[k])}", *lines[k + 1 :]]
    while after > first and (not lines[after - 1].strip() or lines[after - 1].lstrip().startswith("#")):
        after -= 1
    return [*lines[:after], f"{name} = {to_toml_value(value)}", *lines[after:]]


def _find_comment(line: str) -> str:
    """The comment of a line `name = value  # comment` with two spaces before it; a # may also be part of the value."""
    for mark in (k for k, character in enumerate(line) if character == "#"):
        try:
            tomllib.loads(line[:mark])
        except ValueError:
            continue
        return f"  {line[mark:]}"
    return ""


def _remove_section(lines: list[str], section: str) -> list[str]:
    """The lines without a section and those inside it."""
    headers = [match[1].strip() for line in lines if (match := _HEADER.fullmatch(line))]
    for name in (each for each in headers if each == section or each.startswith(f"{section}.")):
        if (block := _find_block(lines, name)) is not None:
            lines = [*lines[: block[0] - 1], *lines[block[1] :]]
    return lines
