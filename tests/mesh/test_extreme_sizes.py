"""Meshes so large or so small that areas overflow or vanish: said as such, and no warning of NumPy is shown.

Warnings are errors in these tests, so that every call below is also one that warns of nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mesh_files import msh, refusal

from fluxforge.cli import main
from fluxforge.errors import InputError, MeshError
from fluxforge.mesh import Dirichlet, Disk, Mesh, Polygon, dual, info, jittered, read, right_triangles, squares
from fluxforge.mesh._cells import cell_centroids

TOO_LARGE, TOO_SMALL = (1.1e100, 1e120, 1e149, 1e150, 1e160, 1e200, 1e300), (9e-101, 1e-120, 1e-150, 1e-160, 1e-300)
RESCALE = (
    "lengths should lie between 1e-100 and 1e+100, since areas overflow or underflow otherwise: rescale the mesh, "
    "for example to an extent of 1"
)


def scale_squares(size: float) -> Mesh:
    mesh = squares(3)
    return replace(mesh, points=mesh.points * size, origin="mine")


def write_msh(mesh: Mesh, folder: Path) -> Path:
    path = folder / "a.msh"
    path.write_text(msh(mesh.points.tolist(), [(3, tuple(cell)) for cell in mesh.cells.tolist()]))
    return path


@pytest.mark.parametrize("size", TOO_LARGE)
def test_a_mesh_that_is_too_large(size: float, tmp_path: Path) -> None:
    said = rf"^mine: point 3 has the coordinate {size:g}, and {RESCALE}$".replace("+", r"\+")
    for ask in (dual, info):
        with pytest.raises(MeshError, match=said):
            ask(scale_squares(size))
    assert refusal(write_msh(scale_squares(size), tmp_path)) == f"point 3 has the coordinate {size:g}, and {RESCALE}"


@pytest.mark.parametrize("size", TOO_SMALL)
def test_a_mesh_that_is_too_small(size: float, tmp_path: Path) -> None:
    for ask in (dual, info):
        with pytest.raises(MeshError, match=rf"^mine: has an extent of {size:g}, and {RESCALE}$".replace("+", r"\+")):
            ask(scale_squares(size))
    assert refusal(write_msh(scale_squares(size), tmp_path)) == f"has an extent of {size:g}, and {RESCALE}"


@pytest.mark.parametrize("size", [1e100, 1e99, 1e60, 1e-60, 1e-99, 1e-100])
def test_a_mesh_within_the_range_is_the_same_in_other_units(size: float, tmp_path: Path) -> None:
    """Volumes, lengths and places scale; the tolerance is round-off of a few operations, 8 ε."""
    expected, graph = dual(squares(3)), dual(read(write_msh(scale_squares(size), tmp_path)))
    for name, power in (("V", 2), ("x", 1), ("A", 1), ("d", 1), ("delta", 1), ("n", 0)):
        wanted = getattr(expected, name)
        actual = getattr(graph, name) / size ** (power / 2) / size ** (power / 2)
        assert np.allclose(actual, wanted, rtol=8 * 2.0**-52, atol=8 * 2.0**-52 * np.abs(wanted).max()), name
    assert info(scale_squares(size)).quality_min == pytest.approx(1.0)


def test_centroids_do_not_depend_on_the_unit_of_length() -> None:
    """The third power of a length of 2⁻⁴⁰⁰ vanishes in doubles; a power of two changes no digit."""
    mesh = jittered(4, seed=1)
    for power in (-400, -300, 300, 400):
        moved = cell_centroids(np.ldexp(mesh.points, power), mesh.cells)
        assert np.array_equal(moved, np.ldexp(cell_centroids(mesh.points, mesh.cells), power))


@pytest.mark.parametrize("make", [lambda size: Disk(radius=size), lambda size: Polygon([(0, 0), (size, 0), (0, size)])])
@pytest.mark.parametrize("size", [1e150, 1e-150])
def test_a_domain_that_is_too_large_or_too_small(make: Callable[[float], object], size: float) -> None:
    with pytest.raises(
        InputError, match=r"lie between 1e-100 and 1e\+100, since areas overflow or underflow otherwise: rescale"
    ) as error:
        make(size)
    assert f"{size:g}" in str(error.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_mesh_with_a_coordinate_that_is_no_number(bad: float) -> None:
    mesh = right_triangles(2)
    points = mesh.points.copy()
    points[4, 1] = bad
    with pytest.raises(MeshError, match=r"point 4 is at \(0.5, -?(nan|inf)\): every coordinate should be a finite"):
        dual(replace(mesh, points=points))


def test_a_mesh_built_in_python_with_cells_that_have_no_area() -> None:
    points = np.array([[0.0, 0], [1, 0], [2, 0], [0, 1]])
    with pytest.raises(MeshError, match=r"cell 1 has the area 0 \(points 0, 1, 2\): list the corners"):
        dual(Mesh(points, np.array([[0, 1, 3], [0, 1, 2]])))
    with pytest.raises(MeshError, match=r"cell 0 has the area -0.5 \(points 0, 3, 1\)"):
        dual(Mesh(points, np.array([[0, 3, 1]])))


def test_a_function_that_is_not_finite_on_the_boundary_is_refused_in_words() -> None:
    with pytest.raises(InputError, match=r"the boundary condition of 'bottom' is inf at \("):
        dual(squares(2), {"bottom": Dirichlet(lambda x, y: 1.0 / y)})


def test_the_terminal_shows_one_line_and_no_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_msh(scale_squares(1e149), tmp_path)
    assert main(["mesh", "info", str(path)]) == 2
    assert "rescale the mesh" in " ".join(capsys.readouterr().err.split())
