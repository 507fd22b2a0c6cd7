"""A recipe's text with fields set anew, its comments kept."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from fluxforge.errors import RecipeError
from fluxforge.recipe._recipe import Recipe
from fluxforge.recipe._schema import to_dict

_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?")


def rewritten(text: str, changes: Mapping[str, Any], wanted: Recipe, read: Callable[[str], Recipe]) -> str:
    """The TOML text of a recipe with `changes` written into it, comments kept.

    `read` makes a recipe of a text. If it does not make `wanted` of the result, because the text is laid out in a way
    that is not followed here, the result is `wanted` in full and without comments.
    """
    lines = text.splitlines()
    for field, value in changes.items():
        lines = _without(lines, field) if isinstance(value, Mapping) else lines
        lines = _with_section(lines, field, value) if isinstance(value, Mapping) else _with_field(lines, field, value)
    changed = "\n".join(lines) + "\n"
    try:
        return changed if read(changed) == wanted else to_toml(wanted)
    except RecipeError:
        return to_toml(wanted)


def to_toml(recipe: Recipe) -> str:
    """The recipe as TOML with every field written out; sections it does not have are left out."""
    return "\n".join(_tables(to_dict(recipe), "")).lstrip("\n") + "\n"


def _tables(table: Mapping[str, Any], name: str) -> list[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in table.items() if key not in inner and value is not None}
    lines = ["", f"[{name}]"] if name and (plain or not inner) else []
    lines += [f"{key} = {_value(value)}" for key, value in plain.items()]
    for key, value in inner.items():
        # An empty dictionary, such as the arms of a recipe that has none, is the default and says nothing.
        lines += _tables(value, f"{name}.{key}" if name else key) if value or key not in ("arms", "parameters") else []
    return lines


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False)
        case Mapping():
            return "{" + ", ".join(f"{name} = {_value(each)}" for name, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)


def _block(lines: list[str], section: str) -> tuple[int, int] | None:
    """The first and the last line of a section's own fields, or nothing; the section "" is the top of the file."""
    headers = [(k, match[1].strip()) for k, line in enumerate(lines) if (match := _HEADER.fullmatch(line))]
    starts = [(-1, ""), *headers]
    for (k, name), after in zip(starts, [k for k, _ in headers] + [len(lines)], strict=True):
        if name == section:
            return k + 1, after
    return None


def _with_field(lines: list[str], field: str, value: Any) -> list[str]:
    section, _, name = field.rpartition(".")
    if (block := _block(lines, section)) is None:
        return [*lines, "", f"[{section}]", f"{name} = {_value(value)}"]
    first, after = block
    for k in range(first, after):
        if re.match(rf"\s*{re.escape(name)}\s*=", lines[k]):
            return [*lines[:k], f"{name} = {_value(value)}{_comment(lines[k])}", *lines[k + 1 :]]
    while after > first and (not lines[after - 1].strip() or lines[after - 1].lstrip().startswith("#")):
        after -= 1
    return [*lines[:after], f"{name} = {_value(value)}", *lines[after:]]


def _comment(line: str) -> str:
    """The comment of a line `name = value  # comment` with two spaces before it; a # may also be part of the value."""
    for mark in (k for k, character in enumerate(line) if character == "#"):
        try:
            tomllib.loads(line[:mark])
        except ValueError:
            continue
        return f"  {line[mark:]}"
    return ""


def _without(lines: list[str], section: str) -> list[str]:
    """The lines without a section and those inside it."""
    headers = [match[1].strip() for line in lines if (match := _HEADER.fullmatch(line))]
    for name in (each for each in headers if each == section or each.startswith(f"{section}.")):
        if (block := _block(lines, name)) is not None:
            lines = [*lines[: block[0] - 1], *lines[block[1] :]]
    return lines


def _with_section(lines: list[str], section: str, table: Mapping[str, Any]) -> list[str]:
    return [*lines, "", f"[{section}]", *(f"{name} = {_value(value)}" for name, value in table.items())]
