"""What a run leaves on disk, and reading it back."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fluxforge.errors import InputError
from fluxforge.mesh import Mesh, jittered, write
from fluxforge.stepping import Simulation, animation, compare, read_field, simulate, write_comparison, write_run
from strategies import mixed

MESHES = {"triangles": jittered(3), "mixed": mixed(3)}


@pytest.fixture(scope="module", params=list(MESHES))
def run(request: pytest.FixtureRequest) -> Simulation:
    return simulate("euler", MESHES[request.param], initial="1 + x*y", steps=12, save_every=1)


def test_a_series_is_one_file_a_field_and_an_index_of_times(run: Simulation, tmp_path: Path) -> None:
    written = write_run(run, tmp_path)
    names = [f"T_{k:02d}.vtu" for k in range(13)]
    others = ["final.png", "problem.json", "problem.npz", "summary.json"]
    assert [path.name for path in written] == [*names, "series.pvd", *others]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "series.pvd", *others])
    sets = ET.parse(tmp_path / "series.pvd").getroot().findall("Collection/DataSet")
    assert [item.get("file") for item in sets] == names
    assert [float(item.get("timestep") or "nan") for item in sets] == run.times.tolist()


def test_a_run_continues_from_any_field_it_saved(run: Simulation, tmp_path: Path) -> None:
    """Also where triangles and quadrilaterals alternate, which a .vtu file does not keep apart by itself."""
    write_run(run, tmp_path)
    for k in (0, 7, 12):
        assert np.array_equal(read_field(f"{tmp_path}/T_{k:02d}.vtu:T", run.graph.cells), run.fields[k])
    assert np.array_equal(read_field(f"{tmp_path}/T_12.vtu", run.graph.cells), run.fields[12])
    again = simulate("euler", run.mesh, initial=read_field(f"{tmp_path}/T_05.vtu", run.graph.cells), dt=run.dt, steps=7)
    assert np.abs(again.fields[-1] - run.fields[-1]).max() <= 1e-14


def test_a_run_leaves_a_picture_and_a_summary(tmp_path: Path) -> None:
    run = simulate("euler", MESHES["mixed"], initial="1 + x*y", steps=2)
    written = write_run(run, tmp_path / "deep" / "run", gif=True)
    assert all(path.is_file() for path in written)
    assert {path.name for path in written} >= {"final.png", "summary.json", "series.pvd", "T.gif"}
    assert {path.name for path in (tmp_path / "deep" / "run").iterdir()} == {path.name for path in written}
    document = json.loads((tmp_path / "deep" / "run" / "summary.json").read_text())
    assert document["format"] == "fluxforge-simulation"
    assert document["format_version"] == 1
    assert document["heat"] == run.summary().heat
    with Image.open(tmp_path / "deep" / "run" / "final.png") as picture:
        assert min(picture.size) > 300
        assert len(set(picture.convert("RGB").resize((40, 40)).get_flattened_data())) > 10
    with Image.open(tmp_path / "deep" / "run" / "T.gif") as moving:
        assert getattr(moving, "n_frames", 0) == 3


def test_one_field_makes_a_run_and_an_animation_too(tmp_path: Path) -> None:
    run = simulate("euler", MESHES["mixed"], steps=1)
    still = replace(run, times=run.times[:1], fields=run.fields[:1])
    animation(still, tmp_path / "T.gif")
    names = [path.name for path in write_run(still, tmp_path / "run")]
    assert names[:2] == ["T_0.vtu", "series.pvd"]


def test_a_comparison_is_a_folder_a_scheme_and_a_table(tmp_path: Path) -> None:
    comparison = compare(["euler", "midpoint"], MESHES["triangles"], initial="x", steps=2)
    written = write_comparison(comparison, tmp_path)
    assert all(path.is_file() for path in written)
    assert (tmp_path / "euler" / "summary.json").is_file()
    assert (tmp_path / "midpoint" / "final.png").is_file()
    table = json.loads((tmp_path / "compare.json").read_text())
    assert table["format"] == "fluxforge-comparison"
    assert [row["scheme"] for row in table["schemes"]] == ["euler", "midpoint"]
    assert table["schemes"][0]["l2_difference"] == 0.0


def test_an_array_file_is_a_field(tmp_path: Path) -> None:
    np.save(tmp_path / "T.npy", np.arange(4))
    assert read_field(str(tmp_path / "T.npy"), 4).tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (np.zeros(3), r"holds values of shape \(3,\), and the mesh has 4 cells"),
        (np.zeros((4, 1)), "shape"),
        (np.array([0.0, np.nan, 1.0, np.inf]), "the value of cell 1 is nan; it should be finite"),
        (np.array(["a", "b", "c", "d"]), "is not a readable .npy array of numbers"),
        (np.zeros(4, complex), "is not a readable .npy array of numbers"),
    ],
)
def test_an_array_that_is_no_field_is_refused(content: np.ndarray, match: str, tmp_path: Path) -> None:
    np.save(tmp_path / "T.npy", content)
    with pytest.raises(InputError, match=match) as caught:
        read_field(str(tmp_path / "T.npy"), 4)
    assert str(caught.value).startswith(str(tmp_path / "T.npy"))


class Owned:
    """Unpickling it would be noticed."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("owned"),)  # type: ignore[return-value]


def test_a_pickle_in_an_array_file_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "T.npy", np.array([Owned()] * 4), allow_pickle=True)
    with pytest.raises(InputError, match=r"is not a readable \.npy array"):
        read_field("T.npy", 4)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"not an array", b"\x93NUMPY\x01\x00\xff\xff{}"])
def test_a_damaged_array_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "T.npy").write_bytes(content)
    with pytest.raises(InputError, match=r"is not a readable \.npy array") as caught:
        read_field(str(tmp_path / "T.npy"), 4)
    assert "\n" not in str(caught.value)


def test_a_field_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.npy"):
        read_field(str(tmp_path / "none.npy"), 4)
    with pytest.raises(InputError, match=r"none\.vtu"):
        read_field(str(tmp_path / "none.vtu"), 4)
    simulation = simulate("euler", MESHES["triangles"], steps=1)
    write_run(simulation, tmp_path)
    with pytest.raises(InputError, match="has no cell data 'S'; it has: T"):
        read_field(f"{tmp_path}/T_0.vtu:S", simulation.graph.cells)
    with pytest.raises(InputError, match="and the mesh has 5 cells"):
        read_field(f"{tmp_path}/T_0.vtu:T", 5)


def test_a_mesh_without_sides_is_written_too(tmp_path: Path) -> None:
    base = MESHES["triangles"]
    simulation = simulate("euler", Mesh(base.points, base.cells), initial="x", steps=1)
    write_run(simulation, tmp_path)
    assert np.array_equal(read_field(f"{tmp_path}/T_1.vtu", simulation.graph.cells), simulation.fields[-1])


def test_a_shorter_series_leaves_no_fields_of_a_longer_one_behind(tmp_path: Path) -> None:
    mesh = jittered(3)
    write_run(simulate("euler", mesh, initial="x", steps=30, save_every=2), tmp_path)
    (tmp_path / "T_of_mine.vtu").write_text("", encoding="utf-8")
    kept = write_run(simulate("euler", mesh, initial="x", steps=3, save_every=1), tmp_path, overwrite=True)
    assert sorted(tmp_path.glob("*")) == sorted([*kept, tmp_path / "T_of_mine.vtu"])


def test_a_mesh_may_be_given_by_its_file(tmp_path: Path) -> None:
    mesh = jittered(3)
    write(mesh, tmp_path / "m.msh")
    by_path = simulate("euler", tmp_path / "m.msh", initial="x", steps=3)
    np.testing.assert_allclose(by_path.fields[-1], simulate("euler", mesh, initial="x", steps=3).fields[-1])
