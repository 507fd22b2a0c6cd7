"""Processes killed while they train: started again until they are done, they end as one that was never killed."""

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
import train_worker
from safetensors.numpy import load_file
from small_runs import graphs, opened

from fluxforge.train import train
from processes import line

KILLS = 4


@contextmanager
def nursery() -> Iterator[subprocess.Popen[str]]:
    """The processes find compiled what this one has compiled, and write nothing there: see `compiled.use`."""
    process = subprocess.Popen(
        [sys.executable, str(train_worker.__file__)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def trained(process: subprocess.Popen[str], folder: Path, kill_after: float = np.inf, later: float = 0.0) -> list[str]:
    """Train in a folder until it is done or killed, so many steps and seconds on; all that was said."""
    assert process.stdin is not None
    process.stdin.write(f"{folder}\n")
    child, said = 0, list[str]()
    while (word := line(process)) != "dead":
        if word.startswith("child"):
            child = int(word.removeprefix("child "))
        else:
            said.append(word)
        if child and len(said) >= kill_after:
            time.sleep(later)
            os.kill(child, signal.SIGKILL)
            kill_after = np.inf
    return said


def test_killed_at_any_moment_a_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with opened(whole) as folder:
        train(train_worker.SPEC, graphs(), folder=folder)
    moments = random.Random(0)
    steps: list[int] = []
    with nursery() as process:
        for _ in range(KILLS):
            said = trained(process, killed, kill_after=moments.randint(4, 9), later=moments.uniform(0.0, 0.02))
            assert all(word.isdigit() for word in said), said  # a warning would be no number
            steps += map(int, said)
        rest = trained(process, killed)
    assert rest[-1] == "done"
    # It went on from where it was; on a busy machine the last kill may come after the last step.
    assert rest == ["done"] or int(rest[0]) > 2 * KILLS
    assert len({*steps, *map(int, rest[:-1])}) == 40
    last = "checkpoints/step-000000040.safetensors"
    one, other = (load_file(folder / last) for folder in (whole, killed))
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype
        np.testing.assert_array_equal(array, other[name])
    assert (whole / last).read_bytes() == (killed / last).read_bytes()
    assert (whole / "metrics.jsonl").read_bytes() == (killed / "metrics.jsonl").read_bytes()
    assert not list(killed.rglob(".*"))
