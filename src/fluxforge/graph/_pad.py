"""Graphs put on the device, and padded to one size, so that they can be stacked."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from fluxforge._machine import free_memory
from fluxforge._types import Precision
from fluxforge.errors import InputError
from fluxforge.graph._neighbourhoods import Neighbourhood, Neighbourhoods, view
from fluxforge.graph._padded_graph import Columns, Outflow, PaddedGraph, Shown, Slots, put
from fluxforge.mesh._dual import NO_PARAMETERS, DualGraph, ParameterFields
from fluxforge.scheme._scheme import Ghost, Hop


class Size(NamedTuple):
    """The size of a graph, or the size to which it is padded: cells, ghosts, slots of each hop, paths per ring."""

    cells: int
    ghosts: int
    slots: dict[str, int]
    paths: int = 0

    def __str__(self) -> str:
        slots = [f"{count} {name} slots" for name, count in sorted(self.slots.items())]
        paths = [f"{self.paths} paths"] if self.paths else []
        return ", ".join([f"{self.cells} cells", f"{self.ghosts} ghosts", *slots, *paths])

    def cover(self, other: "Size") -> "Size":
        """The least size into which graphs of both sizes fit."""
        names = {*self.slots, *other.slots}
        slots = {name: max(self.slots.get(name, 1), other.slots.get(name, 1)) for name in names}
        cells, ghosts = max(self.cells, other.cells), max(self.ghosts, other.ghosts)
        return Size(cells, ghosts, slots, max(self.paths, other.paths))


def padded_size(graph: PaddedGraph) -> Size:
    """The size of a graph."""
    cells, nodes = len(graph.V), len(next(iter(graph.shown.values())).cell)
    slots = {name: hop.mask.shape[1] for name, hop in graph.hops.items()}
    paths = max((hop.middle.shape[1] for hop in graph.hops.values() if hop.middle is not None), default=0)
    return Size(cells, nodes - cells, slots, paths)


def pad_to_size(graph: PaddedGraph, to: Size) -> PaddedGraph:
    """The graph padded to a size; the padding contributes to no sum. Raises InputError if the graph is larger."""
    has = padded_size(graph)
    if to.cover(has) != to:
        raise InputError(f"a graph of {has} does not fit into {to}")
    return PaddedGraph(
        V=_pad_cells(graph.V, to.cells, 1.0),
        live=_pad_cells(graph.live, to.cells, False),
        shown={name: _pad_shown(shown, has, to) for name, shown in graph.shown.items()},
        hops={name: _pad_slots(hop, has, to, to.slots[name]) for name, hop in graph.hops.items()},
        cells={name: _pad_cells(value, to.cells, 1.0) for name, value in graph.cells.items()},
    )


def stack_graphs(graphs: Sequence[PaddedGraph]) -> PaddedGraph:
    """The graphs padded to a common size and stacked along a new first axis, ready for `jax.vmap`."""
    to = padded_size(graphs[0])
    for graph in graphs[1:]:
        to = to.cover(padded_size(graph))
    equal = [pad_to_size(graph, to) for graph in graphs]
    return jax.tree.map(lambda *leaves: put(np.stack([np.asarray(leaf) for leaf in leaves])), *equal)


def _pad_cells(values: Array, length: int, fill: float | bool) -> Array:
    host = np.asarray(values)
    added = np.full((length - len(host), *host.shape[1:]), fill, host.dtype)
    return put(np.concatenate([host, added]))


def _shift_ghosts(index: Array, has: Size, to: Size) -> np.ndarray:
    """Node numbers after padding: ghosts are numbered after the cells, padding included."""
    host = np.asarray(index)
    return np.where(host >= has.cells, host + (to.cells - has.cells), host).astype(np.int32)


def _pad_nodes(values: Array, has: Size, to: Size, fill: float | np.ndarray) -> Array:
    """Values per node with `fill` inserted after the cells and after the ghosts."""
    host = np.asarray(values)
    result = np.empty(to.cells + to.ghosts, host.dtype)
    result[:] = fill
    result[: has.cells] = host[: has.cells]
    result[to.cells : to.cells + has.ghosts] = host[has.cells :]
    return put(result)


def _pad_shown(shown: Shown, has: Size, to: Size) -> Shown:
    index = np.arange(to.cells + to.ghosts)
    return Shown(
        cell=_pad_nodes(shown.cell, has, to, np.where(index < to.cells, index, 0)),
        scale=_pad_nodes(shown.scale, has, to, 0.0),
        constant=_pad_nodes(shown.constant, has, to, 0.0),
    )


def _pad_slots(hop: Slots, has: Size, to: Size, slots: int) -> Slots:
    index = np.tile(np.arange(to.cells, dtype=np.int32)[:, None], (1, slots))
    return Slots(
        ends={end: _fill_corner(_shift_ghosts(node, has, to), index) for end, node in hop.ends.items()},
        geometry={name: _fill_corner(value, np.ones(index.shape)) for name, value in hop.geometry.items()},
        mask=_fill_corner(hop.mask, np.zeros(index.shape, bool)),
        middle=None
        if hop.middle is None
        else _fill_corner(_shift_ghosts(hop.middle, has, to), index[:, :1].repeat(to.paths, 1)),
        share=None if hop.share is None else _fill_corner(hop.share, np.zeros((to.cells, to.paths, slots))),
    )


def _fill_corner(values: Array | np.ndarray, filled: np.ndarray) -> Array:
    """The array `filled` with its leading corner replaced by `values`, in their dtype."""
    host = np.asarray(values)
    result = filled.astype(host.dtype)
    result[tuple(slice(n) for n in host.shape)] = host
    return put(result)


def device_memory() -> int | None:
    """Bytes of free memory where JAX computes: of the machine for a CPU, else of the device; None if unknown."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        return free_memory()
    held = device.memory_stats() or {}
    return held["bytes_limit"] - held.get("bytes_in_use", 0) if "bytes_limit" in held else None


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

    `symbols` are the names of the geometry that is put there, by default all. `by_slot` gives every slot arrays of its
    own (`columns`), which are faster to evaluate on large meshes and take longer to compile; not for rings, whose
    values are means over paths.
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
    middle = share = None
    if (average := hood.over_paths) is not None:
        one = average.slot_of_path[..., None] == np.arange(hood.mask.shape[1])
        share = put(one / np.maximum(average.multiplicity, 1)[:, None, :], dtype)
        middle = put(average.middle)
    return Slots(
        ends={end: put(node) for end, node in hood.ends.items()},
        geometry={name: put(value, dtype) for name, value in _select_geometry(hood, symbols).items()},
        mask=put(hood.mask),
        middle=middle,
        share=share,
    )


def _put_columns(hood: Neighbourhood, symbols: Collection[str] | None, dtype: str) -> Columns:
    """A hop on the device, slot by slot."""
    slots, geometry = range(hood.mask.shape[1]), _select_geometry(hood, symbols)
    return Columns(
        ends=tuple({end: put(node[:, k]) for end, node in hood.ends.items() if end != "P"} for k in slots),
        geometry=tuple({name: _put_column(value[:, k], dtype) for name, value in geometry.items()} for k in slots),
        mask=None if hood.mask.all() else tuple(put(hood.mask[:, k]) for k in slots),
    )


def _select_geometry(hood: Neighbourhood, symbols: Collection[str] | None) -> dict[str, np.ndarray]:
    """The geometry of a hop by name: that of the names in `symbols`, or all if it is None."""
    wanted = (variable for variable in hood.geometry if symbols is None or variable.name in symbols)
    return {variable.name: hood.geometry[variable] for variable in wanted}


def _put_column(values: np.ndarray, dtype: str) -> Array:
    """The array on the device, as one number if all its entries are equal."""
    return put(values[0] if (values == values[0]).all() else values, dtype)
