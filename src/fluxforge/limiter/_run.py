"""Training in a run folder: resumed from its last checkpoint, with a line of metrics per chunk."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fluxforge import recipe
from fluxforge.errors import TrainingError
from fluxforge.limiter._measure import ratios
from fluxforge.limiter._network import Weights, network_phi
from fluxforge.limiter._profiles import draw_rows
from fluxforge.limiter._train import Plan, begin_phase, member, start_training, train_chunk
from fluxforge.run._folder import RunFolder

Progress = Callable[[str, int, int], None]

# Keep the profiles that choose among networks, and those of refits, apart from those of training and of the test.
_CHOOSING = 2**29
_CHOICE_ROWS = 64
# A network whose worst ratio is this many times that of the best one is said to be stuck.
_STUCK = 1.5


class TrainedLimiter(NamedTuple):
    """The best network, which of the seeds it is, its ratios to CFL-superbee's errors, and the seeds that got stuck."""

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
    if (found := folder.checkpoints.latest(state, fingerprint=mark)) is not None:
        step, state = found
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
    return _choose(state.weights, plan)


def _choose(weights: Weights, plan: Plan) -> TrainedLimiter:
    """The network whose worst ratio on profiles of its own is least."""
    profiles, c = draw_rows(jax.random.key(plan.seed + _CHOOSING), _CHOICE_ROWS)
    each = jax.jit(jax.vmap(lambda own: ratios(network_phi(own), profiles, c)))(weights)
    found = np.nan_to_num(np.asarray(each, float), nan=np.inf)
    worst = found.max(axis=1)
    best = int(worst.argmin())
    if not np.isfinite(worst[best]):
        raise TrainingError("no network has a finite error on fresh profiles: lower training.learning_rate")
    stuck = tuple(int(k) for k in np.flatnonzero(worst > _STUCK * worst[best]))
    return TrainedLimiter(member(weights, best), best, found[best], stuck)
