"""The dual graph against a census of edges in plain Python, and against what a mirror is."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given

from fluxforge.errors import ExpressionError, InputError, MeshError
from fluxforge.mesh import Conditions, Dirichlet, DualGraph, Mesh, Neumann, dual, squares, two_cells
from strategies import BOUNDARIES, MESHES, SIDED, angles, few, moved, renumbered, scales, seeds, shifts, turn

CONVEX = [name for name in MESHES if name != "arrow"]


def census(mesh: Mesh) -> dict[frozenset[int], list[int]]:
    """The cells on either side of every edge."""
    cells_of: dict[frozenset[int], list[int]] = defaultdict(list)
    for k, corners in enumerate(mesh.cells.tolist()):
        ring = [c for c in corners if c >= 0]
        for a, b in zip(ring, [*ring[1:], ring[0]], strict=True):
            cells_of[frozenset((a, b))].append(k)
    return cells_of


def between(graph: DualGraph) -> dict[tuple[int, ...], list[tuple[float, float]]]:
    """(A, δ) of the faces between each pair of cells, and of the boundary faces of each cell."""
    faces_of: dict[tuple[int, ...], list[tuple[float, float]]] = defaultdict(list)
    for f, (P, N) in enumerate(zip(graph.owner.tolist(), graph.neighbour.tolist(), strict=True)):
        pair = tuple(sorted((P, N))) if f < graph.interior else (P,)
        faces_of[pair].append((float(graph.A[f]), float(graph.delta[f])))
    return {pair: sorted(faces) for pair, faces in faces_of.items()}


def test_two_equilateral_cells_have_the_numbers_of_the_paper() -> None:
    graph = dual(two_cells())
    assert pytest.approx([np.sqrt(3.0)] * 2, rel=1e-15) == graph.V
    assert graph.A[0] == 2.0
    assert graph.delta[0] == pytest.approx(2 / np.sqrt(3.0), rel=1e-15)
    assert graph.A[0] / (graph.delta[0] * graph.V[0]) == pytest.approx(1.0, rel=1e-15)
    assert (graph.cells, graph.interior, graph.ghosts, graph.tags) == (2, 1, 4, ("boundary",))


@pytest.mark.parametrize("name", MESHES)
def test_every_edge_is_one_face_with_the_right_cells(name: str) -> None:
    mesh = MESHES[name]
    graph = dual(mesh)
    edges = census(mesh)
    assert graph.interior == sum(len(cells) == 2 for cells in edges.values())
    assert graph.ghosts == sum(len(cells) == 1 for cells in edges.values())
    wanted: dict[tuple[int, ...], list[tuple[float, ...]]] = defaultdict(list)
    for edge, cells in edges.items():
        a, b = (mesh.points[k] for k in edge)
        wanted[tuple(sorted(cells))].append((float(np.hypot(*(a - b))), *(0.5 * (a + b)).tolist()))
    faces: dict[tuple[int, ...], list[tuple[float, ...]]] = defaultdict(list)
    for f in range(len(graph.A)):
        both = [int(graph.owner[f])] + ([int(graph.neighbour[f])] if f < graph.interior else [])
        faces[tuple(sorted(both))].append((float(graph.A[f]), *graph.centre[f].tolist()))
    assert wanted.keys() == faces.keys()
    for pair in wanted:
        assert np.allclose(sorted(wanted[pair]), sorted(faces[pair]), rtol=1e-15, atol=1e-16)


@pytest.mark.parametrize("name", MESHES)
def test_ghosts_are_numbered_after_the_cells_in_the_order_of_their_faces(name: str) -> None:
    graph = dual(MESHES[name])
    inside, boundary = graph.neighbour[: graph.interior], graph.neighbour[graph.interior :]
    assert ((inside >= 0) & (inside < graph.cells)).all()
    assert boundary.tolist() == list(range(graph.cells, graph.cells + graph.ghosts))


@pytest.mark.parametrize("boundary", [None, Neumann()], ids=["dirichlet", "neumann"])
@pytest.mark.parametrize("name", CONVEX)
def test_normals_are_unit_and_point_from_the_owner_to_the_other_side(name: str, boundary: Neumann | None) -> None:
    graph = dual(MESHES[name], boundary)
    assert np.allclose(np.hypot(*graph.n.T), 1.0, rtol=1e-15, atol=0)
    outward = graph.centre - graph.x[graph.owner]
    assert ((graph.n * outward).sum(axis=1) > 0).all()
    assert ((graph.n * graph.d).sum(axis=1) > 0).all()
    assert np.allclose(np.hypot(*graph.d.T), graph.delta, rtol=1e-15, atol=0)
    inside = slice(graph.interior)
    assert np.array_equal(graph.d[inside], graph.x[graph.neighbour[inside]] - graph.x[graph.owner[inside]])


@pytest.mark.parametrize("name", MESHES)
def test_the_slots_of_a_cell_are_its_faces_and_point_across_them(name: str) -> None:
    mesh = MESHES[name]
    graph = dual(mesh)
    for k in range(graph.cells):
        used = np.flatnonzero(graph.slot_mask[k])
        assert len(used) == (mesh.cells[k] >= 0).sum()
        assert sorted(graph.slot_face[k, used].tolist()) == sorted(
            np.flatnonzero((graph.owner == k) | ((graph.neighbour == k) & (np.arange(len(graph.A)) < graph.interior)))
        )
        for slot in range(graph.slot_node.shape[1]):
            face, node = graph.slot_face[k, slot], graph.slot_node[k, slot]
            if slot not in used:
                assert node == k
            elif graph.owner[face] == k:
                assert (node, graph.slot_sign[k, slot]) == (graph.neighbour[face], 1.0)
            else:
                assert (node, graph.slot_sign[k, slot]) == (graph.owner[face], -1.0)


def test_a_triangle_among_quadrilaterals_leaves_its_fourth_slot_unused() -> None:
    mesh = MESHES["mixed"]
    graph = dual(mesh)
    assert graph.slot_mask.shape == (len(mesh.cells), 4)
    assert (graph.slot_mask == (mesh.cells >= 0)).all()
    assert dual(MESHES["jittered"]).slot_mask.all()
    assert dual(MESHES["jittered"]).slot_mask.shape[1] == 3


@pytest.mark.parametrize("name", SIDED)
def test_a_dirichlet_ghost_sits_at_the_face_centre(name: str) -> None:
    graph = dual(SIDED[name], Dirichlet(1.0))
    boundary = slice(graph.interior, None)
    assert np.array_equal(graph.x[graph.owner[boundary]] + graph.d[boundary], graph.centre[boundary])
    assert not graph.neumann.any()
    assert graph.moving.all()


@pytest.mark.parametrize("name", SIDED)
def test_a_neumann_ghost_is_the_mirror_image_of_its_owner(name: str) -> None:
    mesh = SIDED[name]
    graph = dual(mesh, Neumann())
    boundary = slice(graph.interior, None)
    x, n, d = graph.x[graph.owner[boundary]], graph.n[boundary], graph.d[boundary]
    away = ((graph.centre[boundary] - x) * n).sum(axis=1)
    assert np.allclose(d, 2 * away[:, None] * n, rtol=1e-14, atol=1e-16)
    # Reflected across the line of the face, by complex numbers: z ↦ a + u² conj(z − a).
    a = graph.centre[boundary] @ [1, 1j]
    u = (n @ [1, 1j]) * 1j
    assert np.allclose((x + d) @ [1, 1j], a + u**2 * np.conj(x @ [1, 1j] - a), rtol=1e-14, atol=1e-15)
    assert graph.moving.tolist() == [True] * graph.interior + [False] * graph.ghosts


def test_each_side_has_its_own_condition_evaluated_at_its_face_centres() -> None:
    conditions: Conditions = {"left": Dirichlet("1 + y"), "right": Neumann("x*y"), "top": Dirichlet(lambda x, y: x - y)}
    graph = dual(MESHES["mixed"], conditions)
    x, y = graph.centre[graph.interior :].T
    assert graph.tags == ("left", "right", "bottom", "top")
    for face in range(graph.ghosts):
        tag = graph.tags[graph.tag[face]]
        side = {"left": x[face] == 0, "right": x[face] == 1, "bottom": y[face] == 0, "top": y[face] == 1}
        assert side[tag]
        wanted = {"left": 1 + y[face], "right": x[face] * y[face], "bottom": 0.0, "top": x[face] - y[face]}
        assert graph.value[face] == pytest.approx(wanted[tag], rel=1e-15, abs=1e-16)
        assert graph.neumann[face] == (tag == "right")


def test_one_condition_holds_everywhere_and_none_means_zero() -> None:
    mesh = MESHES["mixed"]
    assert (dual(mesh, Dirichlet(3)).value == 3.0).all()
    assert (dual(mesh).value == 0.0).all()
    assert not dual(mesh).neumann.any()
    assert dual(mesh, Neumann(-2.0)).neumann.all()


def test_an_edge_without_a_tag_belongs_to_the_tag_boundary() -> None:
    base = squares(2)
    mesh = Mesh(base.points, base.cells, {"west": base.boundary["left"][:, ::-1].copy()})
    graph = dual(mesh, {"west": Dirichlet(1.0), "boundary": Neumann(2.0)})
    west = graph.centre[graph.interior :, 0] == 0
    assert graph.tags == ("west", "boundary")
    assert np.array_equal(graph.value, np.where(west, 1.0, 2.0))
    assert np.array_equal(graph.neumann, ~west)


def test_an_edge_of_two_tags_keeps_the_first_and_a_tag_without_boundary_edges_is_dropped() -> None:
    base = squares(2)
    left = base.boundary["left"]
    mesh = Mesh(base.points, base.cells, {"inner": np.array([[4, 1]]), "a": left, "b": left, "boundary": left[:0]})
    graph = dual(mesh)
    assert graph.tags == ("a", "boundary")
    assert (graph.tag == 0).sum() == 2


def test_an_untagged_edge_joins_a_tag_that_is_called_boundary() -> None:
    base = squares(2)
    mesh = Mesh(base.points, base.cells, {"boundary": base.boundary["left"], "right": base.boundary["right"]})
    graph = dual(mesh)
    assert graph.tags == ("boundary", "right")
    assert (graph.tag == 0).sum() == 6


def test_a_tag_the_mesh_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(
        InputError, match=r"^boundary tag 'lefft' is not in the mesh; it has: left, right, bottom, top$"
    ):
        dual(squares(2), {"lefft": Dirichlet(1.0)})


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), lambda x, y: x / 0 * 0 + np.nan])
def test_a_value_that_is_not_finite_is_refused_with_tag_and_place(bad: object) -> None:
    with (
        np.errstate(all="ignore"),
        pytest.raises(InputError, match=r"boundary condition of 'left' is (nan|inf) at \(0, 0\.25\)"),
    ):
        dual(squares(2), {"left": Dirichlet(bad)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("1/x", "is inf at x = 0"),
        ("log(-1-x)", "nan"),
        ("t + 1", "unknown symbol 't'"),
        ("x +", "the end"),
        ("", "empty"),
    ],
)
def test_a_formula_that_cannot_be_used_is_refused_with_its_text(formula: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason) as caught:
        dual(squares(2), {"left": Dirichlet(formula)})
    assert "\n" not in str(caught.value)


def test_a_function_of_the_wrong_shape_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="boundary condition of 'left'"):
        dual(squares(2), {"left": Dirichlet(lambda x, y: np.zeros(7))})


def test_an_edge_of_three_cells_is_refused_by_its_points() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 2.0]])
    mesh = Mesh(points, np.array([[0, 1, 2], [1, 3, 2], [1, 4, 2]]), origin="three.msh")
    with pytest.raises(
        MeshError, match=r"^three\.msh: the edge between points (1 and 2|2 and 1) is shared by 3 cells$"
    ):
        dual(mesh)


@pytest.mark.parametrize("boundary", ["dirichlet", "both"])
@pytest.mark.parametrize("name", SIDED)
@few(6)
@given(seed=seeds)
def test_a_renumbered_mesh_has_an_isomorphic_graph(name: str, boundary: str, seed: int) -> None:
    mesh = SIDED[name]
    other, order = renumbered(mesh, seed)
    graph, again = dual(mesh, BOUNDARIES[boundary]), dual(other, BOUNDARIES[boundary])
    assert np.allclose(again.V, graph.V[order], rtol=1e-13, atol=0)
    first, second = between(graph), between(again)
    renamed = {tuple(sorted(int(order[k]) for k in pair)): faces for pair, faces in second.items()}
    assert renamed.keys() == first.keys()
    for pair, faces in first.items():
        assert np.allclose(renamed[pair], faces, rtol=1e-13, atol=0)
    assert sorted(zip(again.neumann, again.value.round(12), strict=True)) == sorted(
        zip(graph.neumann, graph.value.round(12), strict=True)
    )


@pytest.mark.parametrize("name", SIDED)
@few(8)
@given(scale=scales, angle=angles, shift=shifts)
def test_a_moved_mesh_has_the_same_graph_with_lengths_scaled(
    name: str, scale: float, angle: float, shift: tuple[float, float]
) -> None:
    conditions: Conditions = {"left": Neumann(1.0), "top": Dirichlet(2.0)}
    graph = dual(SIDED[name], conditions)
    again = dual(moved(SIDED[name], scale=scale, angle=angle, shift=shift), conditions)
    for field in ("owner", "neighbour", "slot_face", "slot_node", "slot_sign", "slot_mask", "tag", "neumann", "value"):
        assert np.array_equal(getattr(again, field), getattr(graph, field)), field
    rounding = 1e-14 * (scale + np.abs(shift).max()) / scale
    assert np.abs(again.V / scale**2 - graph.V).max() <= 10 * rounding
    assert np.abs(again.A / scale - graph.A).max() <= 10 * rounding
    assert np.abs(again.delta / scale - graph.delta).max() <= 10 * rounding
    assert np.abs(again.d / scale - graph.d @ turn(angle).T).max() <= 10 * rounding
    # A normal turns by the rounding of its ends over its length.
    assert np.abs(again.n - graph.n @ turn(angle).T).max() <= 50 * rounding
