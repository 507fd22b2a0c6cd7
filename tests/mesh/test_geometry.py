"""Areas, centroids and edges against sums anyone can do by hand."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from fluxforge.mesh import Mesh, cross_triangles, dual, equilateral, jittered, right_triangles, squares, two_cells
from fluxforge.mesh._cells import cell_areas, cell_centroids, half_edges
from strategies import MESHES, angles, few, mixed, moved, renumbered, scales, seeds, shifts, turn, warped_quads

AREAS = [
    *((family(n), 1.0) for family in (squares, right_triangles, cross_triangles) for n in (1, 2, 7, 33)),
    *((jittered(n, 0.3, seed=n), 1.0) for n in (1, 2, 7, 33)),
    *((build(n, 0.3, seed=n), 1.0) for build in (mixed, warped_quads) for n in (1, 2, 7, 33)),
    *((equilateral(n), np.sqrt(3.0) / 2) for n in (1, 2, 7, 33)),
    (two_cells(), 2 * np.sqrt(3.0)),
    (MESHES["fan"], 0.75 * np.sqrt(3.0)),
    (MESHES["arrow"], 8.0),
    (MESHES["islands"], 2.5),
]


@pytest.mark.parametrize(("mesh", "area"), AREAS, ids=[mesh.origin for mesh, _ in AREAS])
def test_the_volumes_fill_the_domain_to_round_off(mesh: Mesh, area: float) -> None:
    V = cell_areas(mesh.points, mesh.cells)
    assert (V > 0).all()
    assert abs(V.sum() - area) <= 4e-15 * area * np.sqrt(len(V))


@pytest.mark.parametrize("name", MESHES)
def test_volumes_and_centroids_are_those_of_the_cut_up_cells(name: str) -> None:
    mesh = MESHES[name]
    V, x = cell_areas(mesh.points, mesh.cells), cell_centroids(mesh.points, mesh.cells)
    for k, corners in enumerate(mesh.cells.tolist()):
        a, *others = (mesh.points[c] for c in corners if c >= 0)
        area, moment = 0.0, np.zeros(2)
        for b, c in pairwise(others):
            piece = 0.5 * ((b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]))
            area, moment = area + piece, moment + piece * (a + b + c) / 3
        assert V[k] == pytest.approx(area, rel=1e-13)
        assert x[k] == pytest.approx(moment / area, rel=1e-13, abs=1e-13)


def test_the_centroid_of_a_quadrilateral_is_not_the_mean_of_its_corners() -> None:
    points = np.array([[0.0, 0.0], [3.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    (x,) = cell_centroids(points, np.array([[0, 1, 2, 3]]))
    assert x == pytest.approx([13 / 12, 5 / 12], rel=1e-15)


@pytest.mark.parametrize("name", MESHES)
def test_the_faces_of_a_cell_close(name: str) -> None:
    graph = dual(MESHES[name])
    along = graph.A[:, None] * graph.n
    total = np.zeros((graph.cells, 2))
    np.add.at(total, graph.owner, along)
    np.subtract.at(total, graph.neighbour[: graph.interior], along[: graph.interior])
    assert np.abs(total).max() <= 1e-14


@pytest.mark.parametrize("name", MESHES)
def test_half_edges_walk_around_each_cell(name: str) -> None:
    mesh = MESHES[name]
    start, end = half_edges(mesh.cells)
    for k, corners in enumerate(mesh.cells.tolist()):
        ring = [c for c in corners if c >= 0]
        walked = list(zip(ring, [*ring[1:], ring[0]], strict=True))
        rest = [(-1, -1)] * (mesh.cells.shape[1] - len(ring))
        assert list(zip(start[k].tolist(), end[k].tolist(), strict=True)) == walked + rest


def test_a_distant_mesh_keeps_its_digits() -> None:
    near, far = mixed(5), moved(mixed(5), shift=(1e6, -2e6))
    # The points themselves are rounded to 2e-10 out there; the shoelace sum about the origin would lose six digits.
    assert np.allclose(cell_areas(far.points, far.cells), cell_areas(near.points, near.cells), rtol=2e-8, atol=0)
    shifted = cell_centroids(far.points, far.cells) - np.array([1e6, -2e6])
    assert np.allclose(shifted, cell_centroids(near.points, near.cells), rtol=0, atol=2e-9)


@pytest.mark.parametrize("name", ["mixed", "jittered", "warped", "arrow"])
@few(10)
@given(seed=seeds)
def test_the_order_of_cells_points_and_corners_does_not_matter(name: str, seed: int) -> None:
    mesh = MESHES[name]
    other, order = renumbered(mesh, seed)
    V, x = cell_areas(mesh.points, mesh.cells), cell_centroids(mesh.points, mesh.cells)
    assert np.allclose(cell_areas(other.points, other.cells), V[order], rtol=1e-13, atol=0)
    assert np.allclose(cell_centroids(other.points, other.cells), x[order], rtol=0, atol=1e-14)


@few(25)
@given(scale=scales, angle=angles, shift=shifts)
def test_volumes_scale_as_squares_and_centroids_move_along(
    scale: float, angle: float, shift: tuple[float, float]
) -> None:
    mesh = MESHES["mixed"]
    other = moved(mesh, scale=scale, angle=angle, shift=shift)
    reach = scale + np.abs(shift).max()
    # Each coordinate is rounded at the size of the shift, which is what the area of a small mesh far away feels.
    rounding = 1e-15 * reach
    V, x = cell_areas(mesh.points, mesh.cells), cell_centroids(mesh.points, mesh.cells)
    moved_x = scale * x @ turn(angle).T + np.array(shift)
    assert np.abs(cell_areas(other.points, other.cells) - scale**2 * V).max() <= 10 * rounding * scale
    assert np.abs(cell_centroids(other.points, other.cells) - moved_x).max() <= 30 * rounding


def test_a_clockwise_cell_has_a_negative_area() -> None:
    assert cell_areas(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([[0, 2, 1]])).tolist() == [-0.5]
