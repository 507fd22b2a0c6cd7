"""Fluxes with a tensor and with a jump: the balances are those of the schemes, and the problems are what they say."""

from fractions import Fraction

import numpy as np
import pytest

from fluxforge.mesh import dual
from fluxforge.pde import BUILT_IN
from fluxforge.scheme import EULER, Damping, damped_space, integrate
from fluxforge.skew import CONDUCTIVITIES, Constants, FluxOperator, SteadyProblem, balances_of, fit_order
from fluxforge.skew._problems import LINE_FAMILIES
from fluxforge.stepping import generator

LAW = Constants(1.45, 1.1, 0.8, 0.75)
TENSOR, JUMP = CONDUCTIVITIES["tensor"], CONDUCTIVITIES["jump"]


@pytest.mark.parametrize(
    ("name", "conductivity", "parameters"),
    [
        ("anisotropic", TENSOR, {"K": TENSOR.tensor.tolist()}),
        ("conduction", JUMP, {"k": f"1 + {JUMP.right - 1.0!r}*(x > 0.5)"}),
    ],
)
@pytest.mark.parametrize("family", ["jittered", "quadrilaterals"])
def test_the_balances_are_those_of_the_scheme(name, conductivity, parameters, family):
    graph = dual(conductivity.mesh(family, 6, 1))
    space = damped_space("tried", "tried", Damping(*(Fraction(str(value)) for value in LAW)))
    scheme = integrate(EULER, BUILT_IN[name], space, name="tried")
    ours = balances_of(LAW)(FluxOperator(graph, conductivity))[:, : graph.cells].toarray() / graph.V[:, None]
    theirs = generator(scheme, graph, parameters=parameters).M.toarray()
    # Both add up some twenty products per entry; conductivities of 1 and 100 cost two digits.
    assert np.abs(ours - theirs).max() <= 1e-12 * np.abs(theirs).max()


@pytest.mark.parametrize("family", LINE_FAMILIES)
def test_a_line_of_faces_lies_where_the_conductivity_jumps(family):
    graph = dual(JUMP.mesh(family, 6, 2))
    inner = slice(graph.interior)
    left = graph.x[:, 0] < 0.5
    across = left[graph.owner[inner]] != left[graph.neighbour[inner]]
    assert across.sum() == 6
    assert graph.centre[inner][across, 0] == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize("name", ["tensor", "jump"])
def test_fields_solve_the_equation(name):
    """∇·K∇T by differences of the gradient, away from the line of the jump."""
    conductivity = CONDUCTIVITIES[name]
    K = np.eye(2) if conductivity.tensor is None else conductivity.tensor
    x = np.random.default_rng(0).uniform(0.1, 0.9, (40, 2))
    x = x[np.abs(x[:, 0] - 0.5) > 0.05]
    k, h = np.where(x[:, 0] < 0.5, 1.0, conductivity.right), 1e-4
    for field in conductivity.problems(3, 4):
        flux = [k[:, None] * (field.gradient(x + h * e) - field.gradient(x - h * e)) @ K / (2 * h) for e in np.eye(2)]
        # Central differences of waves of length up to 12: h² 12⁴/6 of their size, and the round-off ε 12/h.
        assert flux[0][:, 0] + flux[1][:, 1] == pytest.approx(field.laplacian(x), abs=1e-3)


def test_temperature_and_flux_are_continuous_where_the_conductivity_jumps():
    y = np.linspace(0.1, 0.9, 9)
    left, right = (np.stack([np.full_like(y, 0.5 + side * 1e-9), y], axis=1) for side in (-1.0, 1.0))
    for field in JUMP.problems(5, 3):
        assert field.value(left) == pytest.approx(field.value(right), abs=1e-7)
        slopes = field.gradient(left)[:, 0], JUMP.right * field.gradient(right)[:, 0]
        assert slopes[0] == pytest.approx(slopes[1], abs=1e-6)


@pytest.mark.parametrize("name", ["tensor", "weighted-tensor", "jump"])
def test_problems_are_solved_with_second_order(name):
    """A wrong source, wall value or weight leaves an error that no refinement removes."""
    conductivity, fields = CONDUCTIVITIES[name], CONDUCTIVITIES[name].problems(1, 6)
    cells, errors = [], []
    for n in (6, 12, 24, 48):
        case = SteadyProblem(conductivity.mesh("jittered", n, 1), fields, conductivity)
        cells.append(case.graph.cells)
        errors.append(float(np.sqrt(np.mean(case.errors(LAW) ** 2))))
    assert fit_order(cells, errors) > 1.8
