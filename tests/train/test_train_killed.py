"""Processes killed while they train: restarted until done, they give the result of one never killed."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import train_worker
from safetensors.numpy import load_file
from small_runs import graphs, opened

from fluxforge.train import train
from processes import line

KILLS = 2


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


def trained(process: subprocess.Popen[str], folder: Path, steps: int, later: float) -> list[str]:
    """Train in a folder until it is done, or killed after so many steps and seconds; returns all lines printed."""
    assert process.stdin is not None
    process.stdin.write(f"{folder} {steps} {later:.6f}\n")
    return list(iter(lambda: line(process), "dead"))


def test_killed_at_any_moment_a_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with opened(whole) as folder:
        train(train_worker.SPEC, graphs(), folder=folder)
    moments = random.Random(0)
    steps: list[int] = []
    with nursery() as process:
        for _ in range(KILLS):
            said = trained(process, killed, steps=moments.randint(4, 9), later=moments.uniform(1e-4, 4e-3))
            assert all(word.isdigit() for word in said), said  # a warning would be no number
            steps += map(int, said)
        rest = trained(process, killed, steps=0, later=0.0)
    assert rest[-1] == "done"
    assert int(rest[0]) > 2 * KILLS  # it went on from where it was
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
