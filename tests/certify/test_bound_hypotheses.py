"""Every hypothesis of the two theorems that does not hold is named."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bound_cases import DT, EXACT, KEY, failing

from fluxforge.certify import bounds
from fluxforge.errors import InputError
from fluxforge.gnn import cast
from fluxforge.gnn.exact import LinearWeights, linear_network
from fluxforge.mesh import Neumann, dual, squares


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"T": 2.0}, "bounded data"),
        ({"S": 2.0}, "bounded data"),
        ({"alpha": 0.5}, "diffusivity"),
        ({"dt": 2.0}, "time step"),
        ({"dt": 2.0}, "Fourier condition"),
        ({"wall": 40.0}, "fluxes"),
    ],
)
def test_a_condition_that_does_not_hold_on_a_mesh_is_reported(change, name, readings):
    graph = bounds.enlarge_mesh(squares(3), dt=0.3, volume=3.0**0.5, boundary=Neumann(change.get("wall", 0.0)))
    dt, alpha = DT * change.get("dt", 1.0), change.get("alpha", 1.0)
    if name == "Fourier condition":
        graph = dual(squares(3))
    posed = bounds.problems_on(graph, KEY, count=8, dt=dt, diffusivity=alpha)
    posed = eqx.tree_at(lambda p: (p.T, p.S), posed, (posed.T * change.get("T", 1.0), posed.S * change.get("S", 1.0)))
    for check, network in (
        (bounds.check_deep_bound, EXACT),
        (bounds.check_linear_bound, linear_network(LinearWeights())),
    ):
        result = check(network, readings["signed"], {"squares": posed})
        assert name in failing(result)
        assert not result.bound.applies


def test_missing_corner_cases_and_other_training_geometry_are_reported(problems, readings):
    some = jax.tree.map(lambda leaf: leaf[:2], readings["corners"])
    result = bounds.check_linear_bound(linear_network(LinearWeights()), some, problems)
    assert failing(result) == {"corner cases"}
    evidence = {hypothesis.name: hypothesis.evidence for hypothesis in result.hypotheses}
    assert evidence["corner cases"] == "missing: G(0, 0, 1, 1), G(0, 1, 0, 0)"
    stretched = eqx.tree_at(lambda p: p.graph.V, readings["corners"], replace_fn=lambda V: 2 * V)
    result = bounds.check_linear_bound(linear_network(LinearWeights()), stretched, problems)
    assert "training pairs" in failing(result)


def test_a_deep_network_is_not_linear_and_a_linear_one_not_deep(problems, readings):
    assert {"linear", "biases"} <= failing(bounds.check_linear_bound(EXACT, readings["signed"], problems))
    linear = linear_network(LinearWeights())
    assert {"count", "structure"} <= failing(bounds.check_deep_bound(linear, readings["signed"], problems))


EDITS = {
    "a bias": lambda n: eqx.tree_at(lambda n: n.layers[0].update.f.layers[1].bias, n, jnp.array([1e-3])),
    "fluxes again": lambda n: eqx.tree_at(lambda n: n.layers[1].messages[0].f, n, n.layers[0].messages[0].f),
    "sources again": lambda n: _with(n, lambda n: n.layers[1].update.f.layers[0].weight, (0, 1), 0.1),
    "no source": lambda n: _with(n, lambda n: n.layers[0].update.f.layers[0].weight, (0, 1), 0.0),
    "a third unit": lambda n: _with(n, lambda n: n.layers[1].update.f.layers[1].weight, (0, 2), 1.0),
    "one unit": lambda n: _with(n, lambda n: n.layers[1].update.f.layers[1].weight, (0, 1), 0.0),
}


def _with(network, where, place, value):
    return eqx.tree_at(where, network, where(network).at[place].set(value))


@pytest.mark.parametrize("edit", EDITS)
def test_a_network_that_departs_from_the_lemmas_structure_is_told_apart(edit, problems, readings):
    result = bounds.check_deep_bound(EDITS[edit](EXACT), readings["signed"], problems)
    assert "structure" in failing(result)


def test_the_structure_does_not_depend_on_the_order_of_units(problems, readings):
    order = jnp.array([3, 1, 5, 0, 4, 2, 6, 7])
    first, last = (lambda n, k=k: n.layers[0].update.f.layers[k].weight for k in (0, 1))
    turned = eqx.tree_at(first, EXACT, first(EXACT)[order])
    turned = eqx.tree_at(last, turned, last(EXACT)[:, order])
    result = bounds.check_deep_bound(turned, readings["signed"], problems)
    assert failing(result) == set()
    assert result.holds


def test_a_training_error_above_the_given_eps_is_reported(problems, readings):
    network = linear_network(LinearWeights(temperature=0.9))
    result = bounds.check_linear_bound(network, readings["signed"], problems, eps=1e-3)
    assert "training error" in failing(result)
    assert not result.holds


def test_a_network_that_gives_nan_breaks_every_bound(problems, readings):
    network = jax.tree.map(lambda leaf: leaf * jnp.nan if eqx.is_inexact_array(leaf) else leaf, cast(EXACT, "float64"))
    result = bounds.check_deep_bound(network, readings["signed"], problems, eps=1e-3)
    assert not result.holds
    assert "training error" in failing(result)


def test_cells_that_only_pad_a_mesh_are_not_judged(problems, readings):
    posed = problems["equilateral"]
    live = np.asarray(posed.graph.live)
    V = np.asarray(posed.graph.V)[live]
    assert not live.all()
    assert np.ptp(V) <= 1e-9
    # Right for three messages in each of these cells, and wrong for none at all.
    network = linear_network(LinearWeights(message_bias=1.0, bias=-3.0 * DT / V[0]))
    result = bounds.check_linear_bound(network, readings["signed"], {"equilateral": posed})
    assert result.worst_error <= 1e-9


def test_a_theorem_is_not_judged_on_nothing(readings):
    with pytest.raises(InputError, match="at least one mesh"):
        bounds.check_deep_bound(EXACT, readings["signed"], {})
