"""Each hop as arrays: who the ends are, and the geometry along the way."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp
from jaxtyping import Bool, Float, Int

from fluxforge.errors import SchemeError
from fluxforge.expression import COORDINATES, symbol
from fluxforge.mesh import NO_PARAMETERS, DualGraph, ParameterFields, Paths, Ring, paths, ring
from fluxforge.neighbourhood._ghosts import node_volumes
from fluxforge.scheme import Hop, Scheme


def check_dimension(scheme: Scheme, graph: DualGraph) -> None:
    """Raise SchemeError where a scheme's formulas are written for another number of coordinates than the graph has."""
    if scheme.dimension not in (None, graph.dimension):
        raise SchemeError(
            f"scheme {scheme.name!r} is written for {scheme.dimension} dimensions, and the mesh has {graph.dimension}"
        )


@dataclass(frozen=True)
class Neighbourhood:
    """One hop in fixed slots: the nodes at each end, the geometric symbols, and which slots are used.

    A ring has no single node N: `ends` lacks it, and `over_paths` says how to average over the paths of a slot.
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
    """The hops of a graph, each worked out the first time it is asked for."""

    graph: DualGraph
    parameters: ParameterFields = NO_PARAMETERS

    def __getitem__(self, hop: Hop) -> Neighbourhood:
        return {Hop.EDGE: lambda: self.edge, Hop.PATH: lambda: self.path, Hop.RING: lambda: self.ring}[hop]()

    @cached_property
    def held(self) -> dict[str, Float[np.ndarray, " nodes"]]:
        """What every node has besides fields: V, and parameters given per cell, of which a ghost has its owner's."""
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
        geometry = {symbol(name): value for name, value in self._leg.items()}
        return Neighbourhood(ends, geometry | self._held_at(ends), g.slot_mask)

    @cached_property
    def path(self) -> Neighbourhood:
        """The directed paths P → N → Q of each cell."""
        steps = self.paths
        cell = np.arange(self.graph.cells, dtype=np.int32)[:, None]
        ends = {"P": np.broadcast_to(cell, steps.middle.shape), "N": steps.middle, "Q": steps.end}
        geometry = {
            symbol(f"{name}_{leg}"): value
            for name, slots in self._leg.items()
            for leg, value in (
                ("PN", slots[:, steps.first_slot]),
                ("NQ", slots[steps.middle, steps.second_slot]),
            )
        }
        return Neighbourhood(ends, geometry | self._held_at(ends), steps.mask)

    @cached_property
    def ring(self) -> Neighbourhood:
        """The distinct cells at distance two of each cell."""
        around: Ring = ring(self.graph, self.paths)
        average = Average(self.paths.middle, around.slot_of_path, around.multiplicity)
        cell = np.arange(self.graph.cells, dtype=np.int32)[:, None]
        ends = {"P": np.broadcast_to(cell, around.node.shape), "Q": around.node}
        apart = np.where(around.mask[..., None], self.graph.x[around.node] - self.graph.x[:, None, :], 1.0)
        geometry = {
            symbol(name): average.of(self.path.geometry[symbol(name)])
            for name in ("A_PN", "delta_PN", "A_NQ", "delta_NQ")
        }
        geometry |= {
            symbol("delta_PQ"): np.hypot.reduce(apart, axis=-1),
            **{symbol(f"d_PQ_{axis}"): apart[..., i] for i, axis in enumerate(COORDINATES[: self.graph.dimension])},
            **{symbol(f"{name}_N"): average.of(value[self.paths.middle]) for name, value in self.held.items()},
        }
        return Neighbourhood(ends, geometry | self._held_at(ends), around.mask, average)

    @cached_property
    def _leg(self) -> dict[str, Float[np.ndarray, "cells slots"]]:
        return self.graph.legs() | dict(self.parameters.slots)

    def _held_at(
        self, ends: Mapping[str, Int[np.ndarray, "cells slots"]]
    ) -> dict[sp.Symbol, Float[np.ndarray, "cells slots"]]:
        at = ((name, end) for name in self.held for end in ends)
        return {symbol(f"{name}_{end}"): self.held[name][ends[end]] for name, end in at}
