from fractions import Fraction

import numpy as np
import pytest

from fluxforge.mesh import Dirichlet, Mesh, Neumann, dual
from fluxforge.pde import BUILT_IN
from fluxforge.scheme import EULER, Damping, damped_space, find, integrate
from fluxforge.skew import (
    CORRECTED,
    FAMILIES,
    ChosenLaw,
    Constants,
    FluxOperator,
    balances_of,
    coercivity,
    face_weights,
    fit_order,
    largest_step,
    make_mesh,
    random_meshes,
    random_polynomial,
    stretch_mesh,
    tabulate_faces,
)
from fluxforge.stepping import generator, simulate, steady

LAW = Constants(1.45, 1.1, 0.8, 0.75)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("constants", [CORRECTED, LAW])
def test_the_balances_are_those_of_the_scheme(family, constants):
    graph = dual(make_mesh(family, 5, 1))
    scheme = ChosenLaw("error", constants).scheme("tried")
    ours = balances_of(constants)(FluxOperator(graph))[:, : graph.cells].toarray() / graph.V[:, None]
    theirs = generator(scheme, graph, parameters={"alpha": 1.0}).M.toarray()
    # Both add up some twenty products per entry.
    assert np.abs(ours - theirs).max() <= 1e-12 * np.abs(theirs).max()


def test_constants_of_one_are_the_corrected_flux():
    graph = dual(make_mesh("jittered", 5, 1))
    ours = balances_of(CORRECTED)(FluxOperator(graph))[:, : graph.cells].toarray() / graph.V[:, None]
    theirs = generator(find("corrected"), graph, parameters={"alpha": 1.0}).M.toarray()
    assert np.abs(ours - theirs).max() <= 1e-12 * np.abs(theirs).max()


@pytest.mark.parametrize("family", FAMILIES)
def test_nu_is_four_thirds_between_triangles_and_zero_at_walls(family):
    operator = FluxOperator(dual(make_mesh(family, 6, 2)))
    inside, nu = operator.graph.interior, operator.invariants.nu
    assert (nu[inside:] == 0.0).all()
    if family not in ("squares", "quadrilaterals"):
        assert nu[:inside] == pytest.approx(4 / 3, rel=1e-9)
    if family == "squares":
        assert nu[:inside] == pytest.approx(1.0, rel=1e-9)


def test_linear_fields_are_exact_for_any_weight():
    operator = FluxOperator(stretch_mesh("irregular", 6, 3, 20.0, 0.3).graph)
    graph = operator.graph
    nodes = np.concatenate([graph.x, graph.centre[graph.interior :]])
    T = 2.0 + nodes @ [0.7, -1.3]
    psi = np.random.default_rng(0).uniform(0.1, 5.0, len(graph.A))
    matrix = operator.matrix(psi)
    # What the entries of a row, some of them large, leave of their products.
    allowed = 1e-11 * (abs(matrix) @ np.abs(T))
    assert (np.abs(matrix @ T) <= allowed).all()


def test_linear_fields_are_not_exact_with_the_plain_flux():
    operator = FluxOperator(dual(make_mesh("jittered", 6, 3)))
    graph = operator.graph
    T = np.concatenate([graph.x, graph.centre[graph.interior :]]) @ [1.0, 0.0]
    assert np.abs(operator.plain_matrix() @ T).max() > 1e-3 * np.abs(graph.A).max()


def test_rotation_changes_nothing_that_the_network_sees():
    turn = np.array([[np.cos(0.7), np.sin(0.7)], [-np.sin(0.7), np.cos(0.7)]])
    mesh = make_mesh("jittered", 5, 1)
    turned = Mesh((mesh.points - 0.5) @ turn + 0.5, mesh.cells, mesh.boundary, origin="turned")
    field = random_polynomial(np.random.default_rng(1))

    class Turned:
        def __init__(self, name):
            self.name = name

        def __call__(self, x):
            values = getattr(field, self.name)((x - 0.5) @ turn.T + 0.5)
            return values @ turn if self.name == "gradient" else values

    other = type(field)(Turned("value"), Turned("gradient"), Turned("laplacian"))
    here, there = tabulate_faces(dual(mesh), [field]), tabulate_faces(dual(turned), [other])
    for name in ("inputs", "columns", "flux"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-9, atol=1e-9)


def test_the_exact_flux_of_a_linear_field_is_its_slope_along_the_normal():
    graph = dual(make_mesh("irregular", 4, 1))
    field = random_polynomial(np.random.default_rng(2), degree=1)
    table = tabulate_faces(graph, [field])
    np.testing.assert_allclose(table.columns[:, 1], table.flux, atol=1e-10)
    np.testing.assert_allclose(table.columns[:, 0], table.columns[:, 2], atol=1e-10)


@pytest.mark.parametrize("law", [CORRECTED, LAW])
def test_laws_are_coercive_on_stretched_meshes(law):
    for each in random_meshes(8, 5, 5, 30.0):
        operator = FluxOperator(each.graph)
        assert coercivity(balances_of(law)(operator), operator.graph, each.width) > 0.05


def test_the_minimum_correction_is_not_coercive_on_stretched_meshes():
    each = stretch_mesh("irregular", 7, 3, 30.0, 0.1)
    operator = FluxOperator(each.graph)
    matrix = operator.matrix(operator.invariants.cosine)
    assert coercivity(matrix, operator.graph, each.width) < 0.0


def test_the_longest_step_of_squares_is_a_quarter_of_the_width_squared():
    operator = FluxOperator(dual(make_mesh("squares", 8, 0)))
    # Cells at walls have half the distance there: a corner's row adds up 2 · 1 + 2 · 2 = 6.
    step = largest_step(operator.plain_matrix(), operator.graph)
    assert 1 / 6 <= step * 8**2 * 1.0 <= 1 / 4 + 1e-9


def test_order_is_the_slope_of_errors():
    cells = [100, 400, 1600, 6400]
    assert fit_order(cells, [c**-1.0 for c in cells]) == pytest.approx(2.0, abs=1e-12)


def test_a_wall_with_a_flux_gets_it():
    scheme = ChosenLaw("error", LAW).scheme("tried")
    mesh = make_mesh("jittered", 5, 1)
    run = simulate(scheme, mesh, initial="x*y", boundary=Neumann(0.0), steps=3)
    total = run.fields @ dual(mesh).V
    assert total[-1] == pytest.approx(total[0], rel=1e-12)


@pytest.mark.parametrize("name", ["conduction", "anisotropic"])
def test_linear_fields_are_steady_for_other_conductivities(name):
    space = damped_space("tried", "tried", Damping(*(Fraction(str(value)) for value in LAW)))
    equation = BUILT_IN[name]
    scheme = integrate(EULER, equation, space, name="tried")
    mesh = make_mesh("jittered", 6, 1)
    parameters = {"k": 2.0} if name == "conduction" else {"K": [[2.0, 0.5], [0.5, 1.0]]}
    solution = steady(scheme, mesh, parameters=parameters, boundary=Dirichlet("1 + 2*x - y"))
    x, y = solution.graph.x.T
    assert solution.field == pytest.approx(1 + 2 * x - y, abs=1e-9)


def test_weights_follow_the_formula():
    operator = FluxOperator(dual(make_mesh("right", 3, 1)))
    own = operator.invariants
    inside = slice(0, operator.graph.interior)
    expected = 0.8 * (0.75 / own.cosine + 0.25 * own.cosine)
    np.testing.assert_allclose(face_weights(LAW, own)[inside], expected[inside], rtol=1e-12)


def test_fields_linear_on_either_side_of_a_jump_are_steady():
    mesh = make_mesh("right", 6, 1)
    rng = np.random.default_rng(0)
    moves = rng.uniform(-0.03, 0.03, mesh.points.shape)
    moves[((mesh.points == 0.0) | (mesh.points == 1.0)).any(axis=1)] = 0.0
    moves[np.isclose(mesh.points[:, 0], 0.5), 0] = 0.0
    mesh = Mesh(mesh.points + moves, mesh.cells, mesh.boundary, origin="a line of faces at x = 1/2")
    # The flux 2 k = 2 · 1 on the left, 0.2 · 10 on the right.
    wall = Dirichlet("(x - 0.5)*(0.2 + 1.8*(x < 0.5)) + 3*y")
    solution = steady("skew-error", mesh, equation="conduction", parameters={"k": "1 + 9*(x > 0.5)"}, boundary=wall)
    x, y = solution.graph.x.T
    exact = (x - 0.5) * np.where(x < 0.5, 2.0, 0.2) + 3 * y
    assert solution.field == pytest.approx(exact, abs=1e-9)
