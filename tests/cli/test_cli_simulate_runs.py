"""`fluxforge simulate RUN` where the network of the run is no step on meshes: its scheme is simulated."""

from pathlib import Path

import pytest
from cli_runs import Cli

import fluxforge as ff
from fluxforge import recipe
from fluxforge.errors import InputError
from fluxforge.pipeline import Discovery
from fluxforge.pipeline._folder import describe_run
from fluxforge.run import RunFolder
from fluxforge.run.result import to_document
from fluxforge.scheme import find, save


def finish_experiment(path: Path, scheme: str | None) -> Path:
    """The folder of a finished experiment, with the scheme of its flux if it found one."""
    spec = recipe.load("upwind")
    result = Discovery(recipe=spec.name, seed=0, seconds={}, recovered=scheme is not None, reasons=())
    with RunFolder.create(path, description=describe_run(spec), warn=pytest.fail) as folder:
        if scheme is not None:
            save(find(scheme), folder.path / "scheme.json")
        folder.finish("discovery", to_document(result))
    return path


def test_the_scheme_of_a_flux_is_simulated(cli: Cli, mesh_file: Path, tmp_path: Path) -> None:
    run = finish_experiment(tmp_path / "run", "upwind")
    how = ("--mesh", mesh_file, "--set", "velocity=(1, 0.5)", "--initial", "x*y", "--steps", 3, "--json")
    by_run, by_name = (cli("simulate", each, *how) for each in (run, "upwind"))
    assert by_run.code == by_name.code == 0, by_run.err
    for name in ("scheme", "min", "max", "mean"):
        assert by_run.json[name] == by_name.json[name]


def test_a_run_without_a_formula_is_refused_in_one_line(cli: Cli, mesh_file: Path, tmp_path: Path) -> None:
    run = finish_experiment(tmp_path / "run", None)
    outcome = cli("simulate", run, "--mesh", mesh_file, "--set", "velocity=(1, 0)")
    assert outcome.code == 2
    assert outcome.err == f"error: {run}: the run has no formula, so it cannot be used as a scheme\n"


def test_a_run_of_another_equation_is_refused_in_one_line(cli: Cli, mesh_file: Path, tmp_path: Path) -> None:
    run = finish_experiment(tmp_path / "run", "upwind")
    outcome = cli("simulate", run, "--mesh", mesh_file, "--equation", "heat")
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {run}: the run belongs to the equation 'advection', not to 'heat'")
    assert outcome.err.count("\n") == 1


def test_the_network_of_an_experiment_is_refused_and_its_scheme_recommended(tmp_path: Path) -> None:
    run = ff.load_run(finish_experiment(tmp_path / "run", "upwind"))
    assert run.scheme is not None
    with pytest.raises(InputError, match=r"computes a flux, not a step on meshes: use run\.scheme"):
        _ = run.network
