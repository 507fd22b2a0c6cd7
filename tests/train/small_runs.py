"""A recipe that trains in a moment, its data, and what to compare of its result."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge.data import FixedSource, source
from fluxforge.gnn import parameters
from fluxforge.run import RunFolder
from fluxforge.train import Trained

TINY = recipe.Recipe(
    name="tiny",
    seeds=2,
    data=recipe.TwoCells(graphs=27),
    network=recipe.Network(features="simplified", mlp="relu", depth=1, width=2, layers=1, update="direct"),
    loss=recipe.Loss(supervised=recipe.Supervised(), sparsity=recipe.Sparsity(weight=1e-3, warm_up=0.5)),
    training=recipe.Training(
        steps=40, batch=2, learning_rate=0.03, chunk=10, checkpoint_every=20, precision="float64", most_skips=15
    ),
)
GRAPHS = 32


def tiny(**training: Any) -> recipe.Recipe:
    """The recipe with other settings of its training."""
    return replace(TINY, training=replace(TINY.training, **training))


@cache
def graphs() -> FixedSource:
    training_source = source(TINY)
    assert isinstance(training_source, FixedSource)
    assert len(training_source.problems.dt) == GRAPHS
    return training_source


def spoilt(field: str, which: list[int], value: float) -> FixedSource:
    """The data with `value` in the field of some of the graphs."""
    held = np.array(getattr(graphs().problems, field))
    held[which] = value
    fields = {name: getattr(graphs().problems, name) for name in ("graph", "T", "S", "dt", "parameters", "answer")}
    return FixedSource(type(graphs().problems)(**{**fields, field: jnp.asarray(held)}))


def chosen(spec: recipe.Recipe, seed: int) -> np.ndarray:
    """Which graphs a member is shown, step by step: what `FixedSource` draws for its key."""
    key = jax.random.fold_in(jax.random.key(spec.seed), seed)
    steps = jnp.arange(spec.training.steps)
    draw = jax.jit(jax.vmap(lambda n: jax.random.randint(jax.random.fold_in(key, n), (2,), 0, GRAPHS)))
    return np.asarray(draw(steps))


def weights(done: Trained, member: int | None = None) -> np.ndarray:
    """All parameters of a member, or of all of them."""
    return np.asarray(parameters(done.network if member is None else done.member(member)))


@contextmanager
def opened(path: Path) -> Iterator[RunFolder]:
    """A run folder, created or reopened; a warning about damage fails the test."""
    way = RunFolder.open(path, warn=pytest.fail) if path.exists() else begun(path)
    with way as folder:
        yield folder


def begun(path: Path) -> Any:
    """A new run folder."""
    return RunFolder.create(path, description={}, warn=pytest.fail)
