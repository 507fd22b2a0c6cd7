"""Everything a training run is at one moment: what a checkpoint holds."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from fluxforge import recipe
from fluxforge.data import AbstractSource
from fluxforge.gnn import Network, Standard, build, cast, inputs, standardised, standards
from fluxforge.graph import put

# Keeps the problems that inputs are measured on apart from every batch, and says how many they are.
_MEASURED, _PROBLEMS = 2**27, 64


class State(eqx.Module):
    """All members of a run, stacked along a first axis, after `step` steps.

    - `sparsity`: each member's weight of ‖θ‖₁;
    - `skipped` counts steps not taken because their loss or gradient was not finite or exploded, `streak` those in a
      row, and `usual` follows the size of the gradients, by which an explosion is judged;
    - `best` and `stale`: the least loss of a chunk so far, and for how many chunks it has not fallen.
    """

    network: Network
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
        """How many networks are trained side by side."""
        return len(self.sparsity)


def begin(spec: recipe.Recipe, transform: optax.GradientTransformation, source: AbstractSource | None = None) -> State:
    """Random weights for every seed of every arm; the same seeds in each arm, so that arms differ by nothing else.

    Without a source, inputs are not standardised.
    """
    found = _standards(spec, source) if spec.network.standardise and source is not None else None
    arms = tuple(spec.arms.values()) or (spec.loss.sparsity.weight if spec.loss.sparsity else 0.0,)
    own = [jax.random.fold_in(jax.random.key(spec.seed), k) for _ in arms for k in range(spec.seeds)]
    keys = jnp.stack(own)
    dtype = spec.training.precision
    network = eqx.filter_vmap(lambda key: cast(_built(spec, key, found), dtype))(keys)
    count = len(own)
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


def _built(spec: recipe.Recipe, key: PRNGKeyArray, found: tuple[Standard, ...] | None) -> Network:
    network = build(spec.network, key, recipe.equation_of(spec))
    return network if found is None else standardised(network, found)


def _standards(spec: recipe.Recipe, source: AbstractSource) -> tuple[Standard, ...]:
    """Mean and spread of every MLP's inputs on problems that are the same for all seeds."""
    key = jax.random.fold_in(jax.random.key(spec.seed), _MEASURED)
    problems = eqx.filter_jit(lambda source, key: source.batch(key, _PROBLEMS))(source, key)
    # Only what is given is measured, whatever the weights are: they need not be drawn.
    shape = eqx.filter_eval_shape(lambda key: cast(_built(spec, key, None), spec.training.precision), key)
    network = jax.tree.map(
        lambda leaf: put(np.zeros(leaf.shape), leaf.dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf, shape
    )
    return standards(network, inputs(network, problems))
