"""`fluxforge verify`."""

import json
from pathlib import Path

import pytest
from cli_runs import Cli, only_line

from fluxforge.mesh import squares, write
from fluxforge.scheme import Claims, SchemeBuilder, save


def test_a_certificate_is_shown_and_written_and_an_earlier_one_only_written_over_if_asked(
    cli: Cli, tmp_path: Path
) -> None:
    verify = ("verify", "euler", "--quick", "--families", "squares", "-o", tmp_path)
    (tmp_path / "certificate.json").write_text("mine", encoding="utf-8")
    told = cli(*verify)
    assert (told.code, told.out) == (2, "")
    assert "holds an earlier certificate (certificate.json): give another folder, or --overwrite" in " ".join(
        told.err.split()
    )
    assert (tmp_path / "certificate.json").read_text(encoding="utf-8") == "mine"
    assert cli(*verify[:-2], "--overwrite").code == 2
    told = cli(*verify, "--overwrite")
    assert told.code == 0
    assert told.out.startswith("euler: Explicit two-point flux; order 2 on squares; first order in time; stable up to")
    words = " ".join(told.out.split())
    assert "order in time 1.00" in words
    assert "squares: converges, order 2.00" in words
    assert "verdict: as claimed (from a quick run)" in words
    assert json.loads((tmp_path / "certificate.json").read_text())["format"] == "fluxforge-certificate"
    assert "as claimed" in (tmp_path / "certificate.html").read_text()


def test_json_is_one_document(cli: Cli) -> None:
    told = cli("verify", "two-hop-printed", "--quick", "--families", "equilateral", "--levels", "2", "--json")
    assert told.code == 0
    assert told.json["format_version"] == 1
    assert told.json["generator_ok"] is False
    assert told.json["space"]["equilateral"]["consistent"] is False
    assert told.json["space"]["equilateral"]["diffusivity"][0][0] == pytest.approx(1 + 3**0.5)


def test_a_contradicted_claim_is_exit_code_one_and_named(cli: Cli, tmp_path: Path) -> None:
    builder = SchemeBuilder().stage({"z": "alpha*A/delta*(T_N - T_P)"}, {"T_new": "T + dt/V*z + dt*S"})
    save(builder.build("bold", summary="claims too much", claims=Claims(time_order=2)), tmp_path / "bold.json")
    told = cli("verify", tmp_path / "bold.json", "--quick", "--families", "squares", "--levels", "1")
    assert told.code == 1
    assert "'time_order'" in only_line(told.err)
    assert "contradicted" in told.out


def test_a_claim_that_is_not_measured_is_exit_code_one_and_named(cli: Cli, tmp_path: Path) -> None:
    builder = SchemeBuilder().stage({"z": "alpha*A/delta*(T_N**3 - T_P**3)"}, {"T_new": "T + dt/V*z"})
    claims = Claims(conservative=True, space={"squares": 2.0})
    save(builder.build("cubic", summary="not measurable", claims=claims), tmp_path / "cubic.json")
    told = cli("verify", tmp_path / "cubic.json", "--quick", "--families", "squares")
    assert told.code == 1
    assert "'space order on squares'" in only_line(told.err)
    assert "not established" in only_line(told.err)
    assert "verdict: not established" in " ".join(told.out.split())
    left_out = cli("verify", tmp_path / "cubic.json", "--quick", "--families", "right", "--json")
    assert (left_out.code, left_out.json["verdict"]) == (0, "as claimed")


@pytest.fixture
def sequence(cli: Cli, tmp_path: Path) -> str:
    paths = [tmp_path / f"{n}.msh" for n in (5, 10, 20)]
    for path, n in zip(paths, (5, 10, 20), strict=True):
        write(squares(n), path)
    return ",".join(map(str, paths))


def test_ones_own_sequence_of_meshes(cli: Cli, sequence: str) -> None:
    told = cli("verify", "euler", "--quick", "--meshes", sequence, "--json")
    assert told.code == 0
    assert told.json["space"] == {}
    assert [study["problem"] for study in told.json["meshes"]] == ["held walls", "mixed walls"]
    for study in told.json["meshes"]:
        assert study["cells"] == [25, 100, 400]
        assert len(study["rates_l2"]) == 2
        assert study["order"] == pytest.approx(2, abs=0.1)


def test_ones_own_sequence_and_solution(cli: Cli, sequence: str) -> None:
    told = cli("verify", "euler", "--quick", "--meshes", sequence, "--exact", "sin(pi*x)*y")
    assert told.code == 0
    assert "your meshes, sin(pi*x)*y: converges, order 2.0" in " ".join(told.out.split())
    assert "left out: the family was not requested" in " ".join(told.out.split())


def test_ones_own_mesh(cli: Cli, mesh_file: Path) -> None:
    told = cli("verify", "midpoint", "--mesh", mesh_file, "--json")
    assert told.code == 0
    assert told.json["mesh"] == str(mesh_file)
    assert told.json["stability"]["real_interval"] == -2


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["nothing"], "nothing"),
        (["euler", "--families", "circles"], "circles"),
        (["euler", "--levels", "99"], "levels"),
        (["euler", "--meshes", "a.msh"], "--meshes"),
        (["euler", "--meshes", "a.msh,b.msh"], "a.msh"),
        (["euler", "--meshes", "a.msh,b.msh", "--families", "squares"], "--meshes"),
        (["euler", "--exact", "x"], "--exact"),
        (["euler", "--meshes", "a.msh,b.msh", "--exact", "q"], "q"),
    ],
)
def test_bad_requests_are_one_line_and_exit_code_two(cli: Cli, options: list[str], word: str) -> None:
    told = cli("verify", *options)
    assert told.code == 2
    assert word in only_line(told.err)


@pytest.mark.parametrize("exact", ["log(x)", "1/(y - 1/2)", "abs(x)"])
def test_a_solution_that_cannot_be_used_is_refused(cli: Cli, sequence: str, exact: str) -> None:
    told = cli("verify", "euler", "--meshes", sequence, "--exact", exact)
    assert (told.code, told.out) == (2, "")
    assert exact in only_line(told.err)


def test_meshes_that_do_not_get_finer_are_refused(cli: Cli, sequence: str) -> None:
    told = cli("verify", "euler", "--meshes", ",".join(reversed(sequence.split(","))))
    assert (told.code, told.out) == (2, "")
    assert "coarse" in only_line(told.err)


@pytest.mark.parametrize("option", ["--mesh", "--meshes"])
def test_a_repeated_mesh_is_refused(cli: Cli, mesh_file: Path, option: str) -> None:
    told = cli("verify", "euler", option, mesh_file, option, mesh_file)
    assert (told.code, told.out) == (2, "")
    assert "--mesh" in only_line(told.err)


def test_a_mesh_is_not_a_family(cli: Cli, mesh_file: Path) -> None:
    told = cli("verify", "euler", "--mesh", mesh_file, "--families", "squares")
    assert told.code == 2
    assert "--mesh" in only_line(told.err)
