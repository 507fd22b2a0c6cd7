"""A recipe with shorter steps: where a residual's constants are judged."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge.data import AbstractSource, Problem, restepped, source

# Halvings of the longest step trained with.
HALVINGS = 7
# Keeps the problems that constants are refitted to apart from all others.
REFIT = 2**29 + 1


def in_the_limit(spec: recipe.Recipe) -> bool:
    """Whether the loss determines a formula in the limit of small steps only: a residual that looks ahead does."""
    residual = spec.loss.residual
    return residual is not None and (residual.kind == "hermite" or residual.theta > 0)


def order_asked(spec: recipe.Recipe) -> int:
    """The order in time that the loss has itself: no formula can be found that is better than what it is judged by."""
    residual = spec.loss.residual
    if residual is None:
        return 1
    own = 4 if residual.kind == "hermite" else 2 if residual.theta == 0.5 else 1
    return min(own, spec.network.layers * spec.network.hops)


def ladder(spec: recipe.Recipe) -> tuple[float, ...]:
    """The longest step trained with, half of it, and so on."""
    high = _range(spec)[1]
    return tuple(high / 2**k for k in range(HALVINGS + 1))


def trained_steps(spec: recipe.Recipe) -> tuple[float, ...]:
    """The steps of the ladder that training has seen."""
    low, high = _range(spec)
    return tuple(step for step in ladder(spec) if low <= step <= high)


def with_steps(spec: recipe.Recipe, low: float, high: float) -> recipe.Recipe:
    """The same recipe with Δt in this range, in its own units."""
    name = "fourier" if isinstance(spec.data, recipe.Meshes) else "time_step"
    return replace(spec, data=replace(spec.data, **{name: (low, high)}))


def shortest(spec: recipe.Recipe) -> recipe.Recipe:
    """The same recipe with the shortest steps that training has seen."""
    low, high = _range(spec)
    return with_steps(spec, low, min(2.0 * low, high))


def _range(spec: recipe.Recipe) -> tuple[float, float]:
    if isinstance(spec.data, recipe.Meshes):
        return spec.data.fourier
    assert isinstance(spec.data, recipe.Pairs)
    return spec.data.time_step


def drawn(batches: AbstractSource, spec: recipe.Recipe, number: int, count: int) -> Problem:
    """Problems like those of the training, which it has not seen."""
    key = jax.random.fold_in(jax.random.key(spec.seed), number)
    return _batch(batches, key, count)


@eqx.filter_jit
def _batch(batches: AbstractSource, key: PRNGKeyArray, count: int) -> Problem:
    return batches.batch(key, count)


def problems_by_step(spec: recipe.Recipe, steps: Iterable[float], count: int) -> dict[float, Problem]:
    """The same random problems with one step after the other, in float64."""
    steps = tuple(steps)
    longest = max(steps)
    first = drawn(source(with_steps(spec, longest, longest), dtype="float64"), spec, REFIT, count)
    return {step: restepped(first, jnp.asarray(step / longest)) for step in steps}


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Seconds of a block, added under a name."""
    began = time.perf_counter()
    try:
        yield
    finally:
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - began
