"""Sweeps whose parent is killed, interrupted or not alone."""

import os
import signal
from pathlib import Path

import pytest
from sweep_runs import contents, start_parent, wait_for

from fluxforge.cli import main
from fluxforge.run import lock_folder
from fluxforge.sweeps import resume_sweep

SWEEP = ("sweep", "first-order", "--over", "seed=0:3", "--workers", "1", "-o")


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers stop in the middle of the training of seed 1, after its second checkpoint."""
    monkeypatch.setenv("SWEEP_FAULTS", "pause:seed=1:train 5")


@pytest.mark.usefixtures("paused")
def test_a_sweep_is_gone_on_with_after_its_parent_was_killed_and_only_one_parent_has_it(
    nursery: Path, marks: Path, tmp_path: Path, undisturbed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "s"
    with start_parent(nursery, *SWEEP, folder) as parent:
        wait_for(marks / "pause seed=1 0", parent)
        for second in ((*SWEEP, str(folder)), ("sweep", "--resume", str(folder))):
            assert main(second) == 2
            (told,) = capsys.readouterr().err.splitlines()
            assert told == f"error: {folder}: is in use by another process: wait until it ends, or stop it"
        os.kill(int((marks / "parent").read_text()), signal.SIGKILL)
    assert parent.returncode == -signal.SIGKILL
    assert not (folder / "summary.json").exists()
    ended = resume_sweep(folder, workers=1)
    assert [point.verdict for point in ended.points] == ["recovered"] * 3
    assert (marks / "begun").read_text().split() == ["seed=0", "seed=1", "seed=1", "seed=2"]
    for seed in range(3):
        assert contents(folder / f"runs/seed={seed}") == contents(undisturbed / f"runs/seed={seed}")


@pytest.mark.usefixtures("paused")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_sweep_ends_its_workers_and_says_how_to_go_on(
    nursery: Path, marks: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    folder = tmp_path / "s"
    with start_parent(nursery, *SWEEP, folder) as parent:
        wait_for(marks / "pause seed=1 0", parent)
        parent.send_signal(number)
        out, err = parent.communicate()
    assert parent.returncode == code
    assert out == ""
    *lines, how, last = err.splitlines()
    assert how == f"continue with: fluxforge sweep --resume {folder}"
    assert last == "interrupted: stopped before the end"
    assert next(line for line in lines if "finished" in line).startswith("seed=0: finished, recovered")
    with lock_folder(folder / "runs" / "seed=1"):  # nobody has it any more
        pass
