"""Robin, periodic and inflow walls of dual graphs."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

import fluxforge as ff
from fluxforge.errors import InputError
from fluxforge.mesh import Condition, Conditions, DualGraph, Mesh, close_walls, dual, resolve, right_triangles, squares
from fluxforge.pde import ADVECTION, ADVECTION_DIFFUSION, CONDUCTION, HEAT, REACTION_DIFFUSION, Equation
from fluxforge.scheme import find
from fluxforge.stepping import generator

TORUS = {"left": ff.Periodic("right"), "bottom": ff.Periodic("top")}


def steady(scheme: str, graph: DualGraph, **parameters: float) -> np.ndarray:
    """The field at which nothing changes."""
    system = generator(find(scheme), graph, parameters=parameters)
    return np.asarray(spsolve(system.M.tocsc(), -system.b))


def test_a_straight_profile_between_a_value_and_a_robin_wall_is_exact() -> None:
    walls = {"left": 1.0, "right": ff.Robin(3.0, 0.5), "bottom": ff.Neumann(), "top": ff.Neumann()}
    graph = dual(squares(7), walls)
    # u = 1 + s x with −K s = h (1 + s − 0.5), K = 2 and h = 3: s = −0.3. The system has a condition of about 100.
    assert np.abs(steady("euler", graph, alpha=2.0) - (1.0 - 0.3 * graph.x[:, 0])).max() < 1e-12


def test_a_robin_wall_is_second_order_on_squares() -> None:
    walls = {
        "left": ff.Dirichlet("exp(y)*cos(x)"),
        "bottom": ff.Dirichlet("exp(y)*cos(x)"),
        "top": ff.Neumann("exp(y)*cos(x)"),
        "right": ff.Robin("2 + y", "exp(y)*cos(x) - 2/(2 + y)*exp(y)*sin(x)"),
    }
    errors = []
    for n in (6, 12, 24, 48):
        graph = dual(squares(n), walls)
        wrong = steady("euler", graph, alpha=2.0) - np.exp(graph.x[:, 1]) * np.cos(graph.x[:, 0])
        errors.append(float(np.sqrt(graph.V @ wrong**2)))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.abs(rates - 2.0).max() < 0.1
    assert errors[-1] < 1e-4


def test_a_robin_wall_is_insulated_without_transfer_and_held_with_much() -> None:
    walls = {"left": 1.0, "right": ff.Neumann(), "bottom": ff.Neumann(), "top": ff.Neumann()}
    for wall, h in ((ff.Neumann(), 0.0), (ff.Dirichlet(0.2), 1e13)):
        wanted, field = (
            steady("euler", dual(squares(5), walls | {"right": each})) for each in (wall, ff.Robin(h, 0.2))
        )
        # 1e13 is 1e12 times K/δ, and the condition of the system is about 100.
        assert np.abs(field - wanted).max() < 1e-10


def test_a_robin_wall_takes_the_conductivity_of_its_cell() -> None:
    graph = dual(squares(4), {"right": ff.Robin(3.0, 0.0)})
    closed = close_walls(graph, CONDUCTION, resolve(CONDUCTION, graph, {"k": "1 + y"}))
    wall = graph.tag == graph.tags.index("right")
    K = 1.0 + graph.x[graph.owner[graph.interior :]][wall, 1]
    wanted = (K / 0.125) / (K / 0.125 + 3.0)
    assert np.abs(closed.following[wall] - wanted).max() < 1e-15
    assert not closed.following[~wall].any()


def test_inflow_ghosts_follow_their_owners_where_the_flow_leaves() -> None:
    graph = dual(squares(3), None, equation=ADVECTION)
    closed = close_walls(graph, ADVECTION, resolve(ADVECTION, graph, {"velocity": (1.0, -0.5)}))
    tags = np.array(graph.tags)[graph.tag]
    assert closed.following.tolist() == np.isin(tags, ["right", "bottom"]).astype(float).tolist()


@pytest.mark.parametrize("make", [squares, right_triangles])
def test_a_torus_has_no_boundary_and_every_cell_all_its_neighbours(make: Callable[[int], Mesh]) -> None:
    mesh = make(4)
    graph = dual(mesh, TORUS)
    assert graph.ghosts == 0
    assert graph.interior == len(graph.owner) == mesh.cells.size // 2
    assert (graph.slot_node < graph.cells).all()
    # Closed cells: the normals of a cell's faces, each seen from inside, add up to zero.
    outward = (graph.n * graph.A[:, None])[graph.slot_face] * graph.slot_sign[..., None]
    assert np.abs(outward.sum(axis=1)).max() < 1e-15
    # On a torus d leads to the nearest image.
    assert graph.delta.max() < 0.5
    from_both = graph.d[graph.slot_face] * graph.slot_sign[..., None]
    ends = graph.x[:, None, :] + from_both - graph.x[graph.slot_node]
    assert np.abs(ends - np.round(ends)).max() < 1e-15


def test_a_row_of_one_cell_is_its_own_neighbour() -> None:
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    edges = {name: np.array([pair]) for name, pair in (("left", (3, 0)), ("right", (1, 2)))}
    graph = dual(Mesh(points, np.array([[0, 1, 2, 3]]), edges), {"left": ff.Periodic("right")})
    assert graph.interior == 1
    assert sorted(graph.slot_sign[0, graph.slot_node[0] == 0].tolist()) == [-1.0, 1.0]
    # The wall at ±½ away holds 0: u decays at 2 · 2 whatever the width.
    assert generator(find("euler"), graph).M.toarray().tolist() == [[-4.0]]


def test_permuted_cells_give_permuted_results_on_a_torus() -> None:
    mesh = right_triangles(3)
    order = np.random.default_rng(0).permutation(len(mesh.cells))
    plain, turned = (
        generator(find("two-hop"), dual(each, TORUS)).M.toarray()
        for each in (mesh, Mesh(mesh.points, mesh.cells[order], mesh.boundary))
    )
    # Sums of three terms in another order.
    assert np.abs(plain[np.ix_(order, order)] - turned).max() < 1e-12 * np.abs(plain).max()


@pytest.mark.parametrize(
    ("walls", "words"),
    [
        ({"left": ff.Periodic("nowhere")}, "boundary tag 'nowhere' is not in the mesh; it has: left, right"),
        ({"left": ff.Periodic("left")}, "'left' is periodic with itself"),
        ({"left": ff.Periodic("right"), "right": 1.0}, "'left' is periodic with 'right', which has another condition"),
        ({"left": ff.Periodic("top")}, "'left' and 'top' do not match: the face at"),
        (ff.Periodic("left"), "a periodic condition belongs to one tag"),
        ({"left": ff.Robin(-1.0, 0.0)}, "h of the boundary condition of 'left' is -1; it should be 0 or more"),
        ({"left": ff.Robin("1/(x - x)", 0.0)}, "h of the boundary condition of 'left'"),
    ],
)
def test_contradictory_walls_are_refused(walls: Conditions, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(")) as caught:
        dual(squares(2), walls)
    assert "\n" not in str(caught.value)


def test_a_pair_of_other_numbers_of_faces_does_not_match() -> None:
    mesh = squares(3)
    wider = {**mesh.boundary, "left": mesh.boundary["left"][:2]}
    with pytest.raises(InputError, match="the periodic tags 'left' and 'right' do not match: they have 2 and 3 faces"):
        dual(Mesh(mesh.points, mesh.cells, wider), {"left": ff.Periodic("right")})


@pytest.mark.parametrize(
    ("equation", "wall", "words"),
    [
        (
            ADVECTION,
            ff.Robin(1.0, 0.0),
            "'left': equation 'advection' has no diffusion, so that a robin wall is not possible",
        ),
        (
            ADVECTION,
            ff.Neumann(1.0),
            "'left': equation 'advection' has no diffusion, so that a neumann wall is not possible",
        ),
        (HEAT, ff.Inflow(1.0), "'left': equation 'heat' has no velocity, so there is no inflow"),
    ],
)
def test_walls_an_equation_does_not_take_are_refused(equation: Equation, wall: Condition, words: str) -> None:
    with pytest.raises(InputError, match=words):
        dual(squares(2), {"left": wall}, equation=equation)


def test_walls_that_were_not_named_are_those_of_the_equation() -> None:
    for equation, inflow in (
        (HEAT, False),
        (ADVECTION, True),
        (ADVECTION_DIFFUSION, True),
        (REACTION_DIFFUSION, False),
    ):
        graph = dual(squares(2), None, equation=equation)
        assert (graph.inflow is not None) == inflow


def test_a_graph_says_that_its_walls_wait_for_an_equation() -> None:
    with pytest.raises(InputError, match="Robin and inflow walls depend on the equation"):
        dual(squares(2), ff.Robin(1.0, 0.0)).following  # noqa: B018
