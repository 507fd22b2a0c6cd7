"""Equations as documents: TOML files of users, and the equation in a scheme.json. Nothing in them is executed."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import get_type_hints

import msgspec
import sympy as sp

from fluxforge._arguments import check_path, check_text, describe_value
from fluxforge._types import JsonObject
from fluxforge.errors import EquationError, ExpressionError
from fluxforge.expression._parse import parse
from fluxforge.expression._print import to_text
from fluxforge.pde._equation import BUILT_IN, OF_UNKNOWN, Equation
from fluxforge.pde._parameter import Parameter, Rank, Unit, Where, unit

# Limits of a file: bytes, and parameters.
_LARGEST = 100_000
_MOST_PARAMETERS = 32


class _Powers(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The unit length**a · time**b · unknown**c."""

    length: int = 0
    time: int = 0
    unknown: int = 0


class _Parameter(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One table [parameters.NAME]."""

    meaning: str = ""
    rank: Rank = Rank.SCALAR
    where: Where = Where.CONSTANT
    units: _Powers | None = None
    default: float | tuple[float, ...] | None = None


class _Document(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The fields of an equation's file, formulas as text."""

    name: str
    unknown: str = "u"
    summary: str = ""
    capacity: str = "1"
    transported: str = "0"
    velocity: str | None = None
    diffusion: str = "0"
    reaction: str = "0"
    two_point: str | None = None
    unknown_units: _Powers | None = None
    parameters: dict[str, _Parameter] = {}


def find(equation: str | os.PathLike[str] | Equation, *, reaction: str | None = None) -> Equation:
    """The equation itself, a built-in one by name, or one read from a TOML file; `reaction` replaces its r(u).

    Raises EquationError: for an unknown name, with the nearest known one; for a bad file, with its path and the field.
    """
    if reaction is not None:
        return find(equation).with_reaction(check_text(reaction, "reaction"))
    if isinstance(equation, Equation):
        return equation
    name = check_path(equation, "equation", "an equation, the name of a built-in one or the path of a .toml file")
    if name in BUILT_IN:
        return BUILT_IN[name]
    if Path(name).suffix == ".toml" or Path(name).is_file():
        return _load_file(Path(name))
    close = difflib.get_close_matches(name, BUILT_IN, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    known = ", ".join(BUILT_IN)
    raise EquationError(f"no equation {name!r:.60}: neither a built-in one ({known}) nor a .toml file.{hint}")


def from_document(document: Mapping[str, object], where: str = "the equation") -> Equation:
    """An equation from the values of a TOML or JSON document; raises EquationError, which begins with `where`."""
    _check_table(document, _Document, where)
    try:
        fields = msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        # A name that is no text, which files cannot hold.
        raise EquationError(f"{where}: {error}") from error
    if not fields.name.isprintable() or not 1 <= len(fields.name) <= 100 or len(fields.parameters) > _MOST_PARAMETERS:
        raise EquationError(f"{where}: should have a name on one line and at most {_MOST_PARAMETERS} parameters")
    parameters = tuple(
        Parameter(name, each.meaning, each.rank, each.where, _to_unit(each.units), each.default)
        for name, each in fields.parameters.items()
    )
    try:
        formula = partial(_read_formula, fields, parameters)
        return Equation(
            name=fields.name,
            unknown=fields.unknown,
            summary=fields.summary,
            parameters=parameters,
            capacity=formula("capacity"),
            transported=formula("transported"),
            velocity=fields.velocity,
            diffusion=formula("diffusion"),
            reaction=formula("reaction"),
            two_point=None if fields.two_point is None else formula("two_point"),
            unknown_unit=_to_unit(fields.unknown_units) or OF_UNKNOWN,
        )
    except (EquationError, ExpressionError) as error:
        raise EquationError(f"{where}: {error}") from error


# What the fields hold that are not text; tables are checked field by field.
_TABLES = {"units": _Powers, "unknown_units": _Powers}
_WANTED = {
    "rank": f"one of {', '.join(Rank)}",
    "where": f"one of {', '.join(Where)}",
    "default": "a number or a list of numbers",
    **dict.fromkeys(_Powers.__struct_fields__, "a whole number"),
}


def _check_table(table: object, kind: type[msgspec.Struct], where: str) -> None:
    """Raise EquationError, which begins with `where`, for a field that `kind` does not have, lacks or cannot hold."""
    if not isinstance(table, Mapping):
        raise EquationError(f"{where}: should be a table, got {describe_value(table)}")
    kinds = get_type_hints(kind)
    for name, value in table.items():
        if name not in kinds:
            raise EquationError(f"{where}: unknown field {name!r:.60}; known: {', '.join(kinds)}")
        if name == "parameters" and isinstance(value, Mapping):
            for parameter, fields in value.items():
                _check_table(fields, _Parameter, f"{where}: parameter {parameter!r:.60}")
        elif name in _TABLES and value is not None:
            _check_table(value, _TABLES[name], f"{where}: field {name!r}")
        else:
            try:
                msgspec.convert(value, kinds[name])
            except msgspec.ValidationError as error:
                wanted = _WANTED.get(name, "a table" if name == "parameters" else "text")
                raise EquationError(
                    f"{where}: field {name!r} should be {wanted}, got {describe_value(value)}"
                ) from error
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in table:
            raise EquationError(f"{where}: field {field.name!r} is missing")


def to_document(equation: Equation) -> JsonObject:
    """The equation as plain values that `from_document` reads back; fields that have their default are left out."""
    document = msgspec.to_builtins(
        _Document(
            name=equation.name,
            unknown=equation.unknown,
            summary=equation.summary,
            capacity=to_text(equation.capacity),
            transported=to_text(equation.transported),
            velocity=equation.velocity,
            diffusion=to_text(equation.diffusion),
            reaction=to_text(equation.reaction),
            two_point=None if equation.two_point is None else to_text(equation.two_point),
            unknown_units=None if equation.unknown_unit == OF_UNKNOWN else _to_powers(equation.unknown_unit),
            parameters={
                p.name: _Parameter(
                    p.meaning, p.rank, p.where, None if p.unit is None else _to_powers(p.unit), p.default
                )
                for p in equation.parameters
            },
        )
    )
    assert isinstance(document, dict)
    return document


def _read_formula(fields: _Document, parameters: tuple[Parameter, ...], field: str) -> sp.Expr:
    """Parse the formula of a field; raises ExpressionError for names that the field does not know."""
    names = [fields.unknown, *(p.name for p in parameters)]
    if field == "two_point":
        names = [
            f"{fields.unknown}_P",
            f"{fields.unknown}_N",
            "delta",
            *(n for p in parameters for n in p.edge_names()),
        ]
    try:
        return parse(getattr(fields, field), list(dict.fromkeys(names)))
    except ExpressionError as error:
        raise ExpressionError(f"field {field!r}: {error}") from error


def _to_unit(powers: _Powers | None) -> Unit | None:
    return None if powers is None else unit(powers.length, powers.time, powers.unknown)


def _to_powers(powers: Unit) -> _Powers:
    return _Powers(*(int(power) for power in powers))


def _load_file(path: Path) -> Equation:
    try:
        content = path.read_bytes()[: _LARGEST + 1]
        if len(content) > _LARGEST:
            raise EquationError(f"{path}: is larger than {_LARGEST // 1000} kB, the limit for an equation")
        # Some editors open a file with a byte-order mark.
        document = tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise EquationError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, EquationError):
            raise
        raise EquationError(f"{path}: is not TOML ({error})") from error
    return from_document(document, str(path))
