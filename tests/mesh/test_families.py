"""The structured families: counts, areas, edges, tags, and that no jitter can fold a mesh."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.errors import InputError
from fluxforge.mesh import Mesh, cross_triangles, equilateral, jittered, right_triangles, squares, two_cells
from fluxforge.mesh._cells import cell_areas, half_edges
from fluxforge.mesh._generate import FAMILIES, MAX_JITTER
from strategies import few, seeds

PARALLELOGRAM = 0.5 * np.sqrt(3.0)
COUNTS = {"squares": 1, "right": 2, "cross": 4, "equilateral": 2, "jittered": 2}
SIDES = ("left", "right", "bottom", "top")


def assert_sound(mesh: Mesh, area: float) -> None:
    """Cells counter-clockwise and of the right total area, edges shared by two, every point used, boundary tagged."""
    V = cell_areas(mesh.points, mesh.cells)
    assert V.min() > 0
    assert abs(V.sum() - area) <= 4e-14 * area
    assert np.array_equal(np.unique(mesh.cells), np.arange(len(mesh.points)))
    start, end = half_edges(mesh.cells)
    directed = list(zip(start.ravel().tolist(), end.ravel().tolist(), strict=True))
    assert len(set(directed)) == len(directed), "an edge is run through twice in one direction"
    outer = {(a, b) for a, b in directed if (b, a) not in set(directed)}
    tagged = [tuple(edge) for edges in mesh.boundary.values() for edge in edges.tolist()]
    assert len(set(tagged)) == len(tagged), "an edge is tagged twice"
    assert set(tagged) == outer, "tags and boundary edges differ (or run the wrong way round)"


def edge_lengths(mesh: Mesh) -> np.ndarray:
    start, end = half_edges(mesh.cells)
    return np.linalg.norm(mesh.points[end] - mesh.points[start], axis=-1)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_sound_and_has_its_count(name: str, n: int) -> None:
    mesh = FAMILIES[name](n, 5)
    assert_sound(mesh, PARALLELOGRAM if name == "equilateral" else 1.0)
    assert len(mesh.cells) == COUNTS[name] * n * n


@pytest.mark.parametrize("name", FAMILIES)
def test_sides_lie_where_their_tags_say(name: str) -> None:
    mesh = FAMILIES[name](6, 1)
    assert set(mesh.boundary) == set(SIDES)
    x, y = mesh.points.T
    if name == "equilateral":
        x = x - y / np.sqrt(3.0)
        y = y / PARALLELOGRAM
    for tag, coordinate, value in (("left", x, 0), ("right", x, 1), ("bottom", y, 0), ("top", y, 1)):
        assert mesh.boundary[tag].shape == (6, 2)
        assert np.abs(coordinate[mesh.boundary[tag]] - value).max() < 1e-15


@pytest.mark.parametrize("n", [1, 4, 49])
def test_equilateral_triangles_are_equilateral(n: int) -> None:
    mesh = equilateral(n)
    assert np.abs(edge_lengths(mesh) * n - 1.0).max() < 1e-14 * n
    assert np.abs(cell_areas(mesh.points, mesh.cells) * n * n - np.sqrt(3.0) / 4.0).max() < 1e-14 * n


def test_squares_are_squares_and_right_triangles_are_cut_along_the_rising_diagonal() -> None:
    assert np.abs(edge_lengths(squares(5)) - 0.2).max() < 1e-15
    mesh = right_triangles(5)
    start, end = half_edges(mesh.cells)
    along = (mesh.points[end] - mesh.points[start])[edge_lengths(mesh) > 0.25]
    assert len(along) == len(mesh.cells)
    assert np.abs(along[:, 0] - along[:, 1]).max() < 1e-15


def test_cross_triangles_meet_at_the_centre_of_their_square() -> None:
    mesh = cross_triangles(3)
    assert np.allclose(np.sort(edge_lengths(mesh), axis=1) * 3.0, [np.sqrt(0.5), np.sqrt(0.5), 1.0])
    fourfold = mesh.cells.reshape(-1, 4, 3)
    assert all(len(set.intersection(*map(set, four))) == 1 for four in fourfold.tolist())


@pytest.mark.parametrize("make", [squares, right_triangles, cross_triangles, equilateral])
def test_the_triangles_of_a_square_follow_each_other_row_by_row(make: Callable[[int], Mesh]) -> None:
    n = 4
    mesh = make(n)
    centres = mesh.points[mesh.cells].mean(axis=1)
    if make is equilateral:
        y = centres[:, 1] / PARALLELOGRAM
        centres = np.stack([centres[:, 0] - 0.5 * y, y], axis=-1)
    column, row = np.floor(centres * n).astype(int).T
    expected = np.repeat(np.arange(n * n), len(mesh.cells) // (n * n))
    assert np.array_equal(row * n + column, expected)


@few(60)
@given(seed=seeds, n=st.integers(1, 12))
def test_the_largest_jitter_keeps_every_altitude_as_promised(seed: int, n: int) -> None:
    mesh = jittered(n, MAX_JITTER, seed)
    altitudes = 2.0 * cell_areas(mesh.points, mesh.cells) / edge_lengths(mesh).max(axis=1)
    assert altitudes.min() * n >= np.sqrt(0.5) - 2.0 * MAX_JITTER


@few(20)
@given(seed=seeds, jitter=st.floats(0.0, MAX_JITTER))
def test_jittered_points_move_no_further_than_allowed_and_the_outline_stays(seed: int, jitter: float) -> None:
    n = 6
    mesh, still = jittered(n, jitter, seed), right_triangles(n)
    assert np.linalg.norm(mesh.points - still.points, axis=1).max() <= jitter / n * (1 + 1e-12)
    assert_sound(mesh, 1.0)
    corners = [0, n, n * (n + 1), (n + 1) ** 2 - 1]
    assert np.array_equal(mesh.points[corners], still.points[corners])


def test_jitter_moves_points_inside_and_slides_those_on_sides() -> None:
    moves = (jittered(8, 0.3, 2).points - right_triangles(8).points).reshape(9, 9, 2)
    assert (np.abs(moves[1:-1, 1:-1]) > 0).all()
    assert (np.abs(moves[[0, -1], 1:-1, 0]) > 0).all()
    assert (np.abs(moves[1:-1, [0, -1], 1]) > 0).all()
    assert np.linalg.norm(moves, axis=-1).max() > 0.25 / 8
    assert np.array_equal(jittered(8, 0.0, 2).points, right_triangles(8).points)


def test_moves_beyond_the_bound_on_jitter_can_flatten_a_triangle() -> None:
    """Moves of √2/4 · h can flatten a triangle: the limit of the proof is sharp."""
    move = np.array([-1.0, 1.0]) * 0.25
    flat = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]) + np.array([-move, move, -move])
    assert abs(cell_areas(flat, np.array([[0, 1, 2]]))[0]) < 1e-15
    assert np.sqrt(2.0) / 4.0 > MAX_JITTER


def test_jitter_is_deterministic_and_follows_its_seed() -> None:
    assert np.array_equal(jittered(5, 0.2, 3).points, jittered(5, 0.2, 3).points)
    assert not np.array_equal(jittered(5, 0.2, 3).points, jittered(5, 0.2, 4).points)


@pytest.mark.parametrize("jitter", [-0.01, 0.301, 1.0, float("nan"), float("inf")])
def test_a_jitter_that_could_fold_the_mesh_is_refused(jitter: float) -> None:
    with pytest.raises(InputError, match="field 'jitter'"):
        jittered(4, jitter)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [0, -3, 10**5])
def test_a_number_of_squares_that_makes_no_mesh_is_refused(name: str, n: int) -> None:
    with pytest.raises(InputError, match="field 'n'"):
        FAMILIES[name](n, 0)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="field 'seed'"):
        jittered(4, seed=-1)


def test_two_cells_have_the_numbers_of_the_paper() -> None:
    mesh = two_cells()
    assert_sound(mesh, 2.0 * np.sqrt(3.0))
    assert np.abs(cell_areas(mesh.points, mesh.cells) - np.sqrt(3.0)).max() < 1e-15
    assert np.abs(edge_lengths(mesh) - 2.0).max() < 1e-15
    centres = mesh.points[mesh.cells].mean(axis=1)
    assert abs(np.linalg.norm(centres[1] - centres[0]) - 2.0 / np.sqrt(3.0)) < 1e-15
    assert {tag: len(edges) for tag, edges in mesh.boundary.items()} == {"boundary": 4}


def test_origins_say_which_words_made_the_mesh() -> None:
    assert squares(3).origin == "squares(3)"
    assert jittered(3, 0.1, 7).origin == "jittered(3, jitter=0.1, seed=7)"
