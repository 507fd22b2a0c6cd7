"""Checks of the arguments of public functions; each raises InputError, whose one line names the argument."""

import math
import numbers
import os
from collections.abc import Callable, Collection
from types import UnionType
from typing import Any, TypeVar

from fluxforge.errors import InputError

Kind = TypeVar("Kind")


def describe_value(value: object) -> str:
    """A short description of a value for a message, on one line of about 60 characters at most."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    if callable(value) and hasattr(value, "__name__") and not isinstance(value, type):
        return f"a function ({value.__name__})"
    # The repr of a container may be very long, or recurse too deeply.
    text = repr(value) if isinstance(value, str | bytes | numbers.Number | None) else _describe_object(value)
    return " ".join(f"{text:.60}".split())


def _describe_object(value: object) -> str:
    kind = type(value).__name__
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"a {kind} of {len(value)}"
    return f"{value}" if getattr(value, "shape", None) == () else f"a value of type {kind}"


def check_number(value: Any, name: str) -> float:
    """Return a real number (Python, NumPy, or an array without dimensions) as a float; NaN and infinity are allowed."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    scalar = getattr(value, "shape", None) == () and getattr(getattr(value, "dtype", None), "kind", "") in "fiu"
    if not (real or scalar):
        raise InputError(f"{name} should be a number, got {describe_value(value)}")
    try:
        return float(value)
    except OverflowError as error:
        raise InputError(f"{name} should be a number below 1e308, got a larger one") from error


def check_positive(value: Any, name: str) -> float:
    """Return a positive finite number as a float."""
    number = check_number(value, name)
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"{name} should be a positive number, got {number}")
    return number


def check_whole(value: Any, name: str, *, least: int | None = None) -> int:
    """Return a whole number, at least `least` if given, as an int; 2.0 and True are refused."""
    scalar = getattr(value, "shape", None) == () and getattr(getattr(value, "dtype", None), "kind", "") in "iu"
    if isinstance(value, bool) or not (isinstance(value, numbers.Integral) or scalar):
        raise InputError(f"{name} should be a whole number, got {describe_value(value)}")
    if least is not None and int(value) < least:
        raise InputError(f"{name} should be {least} or more, got {describe_value(int(value))}")
    return int(value)


def check_flag(value: Any, name: str) -> bool:
    """Return a boolean."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise InputError(f"{name} should be True or False, got {describe_value(value)}")
    return bool(value)


def check_choice(value: Any, name: str, choices: Collection[str]) -> str:
    """Return a string that is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        *first, last = (repr(choice) for choice in choices)
        raise InputError(f"{name} should be {', '.join(first)} or {last}, got {describe_value(value)}")
    return value


def check_kind(value: Any, name: str, kind: "type[Kind] | UnionType", wanted: str) -> Kind:
    """Return `value` if it is an instance of `kind`, a class or a union; `wanted` describes `kind` in the message."""
    if not isinstance(value, kind):
        raise InputError(f"{name} should be {wanted}, got {describe_value(value)}")
    return value


def check_text(value: Any, name: str) -> str:
    """Return a string."""
    return check_kind(value, name, str, "a text")


def check_path(value: Any, name: str, wanted: str = "a path") -> str:
    """Return a path as a string; an empty one and one with a null character are refused."""
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str):
        raise InputError(f"{name} should be {wanted}, got {describe_value(value)}")
    if "\0" in path or not path:
        raise InputError(f"{name} should be {wanted}, got {path!r:.60}")
    return path


def check_function(value: Any, name: str) -> Callable[..., Any] | None:
    """Return a function, or None."""
    if value is not None and not callable(value):
        raise InputError(f"{name} should be a function, got {describe_value(value)}")
    return value
