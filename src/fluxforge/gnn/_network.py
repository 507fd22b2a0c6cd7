"""Message-passing networks T' = M_θ(T): layers of MLPs in place of formulas, and the gradient stage before them."""

import abc
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import sympy as sp
from jaxtyping import Array, Bool, Float

from fluxforge._types import State
from fluxforge.errors import SchemeError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.gnn._mlp import AbstractMLP
from fluxforge.graph._padded_graph import Nodes, PaddedGraph, Quantities
from fluxforge.graph._stages import AbstractRound, Formulas, evaluate_stages
from fluxforge.recipe._recipe import Aggregate
from fluxforge.scheme._scheme import Ghost, Hop, Stage
from fluxforge.scheme.reference import gradient_stage

# Stands for ±∞ in unused slots of a minimum or maximum.
_FAR = 1e30


class Messages(eqx.Module):
    """z = Σ f(features) over the slots of a hop; or the mean, minimum or maximum, by `aggregate`.

    `features` are formulas of what the hop carries, `names` the components of f.
    """

    f: AbstractMLP
    names: tuple[str, ...] = eqx.field(static=True)
    features: tuple[sp.Expr, ...] = eqx.field(static=True)
    hop: Hop = eqx.field(static=True, default=Hop.EDGE)
    aggregate: Aggregate = eqx.field(static=True, default="sum")

    def __call__(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> dict[str, State]:
        """The components of z in every cell."""
        hop = graph.hops[self.hop]
        wanted = frozenset[sp.Symbol]().union(*(feature.free_symbols for feature in self.features))
        values = hop.values(wanted, nodes, parameters)
        sent = self.f(rows(self.features, values, hop.mask.shape, graph.V.dtype)).reshape(*hop.mask.shape, -1)
        return {name: _aggregate(sent[..., k], hop.mask, self.aggregate) for k, name in enumerate(self.names)}


class Update(eqx.Module):
    """h = form(f(features), node): `forms` are formulas of the cell's symbols and of f, `T + dt/V*f` for instance.

    `ghosts` says what a ghost shows of each output to later layers.
    """

    f: AbstractMLP
    names: tuple[str, ...] = eqx.field(static=True)
    features: tuple[sp.Expr, ...] = eqx.field(static=True)
    forms: tuple[sp.Expr, ...] = eqx.field(static=True)
    ghosts: tuple[Ghost, ...] = eqx.field(static=True)

    def __call__(self, graph: PaddedGraph, cell: Quantities) -> dict[str, State]:
        """The outputs in every cell."""
        values = {symbol(name): value for name, value in cell.items()}
        found = self.f(rows(self.features, values, graph.V.shape, graph.V.dtype))
        return {
            name: jnp.broadcast_to(evaluate(form, values | {F: found[:, k]}, jnp), graph.V.shape)
            for k, (name, form) in enumerate(zip(self.names, self.forms, strict=True))
        }


class Layer(eqx.Module):
    """Messages over one or several hops, then an update of every cell: a round for the evaluator of stages."""

    messages: tuple[Messages, ...]
    update: Update

    @property
    def ghosts(self) -> Mapping[str, Ghost]:
        """What a ghost shows of each output."""
        return dict(zip(self.update.names, self.update.ghosts, strict=True))

    def sums(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> dict[str, State]:
        """The aggregated messages of every cell."""
        return {name: z for each in self.messages for name, z in each(graph, nodes, parameters).items()}

    def outputs(self, graph: PaddedGraph, cell: Quantities) -> dict[str, State]:
        """The update of every cell."""
        return self.update(graph, cell)


# Stands for the network's value in the formula that makes an output of it.
F = symbol("f")


def rows(
    features: tuple[sp.Expr, ...], values: Mapping[sp.Symbol, Any], shape: tuple[int, ...], dtype: Any
) -> Float[Array, "rows inputs"]:
    """One row per place, one column per feature."""
    columns = (jnp.broadcast_to(jnp.asarray(evaluate(each, values, jnp), dtype), shape).ravel() for each in features)
    return jnp.stack(list(columns), axis=-1)


def _aggregate(sent: Float[Array, "cells slots"], mask: Bool[Array, "cells slots"], how: Aggregate) -> State:
    if how in ("min", "max"):
        far = _FAR if how == "min" else -_FAR
        found = (jnp.min if how == "min" else jnp.max)(jnp.where(mask, sent, far), axis=1)
        return jnp.where(mask.any(axis=1), found, 0.0)
    total = jnp.where(mask, sent, 0.0).sum(axis=1)
    return total / jnp.maximum(mask.sum(axis=1), 1) if how == "mean" else total


class Gradient(eqx.Module):
    """Least-squares gradients `g_x`, `g_y` (and `g_z`) of T, for messages that contain their correction."""

    dimension: int = eqx.field(static=True)

    @property
    def stage(self) -> Stage:
        """The formulas."""
        return gradient_stage(self.dimension)

    @property
    def ghosts(self) -> Mapping[str, Ghost]:
        """A ghost shows its owner's gradient."""
        return Formulas(self.stage).ghosts

    def sums(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> dict[str, State]:
        """The entries of each cell's system. Cells that are padding get a unit matrix, which has an inverse.

        Raises SchemeError on a mesh of another dimension.
        """
        there = sum(f"n_{axis}" in graph.hops[Hop.EDGE].geometry for axis in COORDINATES)
        if there != self.dimension:
            raise SchemeError(f"a network of gradients in {self.dimension} dimensions meets a mesh of {there}")
        found = Formulas(self.stage).sums(graph, nodes, parameters)
        diagonal = {f"m_{axis}{axis}" for axis in COORDINATES}
        return {name: jnp.where(graph.live, z, 1.0) if name in diagonal else z for name, z in found.items()}

    def outputs(self, graph: PaddedGraph, cell: Quantities) -> dict[str, State]:
        """The gradients."""
        return Formulas(self.stage).outputs(graph, cell)


class AbstractNetwork(eqx.Module):
    """One step T' = M_θ(T) on any graph, as rounds for the evaluator of stages."""

    @property
    @abc.abstractmethod
    def rounds(self) -> tuple[AbstractRound, ...]:
        """The rounds in order; the last one gives `T_new`."""

    @property
    @abc.abstractmethod
    def hops(self) -> frozenset[Hop]:
        """The kinds of neighbourhood its messages are summed over."""

    def __call__(
        self,
        graph: PaddedGraph,
        T: State,
        S: State,
        *,
        dt: float | Float[Array, ""],
        parameters: Quantities,
    ) -> State:
        """One step on any graph, of any size; `parameters` are those of the equation, by name."""
        return evaluate_stages(self.rounds, graph, T, S, parameters={"dt": dt, **parameters})


class Network(AbstractNetwork):
    """A message-passing network on a graph: the twin of a scheme, layer for stage.

    Lengths are in units in which the mean cell volume is 1; `fluxforge.stepping.network_stepper` converts them.
    """

    layers: tuple[Layer, ...]
    gradient: Gradient | None = None
    """What is evaluated before the first layer, if messages contain the correction by gradients."""

    @property
    def rounds(self) -> tuple[AbstractRound, ...]:
        """The gradient stage, if the network has one, and the layers."""
        return (*self.before, *self.layers)

    @property
    def before(self) -> tuple[Gradient, ...]:
        """The rounds without weights, which come first."""
        return () if self.gradient is None else (self.gradient,)

    @property
    def hops(self) -> frozenset[Hop]:
        """The kinds of neighbourhood its messages are summed over."""
        return frozenset(messages.hop for layer in self.layers for messages in layer.messages)
