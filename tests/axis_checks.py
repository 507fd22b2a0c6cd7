"""Checks of array annotations such as Float[Array, "cells 2"], several times as fast as jaxtyping's own.

jaxtyping compares the name of the array's dtype with patterns and each axis with a table, which it copies first in case
it must undo a change. Which dtypes an annotation accepts never changes, so they are remembered here, and axes that are
plain names or numbers are compared without copies. Whatever does not fit goes to jaxtyping, which decides.
"""

from typing import Any

import numpy as np
from jax._src.array import ArrayImpl
from jaxtyping import _array_types, _storage

_Annotation = type(_array_types.AbstractArray)
_by_jaxtyping = _Annotation.__instancecheck__
# A tracer is an array or not by what it traces, these always are.
_CONCRETE = {np.ndarray, ArrayImpl}
# Of each annotation: its axes (None if jaxtyping must look at them), and pairs of type and dtype that it has accepted.
_known: dict[type, tuple[tuple[int | str, ...] | None, set[Any]]] = {}


def install() -> None:
    """Let `isinstance(array, annotation)` try the quick check first."""
    _Annotation.__instancecheck__ = is_instance


def is_instance(annotation: Any, value: Any) -> bool:
    """What jaxtyping answers to `isinstance`, and its table of axes as jaxtyping would leave it."""
    known = _known.get(annotation)
    if known is None:
        known = _known[annotation] = (_plain_axes(annotation), set())
    axes, accepted = known
    kind = type(value)
    if axes is None or kind not in _CONCRETE:
        return _by_jaxtyping(annotation, value)
    if (kind, value.dtype) in accepted:
        return _fits(axes, value.shape) or _by_jaxtyping(annotation, value)
    if answer := _by_jaxtyping(annotation, value):
        accepted.add((kind, value.dtype))
    return answer


def _plain_axes(annotation: Any) -> tuple[int | str, ...] | None:
    """Lengths and names of axes; None if one of them may be broadcast, repeated, computed, or belongs to a tree."""
    axes: list[int | str] = []
    for dim in annotation.dims if annotation.array_type is not Any else (None,):
        if isinstance(dim, _array_types._FixedDim) and not dim.broadcastable:
            axes.append(dim.size)
        elif isinstance(dim, _array_types._NamedDim) and not dim.broadcastable and not dim.treepath:
            axes.append(dim.name)
        else:
            return None
    return tuple(axes)


def _fits(axes: tuple[int | str, ...], shape: tuple[int, ...]) -> bool:
    """Whether a shape has these axes; if so, names that are new get their lengths in the table of the current call."""
    if len(axes) != len(shape) or _storage.get_treeflatten_memo():
        return False
    table = _storage.get_shape_memo()[0]
    new: dict[str, int] = {}
    for axis, length in zip(axes, shape, strict=True):
        if isinstance(axis, int):
            if axis != length:
                return False
        elif table.get(axis, new.setdefault(axis, length)) != length:
            return False
    table.update(new)
    return True
