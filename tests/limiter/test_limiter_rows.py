"""Rows of cells, random profiles and waves: exact where they should be, and what published tables say."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.bench._limiter import step_of, turn_sine
from fluxforge.bench._weno import PEERS
from fluxforge.limiter import (
    FAMILIES,
    advance,
    advance_each,
    average_cells,
    cell_averages,
    cfl_superbee,
    create_weights,
    draw_rows,
    jiang_shu_rows,
    limited_step,
    network_phi,
    upper_bound,
)
from fluxforge.scheme import LIMITERS

ROWS = 8
draw = jax.jit(partial(draw_rows, rows=ROWS))
averages = jax.jit(cell_averages, static_argnums=1)


def test_cell_averages_are_those_of_the_profile_wherever_it_has_moved() -> None:
    with jax.enable_x64(True):
        profiles, _ = draw(jax.random.key(3))
        fine = np.asarray(averages(profiles, 64 * 8, jnp.zeros(ROWS)))
        coarse, moved = (np.asarray(averages(profiles, 64, jnp.full(ROWS, shift))) for shift in (0.0, 3.25))
    # Averages of averages, up to the round-off of differences of antiderivatives of the order 1.
    assert np.abs(fine.reshape(ROWS, 64, 8).mean(axis=2) - coarse).max() < 1e-12
    assert np.abs(np.roll(coarse, 16, axis=1) - moved).max() < 1e-12


def test_profiles_of_two_batches_differ_and_of_one_do_not() -> None:
    first, again, other = (draw(jax.random.key(k))[0].centre for k in (1, 1, 2))
    assert jnp.array_equal(first, again)
    assert not jnp.array_equal(first, other)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_families_and_networks_stay_within_their_bounds(family) -> None:  # type: ignore[no-untyped-def]
    r, c = jnp.meshgrid(jnp.linspace(-3.0, 9.0, 241), jnp.linspace(0.05, 0.95, 7))
    q = 5 * jnp.sin(17 * r + 3 * c)
    rng = np.random.default_rng(0)
    limiters = [network_phi(create_weights(jax.random.key(0), 8, 2, downwind=family.downwind))]
    for _ in range(5):
        limiters.append(family.of(jnp.asarray(rng.normal(0, 1, len(family.scales)) * np.array(family.scales))))
    for phi in limiters:
        limited = phi(r, q, c)
        assert float(limited.min()) >= 0
        # One rounding of the minimum's arguments, which are at most 40.
        assert float((limited - upper_bound(r, c)).max()) <= 40 * 2 * float(jnp.finfo(limited.dtype).eps)
        assert float(jnp.abs(jnp.where(r <= 0, limited, 0.0)).max()) == 0.0


def test_a_limiter_within_the_bound_keeps_total_variation_and_total() -> None:
    profiles, c = draw(jax.random.key(5))
    u = averages(profiles, 64, jnp.zeros(ROWS))
    phi = network_phi(create_weights(jax.random.key(1), 8, 2))
    new = advance(phi, u, c, 50)
    variation = [np.abs(np.diff(each, axis=1, append=each[:, :1])).sum(axis=1) for each in (u, new)]
    # Single precision: 64 differences of the order 1, 50 steps.
    assert (variation[1] <= variation[0] + 1e-4).all()
    assert np.abs(np.asarray((new - u).mean(axis=1))).max() < 1e-5


def test_rows_step_as_the_scheme_of_the_same_limiter_does() -> None:
    from fluxforge.scheme.limiters import C, R

    with jax.enable_x64(True):
        profiles, c = draw(jax.random.key(7))
        u = averages(profiles, 64, jnp.zeros(ROWS))
        ours = jax.jit(limited_step(cfl_superbee))(u, c)
        built_in = jax.jit(step_of(LIMITERS["cfl-superbee"]))(u, c)
    assert np.abs(np.asarray(ours - built_in)).max() < 1e-14
    assert {R, C} == LIMITERS["cfl-superbee"].phi.free_symbols


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("cfl-superbee", (2.90, 2.43, 2.03, 1.71)),
        ("superbee", (3.48, 3.42, 3.20, 2.86)),
        ("weno5-js", (None, None, 4.98, None)),
    ],
)
def test_errors_on_the_wave_of_jiang_and_shu_are_those_published(
    name: str, published: tuple[float | None, ...]
) -> None:
    with jax.enable_x64(True):
        wave, rows = jiang_shu_rows(PEERS[name] if name in PEERS else step_of(LIMITERS[name]))
        errors = 100 * np.abs(np.asarray(rows - wave[None])).mean(axis=1)
    for error, wanted in zip(errors, published, strict=True):
        # Three digits are published.
        assert wanted is None or error == pytest.approx(wanted, abs=0.006)


def test_orders_of_weno_z_on_a_sine() -> None:
    with jax.enable_x64(True):
        run = jax.jit(lambda u, c, n: advance_each(PEERS["weno-z"], u, c, n))
        errors = [turn_sine(run, cells, 1).l1 for cells in (20, 40, 80, 160)]
    # Third order in time dominates at c = 0.4.
    assert np.log2(errors[-2] / errors[-1]) == pytest.approx(3.0, abs=0.1)


def test_averages_of_a_square_are_exact_where_its_ends_are_faces() -> None:
    square = average_cells(0.0, 1.0, 8, lambda x: np.where(np.abs(x - 0.5) < 0.25, 1.0, 0.0))
    assert square.tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
