"""Parameters that change in time in a run: every form in which a value may be given, at the stage times."""

from dataclasses import replace

import numpy as np
import pytest

import fluxforge as ff
from fluxforge.mesh import Curl, dual, resolve, settings_at, squares
from fluxforge.pde import ADVECTION, ANISOTROPIC, CONDUCTION, HEAT

MESH = squares(6)
LEFT = dual(MESH).x[:, 0] < 0.5
HALVES = replace(MESH, regions={"left": np.flatnonzero(LEFT), "right": np.flatnonzero(~LEFT)})


def end(equation, values, mesh=MESH, **more):
    problem = {"initial": "exp(-9*((x - 0.4)**2 + (y - 0.5)**2))", "dt": 0.002, "steps": 8, **more}
    return ff.simulate("midpoint", mesh, equation=equation, parameters=values, **problem).final


@pytest.mark.parametrize(
    ("equation", "mesh", "one", "other"),
    [
        ("advection", MESH, "curl((1 + 40*t)*x*y)", Curl(lambda x, y, t: (1 + 40 * t) * x * y)),
        ("conduction", HALVES, "left: 1 + 9*t, right: 2", "where(x < 1/2, 1 + 9*t, 2)"),
        ("anisotropic", MESH, "((1 + t, 0), (0, 2))", (("1 + t", 0), (0, lambda x, y, t: 2 + 0 * t))),
    ],
)
def test_forms_of_one_value_give_one_run(equation, mesh, one, other):
    (name,) = [p.name for p in ff.equation(equation).parameters if p.name != "rhoc"]
    np.testing.assert_allclose(end(equation, {name: one}, mesh), end(equation, {name: other}, mesh), rtol=1e-12, atol=0)


def test_the_values_are_those_of_the_stage_times():
    """∂T/∂t = α(t) ΔT is that of constant α over the time ∫α dt, to the order of the rule."""
    timed = end("heat", {"alpha": "1 + 50*t"}, dt=0.0005, steps=32)
    span = 32 * 0.0005
    mean = 1 + 25 * span
    constant = end("heat", {"alpha": mean}, dt=0.0005, steps=32)
    naive = end("heat", {"alpha": 1.0}, dt=0.0005, steps=32)
    assert np.abs(timed - constant).max() < 0.01 * np.abs(naive - constant).max()


def test_settings_at_one_time_are_taken_wherever_values_are():
    graph = dual(HALVES)
    values = {"k": "left: 1 + t, right: 2", "rhoc": 3}
    frozen = settings_at(CONDUCTION, values, 0.5)
    np.testing.assert_array_equal(resolve(CONDUCTION, graph, frozen).cells["k"], np.where(LEFT, 1.5, 2.0))
    assert frozen["rhoc"] == 3
    assert resolve(HEAT, graph, settings_at(HEAT, {"alpha": "2 - t"}, 0.5)).constants["alpha"] == 1.5
    a_n = resolve(ADVECTION, graph, settings_at(ADVECTION, {"velocity": "curl(t*y)"}, 2.0)).slots["velocity_n"]
    np.testing.assert_allclose(a_n, resolve(ADVECTION, graph, {"velocity": (2, 0)}).slots["velocity_n"], atol=1e-14)
    K = settings_at(ANISOTROPIC, {"K": "((1 + t, 0), (0, 1))"}, 1.0)
    plain = resolve(ANISOTROPIC, graph, {"K": ((2, 0), (0, 1))})
    np.testing.assert_array_equal(resolve(ANISOTROPIC, graph, K).slots["K_nn"], plain.slots["K_nn"])
