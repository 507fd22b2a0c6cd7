"""Run-time type checks of the package's functions during tests, without the cost of named axes where there are none.

The option --jaxtyping-packages of pyproject.toml wraps every function of the package. jaxtyping then binds the
arguments, opens a table of named axes and checks the arguments twice at every call, which is much of the time of a test
that compiles nothing. A function none of whose annotations names an array's axes is checked by beartype alone: the same
checks, once.
"""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal, TypeVar, get_args, get_origin

import jaxtyping

_with_axes = jaxtyping.jaxtyped


def install() -> None:
    """Put `jaxtyped` in jaxtyping's place, before the package is imported."""
    jaxtyping.jaxtyped = jaxtyped


def jaxtyped(*, typechecker: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The decorator that jaxtyping's import hook puts on every function and class."""

    def decorate(checked: Any) -> Any:
        if isinstance(checked, FunctionType) and not names_axes(checked):
            return _unless_disabled(checked, typechecker(checked))
        return _with_axes(checked, typechecker=typechecker)

    return decorate


def _unless_disabled(plain: Callable[..., Any], checked: Callable[..., Any]) -> Callable[..., Any]:
    """The checked function, or the plain one while jaxtyping's checks are switched off, as jaxtyping's own does."""

    @functools.wraps(plain)
    def either(*args: Any, **kwargs: Any) -> Any:
        return (plain if jaxtyping.config.jaxtyping_disable else checked)(*args, **kwargs)

    return either


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
