"""How far a network is from the law of its data on meshes it has not seen: one step, and many."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.data import Problem, exact_step
from fluxforge.gnn import Network
from fluxforge.loss import step_of

Step = Callable[[Problem], State]


@dataclass(frozen=True)
class Extrapolation:
    """Of every network of a stack: mean squares over all cells of all meshes, and the worst cell."""

    one_step_mse: Float[np.ndarray, " networks"]
    one_step_worst: Float[np.ndarray, " networks"]
    rollout_mse: Float[np.ndarray, " networks"] | None


def extrapolation(networks: Network, problems: Problem, *, rollout: int = 0) -> Extrapolation:
    """Compare a stack of networks with the first-order scheme; the rollout is the network's own, step after step."""
    squares, worst, later = (np.asarray(value, float) for value in _all(networks, problems, rollout))
    return Extrapolation(squares, worst, later if rollout else None)


@eqx.filter_jit
def _all(networks: Network, problems: Problem, rollout: int) -> tuple[Array, Array, Array]:
    arrays, static = eqx.partition(networks, eqx.is_array)
    # One network after the other: their meshes together are a large batch already.
    found: tuple[Array, Array, Array] = jax.lax.map(
        lambda one: _of(step_of(eqx.combine(one, static)), problems, rollout), arrays
    )
    return found


def step_errors(step: Step, problems: Problem, *, rollout: int = 0) -> dict[str, float]:
    """The same of one step, whatever it is."""
    squares, worst, later = eqx.filter_jit(lambda problems: _of(step, problems, rollout))(problems)
    return {"one_step_mse": float(squares), "one_step_worst": float(worst), "rollout_mse": float(later)}


def _of(step: Step, problems: Problem, rollout: int) -> tuple[Array, Array, Array]:
    def one(problem: Problem) -> tuple[Array, Array, Array]:
        live = problem.graph.live
        off = jnp.where(live, step(problem) - problem.answer, 0.0)

        def both(_: Any, states: tuple[Array, Array]) -> tuple[Array, Array]:
            ours, theirs = states
            ours = jnp.asarray(step(eqx.tree_at(lambda p: p.T, problem, ours)))
            return jnp.where(live, ours, 0.0), exact_step(problem, theirs)

        ours, theirs = jax.lax.fori_loop(0, rollout, both, (problem.T, problem.T))
        apart = jnp.where(live, ours - theirs, 0.0)
        cells = live.sum()
        return jnp.square(off).sum() / cells, jnp.abs(off).max(), jnp.square(apart).sum() / cells

    squares, worst, later = jax.vmap(one)(problems)
    return squares.mean(), worst.max(), later.mean()
