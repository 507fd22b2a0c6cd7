"""Decoys: exchange laws, and networks with known functions, each with the verdicts that are allowed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge.gnn._build import build
from fluxforge.gnn._network import AbstractMLP, Network
from fluxforge.recipe._equation import diffusivity_of


class StageUpdate(AbstractMLP):
    """a V S + c α z + b V tanh(L T), the f of a stage h = T + Δt/V f; L T is computed from the stage before."""

    source: Float[Array, ""]
    flux: Float[Array, ""]
    bend: Float[Array, ""]
    first: Float[Array, "2"]

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """Values of f for rows of T, S, Δt, V and z; in the second stage h₁ = T + Δt (a₁ S + c₁ L T) comes before z."""
        T, S, dt, V, h, z = x[:, 0], x[:, 1], x[:, 2], x[:, 3], x[:, -2], x[:, -1]
        a1, c1 = self.first
        # The first stage has no h: column −2 is V, and `bend` is 0. With c₁ = 0, L T cannot be computed from h₁.
        rate = ((h - T) / dt - a1 * S) / jnp.where(c1 == 0.0, 1.0, c1)
        return (V * self.source * S + self.flux * z + self.bend * V * jnp.tanh(rate))[:, None]


def build_two_stages(
    spec: recipe.Recipe, a1: float, c1: float, a2: float = 1.0, c2: float = 1.0, *, bend: float = 0.0
) -> Network:
    """A network of two layers:  h = T + Δt (a₁ S + c₁ L T),  T' = T + Δt (a₂ S + c₂ L h) + b Δt tanh(L T)."""
    one, none, alpha = (jnp.asarray(each, "float32") for each in (1.0, 0.0, diffusivity_of(spec)))
    known = jnp.asarray([a1, c1], "float32")
    plain = FluxMessage(one, none, none)
    functions: tuple[AbstractMLP, ...] = (
        plain,
        StageUpdate(known[0], known[1] * alpha, none, known),
        plain,
        StageUpdate(jnp.asarray(a2, "float32"), c2 * alpha, jnp.asarray(bend, "float32"), known),
    )
    return eqx.tree_at(
        lambda n: tuple(f for layer in n.layers for f in (layer.messages[0].f, layer.update.f)),
        build(spec.network, jax.random.key(0)),
        functions,
        is_leaf=lambda leaf: isinstance(leaf, AbstractMLP),
    )


class FluxMessage(AbstractMLP):
    """g (1 + b T_P) A/δ (ΔT + k ΔT³), ΔT = T_N − T_P: the flux in a gauge of the receiving cell, with a cubic term."""

    gauge: Float[Array, ""]
    bend: Float[Array, ""]
    cubic: Float[Array, ""]

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """The message for rows of T_N, T_P, A and δ."""
        T_N, T_P, A, delta = x.T
        across = T_N - T_P
        return (self.gauge * (1.0 + self.bend * T_P) * A / delta * (across + self.cubic * across**3))[:, None]


class FluxUpdate(AbstractMLP):
    """c α z / (g (1 + b T)) + V S, the f of T' = T + Δt/V f: the gauge is divided out, and the flux multiplied by c."""

    gauge: Float[Array, ""]
    bend: Float[Array, ""]
    factor: Float[Array, ""]

    def __call__(self, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """Values of f for rows of T, S, Δt, V and z."""
        T, S, _, V, z = x.T
        return (self.factor * z / (self.gauge * (1.0 + self.bend * T)) + V * S)[:, None]


def build_first_order(spec: recipe.Recipe, *, factor: float = 1.0, bend: float = 0.0, cubic: float = 0.0) -> Network:
    """A network of the recipe first-order that computes its scheme, with α times `factor`, a gauge, or a cubic term."""
    g, b, k = (jnp.asarray(each, "float32") for each in (-0.4, bend, cubic))
    alpha_times = jnp.asarray(factor * diffusivity_of(spec), "float32")
    return eqx.tree_at(
        lambda n: (n.layers[0].messages[0].f, n.layers[0].update.f),
        build(spec.network, jax.random.key(0)),
        (FluxMessage(g, b, k), FluxUpdate(g, b, alpha_times)),
        is_leaf=lambda leaf: isinstance(leaf, AbstractMLP),
    )


def make_untrained(spec: recipe.Recipe) -> Network:
    """A network with the random weights from which training starts."""
    return build(spec.network, jax.random.key(spec.seed))


def perturb_weights(network: Network, size: float) -> Network:
    """The network with every weight w replaced by w (1 + size · n), with independent standard normal n."""
    arrays, rest = eqx.partition(network, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(arrays)
    keys = jax.random.split(jax.random.key(0), len(leaves))
    perturbed = [
        leaf * (1.0 + size * jax.random.normal(key, leaf.shape, leaf.dtype))
        for leaf, key in zip(leaves, keys, strict=True)
    ]
    combined: Network = eqx.combine(jax.tree.unflatten(tree, perturbed), rest)
    return combined


Verdicts: TypeAlias = frozenset[str]
# Returns the network of the heat law, which is trained if it is not in its folder yet.
Teacher: TypeAlias = Callable[[], Network]
Maker: TypeAlias = Callable[[recipe.Recipe, Teacher], Network]

RECOVERED: Verdicts = frozenset({"recovered"})
NOT_RECOVERED: Verdicts = frozenset({"approximation", "refused"})
# Allows all verdicts; a formula that is recovered must still be the decoy's own law.
ANY_VERDICT: Verdicts = RECOVERED | NOT_RECOVERED


@dataclass(frozen=True)
class Decoy:
    """A law to train on, or a network to be judged in place of a trained one.

    `allowed` are the verdicts it may get. A formula that is recovered must also be the law of the data, which is that
    of heat unless `changes` sets another; no decoy of a recipe that trains on a residual may be recovered. `make`
    returns the network, from the recipe and a function that returns the network of the heat law; without it, a network
    is trained on the law.
    """

    name: str
    what: str
    allowed: Verdicts
    changes: recipe.Changes = field(default_factory=dict)
    recipe: Literal["first-order", "midpoint"] = "first-order"
    make: Maker | None = None


def _law(name: str, what: str, law: str, allowed: Verdicts = ANY_VERDICT, **changes: float) -> Decoy:
    more = {f"data.{key}": value for key, value in changes.items()}
    return Decoy(name, what, allowed, MappingProxyType({"data.law": law, **more}))


def _noise(name: str, level: float, allowed: Verdicts) -> Decoy:
    return Decoy(name, f"heat, noise of {level:.0%} on the data", allowed, MappingProxyType({"data.noise": level}))


def _stages(name: str, what: str, *constants: float, bend: float = 0.0) -> Decoy:
    def make(spec: recipe.Recipe, _: Teacher) -> Network:
        return build_two_stages(spec, *constants, bend=bend)

    return Decoy(name, what, NOT_RECOVERED, recipe="midpoint", make=make)


def _network(name: str, what: str, make: Maker, allowed: Verdicts = NOT_RECOVERED) -> Decoy:
    return Decoy(name, what, allowed, make=make)


LAWS: tuple[Decoy, ...] = (
    Decoy("heat", "α A/δ (T_N − T_P): nothing is wrong", RECOVERED),
    _law("alpha-1.04", "α off by 4 %", "1.04*alpha*A/delta*(T_N - T_P)", RECOVERED),
    _noise("noise-1", 0.01, RECOVERED),
    # With 10 % noise the constant and the network are both determined to about 1 %, so that both verdicts are right.
    _noise("noise-10", 0.1, RECOVERED | {"approximation"}),
    _law("cubic-0.15", "a cubic term of 0.15", "A/delta*(T_N - T_P) + 0.15*A/delta*(T_N - T_P)**3"),
    _law("cubic-0.02", "a cubic term of 0.02", "A/delta*(T_N - T_P) + 0.02*A/delta*(T_N - T_P)**3"),
    _law(
        "cubic-noise-10",
        "a cubic term of 0.15, noise of 10 % on the data",
        "A/delta*(T_N - T_P) + 0.15*A/delta*(T_N - T_P)**3",
        noise=0.1,
    ),
    _law("quadratic", "a quadratic term of 0.3", "A/delta*(T_N - T_P) + 0.3*A/delta*(T_N - T_P)**2"),
    _law("delta-squared", "A/δ²", "A/delta**2*(T_N - T_P)"),
    # The search has no square root among its operators.
    _law("delta-root", "A/√δ", "A/sqrt(delta)*(T_N - T_P)", NOT_RECOVERED),
    _law("delta-over-A", "δ/A", "delta/A*(T_N - T_P)"),
    _law("no-volume", "V forgotten", "V*A/delta*(T_N - T_P)"),
    # The network has no feature for the direction of a face.
    _law("directional", "a factor 1 + 0.3 n_x²", "(1 + 0.3*n_x**2)*A/delta*(T_N - T_P)", NOT_RECOVERED),
    _law("upwind", "a factor 1 + 0.2 T_P", "(1 + 0.2*T_P)*A/delta*(T_N - T_P)"),
    _law("unequal", "T_N − 1.1 T_P", "A/delta*(T_N - 1.1*T_P)"),
)

FAKES: tuple[Decoy, ...] = (
    _stages("series-0.8", "1 + z + 0.8 z² for a midpoint rule", 0.8, 0.8),
    _stages("tanh", "midpoint rule + 0.3 Δt tanh(L T)", 0.5, 0.5, bend=0.3),
    # The recipe requires the constants of least residual, which the exact rule has at no Δt > 0.
    _stages("midpoint-rule", "the exact midpoint rule, not of least residual", 0.5, 0.5),
    _stages("euler", "Euler's scheme for a midpoint rule", 0.0, 0.0),
    _stages("midpoint-2alpha", "midpoint rule with 2 α", 0.5, 1.0, 1.0, 2.0),
    _stages("midpoint-5%", "midpoint rule, constants off by 5 %", 0.525, 0.525, 1.05, 1.05),
    # A gauge of the messages does not change the step if the update divides it out.
    _network(
        "gauge",
        "first-order scheme in a gauge of the receiver",
        lambda s, _: build_first_order(s, bend=0.04),
        RECOVERED,
    ),
    _network("first-order-2alpha", "first-order scheme with 2 α", lambda s, _: build_first_order(s, factor=2.0)),
    _network("first-order-5%", "first-order scheme, 5 % off", lambda s, _: build_first_order(s, factor=1.05)),
    _network(
        "cubic-network", "first-order scheme + a cubic term of 0.15", lambda s, _: build_first_order(s, cubic=0.15)
    ),
    _network("untrained", "a network without training", lambda s, _: make_untrained(s)),
    Decoy(
        "50-steps", "a network after 50 steps of training", NOT_RECOVERED, {"training.steps": 50, "training.chunk": 50}
    ),
    # 1 % on every weight changes the step by a few per cent, which may or may not exceed the limit of 3 %.
    _network(
        "shaken-1%",
        "the network of heat, weights shaken by 1 %",
        lambda _, heat: perturb_weights(heat(), 0.01),
        ANY_VERDICT,
    ),
    _network("shaken-10%", "the network of heat, weights shaken by 10 %", lambda _, heat: perturb_weights(heat(), 0.1)),
)
DECOYS: Mapping[str, Decoy] = MappingProxyType({each.name: each for each in (*LAWS, *FAKES)})
