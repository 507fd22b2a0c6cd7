"""One hop on the device with an array per slot."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import equinox as eqx
import numpy as np
import sympy as sp
from jaxtyping import Array, Bool, Float, Int

from fluxforge.errors import SchemeError
from fluxforge.graph._neighbourhoods import Neighbourhood
from fluxforge.graph._outflow import put


class Columns(eqx.Module):
    """One hop with an array per slot, for evaluation slot by slot: each is read from memory once, in order.

    A column of equal numbers is that number; `mask` is None where all slots are in use.
    """

    ends: tuple[dict[str, Int[Array, " cells"]], ...]
    geometry: tuple[dict[str, Float[Array, " cells"] | Float[Array, ""]], ...]
    mask: tuple[Bool[Array, " cells"], ...] | None

    def values(
        self, slot: int, wanted: Iterable[sp.Symbol], nodes: Mapping[str, Array], parameters: Mapping[str, Any]
    ) -> dict[sp.Symbol, Any]:
        """The value of each wanted symbol in one slot of every cell."""
        return {variable: self._value(slot, variable.name, nodes, parameters) for variable in wanted}

    def _value(self, slot: int, name: str, nodes: Mapping[str, Array], parameters: Mapping[str, Any]) -> Any:
        if name in parameters:
            return parameters[name]
        if name in self.geometry[slot]:
            return self.geometry[slot][name]
        field, _, end = name.rpartition("_")
        if field not in nodes:
            raise SchemeError(f"a message contains {name}, which this mesh does not have")
        index = self.ends[slot]
        if end == "P":
            return nodes[field][: len(index["N"])]
        return nodes[field].at[index[end]].get(mode="promise_in_bounds", wrap_negative_indices=False)


def put_columns(hood: Neighbourhood, symbols: Collection[str] | None, dtype: str) -> Columns:
    """A hop on the device, slot by slot; of the geometry, only what is among `symbols`, if they are given."""
    slots = range(hood.mask.shape[1])
    geometry = {own.name: hood.geometry[own] for own in hood.geometry if symbols is None or own.name in symbols}
    return Columns(
        ends=tuple({end: put(node[:, k]) for end, node in hood.ends.items() if end != "P"} for k in slots),
        geometry=tuple({name: _put_column(value[:, k], dtype) for name, value in geometry.items()} for k in slots),
        mask=None if hood.mask.all() else tuple(put(hood.mask[:, k]) for k in slots),
    )


def _put_column(values: np.ndarray, dtype: str) -> Array:
    """The array, or one number where all are equal."""
    return put(values[0] if (values == values[0]).all() else values, dtype)
