"""Many steps of all members in one call to the device."""

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from fluxforge import recipe
from fluxforge.data import AbstractSource
from fluxforge.train._state import State
from fluxforge.train._step import Member, step_function

Means: TypeAlias = dict[str, Float[Array, " members"]]
# A fall of the loss by less than this does not count.
WORTHWHILE = 0.01


def chunk_function(
    spec: recipe.Recipe, transform: optax.GradientTransformation
) -> Callable[[State, AbstractSource, Int[Array, ""]], tuple[State, Means]]:
    """`count` steps, and the mean of each loss term over those that were taken: NaN if none was.

    The number of steps is data, so that one compilation serves every chunk.
    """

    @eqx.filter_jit
    def chunk(state: State, source: AbstractSource, count: Int[Array, ""]) -> tuple[State, Means]:
        step = step_function(spec, source, transform)
        over_members = eqx.filter_vmap(step, in_axes=(eqx.if_array(0), 0, 0, None))

        def once(k: Int[Array, ""], held: tuple[Member, Means]) -> tuple[Member, Means]:
            before, sums = held
            members, terms = over_members(before, state.key, state.sparsity, state.step + k)
            taken = members.skipped == before.skipped
            return members, {name: sums[name] + jnp.where(taken, value, 0.0) for name, value in terms.items()}

        start = Member(state.network, state.optimiser, state.skipped, state.streak, state.usual)
        arrays, static = eqx.partition(start, eqx.is_array)
        zeros = {name: jnp.zeros_like(state.usual) for name in term_names(spec)}

        def body(k: Int[Array, ""], held: tuple[Member, Means]) -> tuple[Member, Means]:
            members, sums = once(k, (eqx.combine(held[0], static), held[1]))
            return eqx.filter(members, eqx.is_array), sums

        arrays, sums = jax.lax.fori_loop(0, count, body, (arrays, zeros))
        taken = count - (arrays.skipped - state.skipped)
        means = {name: total / taken for name, total in sums.items()}
        return _advanced(state, eqx.combine(arrays, static), count, means), means

    return chunk


def term_names(spec: recipe.Recipe) -> tuple[str, ...]:
    """The terms a run logs."""
    data = (name for name in ("supervised", "residual") if getattr(spec.loss, name) is not None)
    return (*data, "sparsity")


def _advanced(state: State, members: Member, count: Int[Array, ""], means: Means) -> State:
    loss = sum(means.values())
    better = loss < (1.0 - WORTHWHILE) * state.best
    return State(
        network=members.network,
        optimiser=members.optimiser,
        key=state.key,
        sparsity=state.sparsity,
        step=state.step + count.astype(jnp.int32),
        skipped=members.skipped,
        streak=members.streak,
        usual=members.usual,
        best=jnp.where(better, loss, state.best),
        stale=jnp.where(better, 0, state.stale + 1),
    )
