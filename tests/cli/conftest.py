"""The command line in this process, with its whole error handling, and meshes for it."""

from pathlib import Path

import pytest
from cli_runs import Cli, Outcome

from fluxforge import mesh
from fluxforge.cli import main


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def mesh_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """32 right triangles with tagged sides."""
    path = tmp_path_factory.mktemp("meshes") / "m.msh"
    mesh.write(mesh.right_triangles(4), path)
    return path


@pytest.fixture(scope="session")
def two_cells_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("meshes") / "two.msh"
    mesh.write(mesh.two_cells(), path)
    return path
