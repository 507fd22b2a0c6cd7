"""Corrected fluxes of scalars and tensors: exact fields, both evaluators, emitted code, three dimensions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from _emit_run import CLibrary, arrays, python, relative

from fluxforge.certify.conservation import exchange_of_messages
from fluxforge.mesh import Dirichlet, DualGraph, Neumann, dual, jittered, resolve
from fluxforge.pde import CONDUCTION, from_document
from fluxforge.scheme import find, symbol
from fluxforge.scheme.emit import emit, mesh_arrays
from fluxforge.scheme.emit._plan import Arguments
from fluxforge.stepping import general_stepper, generator, stepper
from strategies import mixed, warped_quads
from tetrahedra import six_tetrahedra

K2 = ((2.0, 0.7), (0.7, 1.5))
K3 = ((1.3, 0.2, 0.1), (0.2, 0.9, 0.3), (0.1, 0.3, 1.1))
WALLS = {"left": Dirichlet("x + y"), "right": Neumann(0.3), "top": Neumann(), "bottom": Dirichlet("x")}
GRAPH = dual(jittered(4, 0.2, 1), WALLS)
VALUES = {
    "conduction": {"k": "1 + 9*x**2", "rhoc": "2 + y"},
    "anisotropic": {"K": K2},
    "advection-diffusion": {"velocity": ("1 + y", "-x"), "D": "1 + x"},
}
T, S = (np.random.default_rng(seed).random(GRAPH.cells) for seed in (0, 1))
# Sums of a few dozen terms of one size, with gradients from systems of condition 10, evaluated in another order.
ROUNDED = 1e-12


@pytest.mark.parametrize(
    ("name", "equation"),
    [
        *(("corrected", equation) for equation in VALUES),
        pytest.param("corrected-midpoint", "conduction", marks=pytest.mark.slow),
        ("harmonic", "conduction"),
        ("arithmetic", "advection-diffusion"),
    ],
)
def test_emitted_code_and_both_steppers_take_one_step(name: str, equation: str, tmp_path: Path) -> None:
    scheme, values, dt = find(name, equation), VALUES[equation], 1e-3
    wanted = np.asarray(stepper(scheme, GRAPH, dt, parameters=values, source=S)(T))
    general = general_stepper(scheme, GRAPH, dt=dt, parameters=values, source=S, dtype="float64")
    assert relative(np.asarray(general(T)), wanted) < ROUNDED
    fields = resolve(scheme.equation, GRAPH, values)
    known = {**fields.constants, **fields.cells, **fields.slots, **fields.tangential, "dt": dt}
    arguments = [known[each] for each in Arguments.of(scheme).names if each != "dt"]
    status, after = CLibrary([scheme], tmp_path).step(scheme.name, T, S, mesh_arrays(GRAPH), dt, arguments)
    assert status == 0
    assert relative(after, wanted) < ROUNDED
    space = python(emit(scheme, "numpy"))
    assert relative(space["step"](T, S, arrays(space, mesh_arrays(GRAPH)), dt, *arguments), wanted) < ROUNDED
    assert ("% K_{PN,n,x} = (K n)_x." in emit(scheme, "latex")) == (equation == "anisotropic")


@pytest.mark.parametrize("equation", VALUES)
def test_what_one_cell_gives_another_receives(equation: str) -> None:
    """Exactly, by exchanging P and N, and in numbers with every wall insulated."""
    assert exchange_of_messages(find("corrected", equation)).holds
    if equation == "advection-diffusion":
        return
    graph = dual(mixed(5, 0.2, 1), Neumann())
    system = generator(find("corrected", equation), graph, parameters=VALUES[equation])
    weight = graph.V * (2 + graph.x[:, 1] if equation == "conduction" else 1.0)
    # Columns are sums of about ten exchanges.
    assert np.abs(weight @ system.M).max() <= 1e-13 * np.abs(weight[:, None] * system.M.toarray()).max()


@pytest.mark.parametrize("make", [jittered, mixed, warped_quads])
@pytest.mark.parametrize("walls", ["held", "slanted"])
def test_linear_fields_are_steady_with_a_tensor_on_every_mesh(make, walls: str) -> None:
    """On the right wall n·K∇T = K_nn q is prescribed."""
    gradient = np.array([0.7, -1.3])
    exact = Dirichlet("0.7*x - 1.3*y")
    q = float(np.array(K2)[0] @ gradient / K2[0][0])
    conditions = dict.fromkeys(("left", "top", "bottom"), exact) | {"right": Neumann(q)}
    graph = dual(make(6, 0.2, 3), exact if walls == "held" else conditions)
    system = generator(find("corrected", "anisotropic"), graph, parameters={"K": K2})
    rate = system.M @ (graph.x @ gradient) + system.b
    # Against the largest rate that one face alone would cause.
    assert np.abs(rate).max() <= 1e-12 * np.abs(system.M).max() * np.abs(graph.x @ gradient).max()


@pytest.mark.parametrize("equation", ["conduction", "anisotropic"])
def test_linear_fields_are_steady_in_space(equation: str) -> None:
    for axis, name in enumerate("xyz"):
        graph = six_tetrahedra(value=name)
        scheme = find("corrected-implicit", equation, dimension=3)
        system = generator(scheme, graph, parameters={"K": K3} if equation == "anisotropic" else {"k": 2.0})
        rate = system.M @ graph.x[:, axis] + system.b
        assert np.abs(rate).max() <= 1e-12 * np.abs(system.M).max()
        plain = generator(find("euler", equation), graph, parameters={"K": K3} if equation == "anisotropic" else {})
        assert np.abs(plain.M @ graph.x[:, axis] + plain.b).max() > 0.01 * np.abs(plain.M).max()


def layered_problem(n: int, k1: float, k2: float) -> tuple[DualGraph, np.ndarray, dict[str, object]]:
    """Jittered triangles with a line of faces at x = ½, where k jumps; T is linear on either side, along y too."""
    mesh = jittered(n, 0.2, 1)
    straight = jittered(n, 0.0, 1)
    points = mesh.points.copy()
    line = np.abs(straight.points[:, 0] - 0.5) < 1e-9
    points[line, 0] = 0.5

    def field(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 0.7 * y + (x - 0.5) * np.where(x < 0.5, 2 / k1, 2 / k2)

    graph = dual(replace(mesh, points=points), Dirichlet(field))
    return graph, field(*graph.x.T), {"k": np.where(graph.x[:, 0] < 0.5, k1, k2)}


@pytest.mark.parametrize("k2", [1.0, 100.0, 1e-3])
def test_fields_that_are_linear_on_either_side_of_a_jump_are_steady(k2: float) -> None:
    graph, exact, values = layered_problem(8, 1.0, k2)
    system = generator(find("corrected", "conduction"), graph, parameters=values)
    rate = system.M @ exact + system.b
    assert np.abs(rate).max() <= 1e-12 * np.abs(system.M).max() * np.abs(exact).max()
    # The two-point flux sees no derivative along the faces.
    plain = generator(find("harmonic", "conduction"), graph, parameters=values)
    assert np.abs(plain.M @ exact + plain.b).max() > 1e-3 * np.abs(plain.M).max()


def test_equal_conductivities_give_the_flux_of_heat() -> None:
    graph = dual(mixed(5, 0.2, 1), WALLS)
    heat = generator(find("corrected"), graph, parameters={"alpha": 3.0})
    for equation, values in (("conduction", {"k": 3.0}), ("anisotropic", {"K": ((3.0, 0.0), (0.0, 3.0))})):
        system = generator(find("corrected", equation), graph, parameters=values)
        assert np.abs(system.M - heat.M).max() <= 1e-13 * np.abs(heat.M).max()
        assert np.abs(system.b - heat.b).max() <= 1e-13 * np.abs(heat.b).max()


def test_a_conductivity_that_depends_on_the_unknown_is_taken_at_both_ends() -> None:
    """K = k u, k per cell: the jump is that of k alone, and the mean of u multiplies it."""
    porous = from_document(
        {"name": "porous", "diffusion": "k*u", "parameters": {"k": {"where": "cell", "default": 1.0}}}
    )
    stages = find("corrected", porous).stages
    assert stages[0] == find("corrected", CONDUCTION).stages[0]
    flux = stages[1].messages["z"].expression
    plain = find("corrected", CONDUCTION).stages[1].messages["z"].expression
    mean = (symbol("T_P") + symbol("T_N")) / 2
    assert sp.simplify(flux - mean * plain) == 0
