"""Documents into recipes and back: the schema that the sections declare, with messages that name the field."""

import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from fluxforge._files import escape_unprintable
from fluxforge.errors import RecipeError
from fluxforge.recipe._messages import Place, closest, describe_value, join_words, to_finite
from fluxforge.recipe._recipe import Recipe, Table

_SCHEMA = inspect.type_info(Recipe)
# Counts end up as 32-bit numbers.
_LARGEST = 2**31 - 1


def from_table(document: object, where: str) -> Recipe:
    """The recipe of a document; raises RecipeError for an unknown or missing field, a wrong type or a bad value."""
    values = _read_value(_SCHEMA, document, Place(where))
    try:
        return msgspec.convert(values, Recipe)
    except msgspec.ValidationError as error:
        # Checks that a section makes of itself while it is built.
        raise Place(where).refuse(escape_unprintable(str(error))) from error


def to_dict(recipe: Recipe) -> Table:
    """The recipe as plain JSON values; `from_dict` reads them back."""
    return _to_lists(msgspec.to_builtins(recipe, enc_hook=_convert_number))


def _convert_number(value: object) -> object:
    """Convert a number of another library, such as NumPy, which a recipe built in Python may hold."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise RecipeError(f"{describe_value(value)} cannot be part of a recipe")


def _to_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_lists(inner) for name, inner in value.items()}
    return [_to_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


def _read_value(kind: inspect.Type, value: object, place: Place) -> object:
    """The value converted to the schema's type; raises RecipeError, which names the field."""
    for known, read in READERS.items():
        if isinstance(kind, known):
            return read(kind, value, place)
    return value


def _read_table(kind: inspect.StructType, value: object, place: Place) -> dict[str, object]:
    known = {field.encode_name: field for field in kind.fields}
    values = {}
    for name, inner in _check_mapping(value, place).items():
        if name not in known:
            raise _refuse_unknown(name, [*known, *filter(None, [kind.tag_field])], place)
        values[name] = _read_value(known[name].type, inner, place.at(name))
    for name, field in known.items():
        if field.required and name not in values:
            raise place.at(name).refuse("is missing; every recipe needs it")
    return values


def _refuse_unknown(name: object, known: list[str], place: Place) -> RecipeError:
    field = place.at(name).field
    home = next((home for home in _FIELDS if home.rpartition(".")[2] == name), field)
    hint = f" (did you mean '{home}'?)" if home != field else closest(name, known, place.inside)
    listing = f" (known here: {', '.join(known)})"
    return Place(place.where).refuse(f"unknown field '{field}'{hint or listing}")


def _list_fields(kind: inspect.Type, prefix: str = "") -> list[str]:
    """The dotted names of all fields, those of sections after the section itself."""
    if isinstance(kind, inspect.UnionType):
        return [home for inner in kind.types for home in _list_fields(inner, prefix)]
    if not isinstance(kind, inspect.StructType):
        return []
    inside = [home for field in kind.fields for home in _list_fields(field.type, f"{prefix}{field.name}.")]
    return [*(f"{prefix}{field.name}" for field in kind.fields), *inside]


def _check_mapping(value: object, place: Place) -> Mapping[Any, object]:
    if not isinstance(value, Mapping):
        raise place.refuse(f"expected a table, got {describe_value(value)}")
    return value


def _read_union(kind: inspect.UnionType, value: object, place: Place) -> object:
    """An optional value, or one of several tables distinguished by a tag."""
    if value is None and kind.includes_none:
        return None
    others = [other for other in kind.types if not isinstance(other, inspect.NoneType)]
    if len(others) == 1:
        return _read_value(others[0], value, place)
    if not any(isinstance(other, inspect.StructType) for other in others):
        return _read_value(_choose_type(others, value), value, place)
    return _read_tagged({str(t.tag): t for t in others if isinstance(t, inspect.StructType)}, value, place)


def _choose_type(kinds: list[inspect.Type], value: object) -> inspect.Type:
    """The type of a union (number or list, text or table) that fits the value; the first if none does."""
    looks = {inspect.StrType: str, inspect.DictType: Mapping, inspect.VarTupleType: list | tuple}
    return next((kind for kind in kinds if isinstance(value, looks.get(type(kind), ()))), kinds[0])


def _read_tagged(kinds: Mapping[str, inspect.StructType], value: object, place: Place) -> object:
    table = dict(_check_mapping(value, place))
    tag = str(next(iter(kinds.values())).tag_field)
    if tag not in table:
        raise place.at(tag).refuse(f"is missing; choose {join_words(kinds)}")
    chosen = str(_choose(tuple(kinds), table.pop(tag), place.at(tag)))
    return {tag: chosen, **_read_table(kinds[chosen], table, place)}


def _read_dict(kind: inspect.DictType, value: object, place: Place) -> dict[object, object]:
    items = _check_mapping(value, place).items()
    return {
        _read_value(kind.key_type, name, place.at(name)): _read_value(kind.value_type, inner, place.at(name))
        for name, inner in items
    }


def _read_tuple(kind: inspect.TupleType, value: object, place: Place) -> list[object]:
    values, wanted = _check_list(value, place), len(kind.item_types)
    if len(values) != wanted:
        raise place.refuse(f"expected a list of {wanted} values, got {len(values)}")
    return [
        _read_value(item, inner, place.item(i))
        for i, (item, inner) in enumerate(zip(kind.item_types, values, strict=True))
    ]


def _read_list(kind: inspect.VarTupleType, value: object, place: Place) -> list[object]:
    values, item = _check_list(value, place), kind.item_type
    if len(values) < (kind.min_length or 0):
        choices = f" of {join_words(item.values)}" if isinstance(item, inspect.LiteralType) else ""
        raise place.refuse(f"is empty; name at least one{choices}")
    return [_read_value(item, inner, place.item(i)) for i, inner in enumerate(values)]


def _check_list(value: object, place: Place) -> list[object]:
    if not isinstance(value, list | tuple):
        raise place.refuse(f"expected a list, got {describe_value(value)}")
    return list(value)


def _read_choice(kind: inspect.LiteralType, value: object, place: Place) -> object:
    return _choose(kind.values, value, place)


def _choose(choices: tuple[Any, ...], value: object, place: Place) -> object:
    for choice in choices:
        # True == 1 in Python, but not in a recipe.
        if isinstance(value, type(choice)) and not isinstance(value, bool) and value == choice:
            return choice
    hint = closest(value, [choice for choice in choices if isinstance(choice, str)])
    raise place.refuse(f"expected {join_words(choices)}, got {describe_value(value)}{hint}")


def _read_int(kind: inspect.IntType, value: object, place: Place) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not _is_within(kind, int(value)):
        raise place.refuse(f"expected a whole number{_describe_range(kind)}, got {describe_value(value)}")
    if abs(int(value)) > _LARGEST:
        raise place.refuse(f"expected a whole number up to {_LARGEST}, got {describe_value(value)}")
    return int(value)


def _read_float(kind: inspect.FloatType, value: object, place: Place) -> float:
    number = to_finite(value)
    if number is None or not _is_within(kind, number):
        said = "finite number" if isinstance(value, float) and number is None else "number"
        raise place.refuse(f"expected a {said}{_describe_range(kind)}, got {describe_value(value)}")
    return number


def _describe_range(kind: inspect.IntType | inspect.FloatType) -> str:
    """The range of a number for a message: ` >= 1`, ` > 0 and < 5`, ` from 0 to 1`, or nothing."""
    signs = {">=": kind.ge, ">": kind.gt, "<=": kind.le, "<": kind.lt}
    limits = {sign: limit for sign, limit in signs.items() if limit is not None}
    if limits.keys() == {">=", "<="}:
        return f" from {kind.ge} to {kind.le}"
    return "".join(f" and {sign} {limit}" for sign, limit in limits.items()).removeprefix(" and")


def _is_within(kind: inspect.IntType | inspect.FloatType, number: float) -> bool:
    above = (kind.ge is None or number >= kind.ge) and (kind.gt is None or number > kind.gt)
    return above and (kind.le is None or number <= kind.le) and (kind.lt is None or number < kind.lt)


def _read_text(kind: inspect.StrType, value: object, place: Place) -> str:
    if not isinstance(value, str):
        raise place.refuse(f"expected text, got {describe_value(value)}")
    if not value.isprintable():
        raise place.refuse(f"expected text on one line of printable characters, got {describe_value(value)}")
    if kind.pattern is not None and re.fullmatch(kind.pattern, value) is None:
        raise place.refuse(f"expected text that matches the pattern {kind.pattern}, got {describe_value(value)}")
    return str(value)


def _read_bool(_kind: inspect.BoolType, value: object, place: Place) -> bool:
    if not isinstance(value, bool):
        raise place.refuse(f"expected true or false, got {describe_value(value)}")
    return value


READERS: Mapping[type[inspect.Type], Callable[[Any, object, Place], object]] = {
    inspect.StructType: _read_table,
    inspect.UnionType: _read_union,
    inspect.DictType: _read_dict,
    inspect.TupleType: _read_tuple,
    inspect.VarTupleType: _read_list,
    inspect.LiteralType: _read_choice,
    inspect.IntType: _read_int,
    inspect.FloatType: _read_float,
    inspect.StrType: _read_text,
    inspect.BoolType: _read_bool,
}
_FIELDS = _list_fields(_SCHEMA)
