"""`fluxforge schemes` and `fluxforge export`."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Cli, only_line

from fluxforge.scheme import find, to_document
from fluxforge.scheme.emit import emit
from fluxforge.scheme.limiters import LIMITERS
from fluxforge.scheme.reference import BUILT_IN


@pytest.mark.parametrize("columns", ["100", "60"])
def test_the_list_names_every_scheme_and_its_claims(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    told = cli("schemes")
    assert (told.code, told.err) == (0, "")
    assert max(map(len, told.out.splitlines())) <= int(columns)
    assert all(name in told.out for name in BUILT_IN)
    assert all(
        words in told.out
        for words in ("order in time", "stable to", "conserves heat", "2.785", "unlimited", "edge, path")
    )


def test_the_list_as_json(cli: Cli) -> None:
    listed = {entry["name"]: entry for entry in cli("schemes", "--json").json["schemes"]}
    assert list(listed) == list(BUILT_IN)
    for name, entry in listed.items():
        assert entry.items() >= to_document(BUILT_IN[name]).items()
    assert listed["crank-nicolson"]["claims"]["stable_to"] == "unlimited"
    assert listed["two-hop"]["hops"] == ["edge", "path"]
    assert listed["midpoint"]["amplification"] == "1 + z + z**2/2"
    assert listed["crank-nicolson"]["amplification"] == "(2 + z)/(2 - z)"
    assert listed["crank-nicolson-printed"]["amplification"] == "(2 - z)/(2 + z)"


@pytest.mark.parametrize("name", [*BUILT_IN, *LIMITERS, "bounded-van-leer"])
def test_one_scheme_is_shown_with_its_formulas_and_claims(cli: Cli, name: str) -> None:
    told = cli("schemes", name)
    assert (told.code, told.err) == (0, "")
    words = "".join(told.out.split())
    document: Any = to_document(find(name))
    for stage in document["stages"]:
        for entry in (*stage["messages"].values(), *stage["outputs"].values()):
            assert "".join(entry["expression"].split()) in words
    assert ("θ = 1/2" in told.out) == find(name).implicit


def test_reductions_and_what_they_are_taken_over_are_told_apart(cli: Cli) -> None:
    bounded = " ".join(cli("schemes", "bounded-van-leer").out.split())
    for words in ("m_xx = Σ_N", "most = max_N", "least = min_N", "Σ_N sums over the neighbours", "max_N maxima over"):
        assert words in bounded
    along = " ".join(cli("schemes", "van-leer").out.split())
    assert "z = Σ_BNF" in along
    assert "Σ_BNF sums over the lines of cells B – P – N – F through the faces of P" in along


def test_a_scheme_is_described_in_the_words_of_its_own_equation(cli: Cli) -> None:
    along, heat = (" ".join(cli("schemes", name).out.split()) for name in ("van-leer", "euler"))
    assert "T the unknown u of the equation 'advection'" in along
    assert "conserves u yes (the total Σ V u is constant" in along
    assert "solves the equation 'advection' yes" in along
    assert "conserves heat yes (the heat Σ V T is constant" in heat
    assert "solves the heat equation yes" in heat


def test_a_scheme_in_a_file_is_shown(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "scheme.json"
    assert cli("export", "rk4", "--to", "json", "-o", path).out == f"wrote {path}\n"
    assert find(path) == BUILT_IN["rk4"]
    assert cli("schemes", path).out == cli("schemes", "rk4").out
    assert cli("schemes", path, "--json").json["name"] == "rk4"


def test_a_scheme_that_is_not_linear_has_no_stability_function(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "scheme.json"
    document = json.loads(cli("export", "euler", "--to", "json").out)
    # Between cold walls the second is linear, so one cell alone would give it an R(z).
    for flux in ("alpha*A/delta*(T_N**2 - T_P**2)", "alpha*A/delta*(T_N - T_P)*(1 + T_N**2)"):
        document["stages"][0]["messages"]["z"]["expression"] = flux
        path.write_text(json.dumps(document))
        assert "R(z) none: the step is not linear in T" in " ".join(cli("schemes", path).out.split())
        record = cli("schemes", path, "--json").json
        assert record["amplification"] is None
        assert record["linear"] is False


def test_a_step_that_is_not_a_function_of_one_operator_has_no_stability_function(cli: Cli) -> None:
    told = " ".join(cli("schemes", "lax-wendroff").out.split())
    assert "R(z) none: the step is not a function of one operator" in told
    assert cli("schemes", "lax-wendroff", "--json").json["amplification"] is None


def test_a_numerator_of_one_has_no_brackets(cli: Cli) -> None:
    assert cli("schemes", "corrected-implicit", "--json").json["amplification"] == "1/(1 - z)"


def test_a_scheme_without_a_stable_step_says_so(cli: Cli) -> None:
    words = " ".join(cli("schemes", "crank-nicolson-printed").out.split())
    assert "R(z) (2 - z)/(2 + z): no step is stable" in words
    assert "stable to no step (no step is stable)" in words
    assert "no step is stable" not in cli("schemes", "crank-nicolson").out


@pytest.mark.parametrize("target", ["latex", "numpy", "jax", "c"])
def test_code_goes_to_stdout_or_to_a_file(cli: Cli, tmp_path: Path, target: str) -> None:
    path = tmp_path / "folder" / "code"
    printed = cli("export", "midpoint", "--to", target)
    assert (printed.code, printed.err) == (0, "")
    assert printed.out.strip() == emit(BUILT_IN["midpoint"], target).strip()
    assert cli("export", "midpoint", "--to", target, "-o", path).out == f"wrote {path}\n"
    assert path.read_text() == printed.out


def test_c_code_can_have_its_mesh_beside_it(cli: Cli, tmp_path: Path) -> None:
    mesh, code = tmp_path / "plate.msh", tmp_path / "heat.c"
    assert cli("mesh", "square", "--cells", 40, "-o", mesh).code == 0
    told = cli("export", "euler", "--to", "c", "--mesh", mesh, "--boundary", "left=3.5", "-o", code)
    assert told.out == f"wrote {code}\nwrote {tmp_path / 'heat_mesh.h'}\n"
    header = (tmp_path / "heat_mesh.h").read_text()
    assert "static const fluxforge_mesh heat_mesh = {" in header
    assert "3.5" in header.split("heat_mesh_ghost_value[] = {")[1].split("}")[0]


@pytest.mark.parametrize(
    "given",
    [
        ("--to", "latex", "-o", "x.tex", "--mesh", "m.msh"),
        ("--to", "numpy", "--mesh", "m.msh"),
        ("--to", "c", "--mesh", "m.msh"),
        ("--to", "c", "--boundary", "0"),
    ],
)
def test_a_mesh_belongs_to_code_in_a_file(cli: Cli, given: tuple[str, ...]) -> None:
    failed = cli("export", "euler", *given)
    assert failed.code == 2
    assert "--mesh" in failed.err


def test_a_mesh_that_is_refused_leaves_no_code_behind(cli: Cli, tmp_path: Path) -> None:
    code = tmp_path / "heat.c"
    failed = cli("export", "euler", "--to", "c", "--mesh", tmp_path / "none.msh", "-o", code)
    assert failed.code == 2
    assert "none.msh" in failed.err
    assert not code.exists()


def test_a_scheme_file_that_is_broken_is_one_line(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "scheme.json"
    path.write_text("{")
    failed = cli("schemes", path, "--json")
    assert (failed.code, failed.out) == (2, "")
    assert str(path) in only_line(failed.err)


def test_a_file_that_is_there_is_not_written_over_unless_asked(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    code, header = tmp_path / "heat.c", tmp_path / "heat_mesh.h"
    export = ("export", "euler", "--to", "c", "-o", code)
    header.write_text("mine", encoding="utf-8")
    refused = cli(*export, "--mesh", mesh_file)
    assert (refused.code, refused.out) == (2, "")
    assert f"{header}: exists already: give another file, or --overwrite" in " ".join(refused.err.split())
    assert not code.exists()
    assert cli(*export).code == 0
    refused = cli(*export)
    assert (refused.code, refused.out) == (2, "")
    assert header.read_text(encoding="utf-8") == "mine"
    assert cli(*export, "--mesh", mesh_file, "--overwrite").code == 0
    assert header.read_text(encoding="utf-8") != "mine"
    assert cli("export", "euler", "--to", "c", "--overwrite").code == 2


def test_new_code_does_not_stand_beside_the_mesh_of_earlier_code(cli: Cli, tmp_path: Path, mesh_file: Path) -> None:
    export = ("export", "euler", "--to", "c", "-o", tmp_path / "heat.c")
    assert cli(*export, "--mesh", mesh_file).code == 0
    before = (tmp_path / "heat.c").read_text(encoding="utf-8")
    told = cli("export", "rk4", *export[2:], "--overwrite")
    assert (told.code, told.out) == (2, "")
    assert "heat_mesh.h: exists already and is the mesh of earlier code: give --mesh FILE" in " ".join(told.err.split())
    assert (tmp_path / "heat.c").read_text(encoding="utf-8") == before
    assert cli("export", "rk4", *export[2:], "--mesh", mesh_file, "--overwrite").code == 0
