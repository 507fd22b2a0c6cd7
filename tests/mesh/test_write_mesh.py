"""What is written is read back, by us, by gmsh and by meshio; what cannot be written leaves nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import meshio
import numpy as np
import pytest
from mesh_files import SQUARE, gmsh_session, same, sample_mesh, shapes

from fluxforge.errors import InputError
from fluxforge.mesh import Mesh, read, write
from fluxforge.mesh._from_arrays import build_mesh


@pytest.fixture
def gmsh() -> Iterator[Any]:
    with gmsh_session() as module:
        yield module


def test_gmsh_reads_what_we_write(gmsh: Any, tmp_path: Path) -> None:
    mesh = sample_mesh()
    write(mesh, tmp_path / "a.msh", cell_data={"T": np.arange(5) / 3.0})
    gmsh.open(str(tmp_path / "a.msh"))
    groups = gmsh.model.getPhysicalGroups(1)
    assert [gmsh.model.getPhysicalName(*group) for group in groups] == ["inlet", "the wall"]
    assert np.array_equal(gmsh.model.mesh.getNodes()[1].reshape(-1, 3)[:, :2], mesh.points)
    numbers, values = gmsh.view.getModelData(gmsh.view.getTags()[0], 0)[1:3]
    assert list(numbers) == [1, 2, 3, 4, 5]
    assert [value[0] for value in values] == [0.0, 1 / 3, 2 / 3, 1.0, 4 / 3]


def test_a_written_msh_is_read_back_identically(tmp_path: Path) -> None:
    mesh = sample_mesh()
    write(mesh, tmp_path / "a.msh", cell_data={"T": np.ones(5), "v": np.ones((5, 2))})
    back = read(tmp_path / "a.msh")
    assert same(mesh, back)
    assert back.notes == ()
    assert [path.name for path in tmp_path.iterdir()] == ["a.msh"]


def test_meshio_reads_the_msh_we_write(tmp_path: Path) -> None:
    write(sample_mesh(), tmp_path / "a.msh")
    sets = meshio.gmsh.read(tmp_path / "a.msh").cell_sets_dict
    assert {name: {kind: len(k) for kind, k in sets[name].items()} for name in ("inlet", "the wall", "domain")} == {
        "inlet": {"line": 2},
        "the wall": {"line": 2},
        "domain": {"triangle": 2, "quad": 3},
    }


@pytest.mark.parametrize("extension", ["vtk", "vtu", "xdmf", "xmf", "mesh", "obj"])
def test_other_formats_keep_every_digit_in_one_file(
    extension: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(5)
    mesh = sample_mesh()
    mesh = Mesh(mesh.points * 1e-3 + rng.uniform(0, 1e-5, mesh.points.shape), mesh.cells)
    path = tmp_path / "new folder" / f"a.{extension}"
    write(mesh, path)
    back = read(path)
    assert np.array_equal(back.points, mesh.points)
    assert shapes(back) == shapes(mesh)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert capsys.readouterr() == ("", "")


def test_triangles_alone_are_written_as_off(tmp_path: Path) -> None:
    mesh = build_mesh(np.array(SQUARE) / 3, np.array([[0, 1, 2], [0, 2, 3]]), origin="m")
    write(mesh, tmp_path / "a.off")
    assert same(read(tmp_path / "a.off"), mesh)


@pytest.mark.parametrize("extension", ["vtk", "vtu", "xdmf"])
def test_cell_data_follow_their_cells(extension: str, tmp_path: Path) -> None:
    mesh = sample_mesh()
    centre = np.array([mesh.points[cell[cell >= 0]].mean(axis=0) for cell in mesh.cells])
    fields = {"x": centre[:, 0], "centre": centre, "number": np.arange(5), "left": centre[:, 0] < 1}
    write(mesh, tmp_path / f"a.{extension}", cell_data=fields)
    written = getattr(meshio, extension).read(tmp_path / f"a.{extension}")
    for k, block in enumerate(written.cells):
        x = written.points[block.data].mean(axis=1)
        assert np.allclose(written.cell_data["centre"][k], x, atol=1e-15)
        assert np.array_equal(written.cell_data["x"][k].ravel(), written.cell_data["centre"][k][:, 0])
        assert np.array_equal(written.cell_data["left"][k].ravel(), x[:, 0] < 1)
    assert sorted(np.concatenate([d.ravel() for d in written.cell_data["number"]])) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "cell_data", "words"),
    [
        ("a.png", None, ["'.png'", ".msh .vtk .vtu .xdmf"]),
        ("a", None, ["''", ".msh"]),
        ("a.vtu", {"T": np.ones(4)}, ["'T'", "5 numbers", "(4,)"]),
        ("a.vtu", {"T": np.array([0, 1, np.nan, 3, 4])}, ["'T'", "cell 2"]),
        ("a.vtu", {"T": np.array(["a"] * 5)}, ["'T'", "<U1"]),
        ("a.msh", {"T": np.ones((5, 4))}, ["'T'", "4 components"]),
        ("a.msh", {'"': np.ones(5)}, ["quotes"]),
        ("a.vtk", {"two words": np.ones(5)}, ["spaces"]),
        ("a.obj", {"T": np.ones(5)}, [".obj", "cell data"]),
        ("a.off", None, [".off", "quadrilaterals"]),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_nothing(
    name: str, cell_data: dict[str, np.ndarray] | None, words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        write(sample_mesh(), tmp_path / name, cell_data=cell_data)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / name))
    assert "\n" not in message
    assert all(word in message for word in words)
    assert not list(tmp_path.iterdir())


def test_a_tag_that_would_break_the_file_is_refused(tmp_path: Path) -> None:
    mesh = Mesh(np.array(SQUARE, float), np.array([[0, 1, 2, 3]]), {'a"b': np.array([[0, 1]])})
    with pytest.raises(InputError, match="boundary tag"):
        write(mesh, tmp_path / "a.msh")


def test_a_tag_without_edges_is_left_out(tmp_path: Path) -> None:
    mesh = Mesh(np.array(SQUARE, float), np.array([[0, 1, 2, 3]]), {"none": np.empty((0, 2), int)})
    write(mesh, tmp_path / "a.msh")
    assert read(tmp_path / "a.msh").boundary == {}


def test_a_mesh_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    mesh = Mesh(np.array([[0, 0], [1, 0], [np.inf, 1]]), np.array([[0, 1, 2]]))
    with pytest.raises(InputError, match="finite"):
        write(mesh, tmp_path / "a.vtu")


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "a.vtk").write_text("old")
    with pytest.raises(InputError):
        write(sample_mesh(), tmp_path / "a.vtk", cell_data={"two words": np.ones(5)})
    assert (tmp_path / "a.vtk").read_text() == "old"
