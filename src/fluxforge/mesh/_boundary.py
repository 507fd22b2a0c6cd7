"""Boundary conditions per tag, and their values at the boundary faces."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from fluxforge._arguments import describe_value
from fluxforge.errors import ExpressionError, InputError
from fluxforge.expression import COORDINATES, field

Value: TypeAlias = float | int | str | Callable[..., np.ndarray]


@dataclass(frozen=True)
class Dirichlet:
    """T = g on the face. `value` is a number, a formula in x and y, or a function of them."""

    value: Value = 0.0


@dataclass(frozen=True)
class Neumann:
    """∂T/∂n = q on the face, n pointing out of the domain; q = 0, insulation, by default."""

    normal_gradient: Value = 0.0


Condition: TypeAlias = Dirichlet | Neumann
# In a mapping, a number is a Dirichlet value.
Conditions: TypeAlias = Condition | Mapping[str, Condition | float] | None


class FaceConditions(NamedTuple):
    """Per boundary face: whether it is a Neumann face, and g or q there."""

    neumann: Bool[np.ndarray, " boundary"]
    value: Float[np.ndarray, " boundary"]


def conditions_on_faces(
    conditions: Conditions,
    *,
    tags: tuple[str, ...],
    tag: Int[np.ndarray, " boundary"],
    centre: Float[np.ndarray, "boundary dimension"],
) -> FaceConditions:
    """Evaluate the conditions at the face centres; T = 0 on tags that are not named, as in the paper.

    Raises InputError for a tag that the mesh does not have and for a value that is not finite.
    """
    per_tag = _map_conditions(conditions, tags)
    neumann = np.zeros(len(tag), bool)
    value = np.zeros(len(tag))
    # The faces of each tag, by one sort: a mesh may have as many tags as boundary faces.
    of_tag = np.split(np.argsort(tag, kind="stable"), np.cumsum(np.bincount(tag, minlength=len(tags)))[:-1])
    for name, here in zip(tags, of_tag, strict=False):
        condition = per_tag.get(name, Dirichlet(0.0))
        neumann[here] = isinstance(condition, Neumann)
        expression = condition.normal_gradient if isinstance(condition, Neumann) else condition.value
        value[here] = evaluate_at(expression, centre[here], f"the boundary condition of {name!r}")
    return FaceConditions(neumann, value)


def _map_conditions(conditions: Conditions, tags: tuple[str, ...]) -> Mapping[str, Condition]:
    if conditions is None:
        return {}
    if isinstance(conditions, Dirichlet | Neumann):
        return dict.fromkeys(tags, conditions)
    given: object = conditions
    if not isinstance(given, Mapping):
        wanted = "Dirichlet(...), Neumann(...) or a mapping from boundary tags to these or to numbers"
        raise InputError(f"boundary should be {wanted}, got {describe_value(given)}")
    per_tag = {tag: _as_condition(condition, tag) for tag, condition in given.items()}
    if stray := sorted(set(per_tag) - set(tags), key=str):
        raise InputError(f"boundary tag {stray[0]!r} is not in the mesh; it has: {', '.join(tags)}")
    return per_tag


def _as_condition(given: object, tag: object) -> Condition:
    """The condition of a tag; a number is the value of a Dirichlet condition."""
    if isinstance(given, Dirichlet | Neumann):
        return given
    if isinstance(given, bool) or not isinstance(given, int | float | np.number):
        wanted = "a number, Dirichlet(...) or Neumann(...)"
        raise InputError(f"the boundary condition of {tag!r} should be {wanted}, got {describe_value(given)}")
    return Dirichlet(float(given))


def evaluate_at(value: Value, x: Float[np.ndarray, "places dimension"], what: str) -> Float[np.ndarray, " places"]:
    """Evaluate a number, formula or function at points x; `what` names it in messages.

    Raises ExpressionError for a formula that cannot be parsed, InputError for values of another shape or not finite.
    """
    try:
        if isinstance(value, str):
            value = field(value, COORDINATES[: x.shape[1]])
        if callable(value):
            _check_signature(value, x.shape[1], what)
        # Values that are not finite are refused below, so NumPy's warnings are not needed.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            given = value(*x.T) if callable(value) else value
    except ExpressionError as error:
        raise ExpressionError(f"{what}: {error}") from error
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        wanted = "numbers: give a number, a formula of x and y, a function of them, or an array over cells"
        raise InputError(f"{what} should be {wanted}; got {describe_value(given)}") from error
    if values.shape not in ((), (len(x),)):
        raise InputError(
            f"{what} gives values of shape {values.shape} for {len(x)} points; one value per point is expected"
        )
    result = np.broadcast_to(values, (len(x),))
    if not np.isfinite(result).all():
        k = int(np.flatnonzero(~np.isfinite(result))[0])
        place = ", ".join(f"{coordinate:g}" for coordinate in x[k])
        raise InputError(f"{what} is {result[k]} at ({place}); it should be finite")
    return result.copy()


def _check_signature(function: Callable[..., object], dimension: int, what: str) -> None:
    try:
        inspect.signature(function).bind(*[None] * dimension)
    except TypeError as error:
        names = " and ".join([", ".join(COORDINATES[: dimension - 1]), COORDINATES[dimension - 1]])
        count = ("one", "two", "three")[dimension - 1]
        raise InputError(f"{what} should be a function of {names}, that is of {count} arguments ({error})") from error
    except ValueError:
        # Functions without a signature, such as NumPy's ufuncs, fail when they are called.
        return
