"""Neighbourhoods of cells as NumPy arrays: values at ghosts, and the nodes and geometry of each hop in fixed slots."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import sympy as sp
from jaxtyping import Bool, Float, Inexact, Int

from fluxforge.errors import SchemeError
from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.mesh._dual import NO_PARAMETERS, DualGraph, OnDemand, ParameterFields
from fluxforge.mesh._hops import Paths, Ring, lines, paths, ring
from fluxforge.scheme._scheme import Ghost, Hop, Scheme


class View(NamedTuple):
    """Node values as an affine map of cell values: scale · field[cell] + constant, the constant from boundary data."""

    cell: Int[np.ndarray, " nodes"]
    scale: Float[np.ndarray, " nodes"]
    constant: Float[np.ndarray, " nodes"]

    def of(self, field: Inexact[np.ndarray, " cells"]) -> Inexact[np.ndarray, " nodes"]:
        """Values of the field at all nodes."""
        return self.scale * field[self.cell] + self.constant


def view(graph: DualGraph, rule: Ghost) -> View:
    """Node values of a field under a ghost rule, as cell index, scale and constant.

    A Dirichlet ghost has the value g, its owner's value or 0. The value of a Neumann ghost follows its owner's: it is
    the owner's value, plus q δ where the output is a temperature. A Robin ghost changes by `following` times its
    owner's change.
    """
    boundary = slice(graph.interior, None)
    temperature = rule is Ghost.DIRICHLET
    following = graph.following
    held = graph.value if graph.follow is None else (1.0 - following) * graph.value
    fixed = np.where(graph.neumann, graph.value * graph.delta[boundary], held)
    follows = np.ones(graph.ghosts) if rule is Ghost.OWNER else following
    return View(
        cell=np.concatenate([np.arange(graph.cells, dtype=np.int32), graph.owner[boundary]]),
        scale=np.concatenate([np.ones(graph.cells), follows]),
        constant=np.concatenate([np.zeros(graph.cells), fixed if temperature else np.zeros(graph.ghosts)]),
    )


def node_volumes(graph: DualGraph) -> Float[np.ndarray, " nodes"]:
    """V of every node: infinite at a Dirichlet ghost, whose value is fixed; a Neumann ghost has its owner's volume.

    A Robin ghost has its owner's volume divided by `following`, the factor by which its value follows its owner's.
    """
    following = graph.following
    with np.errstate(divide="ignore"):
        behind = graph.V[graph.owner[graph.interior :]] / following
    return np.concatenate([graph.V, behind])


Makers = dict[sp.Symbol, Callable[[], np.ndarray]]


def check_dimension(scheme: Scheme, graph: DualGraph) -> None:
    """Raise SchemeError if a scheme's formulas are written for another number of coordinates than the graph has."""
    if scheme.dimension not in (None, graph.dimension):
        raise SchemeError(
            f"scheme {scheme.name!r} is written for {scheme.dimension} dimensions, and the mesh has {graph.dimension}"
        )


@dataclass(frozen=True)
class Neighbourhood:
    """One hop in fixed slots: the nodes at each end, the geometric symbols, and which slots are used.

    `geometry` holds every symbol of the hop that is not a field; each array is computed on first access.
    A ring has no single node N: `ends` lacks it, and `over_paths` averages values over the paths of a slot.
    """

    ends: Mapping[str, Int[np.ndarray, "cells slots"]]
    geometry: Mapping[sp.Symbol, Float[np.ndarray, "cells slots"]]
    mask: Bool[np.ndarray, "cells slots"]
    over_paths: "Average | None" = None


@dataclass(frozen=True)
class Average:
    """The mean over the paths that lead to each ring cell."""

    middle: Int[np.ndarray, "cells paths"]
    slot_of_path: Int[np.ndarray, "cells paths"]
    multiplicity: Int[np.ndarray, "cells slots"]

    def of(self, feature: Float[np.ndarray, "cells paths"]) -> Float[np.ndarray, "cells slots"]:
        """Σ over the paths of a slot, divided by their number; 0 in unused slots."""
        total = np.zeros(self.multiplicity.shape, feature.dtype)
        row, path = np.nonzero(self.slot_of_path >= 0)
        np.add.at(total, (row, self.slot_of_path[row, path]), feature[row, path])
        return total / np.maximum(self.multiplicity, 1)


@dataclass(frozen=True)
class Neighbourhoods:
    """The hops of a graph, each computed on first access."""

    graph: DualGraph
    parameters: ParameterFields = NO_PARAMETERS

    def __getitem__(self, hop: Hop) -> Neighbourhood:
        hood: Neighbourhood = getattr(self, hop.value)
        return hood

    @cached_property
    def node_values(self) -> dict[str, Float[np.ndarray, " nodes"]]:
        """Node values besides fields: V, and parameters given per cell, where a ghost has its owner's."""
        owner = self.graph.owner[self.graph.interior :]
        cells = {name: np.concatenate([value, value[owner]]) for name, value in self.parameters.cells.items()}
        return {"V": node_volumes(self.graph), **cells}

    @cached_property
    def paths(self) -> Paths:
        """The directed two-hop paths."""
        return paths(self.graph)

    @cached_property
    def edge(self) -> Neighbourhood:
        """The faces of each cell."""
        g = self.graph
        cell = np.arange(g.cells, dtype=np.int32)[:, None]
        ends = {"P": np.broadcast_to(cell, g.slot_node.shape), "N": g.slot_node}
        return Neighbourhood(ends, self._on_faces(ends), g.slot_mask)

    @cached_property
    def line(self) -> Neighbourhood:
        """The faces of each cell with the nodes behind P and ahead of N; raises MeshError for cells without lines."""
        stencil = lines(self.graph)
        ends = {**self.edge.ends, "B": stencil.behind, "F": stencil.ahead}
        return Neighbourhood(ends, self._on_faces(ends), self.graph.slot_mask)

    def _on_faces(self, ends: Mapping[str, Int[np.ndarray, "cells slots"]]) -> OnDemand[sp.Symbol]:
        geometry: Makers = {symbol(name): partial(self._leg.__getitem__, name) for name in self._leg}
        return OnDemand(geometry | self._held_at(ends))

    @cached_property
    def path(self) -> Neighbourhood:
        """The directed paths P → N → Q of each cell."""
        steps = self.paths
        cell = np.arange(self.graph.cells, dtype=np.int32)[:, None]
        ends = {"P": np.broadcast_to(cell, steps.middle.shape), "N": steps.middle, "Q": steps.end}

        def first(name: str) -> np.ndarray:
            return self._leg[name][:, steps.first_slot]

        def second(name: str) -> np.ndarray:
            return self._leg[name][steps.middle, steps.second_slot]

        legs = (("PN", first), ("NQ", second))
        geometry: Makers = {symbol(f"{name}_{leg}"): partial(of, name) for name in self._leg for leg, of in legs}
        return Neighbourhood(ends, OnDemand(geometry | self._held_at(ends)), steps.mask)

    @cached_property
    def ring(self) -> Neighbourhood:
        """The distinct cells at distance two of each cell."""
        outer: Ring = ring(self.graph, self.paths)
        average = Average(self.paths.middle, outer.slot_of_path, outer.multiplicity)
        cell = np.arange(self.graph.cells, dtype=np.int32)[:, None]
        ends = {"P": np.broadcast_to(cell, outer.node.shape), "Q": outer.node}
        apart = np.where(outer.mask[..., None], self._to_ring(outer, average), 1.0)

        def over_paths(name: str) -> np.ndarray:
            return average.of(self.path.geometry[symbol(name)])

        def in_the_middle(name: str) -> np.ndarray:
            return average.of(self.node_values[name][self.paths.middle])

        geometry: Makers = {symbol(n): partial(over_paths, n) for n in ("A_PN", "delta_PN", "A_NQ", "delta_NQ")}
        geometry[symbol("delta_PQ")] = lambda: np.hypot.reduce(apart, axis=-1)
        for i, axis in enumerate(COORDINATES[: self.graph.dimension]):
            geometry[symbol(f"d_PQ_{axis}")] = partial(apart.__getitem__, (..., i))
        geometry |= {symbol(f"{name}_N"): partial(in_the_middle, name) for name in self.node_values}
        return Neighbourhood(ends, OnDemand(geometry | self._held_at(ends)), outer.mask, average)

    def _to_ring(self, outer: Ring, average: "Average") -> Float[np.ndarray, "cells slots dimension"]:
        """The vectors from P to Q; through periodic faces along the paths, as Q may be at the other end of the mesh."""
        if not self.graph.wrapped:
            return self.graph.x[outer.node] - self.graph.x[:, None, :]
        axes = COORDINATES[: self.graph.dimension]
        legs = (
            self.path.geometry[symbol(f"d_{axis}_PN")] + self.path.geometry[symbol(f"d_{axis}_NQ")] for axis in axes
        )
        return np.stack([average.of(leg) for leg in legs], axis=-1)

    @cached_property
    def _leg(self) -> OnDemand[str]:
        parts = (self.graph.legs(), self.parameters.slots, self.parameters.tangential)
        return OnDemand({name: partial(part.__getitem__, name) for part in parts for name in part})

    def _held_at(self, ends: Mapping[str, Int[np.ndarray, "cells slots"]]) -> Makers:
        return {
            symbol(f"{name}_{end}"): partial(value.__getitem__, ends[end])
            for name, value in self.node_values.items()
            for end in ends
        }
