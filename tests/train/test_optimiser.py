"""Schedules by their values, and optimisers that descend."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fluxforge import recipe
from fluxforge.train import optimiser
from fluxforge.train._optimise import OPTIMISERS, learning_rate


def rates(**options: object) -> np.ndarray:
    spec = recipe.Training(steps=100, learning_rate=2.0, **options)  # type: ignore[arg-type]
    rate = learning_rate(spec)
    return np.array([float(rate(step)) for step in range(101)])


def test_a_constant_rate_is_constant() -> None:
    assert np.all(rates(schedule="constant") == 2.0)


def test_a_linear_rate_falls_along_a_line_to_zero() -> None:
    assert rates(schedule="linear") == pytest.approx(np.linspace(2.0, 0.0, 101), abs=1e-15)


def test_a_cosine_falls_along_a_cosine_to_zero() -> None:
    rate = rates(schedule="cosine")
    assert rate == pytest.approx(1.0 + np.cos(np.pi * np.linspace(0, 1, 101)), abs=1e-14)
    assert rate[50] == pytest.approx(1.0, rel=1e-14)


def test_a_decay_begins_where_it_is_told() -> None:
    rate = rates(schedule="linear", decay_from=0.6)
    assert np.all(rate[:61] == 2.0)
    assert rate[60:] == pytest.approx(np.linspace(2.0, 0.0, 41), abs=1e-14)


def test_a_warm_up_rises_along_a_line_and_never_from_zero() -> None:
    rate = rates(schedule="constant", warm_up=0.1)
    assert rate[:10] == pytest.approx(2.0 * np.arange(1, 11) / 10, rel=1e-13)
    assert np.all(rate[10:] == 2.0)


def test_a_decay_waits_for_the_warm_up() -> None:
    rate = rates(schedule="cosine", warm_up=0.2, decay_from=0.0)
    assert rate[:20] == pytest.approx(2.0 * np.arange(1, 21) / 20, rel=1e-13)
    assert rate[20] == 2.0
    assert rate[60] == pytest.approx(1.0, rel=1e-13)
    assert rate[100] == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("options", [{"decay_from": 1.0}, {"warm_up": 1.0}])
def test_a_decay_that_never_begins(options: dict[str, float]) -> None:
    rate = rates(schedule="linear", **options)
    assert np.isfinite(rate).all()
    assert rate[99] == pytest.approx(2.0, rel=1e-13)


def test_a_rate_can_be_traced() -> None:
    spec = recipe.Training(steps=10, learning_rate=1.0, schedule="linear", warm_up=0.5)
    assert float(jax.jit(learning_rate(spec))(jnp.asarray(7))) == pytest.approx(0.6, rel=1e-6)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_optimiser_descends_a_bowl(name: str) -> None:
    spec = recipe.Training(steps=60, learning_rate=0.1, optimizer=name)  # type: ignore[arg-type]
    transform = optimiser(spec)

    @jax.jit
    def descended(theta: jax.Array) -> jax.Array:
        def once(_: int, held: tuple[jax.Array, optax.OptState]) -> tuple[jax.Array, optax.OptState]:
            updates, state = transform.update(2.0 * held[0], held[1], held[0])
            return optax.apply_updates(held[0], updates), state

        return jax.lax.fori_loop(0, 60, once, (theta, transform.init(theta)))[0]

    theta = jnp.array([1.0, -2.0])
    assert bool((jnp.abs(descended(theta)) < 0.8 * jnp.abs(theta)).all())


def test_every_optimiser_a_recipe_may_name_exists() -> None:
    assert set(OPTIMISERS) == set(recipe.Training.__annotations__["optimizer"].__args__)


@pytest.mark.parametrize(("clip", "wanted"), [(0.0, [-3.0, 4.0]), (1.0, [-0.6, 0.8]), (10.0, [-3.0, 4.0])])
def test_gradients_are_clipped_by_their_norm(clip: float, wanted: list[float]) -> None:
    spec = recipe.Training(steps=10, learning_rate=1.0, optimizer="sgd", schedule="constant", clip=clip)
    transform = optimiser(spec)
    updates, _ = transform.update(jnp.array([3.0, -4.0]), transform.init(jnp.zeros(2)))
    assert np.asarray(updates) == pytest.approx(wanted, rel=1e-13)
