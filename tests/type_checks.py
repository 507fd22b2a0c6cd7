"""Run-time type checks of the package's functions during tests, each argument and result checked once.

The option --jaxtyping-packages of pyproject.toml wraps every function of the package. jaxtyping itself makes two
functions beside each one, binds the arguments and checks them twice at every call, to word its errors. Here beartype
checks the function directly, with a table of named axes around the call where an annotation names axes. What is
accepted and refused is the same; an error is beartype's and names the argument.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, ForwardRef, Literal, TypeVar, get_args, get_origin

import jaxtyping

import axis_checks

_by_jaxtyping = jaxtyping.jaxtyped


def install() -> None:
    """Put `jaxtyped` in jaxtyping's place, before the package is imported, and quick checks of axes before its own."""
    jaxtyping.jaxtyped = jaxtyped
    axis_checks.install()


def jaxtyped(*, typechecker: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The decorator that jaxtyping's import hook puts on every function and class."""

    def decorate(checked: Any) -> Any:
        if isinstance(checked, FunctionType):
            return _decorate_function(checked, typechecker)
        if isinstance(checked, type) and dataclasses.is_dataclass(checked):
            made = vars(checked).get("__init__")
            if isinstance(made, FunctionType) and made.__globals__["__name__"] != __name__:
                checked.__init__ = _decorate_function(made, typechecker)
            return checked
        return _by_jaxtyping(checked, typechecker=typechecker)

    return decorate


def _decorate_function(plain: FunctionType, typechecker: Callable[[Any], Any]) -> Callable[..., Any]:
    """The checked function, and the plain one while jaxtyping's checks are switched off."""
    # jaxtyping looks up what a string names, or lets anything pass. A generator's arguments are checked when its first
    # value is asked for, which is outside the call that has the table of axes.
    if any(map(_has_string, plain.__annotations__.values())) or inspect.isgeneratorfunction(plain):
        return _by_jaxtyping(plain, typechecker=typechecker)
    checked = typechecker(plain)
    settings = jaxtyping.config

    @functools.wraps(plain)
    def without_axes(*args: Any, **kwargs: Any) -> Any:
        return (plain if settings.jaxtyping_disable else checked)(*args, **kwargs)

    @functools.wraps(plain)
    def with_axes(*args: Any, **kwargs: Any) -> Any:
        if settings.jaxtyping_disable:
            return plain(*args, **kwargs)
        with _by_jaxtyping("context"):  # a table of axes of this call's own
            return checked(*args, **kwargs)

    return with_axes if names_axes(plain) else without_axes


def _has_string(annotation: Any) -> bool:
    """Whether an annotation is a string, or contains one as the types of other libraries do."""
    if isinstance(annotation, str | ForwardRef):
        return True
    inside = annotation if isinstance(annotation, list | tuple) else get_args(annotation)
    return get_origin(annotation) is not Literal and any(map(_has_string, inside))


def names_axes(function: FunctionType) -> bool:
    """Whether an annotation is one of jaxtyping's, contains one, or is something we cannot look into."""
    return any(_names_axes(each) for each in function.__annotations__.values())


def _names_axes(annotation: Any) -> bool:
    if isinstance(annotation, str | TypeVar):
        return True
    if isinstance(annotation, list | tuple):  # the parameters of a Callable
        return any(map(_names_axes, annotation))
    if type(annotation).__module__.startswith("jaxtyping"):
        return True
    if get_origin(annotation) is Literal:  # its words are values
        return False
    return any(map(_names_axes, get_args(annotation)))
