"""Networks in the form of a flux with wrong weights are refused, and free last coefficients are inconsistent."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

from fluxforge import recipe
from fluxforge.distil import Candidate, Front
from fluxforge.errors import DiscoveryError
from fluxforge.expression import symbol
from fluxforge.gnn import FluxNetwork, build_flux_network
from fluxforge.mesh import Neumann, Robin, dual, fourier_step, jittered
from fluxforge.pde import BUILT_IN, HEAT
from fluxforge.pipeline import _flux_form, unseen_mesh
from fluxforge.pipeline._carry import effective_rates, errors_by_step, judge_network, measure_carry, mesh_parameters
from fluxforge.pipeline._flux_form import distil_coefficients
from fluxforge.run import silent
from fluxforge.scheme import nested_tableau
from fluxforge.stepping import freeze_flux, freeze_network

RANGE = (0.05, 0.6)
AT_STEPS = "the error of one step is below the integrator's, or at most 0.001, at 4 time steps across the trained range"
TOTAL = 0


def network_of(weight: float, *, bias: float = 0.0, equation: str = "heat", free: bool = False) -> FluxNetwork:
    """c = 1 + weight · total + bias, exactly: a single layer, with the total itself in place of its logarithm."""
    network = build_flux_network(nested_tableau(2), BUILT_IN[equation], jax.random.key(0), depth=2, width=4, free=free)
    rounds = []
    for each in network.weighted:
        last = each.f.layers[-1]
        line = jnp.zeros((1, len(each.inputs))).at[0, TOTAL].set(weight)
        layer = eqx.tree_at(lambda own: (own.weight, own.bias), last, (line.astype(float), jnp.full((1,), bias)))
        f = eqx.tree_at(lambda own: own.layers, each.f, (layer,))
        logarithm, *others = each.inputs
        rounds.append(type(each)(f, each.stage, each.coefficient, (logarithm.args[0], *others), each.scale))
    return FluxNetwork(tuple(rounds), network.first, network.tableau, network.equation, network.order, network.free)


def judge(network: FluxNetwork, values: dict[str, object], cells: tuple[int, ...] = ()) -> dict[str, bool]:
    """By the steps and the squares alone, and by meshes of so many cells."""
    how = {"parameters": values, "longest": RANGE[1], "jumps": 1.0, "formulas": None, "cells": cells, "fourier": 0.5}
    rows = list(measure_carry(network, seed=0, **how))  # type: ignore[arg-type]
    graph = dual(unseen_mesh(60, 0))
    own = mesh_parameters(network.equation, values, graph, jumps=1.0, seed=0)  # type: ignore[arg-type]
    steps = errors_by_step(network, graph, own, RANGE, 0)
    return judge_network(rows, steps, effective_rates(network, values, 0.5, sides=(8, 16, 32)))  # type: ignore[arg-type]


def test_the_formula_that_training_finds_passes() -> None:
    # exp(-0.26 total) to first order.
    assert all(judge(network_of(-0.23), {"alpha": 1.0}, cells=(60,)).values())


@pytest.mark.parametrize(
    ("weight", "bias"),
    # Right at one step, and wrong at shorter ones: the last.
    [(0.23, 0.0), (0.0, -2.0), (-3.0, 0.0), (0.0, -0.22)],
    ids=["other sign", "minus one", "too strong", "a constant"],
)
def test_spoiled_coefficients_do_not_pass(weight: float, bias: float) -> None:
    checks = judge(network_of(weight, bias=bias), {"alpha": 1.0})
    assert not checks[AT_STEPS]


def test_of_coefficients_with_the_other_sign_no_formula_is_chosen() -> None:
    spec = recipe.override(
        recipe.load("carry"), {"search.evaluations": 500, "search.restarts": 1, "search.samples": 200}
    )
    with pytest.raises(DiscoveryError, match="is not more accurate than its integrator"):
        distil_coefficients(network_of(0.23), {"alpha": 1.0}, spec, silent)


def test_formulas_that_are_not_finite_are_not_blamed_on_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = recipe.override(recipe.load("carry"), {"search.samples": 50})
    only = Front((Candidate(sp.log(symbol("total") - 10), 1, 0.0),))
    monkeypatch.setattr(_flux_form, "search_front", lambda *_, **__: only)
    monkeypatch.setattr(_flux_form, "impose_order", lambda front, _: front)
    with pytest.raises(DiscoveryError, match="none of the formulas that were tried gives finite values"):
        distil_coefficients(network_of(-0.23), {"alpha": 1.0}, spec, silent)


def test_random_coefficients_do_not_pass() -> None:
    network = build_flux_network(nested_tableau(2), HEAT, jax.random.key(0), depth=3, width=16)
    draw = np.random.default_rng(3)
    weights = [jnp.asarray(draw.normal(size=each.f.layers[-1].weight.shape)) for each in network.weighted]
    spoiled = eqx.tree_at(lambda n: [each.f.layers[-1].weight for each in n.weighted], network, weights)
    checks = judge(spoiled, {"alpha": 1.0}, cells=(60,))
    assert not checks["the error of one step is below the integrator's on every unseen mesh"]
    assert not checks[AT_STEPS]
    # These hold for any weights.
    assert checks["the total is conserved"]
    assert checks["under refinement, the rate of change of smooth fields converges to the equation's"]


def test_coefficients_that_suit_diffusion_do_not_pass_for_transport() -> None:
    """c = 1 − 0.5 total damps diffusion at its longest steps; upwind transport alone needs less."""
    checks = judge(network_of(-0.6, equation="advection"), {"velocity": (1.0, 0.4)})
    assert not all(checks.values())


def test_a_free_last_coefficient_is_inconsistent_under_refinement() -> None:
    free = network_of(-0.1, free=True)
    seen = [row.rate for row in effective_rates(free, {"alpha": 1.0}, 0.5)]
    # The reference step is that of corner cells with two walls: Fo_P = 0.5 · 4/6 inside, and c = 1 − 0.1 · 2/3.
    assert abs(seen[-1] - (1 - 0.2 / 3)) < 0.003
    assert not judge(free, {"alpha": 1.0})[
        "under refinement, the rate of change of smooth fields converges to the equation's"
    ]
    fixed = [abs(row.rate - 1.0) for row in effective_rates(network_of(-0.1), {"alpha": 1.0}, 0.5)]
    assert fixed[-1] < 1e-3
    # Of second order in h: Δt ~ h².
    orders = np.log2(np.array(fixed[:-1]) / fixed[1:])
    assert np.all(np.abs(orders - 2.0) < 0.1)


def test_a_free_network_is_frozen_with_its_walls() -> None:
    mesh = jittered(4)
    graph = dual(mesh, {"left": Neumann(0.5), "right": Robin(h=1.5, outside=1.0)})
    T, S = np.random.default_rng(0).normal(size=(2, graph.cells))
    dt = 0.4 * fourier_step(graph)
    free = network_of(0.0, free=True)
    plain = freeze_flux(nested_tableau(2), HEAT, graph, dt, [1.0], source=S)(T)
    # Coefficients of one: the integrator in either form.
    assert np.abs(freeze_network(free, graph, dt, source=S)(T) - plain).max() < 1e-13
