"""`fluxforge verify`."""

import json
from pathlib import Path

import pytest
from cli_runs import Cli, only_line

from fluxforge.scheme import Claims, SchemeBuilder, save


def test_a_certificate_is_shown_and_written(cli: Cli, tmp_path: Path) -> None:
    told = cli("verify", "euler", "--quick", "--families", "squares", "-o", tmp_path)
    assert told.code == 0
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
    ],
)
def test_bad_requests_are_one_line_and_exit_code_two(cli: Cli, options: list[str], word: str) -> None:
    told = cli("verify", *options)
    assert told.code == 2
    assert word in only_line(told.err)


def test_a_mesh_is_not_a_family(cli: Cli, mesh_file: Path) -> None:
    told = cli("verify", "euler", "--mesh", mesh_file, "--families", "squares")
    assert told.code == 2
    assert "--mesh" in only_line(told.err)
