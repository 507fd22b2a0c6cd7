"""Training of several networks φ side by side, on profiles drawn anew at every step, with growing horizons."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fluxforge.limiter._measure import CELLS, ratios
from fluxforge.limiter._network import Weights, create_weights, network_phi
from fluxforge.limiter._profiles import Profiles, draw_rows

# Horizons of the two phases, and the part of the steps that belongs to the first. From scratch, longer horizons get
# stuck at limiters that smear little and do not steepen.
PHASES = ((32,), (32, 128))
FIRST = 5 / 6


@dataclass(frozen=True)
class Plan:
    """How to train. `single`: every batch is the same profiles (for decoys). `downwind`: φ sees q too."""

    seed: int
    seeds: int
    steps: int
    rows: int
    width: int
    depth: int
    learning_rate: float
    clip: float
    single: bool = False
    downwind: bool = False

    @property
    def turn(self) -> int:
        """The step at which the second phase begins."""
        return round(FIRST * self.steps)

    def draw(self, number: Array) -> tuple[Profiles, Array]:
        """Profiles and Courant numbers of a batch, by its number."""
        key = jax.random.key(self.seed)
        profiles, c = draw_rows(jax.random.fold_in(key, number), self.rows)
        if self.single:
            first = draw_rows(key, self.rows)[0]
            profiles = jax.tree.map(lambda one: jnp.broadcast_to(one[:1], one.shape), first)
        return profiles, c


class TrainingState(NamedTuple):
    """Weights and optimiser's moments, with a leading axis for the seeds."""

    weights: Weights
    moments: optax.OptState


def _optimiser(plan: Plan, phase: int) -> optax.GradientTransformation:
    steps = plan.turn if phase == 0 else plan.steps - plan.turn
    rate = optax.cosine_decay_schedule(plan.learning_rate * (1.0, 0.5)[phase], max(1, steps), alpha=0.03)
    # A step of which the gradient is not finite is left out.
    inner = optax.chain(optax.clip_by_global_norm(plan.clip), optax.adam(rate, b2=0.99))
    return optax.apply_if_finite(inner, max_consecutive_errors=10**6)


def start_training(plan: Plan) -> TrainingState:
    """Networks that are not trained yet."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(plan.seed), 2**30), plan.seeds)
    weights = jax.vmap(partial(create_weights, width=plan.width, depth=plan.depth, downwind=plan.downwind))(keys)
    return TrainingState(weights, jax.vmap(_optimiser(plan, 0).init)(weights))


def train_chunk(plan: Plan, phase: int, steps: int) -> Callable[[TrainingState, Array], tuple[TrainingState, Array]]:
    """A function that takes a state at a step `steps` further, and gives the losses (seeds, steps)."""
    optimiser, horizons = _optimiser(plan, phase), PHASES[phase]

    def one(state: TrainingState, number: Array) -> tuple[TrainingState, Array]:
        profiles, c = plan.draw(number)

        def loss(weights: Weights) -> Array:
            return ratios(network_phi(weights), profiles, c, horizons=horizons, cells=CELLS).mean()

        value, slope = jax.value_and_grad(loss)(state.weights)
        change, moments = optimiser.update(slope, state.moments, state.weights)
        return TrainingState(optax.apply_updates(state.weights, change), moments), value

    def run(state: TrainingState, first: Array) -> tuple[TrainingState, Array]:
        return jax.vmap(lambda own: jax.lax.scan(one, own, first + jnp.arange(steps)))(state)

    return jax.jit(run)


def begin_phase(plan: Plan, state: TrainingState) -> TrainingState:
    """The state at the turn, with fresh moments for the second phase."""
    return TrainingState(state.weights, jax.vmap(_optimiser(plan, 1).init)(state.weights))


def member(weights: Weights, k: int) -> Weights:
    """The weights of one seed."""
    return jax.tree.map(lambda one: one[k], weights)
