"""Networks in the form of a flux: what holds whatever their weights are, and that they start as their integrator."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from scipy.linalg import expm

from fluxforge import recipe
from fluxforge.data import count_substeps, ensemble, pose, resolve_step
from fluxforge.errors import InputError, RecipeError
from fluxforge.expression import symbol
from fluxforge.gnn import FluxNetwork, build_flux_network
from fluxforge.graph import pad_graph, put
from fluxforge.mesh import DualGraph, Neumann, Robin, close_walls, dual, fourier_step, jittered, resolve
from fluxforge.pde import BURGERS, HEAT
from fluxforge.scheme import (
    TABLEAUX,
    Tableau,
    face_invariants,
    find,
    formula_scheme,
    linear_stages,
    nested_rkl2,
    nested_tableau,
    rkl2_tableau,
    weighted_scheme,
)
from fluxforge.stepping import (
    NetworkStepper,
    face_numbers,
    freeze_flux,
    freeze_network,
    generator,
    operator,
    stepper,
)
from strategies import few, moved, renumbered, scales, seeds

MESH = jittered(5)
WALLS = {"left": Neumann(0.5), "right": Robin(h=1.5, outside=1.0)}
# A few operations on numbers near 1, in a hundred cells.
ROUND_OFF = 1e-13


def network_of(tableau: Tableau, seed: int = 0, order: int = 1) -> FluxNetwork:
    """Random weights, in the last layers too."""
    network = build_flux_network(tableau, HEAT, jax.random.key(seed), depth=2, width=8, order=order)
    draw = np.random.default_rng(seed)
    last = [jnp.asarray(draw.normal(size=each.f.layers[-1].weight.shape)) for each in network.weighted]
    return eqx.tree_at(lambda n: [each.f.layers[-1].weight for each in n.weighted], network, last)


def step_of(network: FluxNetwork, graph: DualGraph, dt: float, S: np.ndarray | None = None) -> NetworkStepper:
    return NetworkStepper(
        network=network,
        graph=pad_graph(close_walls(graph, HEAT, resolve(HEAT, graph, None)), network.hops),
        S=put(np.zeros(graph.cells) if S is None else S),
        dt=jnp.asarray(dt),
        parameters={"alpha": jnp.asarray(1.0)},
    )


@pytest.mark.parametrize(
    "tableau",
    [nested_tableau(2), pytest.param(nested_tableau(3), marks=pytest.mark.slow), rkl2_tableau(4)],
    ids=lambda t: t.name,
)
def test_before_training_the_network_is_its_integrator(tableau: Tableau) -> None:
    graph = dual(MESH, WALLS)
    T, S = np.random.default_rng(0).normal(size=(2, graph.cells))
    dt = 0.4 * fourier_step(graph)
    network = build_flux_network(tableau, HEAT, jax.random.key(0), depth=2, width=8)
    if tableau.name == "nested-2":
        wanted = np.asarray(stepper("midpoint", graph, dt, source=S)(T))
    else:
        wanted = freeze_flux(tableau, HEAT, graph, dt, [1.0] * (len(tableau.rows) - 1), source=S)(T)
    assert np.abs(np.asarray(step_of(network, graph, dt, S)(T)) - wanted).max() < ROUND_OFF


def test_a_nested_method_has_as_many_terms_of_the_exponential_as_stages() -> None:
    graph = dual(MESH)
    dt = 0.5 * fourier_step(graph)
    Z = operator(find("euler"), graph, dt=dt).M.toarray() - np.eye(graph.cells)
    T = np.random.default_rng(1).normal(size=graph.cells)
    for stages in (1, 2, 3, 4):
        step = freeze_flux(nested_tableau(stages), HEAT, graph, dt, [1.0] * (stages - 1))
        terms = sum(np.linalg.matrix_power(Z, k) @ T / float(sp.factorial(k)) for k in range(stages + 1))
        assert np.abs(step(T) - terms).max() < ROUND_OFF


@given(seed=seeds)
@few(5)
def test_whatever_the_weights_the_total_is_conserved_and_constants_stay(seed: int) -> None:
    network, graph = network_of(nested_tableau(2), seed % 1000), dual(MESH, Neumann())
    step = step_of(network, graph, 0.5 * fourier_step(graph))
    T = np.random.default_rng(seed).normal(size=graph.cells)
    assert abs(graph.V @ (np.asarray(step(T)) - T)) < ROUND_OFF * (graph.V @ np.abs(T))
    assert np.abs(np.asarray(step(np.full(graph.cells, 3.0))) - 3.0).max() < ROUND_OFF


def test_whatever_the_weights_a_steady_state_with_source_and_walls_stays() -> None:
    graph = dual(MESH, WALLS)
    S = np.random.default_rng(2).normal(size=graph.cells)
    dt = 0.5 * fourier_step(graph)
    euler = operator(find("euler"), graph, dt=dt)
    Z = euler.M.toarray() - np.eye(graph.cells)
    steady = np.linalg.solve(Z, -(euler.b + euler.N @ S))
    moved_by = np.asarray(step_of(network_of(nested_tableau(3)), graph, dt, S)(steady)) - steady
    # The system's condition number, below a thousand, times round-off.
    assert np.abs(moved_by).max() < 1e-11 * np.abs(steady).max()


@given(seed=seeds, scale=scales)
@few(5)
def test_lengths_and_the_order_of_cells_do_not_matter(seed: int, scale: float) -> None:
    network = network_of(nested_tableau(2))
    graph, T = dual(MESH), np.random.default_rng(seed).normal(size=len(MESH.cells))
    wanted = freeze_network(network, graph, 0.5 * fourier_step(graph))(T)
    larger = dual(moved(MESH, scale=scale, angle=0.7))
    assert np.abs(freeze_network(network, larger, 0.5 * fourier_step(larger))(T) - wanted).max() < 1e-10
    other = renumbered(MESH, seed)
    again = freeze_network(network, dual(other.mesh), 0.5 * fourier_step(dual(other.mesh)))(T[other.order])
    assert np.abs(again - wanted[other.order]).max() < ROUND_OFF


@pytest.mark.parametrize("tableau", [nested_tableau(3), rkl2_tableau(4)], ids=lambda t: t.name)
def test_coefficients_evaluated_once_give_the_same_step(tableau: Tableau) -> None:
    network, graph = network_of(tableau), dual(MESH, WALLS)
    T, S = np.random.default_rng(3).normal(size=(2, graph.cells))
    dt = 0.4 * fourier_step(graph)
    once = freeze_network(network, graph, dt, source=S)(T)
    assert np.abs(once - np.asarray(step_of(network, graph, dt, S)(T))).max() < ROUND_OFF
    assert np.abs(once - T).max() > 0.01


def measured_order(step: Callable[[float], np.ndarray], exact: np.ndarray) -> float:
    """Of runs of 512 to 8192 steps, in the last of four refinements."""
    errors = [np.abs(np.linalg.matrix_power(step(1 / n), n) - exact).max() for n in (512, 1024, 2048, 4096, 8192)]
    return float(np.log2(errors[-2] / errors[-1]))


@pytest.mark.parametrize("tableau", [nested_tableau(3), rkl2_tableau(4)], ids=lambda t: t.name)
def test_with_order_two_by_construction_steps_are_of_order_two_whatever_the_weights(tableau: Tableau) -> None:
    graph = dual(MESH)
    whole = 4.0 * fourier_step(graph)
    Z = operator(find("euler"), graph, dt=whole).M.toarray() - np.eye(graph.cells)

    def matrix(order: int, share: float) -> np.ndarray:
        step = freeze_network(network_of(tableau, order=order), graph, share * whole)
        return np.stack([step(column) for column in np.eye(graph.cells)], axis=1)

    assert measured_order(lambda share: matrix(2, share), expm(Z)) == pytest.approx(2.0, abs=0.1)
    assert measured_order(lambda share: matrix(1, share), expm(Z)) < 1.2


def test_a_formula_with_ratios_is_the_same_scheme_and_finite_without_a_step() -> None:
    graph, tableau = dual(MESH, WALLS), nested_tableau(3)
    total, contrast, share = (symbol(name) for name in ("total", "contrast", "share"))
    formulas = {"2": 1 + total / (1 + total) * (share - contrast), "3": sp.exp(-total / 5) + 0 * share}
    scheme = formula_scheme("found", tableau, HEAT, formulas)
    dt, T = 0.5 * fourier_step(graph), np.random.default_rng(5).normal(size=graph.cells)
    seen = face_numbers(HEAT, graph, dt)
    values = [
        1 + seen["total"] / (1 + seen["total"]) * (seen["share"] - seen["contrast"]),
        np.exp(-seen["total"] / 5),
    ]
    wanted = freeze_flux(tableau, HEAT, graph, dt, [np.where(graph.slot_mask, each, 0.0) for each in values])(T)
    assert np.abs(np.asarray(stepper(scheme, graph, dt)(T)) - wanted).max() < ROUND_OFF
    # Limits are taken at Δt = 0, where Fo_f/(Fo_P + Fo_N) is 0/0.
    G = generator(scheme, graph).M.toarray()
    euler = operator(find("euler"), graph, dt=dt).M.toarray() - np.eye(graph.cells)
    assert np.abs(dt * G - euler).max() < ROUND_OFF


def test_a_formula_of_the_faces_numbers_is_a_linear_scheme_with_that_step() -> None:
    graph = dual(MESH, WALLS)
    dt, T = 0.5 * fourier_step(graph), np.random.default_rng(4).normal(size=graph.cells)
    numbers = face_invariants(HEAT)
    formula = sp.exp(-numbers["total"] / 4) + numbers["contrast"] / 10 - numbers["share"] / 7
    scheme = weighted_scheme("found", nested_tableau(2), HEAT, lambda tag: formula)
    assert linear_stages(scheme) is not None
    seen = face_numbers(HEAT, graph, dt)
    values = np.exp(-seen["total"] / 4) + seen["contrast"] / 10 - seen["share"] / 7
    wanted = freeze_flux(nested_tableau(2), HEAT, graph, dt, [np.where(graph.slot_mask, values, 0.0)])(T)
    assert np.abs(np.asarray(stepper(scheme, graph, dt)(T)) - wanted).max() < ROUND_OFF
    assert symbol("dt") in scheme.stages[0].outputs["Fo"].expression.free_symbols


def test_an_equation_that_is_not_linear_has_no_fixed_coefficients() -> None:
    with pytest.raises(InputError, match="'burgers' is not linear"):
        freeze_flux(TABLEAUX["euler"], BURGERS, dual(MESH), 0.01, ())


def test_a_resolved_answer_is_the_matrix_exponential_of_the_mesh() -> None:
    mesh = ensemble([MESH])
    posed = pose(mesh.member(0), jax.random.key(0), field=jnp.asarray(2), fourier=jnp.asarray(0.6))
    zero = jnp.zeros_like(posed.T)
    columns = jax.vmap(lambda v: posed.rate(v) - posed.rate(zero))(jnp.eye(len(posed.T))).T
    L, b, dt = np.asarray(columns), np.asarray(posed.rate(zero)), float(posed.dt)
    # exp of the system with the constant as one more unknown.
    whole = expm(dt * np.block([[L, b[:, None]], [np.zeros((1, len(b) + 1))]]))
    wanted = whole[:-1, :-1] @ np.asarray(posed.T) + whole[:-1, -1]
    tolerance = 1e-8
    resolved = np.asarray(resolve_step(posed, count_substeps(0.6, tolerance)))
    # Modes are resolved to the tolerance; fields, sources and walls are of size one.
    assert np.abs(resolved - wanted).max() < 100 * tolerance
    assert np.abs(np.asarray(resolve_step(posed, 1)) - wanted).max() > 100 * tolerance


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network.hops": 2}, "network.hops"),
        ({"network.layers": 1}, "network.layers"),
        ({"network.features": "simplified"}, "network.features"),
        ({"search.route": "modules"}, "search.route"),
        ({"data.law": "A/delta*(T_N - T_P)"}, "data.law"),
        ({"network.form": "free"}, "search.route"),
        ({"network.order": 3}, "network.order"),
    ],
)
def test_fields_that_do_not_belong_to_the_form_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        recipe.override(recipe.load("carry"), changes)


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_nested_stages_with_the_polynomial_of_rkl2_are_rkl2_for_heat(stages: int) -> None:
    graph = dual(MESH, WALLS)
    T, S = np.random.default_rng(5).normal(size=(2, graph.cells))
    dt = (stages**2 + stages - 2) / 4 * fourier_step(graph)
    ones = [1.0] * (stages - 1)
    nested, recurrence = (
        freeze_flux(tableau, HEAT, graph, dt, ones, source=S)(T)
        for tableau in (nested_rkl2(stages), rkl2_tableau(stages))
    )
    # Powers of Δt L up to 35 to the eighth stage cancel in the nested form: 35⁸ w_2 … w_8 ε, a thousand ε.
    assert np.abs(nested - recurrence).max() < 1e-12 * np.abs(T).max()


def test_a_free_network_has_no_order_by_construction() -> None:
    with pytest.raises(RecipeError, match=r"network\.order"):
        recipe.override(recipe.load("first-order"), {"network.order": 2})
