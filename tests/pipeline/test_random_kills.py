"""Fifty kills at random moments of a small discovery: the result is bit for bit that of one never killed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import kill_worker
import pytest

from processes import line
from run_files import read_files

KILLS = 50


@contextmanager
def nursery(compiled: Path, *, write: bool) -> Iterator[subprocess.Popen[str]]:
    """Processes that read compiled functions in a folder, and write them there if they are not going to be killed."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
        "JAX_COMPILATION_CACHE_DIR": str(compiled),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0" if write else "1e9",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [sys.executable, str(kill_worker.__file__)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], folder: Path, *, write: int = -1, seconds: float | None = None) -> int:
    """The exit code of a process that runs in a folder; killed at a write, after some seconds, or not at all."""
    assert process.stdin is not None
    process.stdin.write(f"{folder} {write}\n")
    child = int(line(process).removeprefix("child "))
    alarm = threading.Timer(seconds or 0.0, _kill, (child,))
    if seconds is not None:
        alarm.start()
    word = line(process)
    alarm.cancel()
    return int(word.removeprefix("ended "))


def _kill(child: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


@pytest.mark.slow
def test_fifty_random_kills_change_nothing(tmp_path: Path) -> None:
    with nursery(tmp_path / "compiled", write=True) as process:
        assert ended(process, tmp_path / "first") == 0  # it compiles
    moments, kills, runs = random.Random(0), 0, 0
    with nursery(tmp_path / "compiled", write=False) as process:
        began = time.monotonic()
        assert ended(process, tmp_path / "whole") == 0
        usual = time.monotonic() - began
        wanted = read_files(tmp_path / "whole")
        assert read_files(tmp_path / "first") == wanted
        while kills < KILLS:
            folder, runs = tmp_path / f"run-{runs}", runs + 1
            began = time.monotonic()
            struck = _killed_until_done(process, folder, moments, usual, most=KILLS - kills)
            if not struck:  # the machine is less busy than it was: moments are drawn from a shorter time
                usual = min(usual, time.monotonic() - began)
            kills += struck
            assert read_files(folder) == wanted
            assert not list(folder.rglob(".*"))
            shutil.rmtree(folder)
    assert kills == KILLS


def _killed_until_done(
    process: subprocess.Popen[str], folder: Path, moments: random.Random, usual: float, *, most: int
) -> int:
    """Run in a folder until it is done, killed at random moments or writes; how often it was killed, `most` at most."""
    kills = 0
    while True:
        when = {"write": moments.randrange(40)} if kills % 2 else {"seconds": moments.uniform(0.0, usual)}
        code = ended(process, folder, **(when if kills < most else {}))
        if code == 0:
            return kills
        assert code == -signal.SIGKILL
        kills += 1
