"""State of a training run, one guarded optimiser step of one member, and chunks of steps of all members."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from fluxforge.data._problem import AbstractSource, Problem
from fluxforge.gnn._flux_form import build_network
from fluxforge.gnn._network import AbstractNetwork, Network, cast
from fluxforge.gnn._standard import Standard, inputs, standardise, standards
from fluxforge.graph._padded_graph import put
from fluxforge.loss._loss import DataLoss, Terms, absolute_sum, data_loss
from fluxforge.recipe._equation import equation_of
from fluxforge.recipe._recipe import Recipe

# Folded into the seed's key for the problems on which inputs are standardised, and the number of these problems.
_MEASURED, _PROBLEMS = 2**27, 64


class State(eqx.Module):
    """All members of a run, stacked along a first axis, after `step` steps.

    - `sparsity`: each member's weight of ‖θ‖₁;
    - `skipped` counts steps not taken because their loss or gradient was not finite or exploded, `streak` those since
      the last step taken, and `usual` is a moving average of the size of the gradients;
    - `best` and `stale`: the least loss of a chunk so far, and for how many chunks it has not fallen.
    """

    network: AbstractNetwork
    optimiser: optax.OptState
    key: Key[Array, " members"]
    sparsity: Float[Array, " members"]
    step: Int[Array, ""]
    skipped: Int[Array, " members"]
    streak: Int[Array, " members"]
    usual: Float[Array, " members"]
    best: Float[Array, " members"]
    stale: Int[Array, " members"]

    @property
    def members(self) -> int:
        """Number of networks that are trained together."""
        return len(self.sparsity)


def begin(spec: Recipe, transform: optax.GradientTransformation, source: AbstractSource | None = None) -> State:
    """Random weights for every seed of every arm. All arms have the same seeds, so that they differ in sparsity only.

    Inputs are standardised only if a source is given.
    """
    input_standards = _measure_standards(spec, source) if spec.network.standardise and source is not None else None
    arms = tuple(spec.arms.values()) or (spec.loss.sparsity.weight if spec.loss.sparsity else 0.0,)
    member_keys = [jax.random.fold_in(jax.random.key(spec.seed), k) for _ in arms for k in range(spec.seeds)]
    keys = jnp.stack(member_keys)
    dtype = spec.training.precision
    network = eqx.filter_vmap(lambda key: cast(_build_network(spec, key, input_standards), dtype))(keys)
    count = len(member_keys)
    return State(
        network=network,
        optimiser=eqx.filter_vmap(lambda member: transform.init(eqx.filter(member, eqx.is_inexact_array)))(network),
        key=keys,
        sparsity=jnp.repeat(jnp.asarray(arms, dtype), spec.seeds),
        step=jnp.asarray(0, jnp.int32),
        skipped=jnp.zeros(count, jnp.int32),
        streak=jnp.zeros(count, jnp.int32),
        usual=jnp.zeros(count, dtype),
        best=jnp.full(count, jnp.inf, dtype),
        stale=jnp.zeros(count, jnp.int32),
    )


def _build_network(spec: Recipe, key: PRNGKeyArray, input_standards: tuple[Standard, ...] | None) -> AbstractNetwork:
    network = build_network(spec.network, key, equation_of(spec))
    if input_standards is None or not isinstance(network, Network):
        return network
    return standardise(network, input_standards)


def _measure_standards(spec: Recipe, source: AbstractSource) -> tuple[Standard, ...]:
    """Mean and spread of every MLP's inputs on problems that are the same for all seeds."""
    key = jax.random.fold_in(jax.random.key(spec.seed), _MEASURED)
    problems = eqx.filter_jit(lambda source, key: source.batch(key, _PROBLEMS))(source, key)
    # Weights are zeros, since only inputs that do not depend on them are standardised.
    shape = eqx.filter_eval_shape(lambda key: cast(_build_network(spec, key, None), spec.training.precision), key)
    network = jax.tree.map(
        lambda leaf: put(np.zeros(leaf.shape), leaf.dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf, shape
    )
    return standards(network, inputs(network, problems))


# A gradient this many times the moving average is an explosion, after the first steps, which set the average.
EXPLOSION = 1e4
FIRST_STEPS = 100
_MEAN_DECAY = 0.99


class Member(NamedTuple):
    """One network in training."""

    network: AbstractNetwork
    optimiser: optax.OptState
    skipped: Int[Array, ""]
    streak: Int[Array, ""]
    usual: Float[Array, ""]


Step = Callable[[Member, PRNGKeyArray, Float[Array, ""], Int[Array, ""]], tuple[Member, Terms]]


def step_function(spec: Recipe, source: AbstractSource, transform: optax.GradientTransformation) -> Step:
    """One step as a pure function of the member, its key, its sparsity weight and the step's number."""
    on_data = data_loss(spec.loss)

    def step(
        member: Member, key: PRNGKeyArray, sparsity: Float[Array, ""], number: Int[Array, ""]
    ) -> tuple[Member, Terms]:
        batch = source.batch(jax.random.fold_in(key, number), spec.training.batch)
        eta = sparsity * _sparsity_share(spec, number)
        (total, terms), gradient = eqx.filter_value_and_grad(_loss, has_aux=True)(
            member.network, batch, on_data=on_data, eta=eta
        )
        weights = eqx.filter(member.network, eqx.is_inexact_array)
        updates, optimiser = transform.update(gradient, member.optimiser, weights)
        network = eqx.apply_updates(member.network, updates)
        size = jnp.sqrt(sum(jnp.square(leaf).sum() for leaf in jax.tree.leaves(gradient)))
        sane = is_sane(total, size, member.usual, number)
        return _take_step(member, network, optimiser, size=size, sane=sane), terms

    return step


def _sparsity_share(spec: Recipe, number: Int[Array, ""]) -> Float[Array, ""] | float:
    """The factor of the sparsity weight at a step: it grows from 0 to 1 over the warm-up."""
    over = 0.0 if spec.loss.sparsity is None else spec.loss.sparsity.warm_up * spec.training.steps
    return jnp.minimum(1.0, number / over) if over else 1.0


def _loss(
    network: AbstractNetwork, batch: Problem, *, on_data: DataLoss, eta: Float[Array, ""]
) -> tuple[Float[Array, ""], Terms]:
    """The sum of all loss terms, and the terms by name."""
    terms = on_data(network, batch) | {"sparsity": eta * absolute_sum(network)}
    return jnp.stack(list(terms.values())).sum(), terms


def is_sane(
    loss: Float[Array, ""], size: Float[Array, ""], usual: Float[Array, ""], number: Int[Array, ""]
) -> Bool[Array, ""]:
    exploded = (number >= FIRST_STEPS) & (size > EXPLOSION * usual) & (usual > 0)
    return jnp.isfinite(loss) & jnp.isfinite(size) & ~exploded


def _take_step(
    before: Member,
    network: AbstractNetwork,
    optimiser: optax.OptState,
    *,
    size: Float[Array, ""],
    sane: Bool[Array, ""],
) -> Member:
    """The member after the step if it is sane, otherwise the member before it with `skipped` and `streak` increased."""
    after = (network, optimiser, _MEAN_DECAY * before.usual + (1 - _MEAN_DECAY) * size)
    kept = (before.network, before.optimiser, before.usual)
    network, optimiser, usual = jax.tree.map(
        lambda new, old: jnp.where(sane, new, old) if eqx.is_array(new) else new, after, kept
    )
    skip = (~sane).astype(jnp.int32)
    return Member(network, optimiser, before.skipped + skip, (before.streak + 1) * skip, usual)


Means: TypeAlias = dict[str, Float[Array, " members"]]
# A smaller relative decrease of the loss does not count as an improvement.
LEAST_DECREASE = 0.01


def chunk_function(
    spec: Recipe, transform: optax.GradientTransformation
) -> Callable[[State, AbstractSource, Int[Array, ""]], tuple[State, Means]]:
    """A function that takes `count` steps; it returns the state and the mean of each loss term over the steps taken.

    The means are NaN if no step was taken. `count` is an argument, so that one compilation serves every chunk.
    """

    @eqx.filter_jit
    def chunk(state: State, source: AbstractSource, count: Int[Array, ""]) -> tuple[State, Means]:
        step = step_function(spec, source, transform)
        over_members = eqx.filter_vmap(step, in_axes=(eqx.if_array(0), 0, 0, None))
        start = Member(state.network, state.optimiser, state.skipped, state.streak, state.usual)
        arrays, static = eqx.partition(start, eqx.is_array)
        zeros = {name: jnp.zeros_like(state.usual) for name in term_names(spec)}

        def once(k: Int[Array, ""], held: tuple[Member, Means]) -> tuple[Member, Means]:
            before, sums = eqx.combine(held[0], static), held[1]
            members, terms = over_members(before, state.key, state.sparsity, state.step + k)
            taken = members.skipped == before.skipped
            sums = {name: sums[name] + jnp.where(taken, value, 0.0) for name, value in terms.items()}
            return eqx.filter(members, eqx.is_array), sums

        arrays, sums = jax.lax.fori_loop(0, count, once, (arrays, zeros))
        taken = count - (arrays.skipped - state.skipped)
        means = {name: total / taken for name, total in sums.items()}
        return _advance(state, eqx.combine(arrays, static), count, means), means

    return chunk


def term_names(spec: Recipe) -> tuple[str, ...]:
    """Names of the loss terms that a run logs."""
    data = (name for name in ("supervised", "residual") if getattr(spec.loss, name) is not None)
    return (*data, "sparsity")


def _advance(state: State, members: Member, count: Int[Array, ""], means: Means) -> State:
    loss = sum(means.values())
    better = loss < (1.0 - LEAST_DECREASE) * state.best
    return replace(
        state,
        **members._asdict(),
        step=state.step + count.astype(jnp.int32),
        best=jnp.where(better, loss, state.best),
        stale=jnp.where(better, 0, state.stale + 1),
    )
