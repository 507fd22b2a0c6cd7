"""Networks φ = σ(MLP) min(2r/c, 2/(1 − c)) for r > 0, else 0, and their training in a run folder.

Such a φ is total-variation diminishing whatever the MLP computes. The MLP sees r/(1 + r) and c, or also q/(1 + |q|).
Several networks are trained side by side, on profiles drawn anew at every step, with growing horizons; a training is
resumed from its last checkpoint.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from fluxforge import recipe
from fluxforge.errors import TrainingError
from fluxforge.limiter._rows import NETWORK_CHOICE, Phi, Profiles, draw_rows, ratios, upper_bound
from fluxforge.run._folder import RunFolder

# The last layer is multiplied by this, so that φ reaches its bounds after few steps of training.
GAIN = 5.0

Weights = list[tuple[Array, Array]]
"""Matrix and bias of every layer."""

Progress = Callable[[str, int, int], None]

_CHOICE_ROWS = 64
# A network counts as stuck if its worst ratio is more than this many times that of the best network.
_STUCK_RATIO = 1.5

# The horizons of the two phases, and the part of the steps that belongs to the first. From random weights, training
# with longer horizons gets stuck at limiters that smear little and do not steepen.
PHASES = ((32,), (32, 128))
FIRST_PHASE_SHARE = 5 / 6


def create_weights(key: Array, width: int, depth: int, *, downwind: bool = False) -> Weights:
    """Weights of an MLP with `depth` hidden layers of `width` units and one output; `downwind`: q is an input too."""
    sizes = (3 if downwind else 2, *[width] * depth, 1)
    weights = []
    for inputs, outputs in pairwise(sizes):
        key, layer_key = jax.random.split(key)
        weights.append((jax.random.normal(layer_key, (inputs, outputs)) / jnp.sqrt(inputs), jnp.zeros(outputs)))
    return weights


def network_share(weights: Weights, r: Array, q: Array, c: Array) -> Array:
    """σ(MLP): the factor of the upper bound in φ, for r > 0."""
    r = jnp.maximum(r, 0.0)
    # All inputs between −1 and 1; r = 1 and q = 0 lie in the middle. Without a third input, q is not used.
    inputs = (2 * r / (1 + r) - 1, 2 * c - 1, q / (1 + jnp.abs(q)))[: len(weights[0][0])]
    x = jnp.stack(jnp.broadcast_arrays(*inputs), axis=-1)
    for layer in weights[:-1]:
        x = jnp.tanh(_affine(x, *layer))
    return jax.nn.sigmoid(GAIN * _affine(x, *weights[-1])[..., 0])


def _affine(x: Array, matrix: Array, bias: Array) -> Array:
    return x @ matrix + bias.reshape((1,) * (x.ndim - 1) + bias.shape)


def network_phi(weights: Weights) -> Phi:
    """φ of a network: σ(MLP) times the upper bound."""
    return lambda r, q, c: network_share(weights, r, q, c) * upper_bound(r, c)


@dataclass(frozen=True)
class Plan:
    """How to train. `single`: all batches have the same profile (for decoys). `downwind`: φ depends on q too."""

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
        return round(FIRST_PHASE_SHARE * self.steps)

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
    # A step whose gradient is not finite is left out.
    inner = optax.chain(optax.clip_by_global_norm(plan.clip), optax.adam(rate, b2=0.99))
    return optax.apply_if_finite(inner, max_consecutive_errors=10**6)


def start_training(plan: Plan) -> TrainingState:
    """Random weights of every seed, and their moments."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(plan.seed), 2**30), plan.seeds)
    weights = jax.vmap(partial(create_weights, width=plan.width, depth=plan.depth, downwind=plan.downwind))(keys)
    return TrainingState(weights, jax.vmap(_optimiser(plan, 0).init)(weights))


def train_chunk(plan: Plan, phase: int, steps: int) -> Callable[[TrainingState, Array], tuple[TrainingState, Array]]:
    """A function of a state and its step: the state `steps` steps later, and the losses (seeds, steps)."""
    optimiser, horizons = _optimiser(plan, phase), PHASES[phase]

    def one(state: TrainingState, number: Array) -> tuple[TrainingState, Array]:
        profiles, c = plan.draw(number)

        def loss(weights: Weights) -> Array:
            return ratios(network_phi(weights), profiles, c, horizons=horizons).mean()

        value, slope = jax.value_and_grad(loss)(state.weights)
        change, moments = optimiser.update(slope, state.moments, state.weights)
        return TrainingState(optax.apply_updates(state.weights, change), moments), value

    def run(state: TrainingState, first: Array) -> tuple[TrainingState, Array]:
        return jax.vmap(lambda member_state: jax.lax.scan(one, member_state, first + jnp.arange(steps)))(state)

    return jax.jit(run)


def begin_phase(plan: Plan, state: TrainingState) -> TrainingState:
    """The state at the turn, with fresh moments for the second phase."""
    return TrainingState(state.weights, jax.vmap(_optimiser(plan, 1).init)(state.weights))


def member(weights: Weights, k: int) -> Weights:
    """The weights of one seed."""
    return jax.tree.map(lambda one: one[k], weights)


class TrainedLimiter(NamedTuple):
    """The best network, its index among the seeds, its ratios to CFL-superbee's errors, and the stuck seeds."""

    weights: Weights
    member: int
    ratios: np.ndarray
    stuck: tuple[int, ...]


def plan_training(spec: recipe.Recipe) -> Plan:
    """The plan that a recipe with data of kind `rows` describes."""
    assert isinstance(spec.data, recipe.Rows)
    return Plan(
        seed=spec.seed,
        seeds=spec.seeds,
        steps=spec.training.steps,
        rows=spec.training.batch,
        width=spec.network.width,
        depth=spec.network.depth,
        learning_rate=spec.training.learning_rate,
        clip=spec.training.clip or float("inf"),
        single=spec.data.profiles == "single",
        downwind=spec.data.stencil == 4,
    )


def train_limiter(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> TrainedLimiter:
    """Train the networks of a recipe, from the last checkpoint if there is one, and choose the best.

    Raises TrainingError if no network has a finite error.
    """
    plan, mark = plan_training(spec), recipe.fingerprint(spec)
    state, step = start_training(plan), 0
    if (checkpoint := folder.checkpoints.latest(state, fingerprint=mark)) is not None:
        step, state = checkpoint
    folder.metrics.truncate(step)
    chunks: dict[tuple[int, int], Callable] = {}  # type: ignore[type-arg]
    while step < plan.steps:
        phase = int(step >= plan.turn)
        end = plan.steps if phase else plan.turn
        if phase and step == plan.turn:
            state = begin_phase(plan, state)
        count = min(spec.training.chunk, end - step)
        run = chunks.setdefault((phase, count), train_chunk(plan, phase, count))
        state, losses = run(state, jnp.asarray(step))
        step += count
        mean = np.asarray(losses.mean(axis=1), float)
        folder.metrics.append({"step": step, "ratio": mean.tolist()})
        tell(f"training (error {np.nanmin(mean):.3f} of CFL-superbee's)", step, plan.steps)
        # At the turn too, where the optimiser begins anew.
        if step % spec.training.checkpoint_every < count or step in (plan.turn, plan.steps):
            folder.metrics.sync()
            folder.checkpoints.save(step, state, fingerprint=mark)
    return choose_limiter(state.weights, plan)


def choose_limiter(weights: Weights, plan: Plan) -> TrainedLimiter:
    """The network with the least worst ratio on profiles drawn for this choice; TrainingError if no ratio is finite."""
    profiles, c = draw_rows(jax.random.key(plan.seed + NETWORK_CHOICE), _CHOICE_ROWS)
    each = jax.jit(jax.vmap(lambda one: ratios(network_phi(one), profiles, c)))(weights)
    network_ratios = np.nan_to_num(np.asarray(each, float), nan=np.inf)
    worst = network_ratios.max(axis=1)
    best = int(worst.argmin())
    if not np.isfinite(worst[best]):
        raise TrainingError("no network has a finite error on fresh profiles: lower training.learning_rate")
    stuck = tuple(int(k) for k in np.flatnonzero(worst > _STUCK_RATIO * worst[best]))
    return TrainedLimiter(member(weights, best), best, network_ratios[best], stuck)
