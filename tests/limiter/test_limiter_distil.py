"""Breakpoints read from a network, the search for constants, and the certificate of closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from fluxforge import recipe
from fluxforge.bench._limiter import FRESH_SEED
from fluxforge.certify.limiter import limiter_line, limiter_region
from fluxforge.expression import parse
from fluxforge.limiter import (
    FAMILIES,
    Fit,
    cfl_superbee,
    draw_rows,
    fit_network,
    held_out_ratios,
    phi_of,
    read_breakpoints,
    upper_bound,
)
from fluxforge.limiter._distil import draw_refits
from fluxforge.limiter._evolve import evolve
from fluxforge.limiter._rows import FAMILY_CHOICE, NETWORK_CHOICE, REFIT, TEST, ratios
from fluxforge.limiter._train import plan_training

JUMP, RAMP = FAMILIES[0], FAMILIES[2]
CONSTANTS = (0.25, 0.4, 0.1, 1.2, 1.5, 0.5, 0.33, 0.33)


def test_breakpoints_of_a_closed_form_are_its_constants() -> None:
    points = read_breakpoints(phi_of(Fit(JUMP, np.array(CONSTANTS), 0.0)))
    low, high = 0.25 + 0.4 * points.c + 0.1 * points.c**2, 1.2 + 1.5 * points.c + 0.5 * points.c**2
    # Ratios are read at points 1.2 % apart; r₀ counts where the line is below the bound.
    assert np.abs(points.high / high - 1).max() < 0.015
    below = 2 * low / points.c > 1.2 * (1 + (0.33 + 0.33 * points.c) * (low - 1))
    assert below.sum() >= 4
    assert np.abs(points.low / low - 1)[below].max() < 0.02
    assert fit_network(JUMP, phi_of(Fit(JUMP, np.array(CONSTANTS), 0.0))).misfit < 0.2


def test_the_search_finds_the_least_of_a_noisy_bowl() -> None:
    goal = np.array([1.0, -2.0, 0.5])
    rng = np.random.default_rng(1)

    def loss(constants: np.ndarray, generation: int) -> np.ndarray:
        noise = 1e-3 * rng.normal(size=len(constants))
        return np.abs(constants - goal).sum(axis=1) + noise

    minimum = evolve(loss, np.zeros(3), np.ones(3), generations=60, candidates=24, seed=0)
    assert np.abs(minimum.constants - goal).max() < 0.02
    assert minimum.history[-1] < 0.1 * minimum.history[0]
    again = evolve(lambda x, _: np.full(len(x), np.nan), np.zeros(3), np.ones(3), generations=2, candidates=8, seed=0)
    assert np.isfinite(again.constants).all()


@pytest.mark.parametrize("family", [JUMP, pytest.param(RAMP, marks=pytest.mark.slow)], ids=lambda family: family.name)
def test_closed_forms_are_proved_to_lie_in_the_region(family) -> None:  # type: ignore[no-untyped-def]
    constants = CONSTANTS + (12.0, 9.0)[: len(family.scales) - 8]
    region = limiter_region(family.formula(constants))
    assert region.holds
    assert region.second_order


def test_a_line_without_the_bound_is_refused() -> None:
    """The decoy: the line of the closed forms, which nothing limits."""
    wrong = limiter_region(parse("max(0, 1 + (1 + c)*(r - 1)/3)", ("r", "c")))
    assert wrong.holds is False
    assert "is broken by" in limiter_line(wrong).evidence


def test_constants_out_of_order_are_penalised() -> None:
    assert float(JUMP.penalty(jnp.array(CONSTANTS))) == 0
    assert float(JUMP.penalty(jnp.array((1.2, *CONSTANTS[1:])))) > 1


def test_a_limiter_is_compared_with_cfl_superbee_on_fresh_profiles() -> None:
    same = held_out_ratios(cfl_superbee, seed=1, rows=4)
    assert all(ratio.value == pytest.approx(1.0) for ratio in same.values())
    assert all(ratio.error == pytest.approx(0.0, abs=1e-6) for ratio in same.values())
    smeared = held_out_ratios(lambda r, q, c: 0 * upper_bound(r, c), seed=1, rows=4)
    assert min(ratio.value for ratio in smeared.values()) > 1.5


def test_a_limiter_tuned_to_one_profile_is_detected_by_fresh_ones() -> None:
    """The upper bound itself keeps a box nearly as it is, and squares everything else."""

    def tuned(r: Array, q: Array, c: Array) -> Array:
        return upper_bound(r, c)

    profiles, c = draw_rows(jax.random.key(2), 8)
    box = profiles._replace(
        kind=jnp.zeros_like(profiles.kind), amplitude=jnp.broadcast_to(jnp.array([1.0, 0.0]), profiles.amplitude.shape)
    )
    assert float(ratios(tuned, box, c).max()) < 0.9
    assert max(ratio.value for ratio in held_out_ratios(tuned, seed=1, rows=16).values()) > 1.2


def test_no_profile_is_drawn_for_two_purposes() -> None:
    """The test would not be one if training, a choice or a refit had drawn its profiles; nor would the bench."""
    spec = recipe.load("limiter")
    plan = plan_training(spec)
    batches = [plan.draw(jnp.asarray(number))[0] for number in (0, 1, spec.training.steps - 1)]
    batches += [draw_refits(spec, offset)(number)[0] for offset in (REFIT, FAMILY_CHOICE) for number in (0, 1, 119)]
    seeds = (*(spec.seed + offset for offset in (TEST, NETWORK_CHOICE)), FRESH_SEED)
    batches += [draw_rows(jax.random.key(seed), 16)[0] for seed in seeds]
    # Centres are 23-bit numbers: a few of some thousand coincide by chance.
    centres = np.concatenate([np.asarray(each.centre).ravel() for each in batches])
    assert len(np.unique(centres)) > 0.99 * len(centres)
