"""Sweeps on a real local Ray cluster of two workers; skipped where Ray is not installed."""

import os
import signal
from pathlib import Path

import pytest

import fluxforge as ff
from fluxforge.sweeps import PointStatus
from run_files import read_files

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'fluxforge[ray]'")

TINY = """
name = "tiny"
[arms]
dense = 0.0
[data]
kind = "two-cells"
graphs = 10
[network]
features = "simplified"
mlp = "relu"
depth = 2
width = 4
update = "direct"
[loss.supervised]
[training]
steps = 60
batch = 4
chunk = 10
checkpoint_every = 20
[evaluation]
meshes = 1
cells = 30
engine = "builtin"
rollout = 2
"""


# Ray leaves sockets and files open for the garbage collector when it is shut down.
@pytest.mark.filterwarnings("default")
def test_points_on_two_workers_of_ray_are_those_of_processes(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    told: list[PointStatus] = []
    ended = ff.sweep(path, {"seed": range(3)}, tmp_path / "ray", workers=2, on="ray", tell=told.append)
    assert [point.outcome for point in ended.points] == ["finished"] * 3, ended.points
    assert {status.stage for status in told} >= {"waiting", "starting", "training", "finished"}
    assert not ray.is_initialized()
    ff.sweep(path, {"seed": range(3)}, tmp_path / "processes", workers=2)
    for seed in range(3):
        assert read_files(tmp_path / f"ray/runs/seed={seed}") == read_files(tmp_path / f"processes/runs/seed={seed}")


@pytest.mark.filterwarnings("default")
def test_a_run_whose_ray_worker_is_killed_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.replace("steps = 60", "steps = 20000").replace("chunk = 10", "chunk = 100"))
    killed: list[int] = []

    def kill(status: PointStatus) -> None:
        if not killed and status.stage == "training" and status.done:
            killed.append(_worker_of(tmp_path / "s" / "runs" / "seed=7" / "run.lock"))
            os.kill(killed[0], signal.SIGKILL)

    warned: list[str] = []
    ended = ff.sweep(path, {"seed": [7]}, tmp_path / "s", workers=2, on="ray", tell=kill, warn=warned.append)
    assert killed
    assert warned == ["seed=7: its process ended early (WorkerCrashedError); a new process continues the run"]
    assert [point.outcome for point in ended.points] == ["finished"]


def _worker_of(lock: Path) -> int:
    """The process that has the file of a lock open."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if any(link.resolve() == lock for link in (process / "fd").iterdir()):
                    return int(process.name)
            except OSError:
                continue
    raise AssertionError(f"nobody has {lock}")
