"""x ↦ f((x − μ)/σ): inputs brought to one size, so that a step of 0.01 and a temperature of 1 are learned alike."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Float

from fluxforge.gnn._layer import Layer, Messages, Update
from fluxforge.gnn._mlp import AbstractMLP
from fluxforge.gnn._network import Network
from fluxforge.scheme import Hop
from fluxforge.scheme._symbols import ENDS

Part = TypeVar("Part", Messages, Update)


class Standard(NamedTuple):
    """Mean and spread of every input of an MLP."""

    mean: tuple[float, ...]
    spread: tuple[float, ...]


class Standardised(AbstractMLP):
    """An MLP of inputs without their mean and in units of their spread; both are numbers, not weights."""

    f: AbstractMLP
    standard: Standard = eqx.field(static=True)

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """The outputs of every row."""
        mean, spread = (jnp.asarray(each, x.dtype)[None, :] for each in self.standard)
        return self.f((x - mean) / spread)


def standards(network: Network, tables: Sequence[Float[Array, "_rows _inputs"]]) -> tuple[Standard, ...]:
    """Mean and spread of the columns of each MLP's table, in the order of `inputs`; 0 and 1 for what is learned."""
    learned = _learned(network)
    return tuple(
        _standard(part.features, learned, np.asarray(table, float))
        for part, table in zip(_parts(network), tables, strict=True)
    )


def _standard(
    features: Sequence[sp.Expr], learned: frozenset[str], table: Float[np.ndarray, "rows inputs"]
) -> Standard:
    given = [not learned & {each.name for each in feature.free_symbols} for feature in features]
    mean, spread = table.mean(axis=0), table.std(axis=0)
    constant = spread <= 1e-6 * np.abs(mean)
    return Standard(
        tuple(float(m) if own else 0.0 for m, own in zip(mean, given, strict=True)),
        tuple(float(s) if own and not flat else 1.0 for s, own, flat in zip(spread, given, constant, strict=True)),
    )


def _learned(network: Network) -> frozenset[str]:
    """Sums and hidden states, in a cell and at the ends of edges and paths: they have no size until it is learned.

    Everything else has the size of the data, whatever the weights are.
    """
    names = [name for part in _parts(network) for name in part.names]
    return frozenset((*names, *(f"{name}_{end}" for name in names for end in ENDS[Hop.PATH])))


def standardised(network: Network, found: Sequence[Standard]) -> Network:
    """The network with each MLP behind its standard."""
    own = iter(found)
    return Network(
        tuple(
            Layer(tuple(_behind(part, own) for part in layer.messages), _behind(layer.update, own))
            for layer in network.layers
        ),
        network.gradient,
    )


def _behind(part: Part, own: Iterator[Standard]) -> Part:
    f = Standardised(part.f, next(own))
    return eqx.tree_at(lambda each: each.f, part, f, is_leaf=lambda each: isinstance(each, AbstractMLP))


def _parts(network: Network) -> Iterator[Messages | Update]:
    for layer in network.layers:
        yield from layer.messages
        yield layer.update
