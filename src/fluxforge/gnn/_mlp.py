"""x ↦ W_m σ(… σ(W_1 x + b_1) …) + b_m: the paper's MLP, and its gated relative."""

import abc
import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {"relu": jax.nn.relu, "gelu": lambda x: jax.nn.gelu(x, approximate=False), "identity": lambda x: x}
)

# This gain keeps the size of values through a gate. With smaller weights the products of three successive gates are so
# small that the sparsity term dominates the loss, and training sets messages to 0.
GAIN = 3.0**0.5


class AbstractMLP(eqx.Module):
    """A function of rows: every row of inputs gives a row of outputs."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """The outputs of every row."""


class Linear(eqx.Module):
    """W x + b, with the entries of both uniform in ±1/√inputs at the start, those of W times a gain."""

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"]

    @staticmethod
    def create(inputs: int, outputs: int, *, key: PRNGKeyArray, gain: float = 1.0) -> "Linear":
        """Random entries."""
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
    """m linear layers with an activation between them, none after the last: m = 1 is linear."""

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
    """m gated layers in sequence, which approximate products of inputs better than ReLU layers do."""

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
