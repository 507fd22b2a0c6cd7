"""Hostile numbers: an outcome in one line, and no warnings of NumPy's on the terminal."""

import sys
import warnings
from pathlib import Path

import pytest
from cli_runs import Cli

from fluxforge.cli import _simulation
from fluxforge.scheme import SchemeBuilder, save

SCHEMES = {
    "huge": "1e300*alpha*A/delta*(T_N - T_P)",
    "exponential": "alpha*A/delta*(exp(1000*T_N) - exp(1000*T_P))",
    "logarithm": "alpha*A/delta*log(T_N/T_P)",
}
PROBLEMS = {
    "long": ("--initial", "x", "--dt", 1e300, "--force"),
    "walls": ("--initial", "1e300*x", "--dt", 1e-300, "--boundary", "1e308"),
    "fluxes": ("--source", "1e308", "--diffusivity", 1e300, "--boundary", "flux:1e308"),
    "slow": ("--initial", "x", "--diffusivity", 1e-320),
    "single": ("--initial", "1e38*x", "--diffusivity", 1e30, "--precision", "float32", "--dt", 1e-3, "--force"),
    "difference": ("--initial", "1e308*x - 1e307", "--compare", "crank-nicolson"),
}


@pytest.fixture
def no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `python -W error`: whatever warns is an internal error."""
    monkeypatch.setattr(sys, "warnoptions", ["error"])
    warnings.simplefilter("error", RuntimeWarning)


def scheme_or_file(name: str, folder: Path) -> object:
    """A built-in name, or the file of one of the schemes above."""
    if name not in SCHEMES:
        return name
    save(SchemeBuilder().stage({"z": SCHEMES[name]}, {"T_new": "T + dt/V*z"}).build(name), folder / "scheme.json")
    return folder / "scheme.json"


@pytest.mark.parametrize("problem", list(PROBLEMS))
@pytest.mark.parametrize("name", ["euler", "exponential"])
def test_no_problem_makes_a_run_warn(
    cli: Cli, mesh_file: Path, name: str, problem: str, no_filter: None, tmp_path: Path
) -> None:
    scheme = scheme_or_file(name, tmp_path)
    folder = ("-o", tmp_path / "out") if problem == "difference" and scheme == "euler" else ()
    told = cli("simulate", scheme, "--mesh", mesh_file, *PROBLEMS[problem], "--steps", 2, "--json", *folder)
    assert told.code in (0, 1, 2)
    assert "internal error" not in told.err
    assert len(told.err.splitlines()) == (told.code != 0)
    if told.code != 2:
        assert told.json["steps" if "simulations" not in told.json else "simulations"] is not None


@pytest.mark.parametrize("name", ["huge", "logarithm"])
def test_no_scheme_makes_a_certificate_or_code_warn(
    cli: Cli, two_cells_file: Path, name: str, no_filter: None, tmp_path: Path
) -> None:
    scheme = scheme_or_file(name, tmp_path)
    told = cli("verify", scheme, "--mesh", two_cells_file, "--json")
    assert (told.code in (0, 1), told.err) == (True, "")
    for target in ("latex", "numpy", "jax", "c", "json"):
        exported = cli("export", scheme, "--to", target)
        assert (exported.code, exported.err) == (0, "")


def test_warnings_of_libraries_stay_off_the_terminal(
    cli: Cli, mesh_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warn(*_: object) -> list[str]:
        warnings.warn("overflow encountered in a library", RuntimeWarning, stacklevel=2)
        return []

    monkeypatch.setattr(_simulation, "list_doubts", warn)
    run = ("simulate", "euler", "--mesh", mesh_file, "--initial", "x", "--steps", 1)
    told = cli(*run)
    assert (told.code, told.err) == (0, "")
    with pytest.warns(RuntimeWarning, match="in a library"):
        cli(*run, "--debug")
