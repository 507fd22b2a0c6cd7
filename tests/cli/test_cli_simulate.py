"""`fluxforge simulate` and `bench`."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_runs import Cli, only_line

from fluxforge import mesh
from fluxforge.mesh import Dirichlet, Neumann
from fluxforge.scheme import SchemeBuilder, save
from fluxforge.stepping import simulate

PROBLEM = {"problem.json", "problem.npz"}
HOT = ("--initial", "sin(pi*x)*sin(pi*y)")
NUMBERS = ("cells", "steps", "time", "dt", "dt_over_fourier", "dt_limit", "min", "max", "mean", "energy", "heat")


def test_the_numbers_are_the_librarys(cli: Cli, mesh_file: Path) -> None:
    conditions = ("--boundary", "insulated", "--boundary", "left=y", "--boundary", "right=flux:2*y")
    told = cli(
        *("simulate", "midpoint", "--mesh", mesh_file, *HOT, "--diffusivity", 2, "--source", "x", *conditions),
        *("--dt-fraction", 0.3, "--steps", "7", "--save-every", 2, "--json"),
    )
    assert (told.code, told.err) == (0, "")
    expected = simulate(
        "midpoint",
        mesh.read(mesh_file),
        diffusivity=2.0,
        initial=HOT[1],
        source="x",
        boundary={"left": Dirichlet("y"), "right": Neumann("2*y"), "top": Neumann(), "bottom": Neumann()},
        dt_fraction=0.3,
        steps=7,
    ).summary()
    assert {key: told.json[key] for key in NUMBERS} == {
        key: pytest.approx(getattr(expected, key), rel=1e-12) for key in NUMBERS
    }
    assert told.json["files"] == []


def test_a_run_is_written_and_described(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    folder = tmp_path / "out"
    told = cli("simulate", "euler", "--mesh", mesh_file, *HOT, "--steps", "4", "--save-every", 2, "-o", folder, "--gif")
    assert (told.code, told.err) == (0, "")
    assert "stability limit" in told.out
    assert "3 fields (.vtu), series.pvd" in told.out
    written = {path.name for path in folder.iterdir()}
    assert written == {"T_0.vtu", "T_1.vtu", "T_2.vtu", "series.pvd", "final.png", "T.gif", "summary.json"} | PROBLEM
    assert json.loads((folder / "summary.json").read_text())["scheme"] == "euler"


def test_a_field_goes_out_and_comes_back(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    run = ("simulate", "euler", "--mesh", mesh_file, "--dt", 1e-3, "--json")
    whole = cli(*run, *HOT, "--steps", 6).json
    cli(*run, *HOT, "--steps", 3, "--save-every", 3, "-o", tmp_path)
    half = cli(*run, "--initial", f"@{tmp_path / 'T_1.vtu'}:T", "--steps", 3).json
    assert half["energy"] == pytest.approx(whole["energy"], rel=1e-12)


def test_a_source_is_read_from_an_array_file(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    np.save(tmp_path / "S.npy", np.full(32, 3.0))
    run = ("simulate", "euler", "--mesh", mesh_file, "--boundary", "insulated", "--dt", 0.001, "--steps", 10, "--json")
    assert cli(*run, "--source", f"@{tmp_path / 'S.npy'}").json["mean"] == pytest.approx(0.03, rel=1e-12)


def test_schemes_are_compared(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    run = ("simulate", "euler", "--mesh", mesh_file, *HOT, "--steps", 3, "--compare", "euler, midpoint")
    told = cli(*run, "-o", tmp_path, "--json").json
    assert [row["scheme"] for row in told["comparison"]] == ["euler", "midpoint"]
    assert [entry["scheme"] for entry in told["simulations"]] == ["euler", "midpoint"]
    assert 0 < told["comparison"][1]["l2_difference"] < 0.1
    assert (tmp_path / "midpoint" / "final.png").is_file()
    assert (tmp_path / "compare.json").is_file()
    shown = cli(*run).out
    assert all(words in shown for words in ("midpoint", "relative L2", "per step"))


def test_a_step_above_the_limit_is_refused_unless_forced(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    run = ("simulate", "euler", "--mesh", mesh_file, *HOT, "--dt-fraction", 3, "--steps", 400)
    refused = cli(*run)
    assert (refused.code, refused.out) == (2, "")
    assert "stability limit" in only_line(refused.err)
    forced = cli(*run, "--force", "-o", tmp_path, "--json")
    assert forced.code == 1
    assert "blew up at step" in only_line(forced.err)
    assert forced.json["blew_up_at"] <= 400
    assert (tmp_path / "summary.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--initial", "sin(x"), "sin(x"),
        (("--initial", "1/(x - x)"), "1/(x - x)"),
        (("--initial", "@absent.npy"), "absent.npy"),
        (("--boundary", "lid=1"), "'lid'"),
        (("--boundary", "left=1", "--boundary", "left=2"), "already"),
        (("--diffusivity", "-1"), "diffusivity"),
        (("--steps", "-1"), "steps"),
        (("--dt", "nan"), "dt"),
        (("--save-every", "0"), "save_every"),
        (("--compare", "rk5"), "'rk4'"),
        (("--compare", ""), "--compare names no scheme"),
        (("--solver", "amg"), "--solver is for implicit schemes, and euler is explicit"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_invalid_problems_are_refused_in_one_line(
    cli: Cli, mesh_file: Path, arguments: tuple[str, ...], words: str
) -> None:
    failed = cli("simulate", "euler", "--mesh", mesh_file, *arguments, "--json")
    assert (failed.code, failed.out) == (2, "")
    assert words in only_line(failed.err)


def test_a_problem_without_initial_source_and_boundary_data_gets_advice(cli: Cli, mesh_file: Path) -> None:
    told = cli("simulate", "euler", "--mesh", mesh_file, "--steps", 1)
    assert "give --initial, --source or --boundary" in told.out
    assert "give -o FOLDER" in told.out


def test_single_precision_is_coarser(cli: Cli, mesh_file: Path) -> None:
    run = ("simulate", "crank-nicolson", "--mesh", mesh_file, *HOT, "--solver", "cg", "--dt-fraction", 4, "--json")
    single, double = (cli(*run, "--precision", name).json["heat"] for name in ("float32", "float64"))
    assert 0 < abs(single - double) < 1e-4 * double


def test_solvers_of_an_implicit_scheme_agree(cli: Cli, mesh_file: Path) -> None:
    run = ("simulate", "crank-nicolson", "--mesh", mesh_file, *HOT, "--dt-fraction", 4, "--json")
    heat = [cli(*run, "--solver", name).json["heat"] for name in ("direct", "amg", "cg")]
    assert heat == pytest.approx([heat[0]] * 3, rel=1e-10)


def test_a_scheme_that_does_not_suit_the_mesh_is_told_so(cli: Cli, mesh_file: Path) -> None:
    """The file holds right triangles, on which the plain flux keeps no linear field."""
    run = ("--mesh", mesh_file, *HOT, "--steps", 2)
    words = " ".join(cli("simulate", "euler", *run).out.split())
    assert "note: euler: not consistent on this mesh: linear fields are off by up to" in words
    assert "`corrected` is exact for them" in words
    assert cli("simulate", "corrected", *run, "--json").json["notes"] == []
    (note,) = cli("simulate", "two-hop-printed", *run, "--json").json["notes"]
    assert note.startswith("two-hop-printed: solves another equation: on squares its diffusivity is [[4, 0], [0, 4]] ")
    (note,) = cli("simulate", "euler", *run, "--compare", "midpoint", "--json").json["notes"]
    assert note.startswith("euler, midpoint: not consistent on this mesh")


def test_a_scheme_that_suits_the_mesh_gets_no_note(cli: Cli, tmp_path: Path) -> None:
    mesh.write(mesh.squares(4), tmp_path / "squares.msh")
    run = ("--mesh", tmp_path / "squares.msh", *HOT, "--steps", 2, "--json")
    assert cli("simulate", "euler", *run).json["notes"] == []


def test_a_nonlinear_scheme_is_told_so(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    builder = SchemeBuilder().stage({"z": "alpha*A/delta*(T_N**3 - T_P**3)"}, {"T_new": "T + dt/V*z"})
    save(builder.build("cubic"), tmp_path / "cubic.json")
    run = ("--mesh", mesh_file, *HOT, "--steps", 2, "--json")
    (note,) = cli("simulate", tmp_path / "cubic.json", *run).json["notes"]
    assert note.startswith("cubic: nonlinear")


def test_an_earlier_run_is_not_written_over_unless_asked(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    folder = tmp_path / "out"
    run = ("simulate", "euler", "--mesh", mesh_file, *HOT, "-o", folder, "--steps")
    assert cli(*run, 5, "--gif").code == 0
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    refused = cli(*run, 1)
    assert (refused.code, refused.out) == (2, "")
    assert "holds an earlier run (summary.json): give another folder, or --overwrite" in only_line(refused.err)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    # It is refused before anything is computed or read.
    assert "earlier run" in cli("simulate", "euler", "--mesh", tmp_path / "none.msh", "-o", folder).err
    assert cli(*run, 1, "--overwrite").code == 0
    assert {path.name for path in folder.iterdir()} == {
        *("T_0.vtu", "T_1.vtu", "series.pvd", "final.png", "summary.json", *PROBLEM)
    }
    nowhere = cli("simulate", "euler", "--mesh", mesh_file, "--overwrite")
    assert (nowhere.code, "give -o FOLDER" in only_line(nowhere.err)) == (2, True)


def test_large_wall_values_are_not_reported_as_blow_up(cli: Cli, mesh_file: Path) -> None:
    told = cli("simulate", "euler", "--mesh", mesh_file, "--boundary", "1e11", "--steps", 20)
    assert (told.code, told.err) == (0, "")
    assert "T is 0 everywhere" not in told.out
    forced = cli("simulate", "euler", "--mesh", mesh_file, "--boundary", "1", "--steps", 9, "--dt", 1e300, "--force")
    assert forced.code == 1
    assert "blew up at step 1 " in only_line(forced.err)
    assert "T, saved at step 0" in forced.out
    assert "at the end" not in forced.out
    assert "T is 0 everywhere" not in forced.out


def test_the_document_tells_an_unlimited_step_from_an_unknown_one(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    run = ("--mesh", mesh_file, *HOT, "--steps", 1, "--dt-fraction", 0.1, "--json")
    builder = SchemeBuilder().stage({"z": "alpha*A/delta*(T_N**3 - T_P**3)"}, {"T_new": "T + dt/V*z"})
    save(builder.build("cubic"), tmp_path / "cubic.json")
    kinds = {"euler": "finite", "crank-nicolson": "unlimited", tmp_path / "cubic.json": "unknown"}
    for scheme, kind in kinds.items():
        told = cli("simulate", scheme, *run).json
        assert told["dt_limit_kind"] == kind
        assert (told["dt_limit"] is None) == (kind != "finite")
