"""Random fields and where batches come from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge import recipe
from fluxforge.data import FixedSource, Problem, random_field, smooth_field
from fluxforge.graph import pad_graph
from fluxforge.mesh import dual, two_cells
from strategies import few

X = jnp.asarray(np.random.default_rng(0).random((200, 2)))
KEYS = 32


@jax.jit
def fields(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """All kinds of many keys, and what the smooth part alone would be."""
    keys = jax.random.split(key, KEYS)
    of_kinds = jax.vmap(lambda kind: jax.vmap(lambda own: random_field(own, X, kind))(keys))(jnp.arange(3))
    return of_kinds, jax.vmap(lambda own: smooth_field(jax.random.split(own, 3)[0], X))(keys)


@few(10)
@given(seed=st.integers(0, 2**31 - 1))
def test_fields_of_every_kind_stay_within_minus_one_and_one(seed: int) -> None:
    found, smooth = map(np.asarray, fields(jax.random.key(seed)))
    assert np.abs(found).max() <= 1.0
    by_name = dict(zip(recipe.FIELDS, found, strict=True))
    assert by_name["smooth"] == pytest.approx(smooth, abs=1e-13)
    assert by_name["noise"].std() == pytest.approx(1 / np.sqrt(3), abs=0.03)
    share = [
        np.linalg.lstsq(np.stack(parts, axis=1), mixed, rcond=None)[0] for *parts, mixed in zip(*found, strict=True)
    ]
    assert np.asarray(share).sum(axis=1) == pytest.approx(np.ones(KEYS), abs=1e-9)
    assert np.ptp(np.asarray(share)[:, 0]) > 0.5


def test_a_smooth_field_is_a_smooth_function_of_the_place() -> None:
    """|∇| is at most the largest wave number, and fields differ from key to key."""
    near = jnp.asarray(np.random.default_rng(1).random((100, 2)))
    step = 1e-5
    pairs = jnp.concatenate([near, near + jnp.array([[step, 0.0]]), near + jnp.array([[0.0, step]])])
    of_key = jax.jit(lambda key: smooth_field(key, pairs))
    found = np.stack([np.asarray(of_key(jax.random.key(seed))) for seed in range(20)]).reshape(20, 3, 100)
    slope = np.hypot(found[:, 1] - found[:, 0], found[:, 2] - found[:, 0]) / step
    assert slope.max() <= 6 * np.pi * np.sqrt(2)
    assert slope.max() > 4.0
    assert np.abs(np.corrcoef(found[:, 0])[~np.eye(20, dtype=bool)]).max() < 0.95
    assert np.abs(found).max() > 0.6


def test_a_fixed_source_draws_from_its_set_with_replacement() -> None:
    around = jax.tree.map(lambda leaf: jnp.asarray(np.stack([leaf] * 5)), pad_graph(dual(two_cells())))
    T, unit = jnp.asarray(np.repeat(np.arange(5.0)[:, None], 2, axis=1)), jnp.ones(5)
    fixed = FixedSource(Problem(around, T, T, unit, {"alpha": unit}, 10 * T))
    draw = jax.jit(lambda key: fixed.batch(key, 40))
    batch, again, other = (draw(jax.random.key(seed)) for seed in (3, 3, 4))
    which = np.asarray(batch.T)[:, 0].astype(int)
    assert np.array_equal(batch.T, np.repeat(which[:, None], 2, axis=1))
    assert np.array_equal(batch.answer, 10 * np.asarray(batch.T))
    assert set(which.tolist()) == set(range(5))
    assert np.array_equal(again.T, batch.T)
    assert not np.array_equal(other.T, batch.T)
