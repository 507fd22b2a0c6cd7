"""A graph's neighbourhoods on the device: what a scheme's messages, and a network's, are evaluated on."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Bool, Float, Int

from fluxforge._types import Precision, State
from fluxforge.errors import SchemeError
from fluxforge.graph._device import put
from fluxforge.graph._ghosts import view
from fluxforge.graph._hops import Neighbourhood, Neighbourhoods
from fluxforge.mesh import NO_PARAMETERS, DualGraph, ParameterFields
from fluxforge.scheme import Ghost, Hop


class Shown(eqx.Module):
    """What nodes show of a field under one ghost rule:  scale · field[cell] + constant."""

    cell: Int[Array, " nodes"]
    scale: Float[Array, " nodes"]
    constant: Float[Array, " nodes"]

    def of(self, field: State) -> Float[Array, " nodes"]:
        """The field as every node shows it."""
        return self.scale * field[self.cell] + self.constant


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

    def values(
        self, wanted: Iterable[sp.Symbol], nodes: Mapping[str, Float[Array, " nodes"]], parameters: Mapping[str, Any]
    ) -> dict[sp.Symbol, Any]:
        """The value of each wanted symbol in every slot."""
        return {variable: self._value(variable.name, nodes, parameters) for variable in wanted}

    def _value(self, name: str, nodes: Mapping[str, Float[Array, " nodes"]], parameters: Mapping[str, Any]) -> Any:
        if name in parameters:
            return parameters[name]
        if name in self.geometry:
            return self.geometry[name]
        field, _, end = name.rpartition("_")
        if field not in nodes:
            raise SchemeError(f"a message contains {name}, which this mesh does not have")
        return self.at(end, nodes[field])


class PaddedGraph(eqx.Module):
    """All that a step needs to know of a graph.

    `cells` are the parameters of the equation that are given per cell; what faces have of them is in `hops`.
    Cells where `live` is false are padding: they have no neighbours, volume 1, and are nobody's neighbour.
    """

    V: Float[Array, " cells"]
    live: Bool[Array, " cells"]
    shown: dict[str, Shown]
    hops: dict[str, Slots]
    cells: dict[str, Float[Array, " cells"]] = eqx.field(default_factory=dict)

    def nodes(self, fields: Mapping[str, State], rules: Mapping[str, Ghost]) -> dict[str, Float[Array, " nodes"]]:
        """Every field as every node shows it under its ghost rule."""
        return {name: self.shown[rules[name]].of(value) for name, value in fields.items()}

    def holding(self, value: Float[Array, " nodes"]) -> "PaddedGraph":
        """The same graph with other boundary data: g at Dirichlet ghosts, q δ at Neumann ghosts, 0 at cells."""
        rule = str(Ghost.DIRICHLET)
        held = eqx.tree_at(lambda shown: shown.constant, self.shown[rule], value)
        return PaddedGraph(self.V, self.live, {**self.shown, rule: held}, self.hops, self.cells)


def pad_graph(
    graph: DualGraph,
    hops: Iterable[Hop] = (Hop.EDGE,),
    *,
    parameters: ParameterFields = NO_PARAMETERS,
    symbols: Collection[str] | None = None,
    dtype: Precision = "float64",
) -> PaddedGraph:
    """Put a graph's neighbourhoods on the device, with the parameters that vary from cell to cell or face to face.

    Of the geometry, only what is among `symbols`, if they are given.
    """
    hoods = Neighbourhoods(graph, parameters)
    return PaddedGraph(
        V=put(graph.V, dtype),
        live=put(np.ones(graph.cells, bool)),
        shown={str(rule): _shown(graph, rule, dtype) for rule in Ghost},
        hops={str(hop): _slots(hoods[hop], symbols, dtype) for hop in sorted(set(hops))},
        cells={name: put(value, dtype) for name, value in parameters.cells.items()},
    )


def _shown(graph: DualGraph, rule: Ghost, dtype: str) -> Shown:
    seen = view(graph, rule)
    return Shown(put(seen.cell), put(seen.scale, dtype), put(seen.constant, dtype))


def _slots(hood: Neighbourhood, symbols: Collection[str] | None, dtype: str) -> Slots:
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
