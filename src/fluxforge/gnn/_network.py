"""Message-passing networks T' = M_θ(T): MLPs, layers that use them in place of formulas, and the gradient stage."""

import abc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import sympy as sp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fluxforge._types import State
from fluxforge.errors import SchemeError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.graph._padded_graph import Nodes, PaddedGraph, Quantities, Slots
from fluxforge.graph._stages import AbstractRound, Formulas, evaluate_stages
from fluxforge.recipe._recipe import Aggregate
from fluxforge.scheme._scheme import Ghost, Hop, Stage
from fluxforge.scheme.reference import gradient_stage

ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {"relu": jax.nn.relu, "gelu": lambda x: jax.nn.gelu(x, approximate=False), "identity": lambda x: x}
)

# This gain preserves the size of values through a gate. With smaller weights the products of three successive gates are
# so small that the sparsity term dominates the loss, and training sets messages to 0.
GAIN = 3.0**0.5


class AbstractMLP(eqx.Module):
    """A function of rows: every row of inputs gives a row of outputs."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """The outputs of every row."""


class Linear(eqx.Module):
    """W x + b. Initially the entries of b are uniform in ±1/√inputs, and those of W too, times a gain."""

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"]

    @staticmethod
    def create(inputs: int, outputs: int, *, key: PRNGKeyArray, gain: float = 1.0) -> "Linear":
        """A layer with random entries."""
        reach = 1.0 / math.sqrt(inputs)
        of_weight, of_bias = jax.random.split(key)
        return Linear(
            gain * jax.random.uniform(of_weight, (outputs, inputs), minval=-reach, maxval=reach),
            jax.random.uniform(of_bias, (outputs,), minval=-reach, maxval=reach),
        )

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """The outputs of every row."""
        return x @ self.weight.T + self.bias[None, :]


def _layer_shapes(
    inputs: int, outputs: int, depth: int, width: int, key: PRNGKeyArray
) -> Iterator[tuple[int, int, PRNGKeyArray]]:
    """Inputs, outputs and key of each of `depth` layers with `width` values between them."""
    sizes = (inputs, *(width,) * (depth - 1), outputs)
    return zip(sizes[:-1], sizes[1:], jax.random.split(key, depth), strict=True)


class MLP(AbstractMLP):
    """`depth` linear layers with an activation between them and none after the last; with one layer it is linear."""

    layers: tuple[Linear, ...]
    activation: str = eqx.field(static=True, default="relu")

    @staticmethod
    def create(inputs: int, outputs: int, *, depth: int, width: int, key: PRNGKeyArray, gain: float = 1.0) -> "MLP":
        """Random weights: `depth` linear layers, `width` units between them."""
        shapes = _layer_shapes(inputs, outputs, depth, width, key)
        return MLP(tuple(Linear.create(a, b, key=k, gain=gain) for a, b, k in shapes))

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """The outputs of every row."""
        for layer in self.layers[:-1]:
            x = ACTIVATIONS[self.activation](layer(x))
        return self.layers[-1](x)


class Gate(eqx.Module):
    """W_f (GeLU(W_l x + b_l) ⊙ (W_r x + b_r)) + b_f."""

    left: Linear
    right: Linear
    final: Linear

    @staticmethod
    def create(inputs: int, outputs: int, *, width: int, key: PRNGKeyArray, gain: float = GAIN) -> "Gate":
        """Random weights."""
        of_left, of_right, of_final = jax.random.split(key, 3)
        return Gate(
            Linear.create(inputs, width, key=of_left, gain=gain),
            Linear.create(inputs, width, key=of_right, gain=gain),
            Linear.create(width, outputs, key=of_final, gain=gain),
        )

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """The outputs of every row."""
        return self.final(ACTIVATIONS["gelu"](self.left(x)) * self.right(x))


class GatedMLP(AbstractMLP):
    """Gated layers in sequence; they approximate products of inputs better than ReLU layers do."""

    layers: tuple[Gate, ...]

    @staticmethod
    def create(
        inputs: int, outputs: int, *, depth: int, width: int, key: PRNGKeyArray, gain: float = GAIN
    ) -> "GatedMLP":
        """Random weights: `depth` gated layers of `width` units."""
        shapes = _layer_shapes(inputs, outputs, depth, width, key)
        return GatedMLP(tuple(Gate.create(a, b, width=width, key=k, gain=gain) for a, b, k in shapes))

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """The outputs of every row."""
        for layer in self.layers:
            x = layer(x)
        return x


def parameters(tree: eqx.Module) -> Float[Array, " parameters"]:
    """All weights and biases in one row."""
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))
    return jnp.concatenate([jnp.ravel(leaf) for leaf in leaves])


# Stands for ±∞ in unused slots of a minimum or maximum.
_INFINITY = 1e30


class Messages(eqx.Module):
    """z = Σ f(features) over the slots of a hop; or the mean, minimum or maximum, by `aggregate`.

    `features` are formulas in the symbols of the hop, `names` the names of the components of f.
    """

    f: AbstractMLP
    names: tuple[str, ...] = eqx.field(static=True)
    features: tuple[sp.Expr, ...] = eqx.field(static=True)
    hop: Hop = eqx.field(static=True, default=Hop.EDGE)
    aggregate: Aggregate = eqx.field(static=True, default="sum")

    def __call__(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> dict[str, State]:
        """The components of z in every cell."""
        mask = graph.hops[self.hop].mask
        sent = self.f(self.tabulate(graph, nodes, parameters)).reshape(*mask.shape, -1)
        return {name: _aggregate(sent[..., k], mask, self.aggregate) for k, name in enumerate(self.names)}

    def tabulate(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> Float[Array, "rows inputs"]:
        """The features, one row per slot."""
        hop = graph.hops[self.hop]
        values = slot_values(self.features, hop, nodes, parameters)
        return _stack_features(self.features, values, hop.mask.shape, graph.V.dtype)


class Update(eqx.Module):
    """h = form(f(features), node): `forms` are formulas of the cell's symbols and of f, `T + dt/V*f` for instance.

    `ghosts` are the ghost rules of the outputs, by which later layers see them.
    """

    f: AbstractMLP
    names: tuple[str, ...] = eqx.field(static=True)
    features: tuple[sp.Expr, ...] = eqx.field(static=True)
    forms: tuple[sp.Expr, ...] = eqx.field(static=True)
    ghosts: tuple[Ghost, ...] = eqx.field(static=True)

    def __call__(self, graph: PaddedGraph, cell: Quantities) -> dict[str, State]:
        """The outputs in every cell."""
        values = {symbol(name): value for name, value in cell.items()}
        values_of_f = self.f(self.tabulate(graph, cell))
        return {
            name: jnp.broadcast_to(evaluate(form, values | {F: values_of_f[:, k]}, jnp), graph.V.shape)
            for k, (name, form) in enumerate(zip(self.names, self.forms, strict=True))
        }

    def tabulate(self, graph: PaddedGraph, cell: Quantities) -> Float[Array, "rows inputs"]:
        """The features, one row per cell."""
        values = {symbol(name): value for name, value in cell.items()}
        return _stack_features(self.features, values, graph.V.shape, graph.V.dtype)


class Layer(eqx.Module):
    """Messages over one or several hops, then an update of every cell: a round for the evaluator of stages."""

    messages: tuple[Messages, ...]
    update: Update

    @property
    def ghosts(self) -> Mapping[str, Ghost]:
        """The ghost rule of each output."""
        return dict(zip(self.update.names, self.update.ghosts, strict=True))

    def sums(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> dict[str, State]:
        """The aggregated messages of every cell."""
        return {name: z for each in self.messages for name, z in each(graph, nodes, parameters).items()}

    def outputs(self, graph: PaddedGraph, cell: Quantities) -> dict[str, State]:
        """The update of every cell."""
        return self.update(graph, cell)


# Stands for the MLP's value in the formula of an output.
F = symbol("f")


def slot_values(
    formulas: Iterable[sp.Expr], hop: Slots, nodes: Nodes, parameters: Quantities
) -> Mapping[sp.Symbol, Any]:
    """The values, in the slots of a hop, of the symbols that occur in some formulas."""
    wanted = frozenset[sp.Symbol]().union(*(each.free_symbols for each in formulas))
    return hop.values(wanted, nodes, parameters)


def _stack_features(
    features: tuple[sp.Expr, ...], values: Mapping[sp.Symbol, Any], shape: tuple[int, ...], dtype: Any
) -> Float[Array, "rows inputs"]:
    """One row per place, one column per feature."""
    columns = (jnp.broadcast_to(jnp.asarray(evaluate(each, values, jnp), dtype), shape).ravel() for each in features)
    return jnp.stack(list(columns), axis=-1)


def _aggregate(sent: Float[Array, "cells slots"], mask: Bool[Array, "cells slots"], how: Aggregate) -> State:
    if how in ("min", "max"):
        far = _INFINITY if how == "min" else -_INFINITY
        extreme = (jnp.min if how == "min" else jnp.max)(jnp.where(mask, sent, far), axis=1)
        return jnp.where(mask.any(axis=1), extreme, 0.0)
    total = jnp.where(mask, sent, 0.0).sum(axis=1)
    return total / jnp.maximum(mask.sum(axis=1), 1) if how == "mean" else total


class Gradient(eqx.Module):
    """Least-squares gradients `g_x`, `g_y` (and `g_z`) of T, for messages with the non-orthogonal correction."""

    dimension: int = eqx.field(static=True)

    @property
    def stage(self) -> Stage:
        """The stage of the gradients."""
        return gradient_stage(self.dimension)

    @property
    def ghosts(self) -> Mapping[str, Ghost]:
        """The ghost rules of the gradient: a ghost has its owner's."""
        return Formulas(self.stage).ghosts

    def sums(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> dict[str, State]:
        """The entries of each cell's least-squares system; cells of padding get the unit matrix, which is invertible.

        Raises SchemeError on a mesh of another dimension.
        """
        there = sum(f"n_{axis}" in graph.hops[Hop.EDGE].geometry for axis in COORDINATES)
        if there != self.dimension:
            raise SchemeError(f"the network uses gradients in {self.dimension} dimensions, and the mesh has {there}")
        sums = Formulas(self.stage).sums(graph, nodes, parameters)
        diagonal = {f"m_{axis}{axis}" for axis in COORDINATES}
        return {name: jnp.where(graph.live, z, 1.0) if name in diagonal else z for name, z in sums.items()}

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
        """The neighbourhoods over which the messages are summed."""

    def __call__(
        self,
        graph: PaddedGraph,
        T: State,
        S: State,
        *,
        dt: float | Float[Array, ""],
        parameters: Quantities,
    ) -> State:
        """T' after one step on a graph of any size; `parameters` are those of the equation, by name."""
        return evaluate_stages(self.rounds, graph, T, S, parameters={"dt": dt, **parameters})


class Network(AbstractNetwork):
    """A message-passing network on a graph, with a layer where a scheme has a stage.

    Lengths are in units in which the mean cell volume is 1; `fluxforge.stepping.network_stepper` converts them.
    """

    layers: tuple[Layer, ...]
    gradient: Gradient | None = None
    """The round before the first layer, if messages contain the correction by gradients."""

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
        """The neighbourhoods over which the messages are summed."""
        return frozenset(messages.hop for layer in self.layers for messages in layer.messages)

    @property
    def parts(self) -> list[Messages | Update]:
        """The messages and updates, each of which has an MLP, layer by layer; messages come before the update."""
        parts: list[Messages | Update] = []
        for layer in self.layers:
            parts += [*layer.messages, layer.update]
        return parts

    @property
    def mlps(self) -> list[Any]:
        """The MLPs, in the order of `parts`."""
        return [part.f for part in self.parts]

    def with_mlps(self, new: Sequence[AbstractMLP]) -> "Network":
        """The network with other MLPs in the same places."""
        return eqx.tree_at(lambda network: network.mlps, self, list(new))


Some = TypeVar("Some", bound=AbstractNetwork)


def cast(network: Some, dtype: str) -> Some:
    """The same network with weights of another precision."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, network)
