"""Padded graphs brought to one size, so that they can be stacked."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from fluxforge.errors import InputError
from fluxforge.graph._outflow import put
from fluxforge.graph._padded_graph import PaddedGraph, Shown, Slots


class Size(NamedTuple):
    """Numbers of cells, ghosts, slots of each hop, and paths per ring, that a graph has or is padded to."""

    cells: int
    ghosts: int
    slots: dict[str, int]
    paths: int = 0

    def __str__(self) -> str:
        slots = [f"{count} {name} slots" for name, count in sorted(self.slots.items())]
        paths = [f"{self.paths} paths"] if self.paths else []
        return ", ".join([f"{self.cells} cells", f"{self.ghosts} ghosts", *slots, *paths])

    def cover(self, other: "Size") -> "Size":
        """The least size that holds both."""
        names = {*self.slots, *other.slots}
        slots = {name: max(self.slots.get(name, 1), other.slots.get(name, 1)) for name in names}
        cells, ghosts = max(self.cells, other.cells), max(self.ghosts, other.ghosts)
        return Size(cells, ghosts, slots, max(self.paths, other.paths))


def size(graph: PaddedGraph) -> Size:
    """The size of a graph."""
    cells, nodes = len(graph.V), len(next(iter(graph.shown.values())).cell)
    slots = {name: hop.mask.shape[1] for name, hop in graph.hops.items()}
    paths = max((hop.middle.shape[1] for hop in graph.hops.values() if hop.middle is not None), default=0)
    return Size(cells, nodes - cells, slots, paths)


def pad_to_size(graph: PaddedGraph, to: Size) -> PaddedGraph:
    """The graph padded to a size; the padding contributes to no sum. Raises InputError if the graph is larger."""
    has = size(graph)
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
    """The graphs padded to a common size and stacked along a new first axis, as `jax.vmap` takes them."""
    to = size(graphs[0])
    for graph in graphs[1:]:
        to = to.cover(size(graph))
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
    """Values per node with padding after the cells and after the ghosts."""
    host = np.asarray(values)
    result = np.empty(to.cells + to.ghosts, host.dtype)
    result[:] = fill
    result[: has.cells] = host[: has.cells]
    result[to.cells : to.cells + has.ghosts] = host[has.cells :]
    return put(result)


def _pad_shown(shown: Shown, has: Size, to: Size) -> Shown:
    own = np.arange(to.cells + to.ghosts)
    return Shown(
        cell=_pad_nodes(shown.cell, has, to, np.where(own < to.cells, own, 0)),
        scale=_pad_nodes(shown.scale, has, to, 0.0),
        constant=_pad_nodes(shown.constant, has, to, 0.0),
    )


def _pad_slots(hop: Slots, has: Size, to: Size, slots: int) -> Slots:
    own = np.tile(np.arange(to.cells, dtype=np.int32)[:, None], (1, slots))
    return Slots(
        ends={end: _wider(_shift_ghosts(node, has, to), own) for end, node in hop.ends.items()},
        geometry={name: _wider(value, np.ones(own.shape)) for name, value in hop.geometry.items()},
        mask=_wider(hop.mask, np.zeros(own.shape, bool)),
        middle=None
        if hop.middle is None
        else _wider(_shift_ghosts(hop.middle, has, to), own[:, :1].repeat(to.paths, 1)),
        share=None if hop.share is None else _wider(hop.share, np.zeros((to.cells, to.paths, slots))),
    )


def _wider(values: Array | np.ndarray, filled: np.ndarray) -> Array:
    """`values` in the corner of an array of the padding's shape."""
    host = np.asarray(values)
    result = filled.astype(host.dtype)
    result[tuple(slice(n) for n in host.shape)] = host
    return put(result)
