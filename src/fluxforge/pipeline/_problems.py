"""The problems on which networks and formulas are compared: drawn by seed, at the time steps of a recipe."""

import math
from collections.abc import Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge.data._ensemble import unseen_meshes, unseen_problems
from fluxforge.data._model import model_of
from fluxforge.data._problem import AbstractSource, Problem, scale_step
from fluxforge.data._source import source
from fluxforge.errors import TrainingError
from fluxforge.gnn._build import hops_of
from fluxforge.gnn._network import AbstractNetwork
from fluxforge.loss._loss import data_loss
from fluxforge.scheme._scheme import Hop
from fluxforge.train._train import Trained

# Number of halvings of the longest trained Δt in `ladder`.
HALVINGS = 7
# Number of Δt across the trained range at which networks and formulas are compared.
JUDGED_STEPS = 5
# Key of the problems that constants are refitted to, so that they are independent of all others.
REFIT = 2**29 + 1
# Key of the problems on which networks and formulas are compared, so that they are independent of all others.
JUDGEMENT_KEY = 2**29 + 2
# Number and size of the meshes on which stencils are computed: small, since a Jacobian has a row and a column per cell.
MESHES, CELLS = 24, 64


def needs_small_steps(spec: recipe.Recipe) -> bool:
    """Whether the loss determines a formula only as Δt → 0, as a residual of both T and the new T' does."""
    residual = spec.loss.residual
    return residual is not None and (residual.kind == "hermite" or residual.theta > 0)


def ladder(spec: recipe.Recipe) -> tuple[float, ...]:
    """The longest trained Δt, half of it, and so on, `HALVINGS` times."""
    high = _step_range(spec)[1]
    return tuple(high / 2**k for k in range(HALVINGS + 1))


def judged_steps(spec: recipe.Recipe) -> tuple[float, ...]:
    """The Δt at which a formula is compared with the network: geometrically across the trained range, longest first."""
    if isinstance(spec.data, recipe.TwoCells):
        return (spec.data.time_step,)
    low, high = _step_range(spec)
    return tuple(map(float, np.geomspace(high, low, JUDGED_STEPS))) if low < high else (high,)


def with_steps(spec: recipe.Recipe, low: float, high: float) -> recipe.Recipe:
    """The same recipe with Δt in [low, high], in the units of the recipe (Fourier numbers, or times for pairs)."""
    name = "fourier" if isinstance(spec.data, recipe.Meshes) else "time_step"
    return replace(spec, data=replace(spec.data, **{name: (low, high)}))


def with_shortest_steps(spec: recipe.Recipe) -> recipe.Recipe:
    """The same recipe with Δt restricted to the shortest trained one and up to twice that."""
    low, high = _step_range(spec)
    return with_steps(spec, low, min(2.0 * low, high))


def _step_range(spec: recipe.Recipe) -> tuple[float, float]:
    if isinstance(spec.data, recipe.Meshes):
        return spec.data.fourier
    assert isinstance(spec.data, recipe.Pairs)
    return spec.data.time_step


def draw_problems(batches: AbstractSource, spec: recipe.Recipe, number: int, count: int) -> Problem:
    """`count` problems of the distribution of the training, independent of those trained on; `number` is their key."""
    key = jax.random.fold_in(jax.random.key(spec.seed), number)
    return _batch(batches, key, count)


def evaluation_problems(spec: recipe.Recipe) -> Problem:
    """The problems of the recipe's evaluation, in float64: one per unseen mesh, with the law of the recipe's data."""
    wanted, model = spec.evaluation, model_of(spec)
    around = unseen_meshes(wanted, spec.seed, hops={*hops_of(spec.network), Hop.PATH})
    law = recipe.exchange_law(spec.data, model.equation)
    return unseen_problems(around, spec.seed, fourier=wanted.fourier, model=model, law=law)


def draw_on_meshes(spec: recipe.Recipe, fourier: tuple[float, float]) -> Problem:
    """Problems on small unseen meshes, with Δt uniform in the range `fourier` of Fourier numbers, in float64."""
    wanted = recipe.Evaluation(meshes=MESHES, cells=CELLS, engine=spec.evaluation.engine)
    meshes = unseen_meshes(wanted, spec.seed, hops={*hops_of(spec.network), Hop.PATH})
    steps = jax.random.uniform(jax.random.key(spec.seed), (MESHES,), "float64", *fourier)
    return unseen_problems(meshes, spec.seed, fourier=steps, model=model_of(spec), field="mixed")


@eqx.filter_jit
def _batch(batches: AbstractSource, key: PRNGKeyArray, count: int) -> Problem:
    return batches.batch(key, count)


def problems_by_step(
    spec: recipe.Recipe, steps: Iterable[float], count: int, number: int = REFIT
) -> dict[float, Problem]:
    """The same `count` random problems for each Δt of `steps`, in float64, by Δt."""
    steps = tuple(steps)
    longest = max(steps)
    fixed = spec if isinstance(spec.data, recipe.TwoCells) else with_steps(spec, longest, longest)
    first = draw_problems(source(fixed, dtype="float64"), spec, number, count)
    return {step: scale_step(first, jnp.asarray(step / longest)) for step in steps}


def fresh_problems(batches: AbstractSource, spec: recipe.Recipe) -> Problem:
    """Problems on which trained networks are compared: 64 on meshes, or 512 pairs."""
    return draw_problems(batches, spec, JUDGEMENT_KEY, 64 if isinstance(spec.data, recipe.Meshes) else 512)


def choose_member(trained: Trained, spec: recipe.Recipe) -> int:
    """Index of the network with the least loss on unseen problems; raises TrainingError if no loss is finite.

    A network that failed in training is left out.
    """
    fresh = fresh_problems(source(spec), spec)
    losses = {k: loss_on(trained.any_member(k), fresh, spec) for k in range(trained.seeds) if not trained.failed[k]}
    # Not argmin, which would choose the first NaN.
    best = min((k for k, loss in losses.items() if math.isfinite(loss)), key=lambda k: losses[k], default=None)
    if best is None:
        raise TrainingError(
            f"none of the {trained.seeds} trained networks has a finite loss on problems it has not seen "
            f"({trained.seeds - len(losses)} of them failed in training): lower training.learning_rate, or change the "
            "seed"
        )
    return best


def loss_on(network: AbstractNetwork, problems: Problem, spec: recipe.Recipe) -> float:
    """The loss of a network on problems: the sum of all terms."""
    return float(sum(eqx.filter_jit(data_loss(spec.loss))(network, problems).values()))
