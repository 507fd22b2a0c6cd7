"""Fake and perturbed networks: none is recovered as the scheme, except one that differs by a gauge alone."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from fluxforge import recipe
from fluxforge.paper.studies._decoys import FAKES, NOT_RECOVERED, make_untrained, perturb_weights
from fluxforge.paper.studies.controls import OK

SLOW = pytest.mark.slow
# The constants a1, c1, a2, c2 of each in the limit of small steps, as its row reports them.
CONSTANTS = {
    "series-0.8": (0.8, 0.8, 1.0, 1.0),
    "midpoint-rule": (0.5, 0.5, 1.0, 1.0),
    "midpoint-2alpha": (0.5, 1.0, 1.0, 2.0),
    "midpoint-5%": (0.525, 0.525, 1.05, 1.05),
}


def test_there_are_at_least_eight_fakes_that_may_not_be_recovered() -> None:
    assert len(FAKES) >= 8
    assert sum(each.allowed == NOT_RECOVERED for each in FAKES) >= 8


@pytest.mark.parametrize(
    "name", ["midpoint-rule", *(pytest.param(k, marks=SLOW) for k in ("series-0.8", "midpoint-2alpha", "midpoint-5%"))]
)
def test_a_scheme_in_the_place_of_the_network_is_not_the_one_of_least_residual(run_decoy: Any, name: str) -> None:
    row = run_decoy(name)
    assert row["verdict"] in NOT_RECOVERED, row
    assert row["outcome"] == OK
    # The step is explained exactly, with the fake's own constants: the reason has to name these.
    assert row["explained"] == pytest.approx(1.0, abs=1e-9)
    # Weights are float32 numbers.
    assert list(row["limit"].values()) == pytest.approx(CONSTANTS[name], abs=1e-6)
    assert row["reason"].startswith("NO: ")
    assert "by least loss" in row["reason"]


def test_a_nonlinear_extra_is_left_unexplained_in_the_first_line(run_decoy: Any) -> None:
    row = run_decoy("tanh")
    assert row["outcome"] == OK
    assert row["verdict"] == "approximation"
    assert row["explained"] < 0.97
    assert "of the network's step unexplained" in row["reason"]


def test_euler_has_nothing_over_two_hops(run_decoy: Any) -> None:
    row = run_decoy("euler")
    assert row["outcome"] == OK
    assert row["verdict"] == "refused"
    assert row["explained"] is None
    assert row["reason"].startswith("stage distil: the stencil is not a product of powers")


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("first-order-5%", 1.05),
        pytest.param("cubic-network", 1.0145, marks=SLOW),
        pytest.param("first-order-2alpha", 2.0, marks=SLOW),
    ],
)
def test_a_network_whose_constant_is_not_that_of_the_data_is_not_recovered(
    run_decoy: Any, name: str, constant: float
) -> None:
    row = run_decoy(name)
    assert row["verdict"] in NOT_RECOVERED, row
    assert row["outcome"] == OK
    if name != "first-order-2alpha":
        assert row["limit"] == pytest.approx({"c1": constant}, abs=5e-3)
        assert "NO: c1 at Δt" in row["reason"]


@SLOW
def test_a_gauge_of_the_receiver_does_not_change_the_verdict(run_decoy: Any) -> None:
    row = run_decoy("gauge")
    assert row["verdict"] == "recovered", row["reason"]
    assert row["own_law"]
    assert row["departure"] == pytest.approx(0.0, abs=1e-9)
    assert row["explained"] == pytest.approx(1.0, abs=1e-6)


@SLOW
def test_an_untrained_network_is_not_recovered(run_decoy: Any) -> None:
    row = run_decoy("untrained", changes={"network.width": 16, "network.depth": 2})
    assert row["verdict"] in NOT_RECOVERED
    assert row["reason"]


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_shaken_weights_differ_by_that_part(share: float) -> None:
    network = make_untrained(recipe.load("first-order"))
    before, after = (
        jax.tree.leaves(eqx.filter(n, eqx.is_inexact_array)) for n in (network, perturb_weights(network, share))
    )
    ratio = np.concatenate([np.ravel(b / a) for a, b in zip(before, after, strict=True) if np.all(a != 0.0)])
    # Thousands of weights: the standard deviation is known to about a hundredth of itself.
    assert ratio.std() == pytest.approx(share, rel=0.1)
    assert ratio.mean() == pytest.approx(1.0, abs=0.2 * share)
