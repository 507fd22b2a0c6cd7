"""What works on this machine."""

import pytest
from cli_runs import Cli

from fluxforge import _doctor
from fluxforge._doctor import Check, Examination, examine

NAMES = {"python", "fluxforge", "jax", "devices", "64-bit mode", "gmsh", "meshio", "pyoperon", "pysr", "fipy"}
NAMES |= {"numba", "pyamg"}
NAMES |= {"c compiler", "free memory", "cores"}


def test_json_has_every_check(cli: Cli) -> None:
    told = cli("doctor", "--json")
    assert (told.code, told.err) == (0, "")
    assert told.json["ok"] is True
    checks = {check["name"]: check for check in told.json["checks"]}
    assert checks.keys() >= NAMES
    for check in checks.values():
        assert set(check) == {"name", "status", "found", "advice"}
        assert check["status"] in {"ok", "optional"}
        assert check["found"]
        assert bool(check["advice"]) == (check["status"] == "optional")


def test_table_has_every_check(cli: Cli) -> None:
    told = cli("doctor")
    assert told.code == 0
    assert all(name in told.out for name in NAMES)


def test_gmsh_that_does_not_load_is_optional_and_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = "gmsh needs the system library libGLU.so.1: install the package libglu1-mesa"
    monkeypatch.setattr("fluxforge.mesh._generate_gmsh.gmsh_problem", lambda: problem)
    report = examine()
    (check,) = (check for check in report.checks if check.name == "gmsh")
    assert report.ok
    assert check.status == "optional"
    assert check.found.startswith("gmsh needs the system library libGLU.so.1")
    assert check.advice == "install the package libglu1-mesa"


def test_an_extra_that_is_absent_is_optional_and_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_doctor, "find_spec", lambda name: None)
    report = examine()
    advice = {check.name: check.advice for check in report.checks if check.status == "optional"}
    assert report.ok
    assert advice["fipy"] == "pip install 'fluxforge[bench]'"
    assert advice["pysr"] == "pip install 'fluxforge[pysr]'"


def test_a_broken_dependency_is_missing_and_the_exit_code_1(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        if name == "meshio":
            raise OSError("libxml2.so.2: cannot open shared object file\nmore")

    monkeypatch.setattr(_doctor, "import_module", load)
    told = cli("doctor", "--json")
    assert told.code == 1
    assert told.json["ok"] is False
    (check,) = (check for check in told.json["checks"] if check["status"] == "missing")
    assert check["name"] == "meshio"
    assert check["found"] == "OSError: libxml2.so.2: cannot open shared object file"
    assert "pip install" in check["advice"]


def test_only_what_is_missing_spoils_the_examination() -> None:
    fine, extra, broken = Check("a", "ok", "1"), Check("b", "optional", "none"), Check("c", "missing", "none")
    assert Examination((fine, extra)).ok
    assert not Examination((fine, broken)).ok
