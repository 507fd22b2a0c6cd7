"""Sizes, shapes, angles and the Fourier step against numbers known beforehand and loops in plain Python."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given

from fluxforge.mesh import (
    Conditions,
    Dirichlet,
    DualGraph,
    Mesh,
    Neumann,
    cell_diameters,
    cell_quality,
    count_components,
    cross_triangles,
    dual,
    equilateral,
    fourier_step,
    info,
    jittered,
    nonorthogonality,
    right_triangles,
    squares,
    two_cells,
)
from strategies import BOUNDARIES, MESHES, SIDED, angles, few, moved, scales, shifts


def slow_fourier_step(graph: DualGraph, alpha: float) -> float:
    """min V/Σw, cell by cell and face by face."""
    total = [0.0] * graph.cells
    for f in range(len(graph.A)):
        if f >= graph.interior and graph.neumann[f - graph.interior]:
            continue
        w = alpha * float(graph.A[f]) / math.dist((0.0, 0.0), graph.d[f])
        total[graph.owner[f]] += w
        if f < graph.interior:
            total[graph.neighbour[f]] += w
    return min(float(V) / w if w else math.inf for V, w in zip(graph.V, total, strict=True))


@pytest.mark.parametrize("alpha", [1.0, 0.01, 37.0])
@pytest.mark.parametrize("boundary", [*BOUNDARIES.values(), None, Neumann()], ids=[*BOUNDARIES, "none", "insulated"])
@pytest.mark.parametrize("name", SIDED)
def test_the_fourier_step_is_that_of_a_plain_loop(name: str, boundary: Conditions, alpha: float) -> None:
    graph = dual(SIDED[name], boundary)
    assert fourier_step(graph, alpha) == pytest.approx(slow_fourier_step(graph, alpha), rel=1e-13)


@pytest.mark.parametrize("n", [3, 10])
def test_the_fourier_step_of_squares_is_known(n: int) -> None:
    # A corner cell has two faces of w = 1 and two walls at half the distance; an insulated one counts four faces.
    assert fourier_step(dual(squares(n))) == pytest.approx(1 / (6 * n * n), rel=1e-13)
    assert fourier_step(dual(squares(n), Neumann())) == pytest.approx(1 / (4 * n * n), rel=1e-13)
    assert fourier_step(dual(squares(n), {"left": Dirichlet(), "right": Neumann()})) < 1 / (4 * n * n)


def test_insulated_faces_are_kept_out_of_the_sum_of_weights() -> None:
    mesh = two_cells()
    assert fourier_step(dual(mesh, Neumann())) == pytest.approx(1.0, rel=1e-15)
    # Each wall is at the inradius 1/√3: w = 2√3, twice, beside w = √3 within.
    assert fourier_step(dual(mesh)) == pytest.approx(1 / 5, rel=1e-15)


def test_a_cell_that_exchanges_nothing_has_no_fourier_step() -> None:
    assert fourier_step(dual(squares(1), Neumann())) == math.inf
    assert fourier_step(dual(MESHES["islands"], Neumann())) < math.inf


@pytest.mark.parametrize("n", [2, 5])
def test_the_legs_of_right_triangles_are_skew_by_the_angle_of_one_in_two(n: int) -> None:
    graph = dual(right_triangles(n))
    angle = nonorthogonality(graph)
    hypotenuse = graph.A[: graph.interior] > 1.2 / n
    assert np.allclose(angle[hypotenuse], 0.0, atol=1e-12)
    assert np.allclose(angle[~hypotenuse], np.degrees(np.arctan(0.5)), rtol=1e-12)
    assert hypotenuse.sum() == n * n


@pytest.mark.parametrize("mesh", [squares(4), equilateral(4), cross_triangles(3), two_cells()], ids=lambda m: m.origin)
def test_families_of_perpendicular_centroid_lines_have_no_skewness(mesh: Mesh) -> None:
    assert np.abs(nonorthogonality(dual(mesh))).max() <= 1e-11


def test_skewness_of_a_known_pair() -> None:
    # Centroids (1/3, 1/3) and (1, 1), the face x + y = 1: 0°. Then the tip is pulled along the face's direction.
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    cells = np.array([[0, 1, 2], [1, 3, 2]])
    assert nonorthogonality(dual(Mesh(points, cells)))[0] == pytest.approx(0.0, abs=1e-12)
    points[3] = [3.0, 1.0]
    d = (points[3] - points[0]) / 3
    assert nonorthogonality(dual(Mesh(points, cells)))[0] == pytest.approx(45.0 - math.degrees(math.atan2(d[1], d[0])))


def test_quality_is_one_for_equilateral_triangles_and_squares_and_falls_with_flatness() -> None:
    assert cell_quality(equilateral(3)) == pytest.approx(np.ones(18), rel=1e-14)
    assert cell_quality(squares(3)) == pytest.approx(np.ones(9), rel=1e-14)
    assert cell_quality(right_triangles(2)) == pytest.approx(np.full(8, np.sqrt(3.0) / 2), rel=1e-14)
    flat = Mesh(np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 1e-6]]), np.array([[0, 1, 2]]))
    assert 0 < cell_quality(flat)[0] < 1e-5
    among = Mesh(MESHES["mixed"].points, MESHES["mixed"].cells)
    assert ((cell_quality(among) > 0) & (cell_quality(among) <= 1)).all()


def test_quality_does_not_depend_on_whether_triangles_are_stored_among_quadrilaterals() -> None:
    mesh = jittered(4, 0.3, seed=5)
    padded = np.concatenate([mesh.cells, np.full((len(mesh.cells), 1), -1)], axis=1)
    other = Mesh(mesh.points, padded, mesh.boundary)
    assert cell_quality(other) == pytest.approx(cell_quality(mesh), rel=1e-15)
    assert cell_diameters(other) == pytest.approx(cell_diameters(mesh), rel=1e-15)


def test_the_diameter_is_the_largest_distance_between_two_corners() -> None:
    for mesh in SIDED.values():
        for k, diameter in enumerate(cell_diameters(mesh)):
            corners = mesh.points[[c for c in mesh.cells[k] if c >= 0]]
            assert diameter == pytest.approx(max(math.dist(a, b) for a in corners for b in corners), rel=1e-15)


@few(20)
@given(scale=scales, angle=angles, shift=shifts)
def test_angles_and_quality_survive_motion_and_the_fourier_step_scales_as_a_square(
    scale: float, angle: float, shift: tuple[float, float]
) -> None:
    mesh = MESHES["mixed"]
    other = moved(mesh, scale=scale, angle=angle, shift=shift)
    rounding = 1e-13 * (scale + np.abs(shift).max()) / scale
    before, after = dual(mesh), dual(other)
    assert np.allclose(cell_quality(other), cell_quality(mesh), rtol=rounding, atol=rounding)
    assert np.allclose(cell_diameters(other), scale * cell_diameters(mesh), rtol=rounding, atol=0)
    assert np.allclose(nonorthogonality(after), nonorthogonality(before), rtol=0, atol=500 * rounding)
    assert fourier_step(after) == pytest.approx(scale**2 * fourier_step(before), rel=10 * rounding)


@pytest.mark.parametrize(("name", "parts"), [("islands", 3), ("mixed", 1), ("fan", 1), ("one", 1), ("arrow", 1)])
def test_components_counts_what_no_face_connects(name: str, parts: int) -> None:
    assert count_components(dual(MESHES[name])) == parts


def test_info_of_squares() -> None:
    description = info(squares(4))
    assert (description.cells, description.triangles, description.quadrilaterals, description.points) == (16, 0, 16, 25)
    assert (description.faces, description.boundary_faces, description.components) == (40, 16, 1)
    assert description.boundary_tags == {"left": 4, "right": 4, "bottom": 4, "top": 4}
    assert description.area == pytest.approx(1.0, rel=1e-14)
    assert description.h == pytest.approx(np.sqrt(2) / 4, rel=1e-14)
    assert description.dt_fourier == pytest.approx(1 / 96, rel=1e-13)
    assert (description.quality_min, description.quality_mean) == pytest.approx((1.0, 1.0), rel=1e-14)
    assert (description.nonorthogonality_mean_deg, description.nonorthogonality_max_deg) == pytest.approx(
        (0.0, 0.0), abs=1e-11
    )


def test_info_of_a_mixed_mesh_is_that_of_its_parts() -> None:
    mesh = MESHES["mixed"]
    description = info(dataclasses.replace(mesh, notes=("one note",)))
    assert (description.triangles, description.quadrilaterals) == (
        (mesh.cells[:, 3] < 0).sum(),
        (mesh.cells[:, 3] >= 0).sum(),
    )
    assert 0 < description.cell_area_min < description.cell_area_max
    assert description.area == pytest.approx(1.0, rel=1e-14)
    assert description.notes == ("one note",)
    assert description.nonorthogonality_max_deg > description.nonorthogonality_mean_deg > 0


def test_info_of_one_cell_has_no_angles() -> None:
    description = info(squares(1))
    assert (
        description.nonorthogonality_mean_deg,
        description.nonorthogonality_max_deg,
        description.boundary_faces,
    ) == (0.0, 0.0, 4)
