"""`fluxforge rerun`, `simulate --restart` and the options of time."""

import json
from pathlib import Path

import pytest
from cli_runs import Cli, only_line

ROBIN = ("--boundary", "left=robin:1:0")
RUN = ("--boundary", "left=1+t, right=robin:2:sin(9*t), rest=insulated", "--dt", "1e-4")


def test_a_run_is_continued_and_repeated_from_its_folder(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    run = ("simulate", "midpoint", "--mesh", mesh_file, *RUN)
    first = cli(*run, "--end-time", "2e-3", "--json")
    assert (first.code, first.err) == (0, "")
    whole = first.json
    assert cli(*run, "--end-time", "1e-3", "-o", tmp_path / "a").code == 0
    rest = cli("simulate", "--restart", tmp_path / "a", "--end-time", "2e-3", "-o", tmp_path / "b", "--json")
    assert (rest.code, rest.err) == (0, "")
    assert rest.json["time"] == whole["time"] == 2e-3
    assert rest.json["steps"] == 10
    assert rest.json["energy"] == pytest.approx(whole["energy"], rel=1e-14)
    told = cli("rerun", tmp_path / "b", "-o", tmp_path / "c", "--json")
    assert told.json["equal"] is True
    series = [(tmp_path / name / "series.pvd").read_text() for name in "bc"]
    assert series[0] == series[1]
    assert "the last field is equal to that of" in cli("rerun", tmp_path / "b").out


def test_saving_by_time_and_a_step_of_the_programs_choice(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    told = cli(
        "simulate",
        "rk4",
        "--mesh",
        mesh_file,
        "--dt",
        "auto",
        "--end-time",
        0.01,
        "--save-every",
        "0.005",
        "-o",
        tmp_path,
    )
    assert told.code == 0
    assert "(auto: 0.9 of the stability limit)" in told.out
    assert "3 fields (.vtu)" in told.out
    times = json.loads((tmp_path / "problem.json").read_text())
    assert times["end_time"] == 0.01
    assert times["dt"] == "auto"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rerun", "."), "holds no problem.json"),
        (("rerun", "nowhere"), "nowhere: no such folder"),
        (("simulate", "--restart", "."), "holds no problem.json"),
        (("simulate", "euler", "--restart", "."), "--restart takes scheme, mesh and problem from the folder"),
        (("simulate",), "give a SCHEME"),
        (("simulate", "euler"), "give a mesh"),
        (("simulate", "euler", "--mesh", "MESH", "--dt", "fast"), "--dt 'fast': should be a number or auto"),
        (("simulate", "euler", "--mesh", "MESH", "--save-every", "often"), "--save-every 'often'"),
        (("simulate", "euler", "--mesh", "MESH", "--end-time", "1", "--steps", "3"), "--steps or --end-time"),
        (("simulate", "euler", "--mesh", "MESH", "--end-time", "-1"), "end_time -1 should be later than the time 0"),
        (
            ("simulate", "euler", "--mesh", "MESH", "--boundary", "left=robin:-1:0"),
            "'left' is -1; it should be 0 or more",
        ),
        (("simulate", "euler", "--mesh", "MESH", "--boundary", "left=periodic:top"), "'left' and 'top' do not match"),
        (
            ("simulate", "euler", "--mesh", "MESH", "--boundary", "nowhere=1"),
            "boundary tag 'nowhere' is not in the mesh",
        ),
        (("simulate", "euler", "--mesh", "MESH", "--source", "1/(t*x)"), "the source"),
        (
            ("simulate", "rk4", "--equation", "advection", "--set", "velocity=(1, 0)", "--mesh", "MESH", *ROBIN),
            "equation 'advection' has no diffusion, so that a robin wall is not possible",
        ),
    ],
)
def test_bad_input_is_one_line(
    arguments: tuple[str, ...], words: str, cli: Cli, mesh_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = cli(*(str(mesh_file) if each == "MESH" else each for each in arguments))
    assert told.code == 2
    assert words in only_line(told.err)
