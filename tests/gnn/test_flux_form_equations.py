"""Networks in the form of a flux for other equations than heat: capacity, jumps, transport, reactions and walls."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

from fluxforge import recipe
from fluxforge.errors import EquationError, InputError
from fluxforge.expression import symbol
from fluxforge.gnn import FluxNetwork, build_flux_network
from fluxforge.graph import pad_graph, put
from fluxforge.mesh import Curl, DualGraph, Inflow, Neumann, Robin, close_walls, dual, jittered, reference_step, resolve
from fluxforge.pde import BUILT_IN, Equation, Parameter, dimensionless_groups, integer_null_space, unit
from fluxforge.scheme import SPACES, TABLEAUX, face_invariants, find, nested_tableau, weighted_scheme
from fluxforge.stepping import NetworkStepper, face_numbers, freeze_flux, freeze_network, stepper
from strategies import moved

MESH = jittered(5)
CELLS = len(MESH.cells)
DRAW = np.random.default_rng(0)
JUMPS = np.exp(DRAW.uniform(-1.5, 1.5, CELLS))
SETTINGS: dict[str, dict[str, Any]] = {
    "conduction": {"k": JUMPS, "rhoc": JUMPS[::-1].copy()},
    "anisotropic": {"K": ((2.0, 0.4), (0.4, 1.0))},
    "advection": {"velocity": (1.0, 0.4)},
    "advection-diffusion": {"velocity": (9.0, 4.0), "D": JUMPS},
    "reaction-diffusion": {"D": JUMPS, "r": 30.0},
    "allen-cahn": {"D": JUMPS, "r": 30.0},
}
WALLS = {"left": Neumann(0.5), "right": Robin(h=1.5, outside=1.0)}
# A few operations on numbers near 1, in fifty cells.
ROUND_OFF = 1e-12


def network_of(equation: Equation, stages: int = 3) -> FluxNetwork:
    """Random weights, in the last layers too."""
    network = build_flux_network(nested_tableau(stages), equation, jax.random.key(0), depth=2, width=8)
    draw = np.random.default_rng(1)
    last = [jnp.asarray(draw.normal(size=each.f.layers[-1].weight.shape)) for each in network.weighted]
    return eqx.tree_at(lambda n: [each.f.layers[-1].weight for each in n.weighted], network, last)


def walls_of(name: str) -> dict[str, object]:
    return {"left": Inflow(1.0), "bottom": Neumann(0.0)} if name == "advection" else WALLS


def step_of(
    network: FluxNetwork, graph: DualGraph, dt: float, S: np.ndarray, values: dict[str, object]
) -> NetworkStepper:
    equation = network.equation
    fields = resolve(equation, graph, values)
    padded = pad_graph(close_walls(graph, equation, fields), network.hops, parameters=fields)
    constants = {name: jnp.asarray(value) for name, value in fields.constants.items()}
    return NetworkStepper(network=network, graph=padded, S=put(S), dt=jnp.asarray(dt), parameters=constants)


# Advection alone and another reaction have no code of their own here.
@pytest.mark.parametrize(
    "name",
    [
        *("conduction", "anisotropic", "advection-diffusion", "reaction-diffusion"),
        pytest.param("advection", marks=pytest.mark.slow),
        pytest.param("allen-cahn", marks=pytest.mark.slow),
    ],
)
def test_coefficients_evaluated_once_give_the_same_step(name: str) -> None:
    equation, values = BUILT_IN[name], SETTINGS[name]
    network, graph = network_of(equation), dual(MESH, walls_of(name), equation=equation)
    T, S = DRAW.uniform(0.0, 1.0, (2, graph.cells))
    dt = 0.4 * reference_step(equation, graph, values, T)
    once = freeze_network(network, graph, dt, parameters=values, source=S)(T)
    assert np.abs(once - np.asarray(step_of(network, graph, dt, S, values)(T))).max() < ROUND_OFF
    # The coefficients do something.
    plain = freeze_flux(network.tableau, equation, graph, dt, [1.0, 1.0], parameters=values, source=S)(T)
    assert np.abs(once - plain).max() > 1e-3


@pytest.mark.parametrize("name", SETTINGS)
def test_with_coefficients_of_one_the_step_is_the_midpoint_rule(name: str) -> None:
    equation, values = BUILT_IN[name], SETTINGS[name]
    graph = dual(MESH, walls_of(name), equation=equation)
    T, S = DRAW.uniform(0.0, 1.0, (2, graph.cells))
    dt = 0.4 * reference_step(equation, graph, values, T)
    wanted = np.asarray(stepper("midpoint", graph, dt, equation=equation, parameters=values, source=S)(T))
    ours = freeze_flux(TABLEAUX["midpoint"], equation, graph, dt, [1.0], parameters=values, source=S)(T)
    assert np.abs(ours - wanted).max() < ROUND_OFF


@pytest.mark.parametrize("name", ["conduction", "advection-diffusion", "reaction-diffusion"])
def test_what_leaves_a_cell_enters_its_neighbour_whatever_the_weights(name: str) -> None:
    equation, values = BUILT_IN[name], dict(SETTINGS[name])
    if equation.velocity:
        # No flow through the walls of the unit square.
        values[equation.velocity] = Curl("9*sin(pi*x)*sin(pi*y)")
    if equation.reaction != 0:
        values["r"] = 0.0
    graph = dual(MESH, Neumann())
    T = DRAW.uniform(0.0, 1.0, graph.cells)
    dt = 0.5 * reference_step(equation, graph, values, T)
    mass = graph.V * values.get("rhoc", 1.0)
    change = freeze_network(network_of(equation), graph, dt, parameters=values)(T) - T
    assert np.abs(change).max() > 0.01
    assert abs(mass @ change) < ROUND_OFF * (mass @ np.abs(change))


@pytest.mark.parametrize("name", SETTINGS)
def test_numbers_of_faces_have_no_units_and_are_the_same_from_both_sides(name: str) -> None:
    equation, values = BUILT_IN[name], SETTINGS[name]
    graph = dual(MESH)
    dt = 0.4 * reference_step(equation, graph, values, np.zeros(graph.cells))
    seen = face_numbers(equation, graph, dt, parameters=values)
    assert list(seen) == list(face_invariants(equation))
    inner = graph.slot_mask & (graph.slot_face < graph.interior)
    for number in seen.values():
        pairs = [number[inner][graph.slot_face[inner] == face] for face in range(graph.interior)]
        assert np.ptp(np.array(pairs), axis=1).max() < ROUND_OFF
    # Lengths in another unit: every parameter by its own powers of it.
    length = 7.0
    power = {p.name: float(p.unit.length) for p in equation.parameters if p.unit is not None}
    scaled = {n: np.asarray(v) * length ** power[n] for n, v in values.items()}
    scaled = {n: v if v.ndim == 1 and len(v) == CELLS else v.tolist() for n, v in scaled.items()}
    again = face_numbers(equation, dual(moved(MESH, scale=length)), dt, parameters=scaled)
    for own, number in seen.items():
        assert np.abs(again[own] - number).max() < 1e-10, own


def test_the_null_space_of_units_is_of_whole_numbers() -> None:
    (alpha,) = dimensionless_groups(BUILT_IN["heat"])
    assert (alpha.step, alpha.length, alpha.powers) == (1, -2, {"alpha": 1})
    transport = {str(each) for each in dimensionless_groups(BUILT_IN["advection-diffusion"])}
    assert transport == {"dt length^-1 velocity", "dt length^-2 D"}
    # 1/3 and 2/5 of an exponent become whole.
    half = unit()._replace(length=sp.Rational(1, 3), time=sp.Rational(2, 5))
    assert integer_null_space([unit(time=1), unit(length=1), half]) == ((-6, -5, 15),)


def test_equations_without_units_or_with_another_flux_are_refused_by_name() -> None:
    bare = Equation("bare", parameters=(Parameter("k", default=1.0),), diffusion=symbol("k"))
    with pytest.raises(EquationError, match="'k' has no unit"):
        dimensionless_groups(bare)
    with pytest.raises(InputError, match="the flux of equation 'burgers' is not linear in u"):
        freeze_flux(TABLEAUX["euler"], BUILT_IN["burgers"], dual(MESH), 0.01, ())
    with pytest.raises(InputError, match=r"fields 'equation' and 'network.form'.*'burgers' is not linear"):
        recipe.override(recipe.load("carry"), {"equation": "burgers", "parameters": {"direction": [1.0, 0.0]}})
    table = {"name": "bare", "unknown": "u", "diffusion": "k", "parameters": {"k": {"default": 1.0}}}
    with pytest.raises(InputError, match=r"'network.form'.*'k' has no unit"):
        recipe.override(recipe.load("carry"), {"equation": table})
    assert find("midpoint", "advection-diffusion").equation.velocity == "velocity"


def test_coefficients_weigh_the_corrected_flux_too() -> None:
    graph = dual(MESH, WALLS)
    T, S = np.random.default_rng(7).normal(size=(2, graph.cells))
    dt = 0.4 * reference_step(BUILT_IN["heat"], graph)
    ones, damped = (
        weighted_scheme("weighted", nested_tableau(2), BUILT_IN["heat"], lambda _, c=c: c, base=SPACES["corrected"])
        for c in (sp.S.One, sp.Rational(3, 4))
    )
    wanted = np.asarray(stepper("corrected-midpoint", graph, dt, source=S)(T))
    assert np.abs(np.asarray(stepper(ones, graph, dt, source=S)(T)) - wanted).max() < ROUND_OFF
    euler = np.asarray(stepper("corrected", graph, dt, source=S)(T))
    # k_2 = k_1 + c (f(u + ½Δt k_1) − k_1): three quarters of the way from Euler's step to the midpoint rule's.
    stepped = np.asarray(stepper(damped, graph, dt, source=S)(T))
    assert np.abs(stepped - (euler + 0.75 * (wanted - euler))).max() < ROUND_OFF
