"""`fluxforge mesh`."""

from dataclasses import asdict
from pathlib import Path

import pytest
from cli_runs import Cli, only_line

from fluxforge import mesh
from fluxforge.mesh import Mesh

KEYS = {"cells", "faces", "boundary_faces", "area", "h", "quality_min", "nonorthogonality_mean_deg"}
KEYS |= {"nonorthogonality_max_deg", "dt_fourier", "components", "notes"}


def _same(a: Mesh, b: Mesh) -> bool:
    one, other = asdict(mesh.info(a)), asdict(mesh.info(b))
    for told in (one, other):
        # A file names the region of all cells.
        del told["notes"], told["regions"]
    same_tags = one.pop("boundary_tags") == other.pop("boundary_tags")
    return same_tags and one == pytest.approx(other, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("square", "--cells", "60", "--kind", "irregular", "--seed", "3"),
            lambda: mesh.square(cells=60, kind="irregular", seed=3, engine="builtin"),
        ),
        (("square", "--size", "0.3"), lambda: mesh.square(size=0.3, engine="builtin")),
        (("disk", "--radius", "2", "--cells", "50"), lambda: mesh.disk(2.0, cells=50, engine="builtin")),
        (
            ("polygon", "0,0 2,0 0,2", "--cells", "4e1"),
            lambda: mesh.polygon([(0, 0), (2, 0), (0, 2)], cells=40, engine="builtin"),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_generated_mesh_is_the_librarys(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], expected: object
) -> None:
    path = tmp_path / "m.msh"
    made = cli("mesh", *arguments, "--engine", "builtin", "-o", path)
    assert (made.code, made.err) == (0, "")
    assert f"wrote {path}" in made.out
    assert _same(mesh.read(path), expected())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("squares", "-n", "3"), lambda: mesh.squares(3)),
        (("right", "-n", "3"), lambda: mesh.right_triangles(3)),
        (("cross", "-n", "3"), lambda: mesh.cross_triangles(3)),
        (("equilateral", "-n", "3"), lambda: mesh.equilateral(3)),
        (("jittered", "-n", "3", "--jitter", "0.1", "--seed", "4"), lambda: mesh.jittered(3, 0.1, 4)),
        (("jittered",), lambda: mesh.jittered(20, 0.2, 0)),
        (("two-cells",), lambda: mesh.two_cells()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_family_is_the_librarys(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], expected: object) -> None:
    path = tmp_path / "m.msh"
    made = cli("mesh", "family", *arguments, "-o", path, "--json")
    assert made.code == 0
    assert made.json["file"] == str(path)
    assert _same(mesh.read(path), expected())


def test_a_mesh_that_is_not_kept_says_so(cli: Cli) -> None:
    made = cli("mesh", "family", "squares", "-n", "2")
    assert made.code == 0
    assert "give -o FILE" in made.out


def test_what_was_made_is_described(cli: Cli, tmp_path: Path) -> None:
    made = cli("mesh", "family", "right", "-n", "4", "-o", tmp_path / "m.msh")
    for words in ("32 (32 triangles)", "56, 16 of them on the boundary", "left 4", "Δt_Fourier", "0.3536"):
        assert words in made.out


def test_notes_are_printed(cli: Cli) -> None:
    words = ("mesh", "square", "--cells", "3", "--engine", "builtin")
    (note,) = cli(*words, "--json").json["notes"]
    assert note.startswith("3 cells were wanted, ")
    assert f"note: {note}" in cli(*words).out


def test_info_as_json_has_the_numbers_of_the_library(cli: Cli, mesh_file: Path) -> None:
    told = cli("mesh", "info", mesh_file, "--json")
    assert (told.code, told.err) == (0, "")
    assert told.json.keys() >= KEYS
    info = asdict(mesh.info(mesh.read(mesh_file)))
    assert {key: told.json[key] for key in KEYS - {"notes"}} == {key: info[key] for key in KEYS - {"notes"}}


@pytest.mark.parametrize("columns", ["100", "60"])
def test_info_fits_the_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, mesh_file: Path, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = cli("mesh", "info", mesh_file).out.splitlines()
    assert len(lines) >= 11
    assert max(map(len, lines)) <= int(columns)


@pytest.mark.parametrize("command", [("mesh", "family", "squares", "-n", "2"), ("mesh", "info")], ids=" ".join)
def test_a_picture_is_drawn(cli: Cli, tmp_path: Path, mesh_file: Path, command: tuple[str, ...]) -> None:
    picture = tmp_path / "m.png"
    drawn = cli(*command, *([mesh_file] if command[-1] == "info" else []), "--plot", picture)
    assert drawn.code == 0
    assert f"wrote {picture}" in drawn.out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_file_that_is_no_mesh_is_one_line(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "m.msh"
    path.write_text("$MeshFormat\nnonsense\n")
    failed = cli("mesh", "info", path, "--json")
    assert (failed.code, failed.out) == (2, "")
    assert str(path) in only_line(failed.err)
