"""A nursery of processes, and sweeps whose workers come from it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sweep_runs import HERE, program

import fluxforge as ff
from fluxforge.sweeps import _pool
from processes import line


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a process that forks workers."""
    place = tmp_path_factory.mktemp("nursery") / "socket"
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, str(HERE / "sweep_nursery.py"), str(place)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert line(process) == "ready"
        yield place
        process.kill()


@pytest.fixture
def marks(nursery: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder in which the workers of this test leave marks; they come from the nursery."""
    folder = tmp_path / "marks"
    folder.mkdir()
    monkeypatch.setattr(_pool, "PROGRAM", program(nursery, "work"))
    monkeypatch.setenv("SWEEP_MARKS", str(folder))
    return folder


@pytest.fixture(scope="session")
def undisturbed(nursery: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep of three toy discoveries in which nothing went wrong."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pool, "PROGRAM", program(nursery, "work"))
        patch.setenv("SWEEP_MARKS", str(folder))
        ff.sweep("first-order", {"seed": range(3)}, folder / "sweep", workers=1)
    return folder / "sweep"
