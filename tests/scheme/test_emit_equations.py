"""Code of schemes of other equations takes the step of our stepper: numbers, arrays over cells and over faces."""

from pathlib import Path

import jax
import numpy as np
import pytest
from _emit_run import CLibrary, arrays, python, relative

from fluxforge.errors import SchemeError
from fluxforge.mesh import Dirichlet, Neumann, dual, jittered, resolve
from fluxforge.pde import from_document
from fluxforge.scheme import find
from fluxforge.scheme.emit import emit, mesh_arrays
from fluxforge.stepping import stepper

PER_CELL = {"where": "cell"}
# Names that Python and C use themselves are among them.
EVERYTHING = from_document(
    {
        "name": "everything",
        "transported": "u",
        "velocity": "a",
        "diffusion": "k",
        "capacity": "c",
        "reaction": "-int*u",
        "parameters": {"a": {"rank": "vector", "where": "face"}, "k": PER_CELL, "c": PER_CELL, "int": {}},
    }
)
FISHER = from_document(
    {"name": "fisher", "diffusion": "D", "reaction": "r*u*(1 - u)", "parameters": {"D": {}, "r": {}}}
)
FRACTIONAL_FLOW = from_document(
    {
        "name": "fractional-flow",
        "transported": "u**2/(u**2 + M*(1 - u)**2)",
        "velocity": "q",
        "parameters": {"q": {"rank": "vector", "where": "face"}, "M": {}},
    }
)
GRAPH = dual(
    jittered(4, 0.2, 1), {"left": Dirichlet(1.0), "right": Neumann(0.3), "top": Neumann(), "bottom": Dirichlet("x")}
)
VALUES = {
    "everything": {"a": ("1 + y", "-x"), "k": "1 + x", "c": "2 + y", "int": 3.0},
    "fisher": {"D": 0.7, "r": 2.0},
    "fractional-flow": {"q": ("1 + y", "-x"), "M": 0.5},
}
T, S = (np.random.default_rng(seed).random(GRAPH.cells) for seed in (0, 1))
DT = 1e-3
# Sums of a few dozen terms of the same size, evaluated in another order.
ROUNDED = 1e-13


def parameter_arguments(equation) -> list:
    fields = resolve(equation, GRAPH, VALUES[equation.name])
    return [*fields.constants.values(), *fields.cells.values(), *fields.slots.values()]


@pytest.mark.parametrize(
    ("name", "equation"),
    [
        ("euler", EVERYTHING),
        ("rk4", EVERYTHING),
        ("euler", FISHER),
        ("midpoint", FISHER),
        ("godunov", FRACTIONAL_FLOW),
        pytest.param("midpoint", EVERYTHING, marks=pytest.mark.slow),
        pytest.param("rk4", FISHER, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_emitted_code_takes_the_step_of_our_stepper(name: str, equation, tmp_path: Path) -> None:
    scheme = find(name, equation)
    wanted = np.asarray(stepper(scheme, GRAPH, DT, parameters=VALUES[equation.name], source=S)(T))
    status, by_c = CLibrary([scheme], tmp_path).step(name, T, S, mesh_arrays(GRAPH), DT, parameter_arguments(equation))
    assert status == 0
    assert relative(by_c, wanted) < ROUNDED
    for target in ("numpy", "jax"):
        space = python(emit(scheme, target))
        step = jax.jit(space["step"]) if target == "jax" else space["step"]
        after = step(T, S, arrays(space, mesh_arrays(GRAPH)), DT, *parameter_arguments(equation))
        assert relative(after, wanted) < ROUNDED


@pytest.mark.parametrize("target", ["numpy", "jax", "c"])
def test_lines_of_long_formulas_are_broken(target: str) -> None:
    """Arguments within arguments leave few operators at which a line could end."""
    lines = emit(find("godunov", FRACTIONAL_FLOW), target).splitlines()
    assert max(map(len, lines)) <= 120


def test_an_implicit_scheme_of_conduction_is_solved(tmp_path: Path) -> None:
    layers = from_document({"name": "layers", "diffusion": "k", "parameters": {"k": {"where": "cell"}}})
    scheme = find("crank-nicolson", layers)
    wanted = np.asarray(stepper(scheme, GRAPH, DT, parameters={"k": "1 + x"}, source=S)(T))
    k = 1 + GRAPH.x[:, 0]
    status, after = CLibrary([scheme], tmp_path).step("crank-nicolson", T, S, mesh_arrays(GRAPH), DT, [k])
    assert status == 0
    # Conjugate gradients stop at a residual of 1e-13 of the right-hand side.
    assert relative(after, wanted) < 1e-11


def test_letters_of_other_parameters_are_set() -> None:
    text = emit(find("euler", FISHER), "latex")
    assert r"\frac{A_{PN}\,D}{\delta_{PN}}" in text


def test_an_implicit_scheme_of_growth_has_a_system_that_some_step_makes_singular() -> None:
    parameters = {"D": {}, "k": {}}
    growth = from_document({"name": "growth", "diffusion": "D", "reaction": "k*u", "parameters": parameters})
    with pytest.raises(SchemeError, match="lets fields grow"):
        emit(find("crank-nicolson", growth), "c")
