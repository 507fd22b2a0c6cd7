"""A second phase in float64 that never makes it worse."""

from functools import cache

import jax
import numpy as np
import pytest
from small_runs import graphs

from fluxforge import recipe
from fluxforge.data import Problem
from fluxforge.errors import InputError
from fluxforge.gnn import Network, cast, parameters
from fluxforge.loss import data_loss
from fluxforge.train import polish
from small_networks import random_network, spec

SECTION = spec(features="simplified", mlp="relu", depth=1, update="direct")
SQUARES = recipe.Loss(supervised=recipe.Supervised(norm="l2"))
ABSOLUTE = recipe.Loss(supervised=recipe.Supervised(norm="l1"))


def loss(net: Network, of: recipe.Loss, problems: Problem | None = None) -> float:
    return float(sum(data_loss(of)(net, problems or graphs().problems).values()))


@cache
def exact() -> Network:
    """What Gauss–Newton makes of a random network, given in single precision and while JAX is in that mode."""
    with jax.enable_x64(False):
        return polish(cast(random_network(SECTION), "float32"), graphs().problems, SQUARES, recipe.Polish(steps=30))


def test_a_network_that_can_be_exact_becomes_exact() -> None:
    """Without hidden units the first-order scheme is within reach, and squares lead there in double precision."""
    assert {leaf.dtype.name for leaf in jax.tree.leaves(exact())} == {"float64"}
    assert loss(exact(), SQUARES) < 1e-20 < loss(random_network(SECTION), SQUARES)


def test_absolute_values_fall_by_lbfgs() -> None:
    start = random_network(SECTION)
    polished = polish(start, graphs().problems, ABSOLUTE, recipe.Polish(method="lbfgs", steps=40))
    assert loss(polished, ABSOLUTE) < 0.3 * loss(start, ABSOLUTE)


def test_squares_that_fall_do_not_excuse_a_loss_that_rises() -> None:
    """One wild answer: least squares bends to it, and the mean absolute value of a perfect network gets worse."""
    batch = graphs().problems
    answer = batch.answer.at[3].add(50.0)
    wild = Problem(batch.graph, batch.T, batch.S, batch.dt, batch.parameters, answer)
    polished = polish(exact(), wild, ABSOLUTE, recipe.Polish(steps=30))
    assert np.array_equal(parameters(polished), parameters(exact()))
    assert loss(polished, ABSOLUTE, wild) == pytest.approx(50 / 32, rel=1e-9)


def test_a_jacobian_that_would_not_fit_is_refused_by_its_field() -> None:
    """With 1,250 units a layer the Jacobian of 64 rows would have 2.008·10⁸ entries, just beyond the limit."""
    large = random_network(spec(features="simplified", mlp="relu", depth=3, width=1250, update="direct"))
    count = parameters(large).size
    assert 2 * 10**8 < 64 * count < 2.02 * 10**8
    message = rf"^field 'training\.polish\.method': gauss-newton on {count} parameters and 64 values"
    with pytest.raises(InputError, match=message):
        polish(large, graphs().problems, SQUARES, recipe.Polish())
