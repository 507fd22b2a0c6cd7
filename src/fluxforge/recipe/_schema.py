"""Documents into recipes and back: the schema that the sections declare, with messages that name the field."""

import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from fluxforge.errors import RecipeError
from fluxforge.recipe._messages import Place, bounds, closest, describe_value, escape_unprintable, finite, join_words
from fluxforge.recipe._recipe import Recipe, Table

_SCHEMA = inspect.type_info(Recipe)
# Counts end up as 32-bit numbers.
_LARGEST = 2**31 - 1


def from_table(document: object, where: str) -> Recipe:
    """The recipe a document holds, each field of the type and in the range its section declares."""
    values = _plain(_SCHEMA, document, Place(where))
    try:
        return msgspec.convert(values, Recipe)
    except msgspec.ValidationError as error:
        # What a section checks of itself once it is built.
        raise Place(where).refuse(escape_unprintable(str(error))) from error


def to_dict(recipe: Recipe) -> Table:
    """The recipe as plain JSON values; `from_dict` reads them back."""
    return _lists(msgspec.to_builtins(recipe, enc_hook=_foreign))


def _foreign(value: object) -> object:
    """Numbers of other libraries, which a recipe built in Python may hold."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise RecipeError(f"{describe_value(value)} cannot be part of a recipe")


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lists(inner) for name, inner in value.items()}
    return [_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


def _plain(kind: inspect.Type, value: object, place: Place) -> object:
    """The value as the schema's type, or a refusal that names the field."""
    for known, read in _READERS.items():
        if isinstance(kind, known):
            return read(kind, value, place)
    return value


def _table(kind: inspect.StructType, value: object, place: Place) -> dict[str, object]:
    known = {field.encode_name: field for field in kind.fields}
    values = {}
    for name, inner in _mapping(value, place).items():
        if name not in known:
            raise _unknown(name, [*known, *filter(None, [kind.tag_field])], place)
        values[name] = _plain(known[name].type, inner, place.at(name))
    for name, field in known.items():
        if field.required and name not in values:
            raise place.at(name).refuse("is missing, and every recipe needs it")
    return values


def _unknown(name: object, known: list[str], place: Place) -> RecipeError:
    field = place.at(name).field
    home = next((home for home in _HOMES if home.rpartition(".")[2] == name), field)
    hint = f" (did you mean '{home}'?)" if home != field else closest(name, known, place.inside)
    listing = f" (known here: {', '.join(known)})"
    return Place(place.where).refuse(f"unknown field '{field}'{hint or listing}")


def _homes(kind: inspect.Type, prefix: str = "") -> list[str]:
    """The dotted names of all fields, those of sections after the section itself."""
    if isinstance(kind, inspect.UnionType):
        return [home for inner in kind.types for home in _homes(inner, prefix)]
    if not isinstance(kind, inspect.StructType):
        return []
    inside = [home for field in kind.fields for home in _homes(field.type, f"{prefix}{field.name}.")]
    return [*(f"{prefix}{field.name}" for field in kind.fields), *inside]


def _mapping(value: object, place: Place) -> Mapping[Any, object]:
    if not isinstance(value, Mapping):
        raise place.refuse(f"expected a table, got {describe_value(value)}")
    return value


def _union(kind: inspect.UnionType, value: object, place: Place) -> object:
    """An optional value, or one of several tables distinguished by a tag."""
    if value is None and kind.includes_none:
        return None
    others = [other for other in kind.types if not isinstance(other, inspect.NoneType)]
    if len(others) == 1:
        return _plain(others[0], value, place)
    if not any(isinstance(other, inspect.StructType) for other in others):
        return _plain(_fitting(others, value), value, place)
    return _tagged({str(t.tag): t for t in others if isinstance(t, inspect.StructType)}, value, place)


def _fitting(kinds: list[inspect.Type], value: object) -> inspect.Type:
    """Of a number or a list, of a text or a table, the one that the value looks like; otherwise the first."""
    looks = {inspect.StrType: str, inspect.DictType: Mapping, inspect.VarTupleType: list | tuple}
    return next((kind for kind in kinds if isinstance(value, looks.get(type(kind), ()))), kinds[0])


def _tagged(kinds: Mapping[str, inspect.StructType], value: object, place: Place) -> object:
    table = dict(_mapping(value, place))
    tag = str(next(iter(kinds.values())).tag_field)
    if tag not in table:
        raise place.at(tag).refuse(f"is missing; choose {join_words(kinds)}")
    chosen = str(_one_of(tuple(kinds), table.pop(tag), place.at(tag)))
    return {tag: chosen, **_table(kinds[chosen], table, place)}


def _dict(kind: inspect.DictType, value: object, place: Place) -> dict[object, object]:
    items = _mapping(value, place).items()
    return {
        _plain(kind.key_type, name, place.at(name)): _plain(kind.value_type, inner, place.at(name))
        for name, inner in items
    }


def _tuple(kind: inspect.TupleType, value: object, place: Place) -> list[object]:
    values, wanted = _list(value, place), len(kind.item_types)
    if len(values) != wanted:
        raise place.refuse(f"expected a list of {wanted} values, got {len(values)}")
    return [
        _plain(item, inner, place.item(i)) for i, (item, inner) in enumerate(zip(kind.item_types, values, strict=True))
    ]


def _many(kind: inspect.VarTupleType, value: object, place: Place) -> list[object]:
    values, item = _list(value, place), kind.item_type
    if len(values) < (kind.min_length or 0):
        choices = f" of {join_words(item.values)}" if isinstance(item, inspect.LiteralType) else ""
        raise place.refuse(f"is empty; name at least one{choices}")
    return [_plain(item, inner, place.item(i)) for i, inner in enumerate(values)]


def _list(value: object, place: Place) -> list[object]:
    if not isinstance(value, list | tuple):
        raise place.refuse(f"expected a list, got {describe_value(value)}")
    return list(value)


def _choice(kind: inspect.LiteralType, value: object, place: Place) -> object:
    return _one_of(kind.values, value, place)


def _one_of(choices: tuple[Any, ...], value: object, place: Place) -> object:
    for choice in choices:
        # 1 is true in Python, and not in a recipe.
        if isinstance(value, type(choice)) and not isinstance(value, bool) and value == choice:
            return choice
    hint = closest(value, [choice for choice in choices if isinstance(choice, str)])
    raise place.refuse(f"expected {join_words(choices)}, got {describe_value(value)}{hint}")


def _whole(kind: inspect.IntType, value: object, place: Place) -> int:
    said = bounds(ge=kind.ge, gt=kind.gt, le=kind.le, lt=kind.lt)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not _within(kind, int(value)):
        raise place.refuse(f"expected a whole number{said}, got {describe_value(value)}")
    if abs(int(value)) > _LARGEST:
        raise place.refuse(f"expected a whole number up to {_LARGEST}, got {describe_value(value)}")
    return int(value)


def _real(kind: inspect.FloatType, value: object, place: Place) -> float:
    number = finite(value)
    if number is None or not _within(kind, number):
        said = "finite number" if isinstance(value, float) and number is None else "number"
        limits = bounds(ge=kind.ge, gt=kind.gt, le=kind.le, lt=kind.lt)
        raise place.refuse(f"expected a {said}{limits}, got {describe_value(value)}")
    return number


def _within(kind: inspect.IntType | inspect.FloatType, number: float) -> bool:
    above = (kind.ge is None or number >= kind.ge) and (kind.gt is None or number > kind.gt)
    return above and (kind.le is None or number <= kind.le) and (kind.lt is None or number < kind.lt)


def _text(kind: inspect.StrType, value: object, place: Place) -> str:
    if not isinstance(value, str):
        raise place.refuse(f"expected text, got {describe_value(value)}")
    if not value.isprintable():
        raise place.refuse(f"expected text on one line that prints, got {describe_value(value)}")
    if kind.pattern is not None and re.fullmatch(kind.pattern, value) is None:
        raise place.refuse(f"expected text that matches {kind.pattern}, got {describe_value(value)}")
    return str(value)


def _switch(_kind: inspect.BoolType, value: object, place: Place) -> bool:
    if not isinstance(value, bool):
        raise place.refuse(f"expected true or false, got {describe_value(value)}")
    return value


_READERS: Mapping[type[inspect.Type], Callable[[Any, object, Place], object]] = {
    inspect.StructType: _table,
    inspect.UnionType: _union,
    inspect.DictType: _dict,
    inspect.TupleType: _tuple,
    inspect.VarTupleType: _many,
    inspect.LiteralType: _choice,
    inspect.IntType: _whole,
    inspect.FloatType: _real,
    inspect.StrType: _text,
    inspect.BoolType: _switch,
}
_HOMES = _homes(_SCHEMA)
