"""Files that hold bad meshes: each is refused in one line that opens with the path and names the element."""

import re
from pathlib import Path

import meshio
import numpy as np
import pytest
from mesh_files import (
    HALVES,
    LINE,
    POINTS,
    QUADRILATERAL,
    SQUARE,
    TRIANGLE,
    TRIANGLES,
    msh,
    refusal,
    refused_text,
    write_sample,
)

from fluxforge.mesh import read

# ---- cells that cannot be used -------------------------------------------------------------------------------------


def test_no_cells(tmp_path: Path) -> None:
    assert "no triangles or quadrilaterals" in refused_text(tmp_path, msh(SQUARE, []))
    assert "no triangles or quadrilaterals" in refused_text(tmp_path, msh(SQUARE, [(LINE, (0, 1))]))


def test_higher_order_cells_are_refused_by_name_and_count(tmp_path: Path) -> None:
    points = [(0, 0), (2, 0), (0, 2), (1, 0), (1, 1), (0, 1)]
    message = refused_text(tmp_path, msh(points, [(9, (0, 1, 2, 3, 4, 5)), (8, (0, 1, 3))]))
    assert "1 of type 'triangle6', 1 of type 'line3'" in message
    assert "order 1" in message


def test_unsupported_cells_are_never_dropped(tmp_path: Path) -> None:
    tetrahedron = (4, (0, 1, 2, 3))
    assert "2 of type 'tetra'" in refused_text(tmp_path, msh(SQUARE, [*HALVES, tetrahedron, tetrahedron]))
    assert "type 140" in refused_text(tmp_path, msh(SQUARE, [(140, (0, 1, 2))]))


@pytest.mark.parametrize("extension", ["vtk", "vtu"])
def test_polygons_are_refused(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{extension}"
    polygon = np.array([[0, 1, 4, 7, 3]])
    getattr(meshio, extension).write(path, meshio.Mesh(POINTS, [("polygon", polygon), ("triangle", TRIANGLES)]))
    assert "1 of type 'polygon'" in refusal(path)


def test_vtk_types_that_meshio_would_skip_are_refused(tmp_path: Path) -> None:
    text = write_sample("vtk5-text.vtk", tmp_path).read_text()
    assert "unknown type" in refused_text(tmp_path, re.sub(r"(CELL_TYPES 5\n)5\n", r"\g<1>6\n", text), "a.vtk")


def test_grids_of_other_kinds_are_refused_by_name(tmp_path: Path) -> None:
    head = "# vtk DataFile Version 3.0\nx\nASCII\nDATASET STRUCTURED_POINTS\nDIMENSIONS 9999 9999 1\n"
    assert "STRUCTURED_POINTS" in refused_text(tmp_path, head, "a.vtk")
    assert "'PolyData'" in refused_text(tmp_path, '<VTKFile type="PolyData"></VTKFile>', "a.vtu")


def test_versions_we_do_not_know(tmp_path: Path) -> None:
    for version in ("1.0", "4.0", "5", "x"):
        assert f"'{version}'" in refused_text(tmp_path, msh(SQUARE, HALVES).replace("2.2 0 8", f"{version} 0 8"))


def test_sections_missing_doubled_or_out_of_place(tmp_path: Path) -> None:
    text = msh(SQUARE, HALVES)
    nodes = text[text.index("$Nodes") : text.index("$Elements")]
    assert "no section $Nodes" in refused_text(tmp_path, text.replace(nodes, ""))
    assert "two sections $Nodes" in refused_text(tmp_path, text.replace(nodes, nodes + nodes))
    assert "where a section should begin" in refused_text(tmp_path, text + "stray\n")
    assert "node 4 twice" in refused_text(tmp_path, text.replace("\n3 1 1 0", "\n4 1 1 0"))


# ---- points --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
def test_coordinates_that_are_not_finite(value: str, tmp_path: Path) -> None:
    message = refused_text(tmp_path, msh([*SQUARE[:2], (1, value), SQUARE[3]], HALVES))
    assert message.startswith("point 2 is at (1, ")
    assert "finite" in message


def test_coordinates_that_are_not_finite_in_other_formats(tmp_path: Path) -> None:
    for name in ("vtk4-text.vtk", "text.vtu", "xml.xdmf"):
        text = write_sample(name, tmp_path).read_text()
        begin = re.search(r'POINTS 9 double\n|Name="Points"[^>]*>\s*|Geometry[^>]*>\s*<DataItem[^>]*>\s*', text)
        assert begin is not None
        broken = text[: begin.end()] + re.sub(r"^\S+", "nan", text[begin.end() :])
        assert "point 0 is at (nan, 0, 0)" in refused_text(tmp_path, broken, f"a{Path(name).suffix}")


def test_a_surface_that_is_not_plane(tmp_path: Path) -> None:
    points = [(0, 0, 0), (1, 0, 0), (1, 1, 0.5), (0, 1, 0)]
    assert "not a plane mesh: point 0 has z = 0 and point 2 has z = 0.5" in refused_text(tmp_path, msh(points, HALVES))


@pytest.mark.parametrize(("axis", "place"), [("x", (3, 0, 1)), ("y", (0, 3, 1))])
def test_a_plane_other_than_x_y(axis: str, place: tuple[int, ...], tmp_path: Path) -> None:
    points = [tuple((*point, 0, 7)[k] for k in place) for point in SQUARE]
    assert f"constant {axis}" in refused_text(tmp_path, msh(points, HALVES))


# ---- cells against their points and each other ---------------------------------------------------------------------


@pytest.mark.parametrize("corner", [9, -1, -2, 10**9])
def test_an_index_out_of_range(corner: int, tmp_path: Path) -> None:
    message = refused_text(tmp_path, msh(SQUARE, [HALVES[0], (TRIANGLE, (0, 2, corner))]))
    assert message == f"cell 1 refers to node {corner + 1}, which the file does not list"


@pytest.mark.parametrize("corner", [9, -1])
def test_an_index_out_of_range_in_other_formats(corner: int, tmp_path: Path) -> None:
    points = np.column_stack([np.array(SQUARE, float), np.zeros(4)])
    for kind, corners in (("triangle", [[0, 1, 2], [0, 2, corner]]), ("quad", [[0, 1, 2, 3], [1, 2, 3, corner]])):
        for extension in ("vtk", "vtu"):
            getattr(meshio, extension).write(
                tmp_path / f"a.{extension}", meshio.Mesh(points, [(kind, np.array(corners))])
            )
            assert f"cell 1 refers to node {corner}" in refusal(tmp_path / f"a.{extension}")


def test_a_line_with_an_index_out_of_range(tmp_path: Path) -> None:
    text = msh(SQUARE, [(LINE, (0, 8)), *HALVES], names=["wall"], tags=[1, 0, 0])
    assert "a line of tag 1 refers to node 9" in refused_text(tmp_path, text)


def test_a_repeated_corner(tmp_path: Path) -> None:
    message = refused_text(tmp_path, msh(SQUARE, [HALVES[0], (TRIANGLE, (0, 3, 3))]))
    assert message == "cell 1 uses point 3 twice (points 0, 3, 3)"
    assert "cell 0 uses point 0 twice" in refused_text(tmp_path, msh(SQUARE, [(QUADRILATERAL, (0, 1, 2, 0))]))


def test_a_cell_of_no_area(tmp_path: Path) -> None:
    points = [*SQUARE, (0.5, 0.5 + 1e-16)]
    message = refused_text(tmp_path, msh(points, [*HALVES, (TRIANGLE, (0, 2, 4))]))
    assert message == "cell 2 has zero area (points 0, 2, 4)"
    nearly = msh([(0, 0), (1, 0), (0.5, 1e-13)], [(TRIANGLE, (0, 1, 2))])
    assert "zero area" in refused_text(tmp_path, nearly)


def test_a_thin_cell_is_not_flat(tmp_path: Path) -> None:
    (tmp_path / "thin.msh").write_text(msh([(0, 0), (1, 0), (0.5, 1e-7)], [(TRIANGLE, (0, 1, 2))]))
    assert len(read(tmp_path / "thin.msh").cells) == 1


def test_a_quadrilateral_that_crosses_itself(tmp_path: Path) -> None:
    message = refused_text(tmp_path, msh(SQUARE, [(QUADRILATERAL, (0, 2, 1, 3))]))
    assert message.startswith("cell 0 crosses itself (points 0, 2, 1, 3)")
    lopsided = [(0, 0), (1, 1), (1, 0), (0, 2)]
    assert "crosses itself" in refused_text(tmp_path, msh(lopsided, [(QUADRILATERAL, (0, 1, 2, 3))]))


def test_a_quadrilateral_that_folds_back(tmp_path: Path) -> None:
    points = [(0, 0), (1, 0), (0.5, 0), (0, 1)]
    assert "cell 0 folds back" in refused_text(tmp_path, msh(points, [(QUADRILATERAL, (0, 1, 2, 3))]))


def test_two_corners_at_one_place(tmp_path: Path) -> None:
    points = [(0, 0), (1, 0), (1, 1), (1, 1)]
    message = refused_text(tmp_path, msh(points, [(QUADRILATERAL, (0, 1, 2, 3))]))
    assert message == "cell 0 has two corners at one place (points 2 and 3)"


def test_an_edge_shared_by_three_cells(tmp_path: Path) -> None:
    points = [(0, 0), (0, 1), (1, 0.5), (-1, 0.5), (2, 0.4)]
    message = refused_text(tmp_path, msh(points, [(TRIANGLE, (0, 1, k)) for k in (2, 3, 4)]))
    assert message.startswith("the edge between points 0 and 1 is shared by 3 cells (0, 1, 2)")


def test_duplicate_cells(tmp_path: Path) -> None:
    message = refused_text(tmp_path, msh(SQUARE, [*HALVES, (TRIANGLE, (2, 1, 0))]))
    assert message == "cells 0 and 2 are the same cell (points 0, 1, 2)"
    alone = msh(SQUARE, [(QUADRILATERAL, (0, 1, 2, 3)), (QUADRILATERAL, (1, 2, 3, 0))])
    assert "cells 0 and 1 are the same cell" in refused_text(tmp_path, alone)


def test_coincident_centroids(tmp_path: Path) -> None:
    inner = [(0.25, 0.25), (0.75, 0.25), (0.75, 0.75), (0.25, 0.75)]
    elements = [(QUADRILATERAL, (0, 1, 2, 3)), (QUADRILATERAL, (4, 5, 6, 7))]
    message = refused_text(tmp_path, msh([*SQUARE, *inner], elements))
    assert message == "cells 0 and 1 have the same centroid (0.5, 0.5)"


TWO_SQUARES = [(QUADRILATERAL, (0, 1, 2, 3)), (QUADRILATERAL, (4, 5, 6, 7))]


@pytest.mark.parametrize(
    ("points", "elements", "words"),
    [
        pytest.param(
            [(0, 0), (1, 0), (0.4, 1), (0.7, 0.9)],
            [(TRIANGLE, (0, 1, 2)), (TRIANGLE, (0, 1, 3))],
            "cells 0 and 1 overlap: both lie on the same side of the edge between points 0 and 1",
            id="on one side of a common edge",
        ),
        pytest.param(
            [*SQUARE, (0.5, 0.5), (1.5, 0.5), (1.5, 1.6), (0.5, 1.5)],
            TWO_SQUARES,
            "cells 0 and 1 overlap: the edges between points",
            id="boundaries cross",
        ),
        pytest.param(
            [*SQUARE, (0.2, 0.2), (0.6, 0.2), (0.6, 0.6), (0.2, 0.6)],
            TWO_SQUARES,
            "cell 0 overlaps other cells (points 0, 1, 2, 3)|cell 1 overlaps other cells (points 4, 5, 6, 7)",
            id="one inside the other",
        ),
        pytest.param(
            [*SQUARE, (0, 0), (1, 0), (1, 1), (0, 2)],
            TWO_SQUARES,
            "cells 0 and 1 overlap: both lie on the same side of the edge",
            id="duplicated points",
        ),
        pytest.param(
            [(0, 0), (2, 0), (1, 2), (2, 2)],
            [(TRIANGLE, (0, 1, 2)), (TRIANGLE, (0, 3, 1))],
            "both lie on the same side of the edge",
            id="clockwise and counter-clockwise",
        ),
        pytest.param(
            [(0, 0), (2, 0), (2, 1), (1, 0.2), (1, 2)],
            [(TRIANGLE, (0, 1, 2)), (TRIANGLE, (0, 3, 4))],
            "cells 0 and 1 overlap around point 0",
            id="sectors around a corner",
        ),
        pytest.param(
            [(0, 0), *[(np.cos(0.8 * np.pi * k), np.sin(0.8 * np.pi * k)) for k in range(5)]],
            [(TRIANGLE, (0, 1 + k, 1 + (k + 1) % 5)) for k in range(5)],
            "the cells around point 0 overlap: their angles add up to 720 degrees",
            id="twice around a point",
        ),
        pytest.param(
            [(0, 0), (1, 0), (1, 1), (0, 1), (2, 0), (2, 0.5), (2, 1), (1, 0.5)],
            [(QUADRILATERAL, (0, 1, 2, 3)), (QUADRILATERAL, (1, 4, 5, 7)), (QUADRILATERAL, (7, 5, 6, 2))],
            "point 7 lies inside the edge between points 1 and 2 of cell 0",
            id="hanging node",
        ),
    ],
)
def test_overlapping_cells(
    points: list[tuple[float, float]], elements: list[tuple[int, tuple[int, ...]]], words: str, tmp_path: Path
) -> None:
    message = refused_text(tmp_path, msh(points, elements))
    assert any(word in message for word in words.split("|"))


def test_an_overlap_in_a_large_mesh_is_found(tmp_path: Path) -> None:
    n = 40
    points = [(x, y) for y in range(n + 1) for x in range(n + 1)]
    cells = [(k + r, k + r + 1, k + r + n + 2, k + r + n + 1) for r in range(n) for k in range(n * r, n * r + n)]
    patch = [(x + 20.3, y + 20.3) for x, y in SQUARE]
    elements = [(QUADRILATERAL, cell) for cell in [*cells, (1681, 1682, 1683, 1684)]]
    assert "overlap" in refused_text(tmp_path, msh([*points, *patch], elements))
    apart = [(x + 50, y) for x, y in patch]
    (tmp_path / "good.msh").write_text(msh([*points, *apart], elements))
    assert read(tmp_path / "good.msh").notes == ("the mesh has 2 disconnected parts",)
