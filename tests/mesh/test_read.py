"""Valid files: every format gives the same mesh; repairs and remarks are noted."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import meshio
import numpy as np
import pytest
from mesh_files import (
    HALVES,
    LINE,
    QUADRILATERAL,
    SQUARE,
    TRIANGLE,
    WITH_TAGS,
    WRITERS,
    gmsh_session,
    msh,
    same,
    sample_mesh,
    shapes,
    write_sample,
)

from fluxforge.errors import MeshError
from fluxforge.mesh import Mesh, dual, read
from fluxforge.mesh._from_arrays import build_mesh


def edges(mesh: Mesh, tag: str) -> set[frozenset[tuple[float, float]]]:
    places = [tuple(point) for point in mesh.points.round(10).tolist()]
    return {frozenset(places[k] for k in edge) for edge in mesh.boundary[tag].tolist()}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_mesh(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mesh = read(write_sample(name, tmp_path))
    assert shapes(mesh) == shapes(sample_mesh())
    assert mesh.cells.dtype == np.int64
    assert mesh.points.dtype == np.float64
    assert mesh.notes == ()
    assert mesh.origin == str(tmp_path / name)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", WITH_TAGS)
def test_physical_names_become_tags(name: str, tmp_path: Path) -> None:
    mesh = read(write_sample(name, tmp_path))
    assert list(mesh.boundary) == ["inlet", "wall"]
    assert edges(mesh, "inlet") == {frozenset({(0, 0), (0, 1)}), frozenset({(0, 1), (0.3, 2)})}
    assert edges(mesh, "wall") == {frozenset({(0, 0), (1, 0)}), frozenset({(1, 0), (2, 0.1)})}


@pytest.mark.parametrize("name", [name for name in WITH_TAGS if name.startswith("msh")])
def test_our_msh_reader_agrees_with_meshio(name: str, tmp_path: Path) -> None:
    path = write_sample(name, tmp_path)
    theirs, ours = meshio.gmsh.read(path), read(path)
    corners = {
        frozenset(map(tuple, theirs.points[c, :2].round(10))) for b in theirs.cells if b.dim == 2 for c in b.data
    }
    assert corners == shapes(ours)


def test_nodes_and_cells_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    text = msh(SQUARE, HALVES)
    shuffled = text.replace("1 0 0 0\n2 1 0 0", "2 1 0 0\n1 0 0 0").replace(
        "1 2 2 0 1 1 2 3\n2 2 2 0 1 1 3 4", "2 2 2 0 1 1 3 4\n1 2 2 0 1 1 2 3"
    )
    assert shuffled != text
    (tmp_path / "ordered.msh").write_text(text)
    (tmp_path / "shuffled.msh").write_text(shuffled)
    assert same(read(tmp_path / "ordered.msh"), read(tmp_path / "shuffled.msh"))


def test_tags_without_a_name_are_numbered_and_untagged_lines_are_not_tags(tmp_path: Path) -> None:
    elements = [(LINE, (0, 1)), (LINE, (1, 2)), (LINE, (2, 3)), *HALVES]
    (tmp_path / "a.msh").write_text(msh(SQUARE, elements, names=["floor"], tags=[1, 7, 0, 0, 0]))
    mesh = read(tmp_path / "a.msh")
    assert {tag: pairs.tolist() for tag, pairs in mesh.boundary.items()} == {"floor": [[0, 1]], "tag-7": [[1, 2]]}
    assert mesh.notes == ()


def test_boundary_edges_have_their_cell_on_the_left(tmp_path: Path) -> None:
    (tmp_path / "a.msh").write_text(msh(SQUARE, [(LINE, (1, 0)), *HALVES], names=["floor"], tags=[1, 0, 0]))
    assert read(tmp_path / "a.msh").boundary["floor"].tolist() == [[0, 1]]


def test_tagged_lines_inside_are_noted_and_ignored(tmp_path: Path) -> None:
    elements = [(LINE, (0, 2)), (LINE, (0, 1)), *HALVES]
    (tmp_path / "a.msh").write_text(msh(SQUARE, elements, names=["crack"], tags=[1, 1, 0, 0]))
    mesh = read(tmp_path / "a.msh")
    assert mesh.boundary["crack"].tolist() == [[0, 1]]
    assert mesh.notes == ("ignored 1 edge of tag 'crack' that is not on the boundary",)


def test_an_edge_in_two_tags_keeps_the_first(tmp_path: Path) -> None:
    elements = [(LINE, (0, 1)), (LINE, (1, 0)), (LINE, (1, 2)), *HALVES]
    (tmp_path / "a.msh").write_text(msh(SQUARE, elements, names=["a", "b"], tags=[1, 2, 2, 0, 0]))
    mesh = read(tmp_path / "a.msh")
    assert {tag: pairs.tolist() for tag, pairs in mesh.boundary.items()} == {"a": [[0, 1]], "b": [[1, 2]]}
    assert any("'b'" in note and "earlier" in note for note in mesh.notes)


@pytest.mark.parametrize("extension", ["vtu", "vtk"])
def test_line_tags_in_cell_data_are_read(extension: str, tmp_path: Path) -> None:
    blocks = [("line", np.array([[0, 1], [1, 2]])), ("triangle", np.array([[0, 1, 2], [0, 2, 3]]))]
    points = np.column_stack([np.array(SQUARE, float), np.zeros(4)])
    tagged = meshio.Mesh(points, blocks, cell_data={"gmsh:physical": [np.array([4, 5]), np.array([9, 7])]})
    tagged.write(tmp_path / f"a.{extension}")
    mesh = read(tmp_path / f"a.{extension}")
    assert {tag: pairs.tolist() for tag, pairs in mesh.boundary.items()} == {"tag-4": [[0, 1]], "tag-5": [[1, 2]]}
    assert {name: cells.tolist() for name, cells in mesh.regions.items()} == {"tag-7": [1], "tag-9": [0]}


def test_medit_references_of_edges_are_tags(tmp_path: Path) -> None:
    text = "MeshVersionFormatted 2\nDimension 2\nVertices\n4\n0 0 0\n1 0 0\n1 1 0\n0 1 0\nEdges\n1\n1 2 6\n"
    (tmp_path / "a.mesh").write_text(text + "Triangles\n2\n1 2 3 0\n1 3 4 5\nEnd\n")
    mesh = read(tmp_path / "a.mesh")
    assert mesh.boundary["tag-6"].tolist() == [[0, 1]]
    # Reference 0 is none.
    assert {name: cells.tolist() for name, cells in mesh.regions.items()} == {"tag-5": [1]}


def test_a_plane_at_any_height_is_flat(tmp_path: Path) -> None:
    (tmp_path / "a.msh").write_text(msh([(x, y, 3.25 + 1e-13 * x) for x, y in SQUARE], HALVES))
    assert read(tmp_path / "a.msh").points.tolist() == [[float(x), float(y)] for x, y in SQUARE]


def test_an_off_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.off").write_text("OFF\n# a comment\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n3 0 2 3\n")
    assert read(tmp_path / "a.off").cells.tolist() == [[0, 1, 2], [0, 2, 3]]


@pytest.fixture
def gmsh() -> Iterator[Any]:
    with gmsh_session() as module:
        yield module


@pytest.mark.parametrize("version", [2.2, 4.1])
@pytest.mark.parametrize("binary", [0, 1])
def test_files_of_gmsh_itself_are_read(gmsh: Any, version: float, binary: int, tmp_path: Path) -> None:
    gmsh.model.occ.addRectangle(0, 0, 0, 2, 1)
    gmsh.model.occ.synchronize()
    gmsh.model.addPhysicalGroup(1, [1, 3], name="floor and ceiling")
    gmsh.model.addPhysicalGroup(1, [2], tag=40)
    gmsh.option.setNumber("Mesh.MeshSizeMax", 0.3)
    # Version 4 tells tags also where all is saved: here the surface, one side and the corners are in no group.
    save_all = int(version > 4)
    if not save_all:
        gmsh.model.addPhysicalGroup(2, [1])
    for option, value in (("MshFileVersion", version), ("Binary", binary), ("SaveAll", save_all)):
        gmsh.option.setNumber(f"Mesh.{option}", value)
    gmsh.model.mesh.generate(2)
    gmsh.write(str(tmp_path / "a.msh"))
    mesh = read(tmp_path / "a.msh")
    assert len(mesh.cells) == len(gmsh.model.mesh.getElementsByType(2)[0])
    assert list(mesh.boundary) == ["floor and ceiling", "tag-40"]
    assert set(mesh.points[mesh.boundary["floor and ceiling"]][..., 1].ravel().tolist()) == {0.0, 1.0}
    assert set(mesh.points[mesh.boundary["tag-40"]][..., 0].ravel().tolist()) == {2.0}
    assert mesh.notes == ()


@pytest.mark.parametrize("version", [2.2, 4.1])
@pytest.mark.parametrize("binary", [0, 1])
def test_physical_surfaces_of_gmsh_are_regions(gmsh: Any, version: float, binary: int, tmp_path: Path) -> None:
    """Two rectangles side by side and a third above them, which has a number and no name."""
    for corner in ((0, 0), (1, 0), (0, 1)):
        gmsh.model.occ.addRectangle(*corner, 0, 1, 1)
    gmsh.model.occ.fragment([(2, 1)], [(2, 2), (2, 3)])
    gmsh.model.occ.synchronize()
    gmsh.model.addPhysicalGroup(2, [1], name="steel")
    gmsh.model.addPhysicalGroup(2, [2], name="hot air")
    gmsh.model.addPhysicalGroup(2, [3], tag=40)
    gmsh.option.setNumber("Mesh.MeshSizeMax", 0.4)
    for option, value in (("MshFileVersion", version), ("Binary", binary)):
        gmsh.option.setNumber(f"Mesh.{option}", value)
    gmsh.model.mesh.generate(2)
    gmsh.write(str(tmp_path / "a.msh"))
    mesh = read(tmp_path / "a.msh")
    assert set(mesh.regions) == {"steel", "hot air", "tag-40"}
    x, y = dual(mesh).x.T
    for name, inside in {"steel": (x < 1) & (y < 1), "hot air": x > 1, "tag-40": y > 1}.items():
        assert inside.any()
        np.testing.assert_array_equal(mesh.regions[name], np.flatnonzero(inside))


@pytest.mark.parametrize("binary", [0, 1])
def test_parametric_nodes_of_gmsh_are_read(gmsh: Any, binary: int, tmp_path: Path) -> None:
    gmsh.model.occ.addDisk(0, 0, 0, 1, 1)
    gmsh.model.occ.synchronize()
    gmsh.model.mesh.generate(2)
    for parametric in (0, 1):
        for option, value in (("Binary", binary), ("SaveParametric", parametric)):
            gmsh.option.setNumber(f"Mesh.{option}", value)
        gmsh.write(str(tmp_path / f"{parametric}.msh"))
    assert (tmp_path / "0.msh").stat().st_size < (tmp_path / "1.msh").stat().st_size
    assert same(read(tmp_path / "0.msh"), read(tmp_path / "1.msh"))


def test_clockwise_cells_are_turned_round_and_counted(tmp_path: Path) -> None:
    elements = [(QUADRILATERAL, (0, 3, 2, 1)), (TRIANGLE, (1, 2, 4)), (TRIANGLE, (1, 4, 5))]
    (tmp_path / "a.msh").write_text(msh([*SQUARE, (2, 1), (2, 0)], elements))
    mesh = read(tmp_path / "a.msh")
    assert mesh.notes == ("reoriented 3 clockwise cells",)
    assert mesh.cells.tolist() == [[0, 1, 2, 3], [1, 4, 2, -1], [1, 5, 4, -1]]


def test_parts_and_orphans_are_noted(tmp_path: Path) -> None:
    points = [(9, 9), *SQUARE, (1e20, 5), (5, 0), (6, 0), (5, 1)]
    elements = [(LINE, (1, 2)), (QUADRILATERAL, (1, 2, 3, 4)), (TRIANGLE, (6, 7, 8))]
    (tmp_path / "a.msh").write_text(msh(points, elements, names=["floor"], tags=[1, 0, 0]))
    mesh = read(tmp_path / "a.msh")
    assert mesh.notes == ("the mesh has 2 disconnected parts", "dropped 2 points that no cell uses")
    assert mesh.cells.tolist() == [[0, 1, 2, 3], [4, 5, 6, -1]]
    assert mesh.points[4].tolist() == [5, 0]
    assert mesh.boundary["floor"].tolist() == [[0, 1]]


def test_a_slit_of_duplicated_points_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.msh").write_text(
        msh([*SQUARE, (1, 0), (2, 0), (2, 1), (1, 1)], [(QUADRILATERAL, (0, 1, 2, 3)), (QUADRILATERAL, (4, 5, 6, 7))])
    )
    notes = read(tmp_path / "a.msh").notes
    assert any("1 pair of boundary edges coincides" in note for note in notes)
    assert "the mesh has 2 disconnected parts" in notes


def test_a_quadrilateral_that_is_not_convex_is_accepted_and_noted() -> None:
    mesh = build_mesh(np.array([[0.0, 0], [2, 0], [0.5, 0.5], [0, 2]]), np.array([[0, 1, 2, 3]]), origin="m")
    assert mesh.notes == ("1 quadrilateral is not convex",)


def test_holes_and_touching_corners_are_no_overlap() -> None:
    side = np.arange(5.0)
    points = np.array([(x, y) for y in side for x in side])
    corner = np.array([0, 2, 5, 6, 8, 10, 12, 16, 18])
    cells = np.column_stack([corner, corner + 1, corner + 6, corner + 5])
    assert len(build_mesh(points, cells, origin="m").cells) == 9


@pytest.mark.parametrize("seed", range(4))
def test_random_triangulations_are_accepted_at_any_place_and_scale(seed: int) -> None:
    spatial = importlib.import_module("scipy.spatial")
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(300, 2))
    cells = spatial.Delaunay(points).simplices.astype(int)
    moved = 10.0 ** rng.uniform(-6, 6) * (points + 1e3 * rng.uniform(-1, 1, 2))
    mesh = build_mesh(moved, cells, origin="m")
    assert len(mesh.cells) == len(cells)


@pytest.mark.parametrize(
    ("points", "cells", "words"),
    [
        (np.zeros((3, 3)), np.array([[0, 1, 2]]), "two columns"),
        (np.zeros((3, 2)), np.array([[0.0, 1, 2]]), "integers in 3 or 4 columns"),
        (np.zeros((3, 2)), np.array([[0, 1]]), "integers in 3 or 4 columns"),
        (np.zeros((3, 2)), np.empty((0, 3), int), "no cells"),
        (np.eye(3)[:, :2], np.array([[0, 1, -1]]), "cell 0 refers to point -1"),
        (np.eye(3)[:, :2] * 1e-200, np.array([[0, 1, 2]]), "has an extent of 1e-200, and lengths should lie"),
        (np.eye(3)[:, :2] * 1e200, np.array([[0, 1, 2]]), r"the coordinate 1e\+200, and lengths should lie"),
    ],
)
def test_arrays_that_are_no_mesh_are_refused(points: np.ndarray, cells: np.ndarray, words: str) -> None:
    with pytest.raises(MeshError, match=words) as caught:
        build_mesh(points, cells, origin="from arrays")
    assert str(caught.value).startswith("from arrays: ")


def test_tagged_edges_of_points_that_do_not_exist_are_refused() -> None:
    triangle, edge = np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([[0, 5]])
    with pytest.raises(MeshError, match="'wall' joins points 0 and 5"):
        build_mesh(triangle, np.array([[0, 1, 2]]), boundary={"wall": edge}, origin="m")
