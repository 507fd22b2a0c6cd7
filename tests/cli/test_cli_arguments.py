"""Arguments that several commands share, and what the shell completes."""

from pathlib import Path
from typing import get_args

import pytest
import typer
from cli_runs import Cli, only_line

from fluxforge.cli import _arguments, _export, _simulate
from fluxforge.cli._arguments import Engine, Family, Kind, complete_list, complete_one, parse_whole
from fluxforge.cli._mesh import parse_vertices
from fluxforge.mesh import FAMILIES
from fluxforge.mesh._generate import ENGINES, KINDS
from fluxforge.scheme.emit import TARGETS
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import Precision, Solver


@pytest.mark.parametrize(
    ("text", "number"), [("20", 20), ("1e6", 10**6), ("1_000", 1000), ("-3", -3), ("2.50e2", 250), (7, 7)]
)
def test_parse_wholes_may_be_written_with_an_exponent(text: str | int, number: int) -> None:
    assert parse_whole(text) == number


@pytest.mark.parametrize("text", ["", "many", "1.5", "1e-3", "nan", "inf", "1e999999999", "1e16", "0x10"])
def test_other_numbers_are_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="not a whole number"):
        parse_whole(text)


def test_copied_names_are_the_librarys() -> None:
    assert tuple(BUILT_IN) == _arguments.SCHEMES
    assert set(KINDS) == set(Kind)
    assert set(ENGINES) == set(Engine)
    assert set(FAMILIES) - set(KINDS) == set(Family) - {Family.TWO_CELLS}
    assert {*TARGETS, "json"} == set(_export.Target)
    assert set(get_args(Solver)) == set(_simulate.SolverName)
    assert set(get_args(Precision)) == set(_simulate.PrecisionName)


def test_schemes_complete() -> None:
    assert complete_one(_arguments.SCHEMES)("eu") == ["euler"]
    assert complete_one(_arguments.SCHEMES)("") == list(BUILT_IN)
    assert complete_list(_arguments.SCHEMES)("euler,rk") == ["euler,rk4", "euler,rkl2-8"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("fluxforge simulate mid", "midpoint"),
        ("fluxforge schemes crank", "crank-nicolson"),
        ("fluxforge export eu", "euler"),
        ("fluxforge mesh square --kind irr", "irregular"),
        ("fluxforge mesh family jit", "jittered"),
        ("fluxforge mesh po", "polygon"),
    ],
)
def test_the_shell_is_offered_names(cli: Cli, monkeypatch: pytest.MonkeyPatch, typed: str, offered: str) -> None:
    monkeypatch.setenv("_FLUXFORGE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    assert offered in cli().out.split()


def test_vertices_are_pairs() -> None:
    assert parse_vertices(" 0,0  1,-2.5e-1 1,1 ") == [(0.0, 0.0), (1.0, -0.25), (1.0, 1.0)]


@pytest.mark.parametrize("option", ["-o", "--plot"])
def test_what_cannot_be_written_is_refused_before_the_work(cli: Cli, tmp_path: Path, option: str) -> None:
    assert "is a folder" in only_line(cli("mesh", "square", "--cells", "1e7", option, tmp_path).err)
    blocked = tmp_path / "file"
    blocked.write_text("")
    failed = cli("mesh", "square", "--cells", "1e7", option, blocked / "m.msh")
    assert failed.code == 2
    assert "not a folder" in only_line(failed.err)


def test_a_run_is_not_started_where_its_folder_is_a_file(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    blocked = tmp_path / "out"
    blocked.write_text("")
    failed = cli("simulate", "euler", "--mesh", mesh_file, "-o", blocked)
    assert failed.code == 2
    assert "is a file" in only_line(failed.err)
