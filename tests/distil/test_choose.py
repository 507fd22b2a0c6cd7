"""Choice of formulas by their joint loss: the simplest that do as well as the network."""

from functools import cache

import jax
import numpy as np
import pytest
import sympy as sp

from fluxforge import recipe
from fluxforge.data import Problem, heat, random_pair
from fluxforge.distil import Candidate, Choice, Front, Sampled, choose, complexity, tabulate
from fluxforge.distil._compose import MOST_TRIES
from fluxforge.errors import FluxforgeError
from fluxforge.gnn import Network, build
from fluxforge.scheme import symbol

A, delta, T_N, T_P, T, S, V, z = map(symbol, ["A", "delta", "T_N", "T_P", "T", "S", "V", "z1"])
ALPHA = 1.7
SPEC = recipe.Recipe(
    name="small",
    diffusivity=ALPHA,
    network=recipe.Network(width=2, depth=1),
    loss=recipe.Loss(supervised=recipe.Supervised(norm="l2", per_step=True)),
)
FLUX = 0.41 * A / delta * (T_N - T_P)
# The flux in a gauge that the update does not undo exactly: nearer to the network's parts, worse as a scheme.
BENT = 0.41 * A / delta * (T_N - T_P) * (1.0 + 0.05 * T_P)
UPDATE = 3.9 * z + V * S
BENT_UPDATE = 3.9 * z + V * S - 0.1 * T


@cache
def network() -> Network:
    return build(SPEC.network, jax.random.key(0))


@cache
def pairs() -> list[Problem]:
    draw = jax.jit(jax.vmap(lambda key: random_pair(recipe.Pairs(), key, model=heat(ALPHA), dtype="float64")))
    return [draw(jax.random.split(jax.random.key(seed), 60)) for seed in (0, 1)]


def candidate(expr: sp.Expr, error: float) -> Candidate:
    return Candidate(expr, complexity(expr), error)


def sampled() -> list[Sampled]:
    rng = np.random.default_rng(0)
    samples = []
    for name, kind, columns in (("z1", "message", (T_N, T_P, A, delta)), ("T_new", "update", (T, S, V, z))):
        names = tuple(column.name for column in columns)
        samples.append(Sampled(name, kind, 0, tabulate(names, rng.random((20, 4)), rng.random(20)), columns))
    return samples


def chosen(messages: list[Candidate], updates: list[Candidate], network_loss: float = 1e-6) -> Choice:
    return choose(
        network(),
        sampled(),
        {"z1": Front(tuple(messages)), "T_new": Front(tuple(updates))},
        spec=SPEC,
        samples=pairs(),
        network_loss=network_loss,
        threshold=0.1,
    )


def test_the_simple_formula_is_preferred_to_the_one_nearer_to_the_network() -> None:
    choice = chosen(
        [candidate(FLUX, 0.03), candidate(BENT, 1e-4)], [candidate(UPDATE, 0.02), candidate(BENT_UPDATE, 1e-4)]
    )
    assert choice.chosen["z1"].expression == FLUX
    assert choice.chosen["T_new"].expression == UPDATE
    assert choice.tried == 1
    assert choice.fitted.loss <= 1e-6
    assert choice.fitted.rational
    assert set(choice.fitted.rational.values()) == {1}
    assert choice.complexity == complexity(FLUX) + complexity(UPDATE)


def test_a_formula_too_simple_for_the_network_is_passed_over() -> None:
    """A (T_N − T_P) without δ is shorter; refitted, its loss is above the network's."""
    short = 0.4 * A * (T_N - T_P)
    choice = chosen([candidate(short, 0.09), candidate(FLUX, 0.03)], [candidate(UPDATE, 0.02)])
    assert choice.chosen["z1"].expression == FLUX
    assert choice.tried == 2


def test_a_formula_above_the_threshold_is_not_tried_however_short() -> None:
    """With a network as bad as can be any formula would do."""
    short = 0.4 * A * (T_N - T_P)
    fronts = [candidate(short, 0.11), candidate(FLUX, 0.03)]
    assert chosen(fronts, [candidate(UPDATE, 0.02)], network_loss=1e9).chosen["z1"].expression == FLUX
    fronts[0] = candidate(short, 0.1)
    assert chosen(fronts, [candidate(UPDATE, 0.02)], network_loss=1e9).chosen["z1"].expression == short


def test_if_none_reaches_the_network_the_best_for_its_length_is_taken() -> None:
    short, bent = 0.4 * A * (T_N - T_P), 0.4 * A * (T_N - T_P) * (1.0 + 0.01 * T_P)
    choice = chosen([candidate(short, 0.09), candidate(bent, 0.08)], [candidate(UPDATE, 0.02)], network_loss=0.0)
    assert choice.chosen["z1"].expression == short
    assert choice.tried == 1
    assert choice.fitted.loss > 1e-3
    assert choice.score == pytest.approx(np.log(choice.fitted.loss) + 0.2 * choice.complexity)


def test_nothing_below_the_threshold_is_said_in_a_line() -> None:
    with pytest.raises(FluxforgeError) as caught:
        chosen([candidate(FLUX, 0.03)], [candidate(UPDATE, 0.31), candidate(BENT_UPDATE, 0.25)])
    assert str(caught.value) == (
        "no formula for 'T_new' is within 0.1 of the network: the best has an error of 0.25; "
        "train longer, or search longer"
    )


def test_updates_that_are_not_linear_are_skipped_or_refused() -> None:
    crooked = candidate(z**2, 0.01)
    choice = chosen([candidate(FLUX, 0.03)], [crooked, candidate(UPDATE, 0.001)])
    assert choice.chosen["T_new"].expression == UPDATE
    with pytest.raises(FluxforgeError, match="none of the formulas found can be composed into a scheme"):
        chosen([candidate(FLUX, 0.03)], [crooked])


def test_only_the_simplest_combinations_are_tried() -> None:
    """Sixteen that cannot be composed come before the first that can, which is beyond the limit."""
    crooked = [candidate(z**2 + k * V, 0.01) for k in range(2, 6)]
    with pytest.raises(FluxforgeError, match="none of the formulas"):
        chosen([candidate(FLUX, 0.03 - k * 1e-3) for k in range(4)], [*crooked, candidate(UPDATE + 9 * V + T, 0.001)])
    assert MOST_TRIES == 12
