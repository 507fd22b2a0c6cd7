"""Processes killed at any moment: the lock is released, the newest checkpoint is intact, the metrics have no gap."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import run_worker
from run_worker import FINGERPRINT, state

from fluxforge.errors import InputError
from fluxforge.run import RunFolder
from processes import line

KILLS = 12


@contextmanager
def worker(role: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(run_worker.__file__), role, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with RunFolder.create(tmp_path / "run", description={"seed": 0}, warn=pytest.fail):
        return tmp_path / "run"


def test_a_second_process_is_refused_until_the_first_is_killed(folder: Path) -> None:
    with worker("hold", folder) as holder:
        assert line(holder) == "held"
        with (
            pytest.raises(InputError, match=r"run: is in use by another process"),
            RunFolder.open(folder, warn=pytest.fail),
        ):
            pytest.fail("two processes hold one folder")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with RunFolder.open(folder, warn=pytest.fail) as run:
            assert run.description == {"seed": 0}


def killed_after(process: subprocess.Popen[str], seconds: float, *, least: int) -> int:
    """Train until so many steps are saved and then a while, kill, and return the last step said to be saved."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    child, said = 0, list[str]()
    while child == 0 or len(said) < least:
        word = line(process)
        if word.startswith("child"):
            child = int(word.removeprefix("child "))
        else:
            said.append(word)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    while (word := line(process)) != "dead":
        said.append(word)
    assert all(word.isdigit() for word in said), said  # a warning would be no number
    return max((int(word) for word in said), default=0)


def test_after_every_kill_the_newest_checkpoint_is_whole_and_nothing_saved_is_lost(folder: Path) -> None:
    moments = random.Random(0)
    saved = 0
    with worker("nursery", folder) as process:
        for kill in range(KILLS):
            saved = max(saved, killed_after(process, moments.uniform(0.0, 0.05), least=kill % 3))
            with RunFolder.open(folder, warn=pytest.fail) as run:
                newest = run.checkpoints.latest(state(0), fingerprint=FINGERPRINT)
                records = run.metrics.read()
                assert not list(folder.rglob(".*"))  # strays are gone
            step, tree = newest or (0, state(0))
            assert step >= saved
            for name, wanted in state(step).items():
                np.testing.assert_array_equal(tree[name], wanted)
            assert [record["step"] for record in records[:step]] == list(range(1, step + 1))
            assert len(records) <= step + 1
    assert saved >= KILLS  # it went on from where it was
    assert len(list(folder.glob("checkpoints/*.safetensors"))) <= 3


def test_a_full_disk_is_reported_in_one_line_and_the_last_checkpoint_stays(folder: Path) -> None:
    with worker("crowded", folder) as process:
        assert line(process) == f"{folder}/checkpoints/step-000000002.safetensors: cannot be written (File too large)"
        assert line(process) == f"{folder}/metrics.jsonl: cannot be written (File too large)"
    with RunFolder.open(folder, warn=pytest.fail) as run:
        newest = run.checkpoints.latest({"a": np.zeros(1000)}, fingerprint=FINGERPRINT)
        assert newest is not None
        assert newest[0] == 1
        np.testing.assert_array_equal(newest[1]["a"], np.arange(1000.0))
        assert [record["step"] for record in run.metrics.read()] == list(range(9))
        assert (folder / "metrics.jsonl").read_bytes().endswith(b"}\n")  # no half of the tenth
