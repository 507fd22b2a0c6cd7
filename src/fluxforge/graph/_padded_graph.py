"""A graph's neighbourhoods as device arrays, padded to a common size and stacked into batches."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from fluxforge._machine import free_memory
from fluxforge._types import Precision, State
from fluxforge.errors import SchemeError
from fluxforge.graph._neighbourhoods import Neighbourhood, Neighbourhoods, view
from fluxforge.graph._outflow import Nodes, Outflow, Quantities, put
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import NO_PARAMETERS, ParameterFields
from fluxforge.scheme._symbols import Ghost, Hop

_NAMES = ("tags", "origin", "wrapped", "regions")
_ARRAYS = tuple(field.name for field in fields(DualGraph) if field.name not in _NAMES)


def _flatten(graph: DualGraph) -> tuple[list[tuple[jax.tree_util.GetAttrKey, Any]], tuple[Any, ...]]:
    arrays = [(jax.tree_util.GetAttrKey(name), getattr(graph, name)) for name in _ARRAYS]
    return arrays, tuple(getattr(graph, name) for name in _NAMES)


def _unflatten(names: tuple[Any, ...], arrays: Iterable[Any]) -> DualGraph:
    """A graph of these leaves. JAX may pass leaves that are not arrays, which the constructor would refuse."""
    graph = object.__new__(DualGraph)
    for name, value in zip((*_ARRAYS, *_NAMES), (*arrays, *names), strict=True):
        object.__setattr__(graph, name, value)
    return graph


# Here and not beside the class, so that `fluxforge.mesh` does not import JAX.
jax.tree_util.register_pytree_with_keys(DualGraph, _flatten, _unflatten)


def device_memory() -> int | None:
    """Bytes that are free where JAX computes: in the machine for a CPU, on the device elsewhere; None if unknown."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        return free_memory()
    held = device.memory_stats() or {}
    return held["bytes_limit"] - held.get("bytes_in_use", 0) if "bytes_limit" in held else None


class Shown(eqx.Module):
    """Node values of a field under one ghost rule:  scale · field[cell] + constant."""

    cell: Int[Array, " nodes"]
    scale: Float[Array, " nodes"]
    constant: Float[Array, " nodes"]

    def of(self, field: State) -> Float[Array, " nodes"]:
        """Values of the field at all nodes."""
        return self.scale * field[self.cell] + self.constant

    def behind_cells(self, field: State) -> Float[Array, " nodes"]:
        """The same for a graph without padding: a cell shows its own value, so that only ghosts are computed.

        The barrier keeps XLA from recomputing the choice between cells and ghosts in every gather.
        """
        n = field.shape[0]
        ghosts = self.scale[n:] * field[self.cell[n:]] + self.constant[n:]
        return jax.lax.optimization_barrier(jnp.concatenate([field, ghosts]))


class Slots(eqx.Module):
    """One hop in fixed slots: the nodes at each end, the geometric symbols, and which slots are used."""

    ends: dict[str, Int[Array, "cells slots"]]
    geometry: dict[str, Float[Array, "cells slots"]]
    mask: Bool[Array, "cells slots"]
    middle: Int[Array, "cells paths"] | None = None
    share: Float[Array, "cells paths slots"] | None = None

    def at(self, end: str, shown: Float[Array, " nodes"]) -> Float[Array, "cells slots"]:
        """The value at one end of every slot; at the middle of a ring's slot, the mean over its paths."""
        if end in self.ends:
            return shown[self.ends[end]]
        assert self.middle is not None
        assert self.share is not None
        return jnp.einsum("cp,cps->cs", shown[self.middle], self.share)

    def values(self, wanted: Iterable[sp.Symbol], nodes: Nodes, parameters: Quantities) -> dict[sp.Symbol, ArrayLike]:
        """The value of each wanted symbol in every slot."""
        return _values(wanted, parameters, self.geometry, nodes, self.at)


class Columns(eqx.Module):
    """One hop with an array per slot, for evaluation slot by slot: each is read from memory once, in order.

    A column of equal numbers is that number; `mask` is None where all slots are in use.
    """

    ends: tuple[dict[str, Int[Array, " cells"]], ...]
    geometry: tuple[dict[str, Float[Array, " cells"] | Float[Array, ""]], ...]
    mask: tuple[Bool[Array, " cells"], ...] | None

    def at(self, slot: int, end: str, shown: Float[Array, " nodes"]) -> Float[Array, " cells"]:
        """The value at one end of one slot of every cell."""
        index = self.ends[slot]
        if end == "P":
            return shown[: len(index["N"])]
        return shown.at[index[end]].get(mode="promise_in_bounds", wrap_negative_indices=False)

    def values(
        self, slot: int, wanted: Iterable[sp.Symbol], nodes: Nodes, parameters: Quantities
    ) -> dict[sp.Symbol, ArrayLike]:
        """The value of each wanted symbol in one slot of every cell."""
        return _values(wanted, parameters, self.geometry[slot], nodes, partial(self.at, slot))


def _values(
    wanted: Iterable[sp.Symbol],
    parameters: Quantities,
    geometry: Mapping[str, Array],
    nodes: Nodes,
    at: Callable[[str, Array], Array],
) -> dict[sp.Symbol, ArrayLike]:
    """The value of each wanted symbol: a parameter, geometry, or a field at one end; SchemeError for any other."""
    found: dict[sp.Symbol, ArrayLike] = {}
    for variable in wanted:
        name = variable.name
        field, _, end = name.rpartition("_")
        if name in parameters:
            found[variable] = parameters[name]
        elif name in geometry:
            found[variable] = geometry[name]
        elif field in nodes:
            found[variable] = at(end, nodes[field])
        else:
            raise SchemeError(f"a message contains {name}, which this mesh does not have")
    return found


class PaddedGraph(eqx.Module):
    """A graph's cells, ghosts and hops as device arrays of fixed size.

    `cells` are the parameters of the equation that are given per cell; what faces have of them is in `hops`.
    Cells where `live` is false are padding: they have volume 1, no neighbours, and are no cell's neighbour.
    """

    V: Float[Array, " cells"]
    live: Bool[Array, " cells"]
    shown: dict[str, Shown]
    hops: dict[str, Slots]
    cells: dict[str, Float[Array, " cells"]] = eqx.field(default_factory=dict)
    outflow: Outflow | None = None
    columns: dict[str, Columns] = eqx.field(default_factory=dict)

    def with_outflow(self, T: State, parameters: Quantities) -> "PaddedGraph":
        """The graph with ghosts that follow their owners where the flow leaves in the state T at the step's beginning.

        The choice holds for the whole step, so that all stages of a method have the same boundary conditions.
        """
        if self.outflow is None:
            return self
        held = self.shown[str(Ghost.DIRICHLET)]
        leaving = self.outflow.find_leaving(T[held.cell], held.constant, parameters)
        shown = {
            rule: Shown(each.cell, jnp.where(leaving, 1.0, each.scale), jnp.where(leaving, 0.0, each.constant))
            for rule, each in self.shown.items()
        }
        return PaddedGraph(self.V, self.live, shown, self.hops, self.cells, columns=self.columns)

    def nodes(self, fields: Mapping[str, State], rules: Mapping[str, Ghost]) -> dict[str, Float[Array, " nodes"]]:
        """Node values of every field under its ghost rule."""
        if self.columns:
            return {name: self.shown[rules[name]].behind_cells(value) for name, value in fields.items()}
        return {name: self.shown[rules[name]].of(value) for name, value in fields.items()}

    def with_boundary(self, value: Float[Array, " nodes"]) -> "PaddedGraph":
        """The same graph with other boundary data: g at Dirichlet ghosts, q δ at Neumann ghosts, 0 at cells."""
        rule = str(Ghost.DIRICHLET)
        held = eqx.tree_at(lambda shown: shown.constant, self.shown[rule], value)
        shown = {**self.shown, rule: held}
        return PaddedGraph(self.V, self.live, shown, self.hops, self.cells, self.outflow, self.columns)


def pad_graph(
    graph: DualGraph,
    hops: Iterable[Hop] = (Hop.EDGE,),
    *,
    parameters: ParameterFields = NO_PARAMETERS,
    symbols: Collection[str] | None = None,
    outflow: Outflow | None = None,
    dtype: Precision = "float64",
    by_slot: bool = False,
) -> PaddedGraph:
    """Put a graph's neighbourhoods on the device, with the parameters that vary from cell to cell or face to face.

    Of the geometry, only what is among `symbols`, if they are given. `by_slot` gives every slot arrays of its own
    (`columns`), which is faster to evaluate on large meshes and takes longer to compile; it is for hops without means.
    """
    hoods = Neighbourhoods(graph, parameters)
    wanted = sorted(set(hops))
    apart = {str(hop): _put_columns(hoods[hop], symbols, dtype) for hop in wanted if by_slot and hop is not Hop.RING}
    return PaddedGraph(
        V=put(graph.V, dtype),
        live=put(np.ones(graph.cells, bool)),
        shown={str(rule): _put_shown(graph, rule, dtype) for rule in Ghost},
        hops={str(hop): _put_slots(hoods[hop], symbols, dtype) for hop in wanted if str(hop) not in apart},
        cells={name: put(value, dtype) for name, value in parameters.cells.items()},
        outflow=outflow,
        columns=apart,
    )


def _put_shown(graph: DualGraph, rule: Ghost, dtype: str) -> Shown:
    seen = view(graph, rule)
    return Shown(put(seen.cell), put(seen.scale, dtype), put(seen.constant, dtype))


def _put_slots(hood: Neighbourhood, symbols: Collection[str] | None, dtype: str) -> Slots:
    wanted = [own for own in hood.geometry if symbols is None or own.name in symbols]
    middle = share = None
    if (average := hood.over_paths) is not None:
        one = average.slot_of_path[..., None] == np.arange(hood.mask.shape[1])
        share = put(one / np.maximum(average.multiplicity, 1)[:, None, :], dtype)
        middle = put(average.middle)
    return Slots(
        ends={end: put(node) for end, node in hood.ends.items()},
        geometry={own.name: put(hood.geometry[own], dtype) for own in wanted},
        mask=put(hood.mask),
        middle=middle,
        share=share,
    )


def _put_columns(hood: Neighbourhood, symbols: Collection[str] | None, dtype: str) -> Columns:
    """A hop on the device, slot by slot; of the geometry, only what is among `symbols`, if they are given."""
    slots = range(hood.mask.shape[1])
    geometry = {own.name: hood.geometry[own] for own in hood.geometry if symbols is None or own.name in symbols}
    return Columns(
        ends=tuple({end: put(node[:, k]) for end, node in hood.ends.items() if end != "P"} for k in slots),
        geometry=tuple({name: _put_column(value[:, k], dtype) for name, value in geometry.items()} for k in slots),
        mask=None if hood.mask.all() else tuple(put(hood.mask[:, k]) for k in slots),
    )


def _put_column(values: np.ndarray, dtype: str) -> Array:
    """The array, or one number where all entries are equal."""
    return put(values[0] if (values == values[0]).all() else values, dtype)
