"""Inputs of every MLP of a network on a set of problems, and MLPs with standardised inputs x ↦ f((x − μ)/σ)."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.gnn._network import AbstractMLP, Network
from fluxforge.graph._padded_graph import PaddedGraph, Quantities, put
from fluxforge.graph._stages import visit_stages
from fluxforge.scheme._scheme import HOP_ENDS, Hop


@runtime_checkable
class Posed(Protocol):
    """Problems stacked along a first axis: a graph, a state and a source on it, Δt, parameters."""

    graph: PaddedGraph
    T: Any
    S: Any
    dt: Any
    parameters: Any


def inputs(network: Network, problems: Posed) -> list[Float[Array, "rows inputs"]]:
    """Input rows of each MLP, layer by layer, messages before update; without unused slots and padding."""
    together, used = _tables(network, problems.graph, problems.T, problems.S, problems.dt, problems.parameters)
    # In NumPy: the number of used rows varies, and JAX would compile again for each number.
    tables = (np.asarray(table).reshape(-1, table.shape[-1]) for table in together)
    return [put(table[np.asarray(mask).ravel()], table.dtype) for table, mask in zip(tables, used, strict=True)]


@eqx.filter_jit
def _tables(
    network: Network, graph: PaddedGraph, T: Array, S: Array, dt: Array, parameters: Mapping[str, Array]
) -> tuple[list[Array], list[Array]]:
    def one(
        graph: PaddedGraph, T: Array, S: Array, dt: Array, parameters: Mapping[str, Array]
    ) -> tuple[list[Array], list[Array]]:
        return _tables_of_problem(network, graph, T, S, {"dt": dt, **parameters})

    return jax.vmap(one)(graph, T, S, dt, parameters)


def _tables_of_problem(
    network: Network, graph: PaddedGraph, T: State, S: State, parameters: Quantities
) -> tuple[list[Array], list[Array]]:
    tables, used = [], []
    visits = visit_stages(network.rounds, graph, T, S, parameters=parameters)
    for layer, visit in zip(network.layers, itertools.islice(visits, len(network.before), None), strict=True):
        for messages in layer.messages:
            tables.append(messages.tabulate(graph, visit.nodes, parameters))
            used.append(graph.hops[messages.hop].mask.ravel())
        tables.append(layer.update.tabulate(graph, visit.cell))
        used.append(graph.live)
    return tables, used


class Standard(NamedTuple):
    """Mean and spread of every input of an MLP."""

    mean: tuple[float, ...]
    spread: tuple[float, ...]


class Standardised(AbstractMLP):
    """An MLP whose inputs are shifted by their mean and divided by their spread, which are constants, not weights."""

    f: AbstractMLP
    standard: Standard = eqx.field(static=True)

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """The outputs of every row."""
        mean, spread = (jnp.asarray(each, x.dtype)[None, :] for each in self.standard)
        return self.f((x - mean) / spread)


def standards(network: Network, tables: Sequence[Float[Array, "_rows _inputs"]]) -> tuple[Standard, ...]:
    """Mean and spread of the columns of each MLP's table, in the order of `inputs`; 0 and 1 for learned quantities."""
    learned = _learned_names(network)
    return tuple(
        _standard(part.features, learned, np.asarray(table, float))
        for part, table in zip(network.parts, tables, strict=True)
    )


def _standard(
    features: Sequence[sp.Expr], learned: frozenset[str], table: Float[np.ndarray, "rows inputs"]
) -> Standard:
    from_data = [not learned & {each.name for each in feature.free_symbols} for feature in features]
    mean, spread = table.mean(axis=0), table.std(axis=0)
    constant = spread <= 1e-6 * np.abs(mean)
    return Standard(
        tuple(float(m) if fixed else 0.0 for m, fixed in zip(mean, from_data, strict=True)),
        tuple(
            float(s) if fixed and not flat else 1.0 for s, fixed, flat in zip(spread, from_data, constant, strict=True)
        ),
    )


def _learned_names(network: Network) -> frozenset[str]:
    """Names of sums and hidden states, in cells and at ends of edges and paths: their size depends on the weights.

    The size of all other inputs is that of the data.
    """
    names = [name for part in network.parts for name in part.names]
    return frozenset((*names, *(f"{name}_{end}" for name in names for end in HOP_ENDS[Hop.PATH])))


def standardise(network: Network, input_standards: Sequence[Standard]) -> Network:
    """The network with each MLP replaced by one of standardised inputs."""
    return network.with_mlps([Standardised(*each) for each in zip(network.mlps, input_standards, strict=True)])
