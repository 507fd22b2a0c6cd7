"""θ ← θ − update(∇ loss(θ; batch)): one step of one member, taken only if it is sane."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fluxforge import recipe
from fluxforge.data import AbstractSource, Problem
from fluxforge.gnn import Network
from fluxforge.loss import DataLoss, Terms, absolute_sum, data_loss

# A gradient so many times the usual one is an explosion, once there have been enough steps to know what is usual.
EXPLOSION = 1e4
FIRST_STEPS = 100
_FORGETTING = 0.99


class Member(NamedTuple):
    """One network in training."""

    network: Network
    optimiser: optax.OptState
    skipped: Int[Array, ""]
    streak: Int[Array, ""]
    usual: Float[Array, ""]


Step = Callable[[Member, PRNGKeyArray, Float[Array, ""], Int[Array, ""]], tuple[Member, Terms]]


def step_function(spec: recipe.Recipe, source: AbstractSource, transform: optax.GradientTransformation) -> Step:
    """One step as a pure function of the member, its key, its sparsity weight and the step's number."""
    on_data = data_loss(spec.loss)

    def step(
        member: Member, key: PRNGKeyArray, sparsity: Float[Array, ""], number: Int[Array, ""]
    ) -> tuple[Member, Terms]:
        batch = source.batch(jax.random.fold_in(key, number), spec.training.batch)
        eta = sparsity * _grown(spec, number)
        (total, terms), gradient = eqx.filter_value_and_grad(_loss, has_aux=True)(
            member.network, batch, on_data=on_data, eta=eta
        )
        weights = eqx.filter(member.network, eqx.is_inexact_array)
        updates, optimiser = transform.update(gradient, member.optimiser, weights)
        network = eqx.apply_updates(member.network, updates)
        size = jnp.sqrt(sum(jnp.square(leaf).sum() for leaf in jax.tree.leaves(gradient)))
        sane = _sane(total, size, member.usual, number)
        return _taken(member, network, optimiser, size=size, sane=sane), terms

    return step


def _grown(spec: recipe.Recipe, number: Int[Array, ""]) -> Float[Array, ""] | float:
    """The part of the sparsity weight that is in force: it grows from 0 to 1 over the warm-up."""
    over = 0.0 if spec.loss.sparsity is None else spec.loss.sparsity.warm_up * spec.training.steps
    return jnp.minimum(1.0, number / over) if over else 1.0


def _loss(
    network: Network, batch: Problem, *, on_data: DataLoss, eta: Float[Array, ""]
) -> tuple[Float[Array, ""], Terms]:
    """The sum of the terms, and the terms."""
    terms = on_data(network, batch) | {"sparsity": eta * absolute_sum(network)}
    return jnp.stack(list(terms.values())).sum(), terms


def _sane(
    loss: Float[Array, ""], size: Float[Array, ""], usual: Float[Array, ""], number: Int[Array, ""]
) -> Bool[Array, ""]:
    exploded = (number >= FIRST_STEPS) & (size > EXPLOSION * usual) & (usual > 0)
    return jnp.isfinite(loss) & jnp.isfinite(size) & ~exploded


def _taken(
    before: Member,
    network: Network,
    optimiser: optax.OptState,
    *,
    size: Float[Array, ""],
    sane: Bool[Array, ""],
) -> Member:
    """The member after the step, or before it with one more skip on its account."""
    after = (network, optimiser, _FORGETTING * before.usual + (1 - _FORGETTING) * size)
    kept = (before.network, before.optimiser, before.usual)
    network, optimiser, usual = jax.tree.map(
        lambda new, old: jnp.where(sane, new, old) if eqx.is_array(new) else new, after, kept
    )
    skip = (~sane).astype(jnp.int32)
    return Member(network, optimiser, before.skipped + skip, (before.streak + 1) * skip, usual)
