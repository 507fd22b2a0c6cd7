"""Levenberg–Marquardt on problems whose solution is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.train import levenberg_marquardt

X = jnp.linspace(0.0, 2.0, 15)
TRUE = jnp.array([1.5, -0.7, 0.3])


def decay(theta: jax.Array) -> jax.Array:
    """a exp(b x) + c: a zero-residual problem, not linear."""
    return theta[0] * jnp.exp(theta[1] * X) + theta[2] - (TRUE[0] * jnp.exp(TRUE[1] * X) + TRUE[2])


def rosenbrock(theta: jax.Array) -> jax.Array:
    return jnp.stack([1.0 - theta[0], 10.0 * (theta[1] - theta[0] ** 2)])


def test_a_zero_residual_is_reached_to_the_last_digits_from_many_starts_at_once() -> None:
    starts = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (6, 3))) + TRUE[None, :]
    minima = np.asarray(jax.jit(jax.vmap(lambda theta: levenberg_marquardt(decay, theta, steps=60)))(starts))
    assert np.abs(minima - np.asarray(TRUE)).max() <= 1e-12


def test_a_curved_valley_is_followed_to_its_end() -> None:
    minimum = jax.jit(lambda theta: levenberg_marquardt(rosenbrock, theta, steps=60))(jnp.array([-1.2, 1.0]))
    assert np.asarray(minimum) == pytest.approx([1.0, 1.0], abs=1e-12)


def test_no_step_raises_the_residual() -> None:
    bad = jnp.array([5.0, 2.0, -4.0])
    run = jax.jit(lambda: [jnp.square(decay(levenberg_marquardt(decay, bad, steps=n))).sum() for n in (0, 1, 2, 5, 25)])
    costs = np.asarray(run())
    assert costs[0] == pytest.approx(float(jnp.square(decay(bad)).sum()), rel=1e-12)
    assert np.all(np.diff(costs) <= 0)
    assert costs[-1] < 1e-6 * costs[0]


def test_a_linear_problem_without_an_exact_solution_gives_least_squares() -> None:
    A, b = (np.random.default_rng(k).standard_normal(shape) for k, shape in ((1, (9, 4)), (2, (9,))))
    minimum = levenberg_marquardt(lambda x: jnp.asarray(A) @ x - jnp.asarray(b), jnp.zeros(4), steps=20)
    assert np.asarray(minimum) == pytest.approx(np.linalg.lstsq(A, b, rcond=None)[0], abs=1e-9)


def test_parameters_that_do_nothing_stay_finite_and_where_they_are() -> None:
    minimum = levenberg_marquardt(lambda t: jnp.stack([t[0] - 2.0, 0.0 * t[1]]), jnp.array([7.0, 5.0]), steps=20)
    assert np.asarray(minimum) == pytest.approx([2.0, 5.0], abs=1e-10)


def test_a_start_that_is_not_finite_is_given_back() -> None:
    minimum = levenberg_marquardt(lambda t: jnp.log(t), jnp.array([-1.0]), steps=3)
    assert np.asarray(minimum).tolist() == [-1.0]


def test_steps_into_the_undefined_are_not_taken() -> None:
    minimum = levenberg_marquardt(lambda t: jnp.log(t) + 3.0, jnp.array([4.0]), steps=60)
    assert np.asarray(minimum) == pytest.approx(np.exp([-3.0]), rel=1e-10)
