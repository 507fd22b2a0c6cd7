"""Networks whose functions are known: schemes that pass for trained networks, and networks that are spoiled."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge.gnn import AbstractMLP, Network, build
from fluxforge.recipe import diffusivity_of


class StageUpdate(AbstractMLP):
    """a V S + c α z + b V tanh(L T), the f of h = T + Δt/V f: one stage of two; L T is read from the stage before."""

    source: Float[Array, ""]
    flux: Float[Array, ""]
    bend: Float[Array, ""]
    first: Float[Array, "2"]

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """Of T, S, Δt, V and z; in the second stage with h₁ = T + Δt (a₁ S + c₁ L T) before z."""
        T, S, dt, V, h, z = x[:, 0], x[:, 1], x[:, 2], x[:, 3], x[:, -2], x[:, -1]
        a1, c1 = self.first
        # In the first stage, where h is V, nothing is bent; c₁ = 0 would make L T unknown.
        rate = ((h - T) / dt - a1 * S) / jnp.where(c1 == 0.0, 1.0, c1)
        return (V * self.source * S + self.flux * z + self.bend * V * jnp.tanh(rate))[:, None]


def two_stages(
    spec: recipe.Recipe, a1: float, c1: float, a2: float = 1.0, c2: float = 1.0, *, bend: float = 0.0
) -> Network:
    """Two layers:  h = T + Δt (a₁ S + c₁ L T),  T' = T + Δt (a₂ S + c₂ L h) + b Δt tanh(L T)."""
    one, none, alpha = (jnp.asarray(each, "float32") for each in (1.0, 0.0, diffusivity_of(spec)))
    known = jnp.asarray([a1, c1], "float32")
    plain = FluxMessage(one, none, none)
    made: tuple[AbstractMLP, ...] = (
        plain,
        StageUpdate(known[0], known[1] * alpha, none, known),
        plain,
        StageUpdate(jnp.asarray(a2, "float32"), c2 * alpha, jnp.asarray(bend, "float32"), known),
    )
    return eqx.tree_at(
        lambda n: tuple(f for layer in n.layers for f in (layer.messages[0].f, layer.update.f)),
        build(spec.network, jax.random.key(0)),
        made,
        is_leaf=lambda leaf: isinstance(leaf, AbstractMLP),
    )


class FluxMessage(AbstractMLP):
    """g (1 + b T_P) A/δ (ΔT + k ΔT³) with ΔT = T_N − T_P: the flux in a gauge of the receiving cell, or bent."""

    gauge: Float[Array, ""]
    bend: Float[Array, ""]
    cubic: Float[Array, ""]

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """Of T_N, T_P, A and δ."""
        T_N, T_P, A, delta = x.T
        across = T_N - T_P
        return (self.gauge * (1.0 + self.bend * T_P) * A / delta * (across + self.cubic * across**3))[:, None]


class FluxUpdate(AbstractMLP):
    """c α z / (g (1 + b T)) + V S, the f of T' = T + Δt/V f: undoes the gauge, times a factor c."""

    gauge: Float[Array, ""]
    bend: Float[Array, ""]
    factor: Float[Array, ""]

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """Of T, S, Δt, V and z."""
        T, S, _, V, z = x.T
        return (self.factor * z / (self.gauge * (1.0 + self.bend * T)) + V * S)[:, None]


def first_order(spec: recipe.Recipe, *, factor: float = 1.0, bend: float = 0.0, cubic: float = 0.0) -> Network:
    """A network of the first-order recipe that computes its scheme: times a factor, in a gauge, or with a cube."""
    g, b, k = (jnp.asarray(each, "float32") for each in (-0.4, bend, cubic))
    alpha_times = jnp.asarray(factor * diffusivity_of(spec), "float32")
    return eqx.tree_at(
        lambda n: (n.layers[0].messages[0].f, n.layers[0].update.f),
        build(spec.network, jax.random.key(0)),
        (FluxMessage(g, b, k), FluxUpdate(g, b, alpha_times)),
        is_leaf=lambda leaf: isinstance(leaf, AbstractMLP),
    )


def untrained(spec: recipe.Recipe) -> Network:
    """A network with the weights that training begins with."""
    return build(spec.network, jax.random.key(spec.seed))


def shaken(network: Network, size: float, seed: int = 0) -> Network:
    """The same network with every weight w replaced by w (1 + size · n), n a standard normal number of its own."""
    arrays, rest = eqx.partition(network, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(arrays)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    moved = [
        leaf * (1.0 + size * jax.random.normal(key, leaf.shape, leaf.dtype))
        for leaf, key in zip(leaves, keys, strict=True)
    ]
    spoiled: Network = eqx.combine(jax.tree.unflatten(tree, moved), rest)
    return spoiled
