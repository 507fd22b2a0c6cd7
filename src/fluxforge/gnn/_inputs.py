"""What every MLP of a network is given on a set of problems."""

import itertools
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
import sympy as sp
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.expression import symbol
from fluxforge.gnn._layer import rows
from fluxforge.gnn._network import Network
from fluxforge.graph import PaddedGraph, put, visit_stages


@runtime_checkable
class Posed(Protocol):
    """A graph with a state on it, along a first axis."""

    graph: PaddedGraph
    T: Any
    S: Any
    dt: Any
    parameters: Any


def inputs(network: Network, problems: Posed) -> list[Float[Array, "rows inputs"]]:
    """The rows each MLP sees, layer by layer, messages before update; unused slots and padding are left out."""
    together, used = _all(network, problems.graph, problems.T, problems.S, problems.dt, problems.parameters)
    # By NumPy: how many rows are used is known here only, and JAX would compile for every number.
    tables = (np.asarray(table).reshape(-1, table.shape[-1]) for table in together)
    return [put(table[np.asarray(mask).ravel()], table.dtype) for table, mask in zip(tables, used, strict=True)]


@eqx.filter_jit
def _all(
    network: Network, graph: PaddedGraph, T: Array, S: Array, dt: Array, parameters: Mapping[str, Array]
) -> tuple[list[Array], list[Array]]:
    def one(
        graph: PaddedGraph, T: Array, S: Array, dt: Array, parameters: Mapping[str, Array]
    ) -> tuple[list[Array], list[Array]]:
        return _one(network, graph, T, S, {"dt": dt, **parameters})

    return jax.vmap(one)(graph, T, S, dt, parameters)


def _one(
    network: Network, graph: PaddedGraph, T: State, S: State, parameters: Mapping[str, Any]
) -> tuple[list[Array], list[Array]]:
    tables, used = [], []
    visits = visit_stages(network.rounds, graph, T, S, parameters=parameters)
    for layer, visit in zip(network.layers, itertools.islice(visits, len(network.before), None), strict=True):
        for messages in layer.messages:
            hop = graph.hops[messages.hop]
            wanted = frozenset[sp.Symbol]().union(*(feature.free_symbols for feature in messages.features))
            values = hop.values(wanted, visit.nodes, parameters)
            tables.append(rows(messages.features, values, hop.mask.shape, graph.V.dtype))
            used.append(hop.mask.ravel())
        in_cell = {symbol(name): value for name, value in visit.cell.items()}
        tables.append(rows(layer.update.features, in_cell, graph.V.shape, graph.V.dtype))
        used.append(graph.live)
    return tables, used
