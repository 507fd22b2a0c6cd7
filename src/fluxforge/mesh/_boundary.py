"""Boundary conditions, and their values at the boundary faces, at one time."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from fluxforge._arguments import describe_value
from fluxforge.errors import ExpressionError, InputError
from fluxforge.expression._parse import field, parse
from fluxforge.expression._symbols import COORDINATES, TIME, symbols_of

Value: TypeAlias = float | int | str | Callable[..., np.ndarray]
"""A number, a formula of the coordinates (and of the time t, where that is allowed), or a function of them."""

REST = "rest"
"""The key for all tags, or all regions, that a mapping does not name."""


@dataclass(frozen=True)
class Dirichlet:
    """u = g on the face. `value` is a number, a formula in x, y and t, or a function of them."""

    value: Value = 0.0


@dataclass(frozen=True)
class Neumann:
    """∂u/∂n = q on the face, n pointing out of the domain; q = 0, insulation, by default. q is a gradient, no flux."""

    normal_gradient: Value = 0.0


@dataclass(frozen=True)
class Robin:
    """−K ∂u/∂n = h (u − outside) on the face, n pointing out of the domain; h is positive or 0, K the diffusivity."""

    h: Value
    outside: Value = 0.0


@dataclass(frozen=True)
class Periodic:
    """Periodic walls: this tag is identified with `partner`, whose faces are its own up to a translation."""

    partner: str


@dataclass(frozen=True)
class Inflow:
    """u = g where the velocity points into the domain; elsewhere the flow leaves freely, u outside as inside."""

    value: Value = 0.0


Condition: TypeAlias = Dirichlet | Neumann | Robin | Periodic | Inflow


class FaceConditions(NamedTuple):
    """The conditions of the boundary faces, as arrays with one entry per face.

    `neumann` marks Neumann faces; `value` is g (Dirichlet, inflow), q (Neumann) or the outside value (Robin).
    `transfer` is h on Robin faces and nan elsewhere, `inflow` marks inflow faces; each is None if there are no such
    faces.
    """

    neumann: Bool[np.ndarray, " boundary"]
    value: Float[np.ndarray, " boundary"]
    transfer: Float[np.ndarray, " boundary"] | None = None
    inflow: Bool[np.ndarray, " boundary"] | None = None


def conditions_on_faces(
    conditions: Mapping[str, Condition],
    *,
    tags: tuple[str, ...],
    tag: Int[np.ndarray, " boundary"],
    centre: Float[np.ndarray, "boundary dimension"],
    foot: Float[np.ndarray, "boundary dimension"],
    time: float | None = None,
) -> FaceConditions:
    """Evaluate the conditions of all tags: Robin conditions at `foot`, all others at the centres of the faces.

    `foot` is where the normal from the owner's centroid meets the line of the face. Formulas may contain t if `time`
    is given. Raises InputError for a value that is not finite and for h < 0.
    """
    neumann = np.zeros(len(tag), bool)
    value = np.zeros(len(tag))
    transfer, inflow = np.full(len(tag), np.nan), np.zeros(len(tag), bool)
    for name, here in zip(tags, faces_of_tags(tags, tag), strict=True):
        condition = conditions[name]
        neumann[here], inflow[here] = isinstance(condition, Neumann), isinstance(condition, Inflow)
        at = (foot if isinstance(condition, Robin) else centre)[here]
        value[here] = evaluate_at(wall_value(condition), at, f"the boundary condition of {name!r}", time)
        if isinstance(condition, Robin):
            transfer[here] = evaluate_at(condition.h, at, f"h of the boundary condition of {name!r}", time)
            if (transfer[here] < 0).any():
                raise InputError(
                    f"h of the boundary condition of {name!r} is {transfer[here].min():g}; it should be 0 or more"
                )
    return FaceConditions(
        neumann,
        value,
        transfer if np.isfinite(transfer).any() else None,
        inflow if inflow.any() else None,
    )


def faces_of_tags(tags: tuple[str, ...], tag: Int[np.ndarray, " boundary"]) -> list[np.ndarray]:
    """The indices of the boundary faces of each tag, in the order of `tags`.

    All tags take one sort, since a mesh may have as many tags as boundary faces.
    """
    return np.split(np.argsort(tag, kind="stable"), np.cumsum(np.bincount(tag, minlength=len(tags)))[:-1])[: len(tags)]


def wall_value(condition: Condition) -> Value:
    """The value of a condition: g (Dirichlet, inflow), q (Neumann), the outside value (Robin), or 0 (periodic)."""
    if isinstance(condition, Neumann):
        return condition.normal_gradient
    if isinstance(condition, Robin):
        return condition.outside
    return 0.0 if isinstance(condition, Periodic) else condition.value


def depends_on_time(value: object, dimension: int) -> bool:
    """Whether the value is a formula that contains t, or a function that takes the time after the coordinates."""
    if isinstance(value, str):
        # Text that is no formula, with or without t, is refused in `evaluate_at`.
        return not _is_formula(value, COORDINATES[:dimension]) and _is_formula(value, (*COORDINATES[:dimension], TIME))
    return (
        callable(value)
        and _find_mismatch(value, dimension) is not None
        and _find_mismatch(value, dimension + 1) is None
    )


def _accepts_time(value: Value, dimension: int) -> bool:
    """Whether to evaluate a value with the time; true for text that is no formula at all, so that its error names t."""
    if isinstance(value, str):
        return not _is_formula(value, COORDINATES[:dimension])
    return depends_on_time(value, dimension)


def _is_formula(text: str, variables: Sequence[str]) -> bool:
    try:
        parse(text, symbols_of(variables))
    except ExpressionError:
        return False
    return True


def evaluate_at(
    value: Value, x: Float[np.ndarray, "places dimension"], what: str, time: float | None = None
) -> Float[np.ndarray, " places"]:
    """Evaluate a number, formula or function at points x: one finite number per point; `what` names it in messages.

    With a `time`, formulas may contain t, and functions may take it after the coordinates. Raises
    ExpressionError for a formula that cannot be parsed, InputError for values of another shape or not finite.
    """
    timed = time is not None and _accepts_time(value, x.shape[1])
    arguments = (*x.T, time) if timed else tuple(x.T)
    try:
        if isinstance(value, str):
            value = field(value, (*COORDINATES[: x.shape[1]], *((TIME,) if timed else ())))
        if callable(value):
            _check_signature(value, x.shape[1] + timed, what)
        # Values that are not finite are refused below, so NumPy's warnings are not needed.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            answer = value(*arguments) if callable(value) else value
    except ExpressionError as error:
        raise ExpressionError(f"{what.rstrip(',')}: {error}") from error
    values = _to_real_numbers(answer)
    if values is None:
        wanted = "real numbers: give a number, a formula of x and y, a function of them, or an array over cells"
        raise InputError(f"{what} should be {wanted}; got {describe_value(answer)}")
    if values.shape not in ((), (len(x),)):
        raise InputError(
            f"{what} gives values of shape {values.shape} for {len(x)} points; one value per point is expected"
        )
    result = np.broadcast_to(values, (len(x),))
    if not np.isfinite(result).all():
        k = int(np.flatnonzero(~np.isfinite(result))[0])
        place = ", ".join(f"{coordinate:g}" for coordinate in x[k])
        when = f" at time {time:g}" if timed else ""
        raise InputError(f"{what} is {result[k]} at ({place}){when}; it should be finite")
    return result.copy()


def _to_real_numbers(answer: object) -> np.ndarray | None:
    """The answer as an array of floats; None if it is anything but real numbers."""
    try:
        values = np.asarray(answer)
        # NumPy would take None for nan, and leave out imaginary parts.
        return None if answer is None or values.dtype.kind == "c" else values.astype(float)
    except (TypeError, ValueError, OverflowError):
        return None


def _find_mismatch(function: Callable[..., object], arguments: int) -> TypeError | None:
    """The error of a call with this number of arguments; None if there is none, or if the signature is unknown."""
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError as error:
        return error
    except ValueError:
        # Functions without a signature, such as NumPy's ufuncs, fail when they are called.
        return None
    return None


def _check_signature(function: Callable[..., object], arguments: int, what: str) -> None:
    if (error := _find_mismatch(function, arguments)) is not None:
        names = " and ".join([", ".join(COORDINATES[: arguments - 1]), COORDINATES[arguments - 1]])
        count = ("one", "two", "three")[arguments - 1]
        raise InputError(f"{what} should be a function of {names}, that is of {count} arguments ({error})") from error
