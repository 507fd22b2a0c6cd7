"""Processes that hold a run folder, save in it without end, or find the disk full, so that tests may kill them."""

import os
import resource
import sys
from pathlib import Path

import numpy as np

from fluxforge.errors import FluxforgeError
from fluxforge.run import Checkpoints, Metrics, RunFolder

FINGERPRINT = "f" * 64


def state(step: int) -> dict[str, np.ndarray]:
    """A tree that tells its step in every number, and takes a while to write."""
    return {"a": np.full(100_000, float(step)), "b": np.full((3, 5), step, dtype=np.int32)}


def say(text: object) -> None:
    os.write(1, f"{text}\n".encode())


def hold(folder: str) -> None:
    """Hold a run folder until the end."""
    with RunFolder.open(folder, warn=say):
        say("held")
        sys.stdin.read()


def train(folder: str) -> None:
    """Go on with a run from its newest checkpoint: a record and a checkpoint a step, which is said when saved."""
    with RunFolder.open(folder, warn=say) as run:
        newest = run.checkpoints.latest(state(0), fingerprint=FINGERPRINT)
        step = newest[0] if newest else 0
        run.metrics.truncate(step)
        while True:
            step += 1
            run.metrics.append({"step": step, "loss": 1 / step})
            run.checkpoints.save(step, state(step), fingerprint=FINGERPRINT)
            say(step)


def nursery(folder: str) -> None:
    """For each line read, a process that trains: the modules are loaded once."""
    for _ in sys.stdin:
        if (child := os.fork()) == 0:
            train(folder)
        say(f"child {child}")
        os.waitpid(child, 0)
        say("dead")


def crowded(folder: str) -> None:
    """Save where a file can grow no further than 100 kB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    checkpoints = Checkpoints(Path(folder) / "checkpoints", warn=say)
    checkpoints.save(1, {"a": np.arange(1000.0)}, fingerprint=FINGERPRINT)
    metrics = Metrics(Path(folder) / "metrics.jsonl")
    for attempt in (
        lambda: checkpoints.save(2, {"a": np.arange(20_000.0)}, fingerprint=FINGERPRINT),
        lambda: [metrics.append({"step": step, "text": "x" * 9_990}) for step in range(20)],
    ):
        try:
            attempt()
            say("no error")
        except FluxforgeError as error:
            say(error)


if __name__ == "__main__":
    {"hold": hold, "nursery": nursery, "crowded": crowded}[sys.argv[1]](sys.argv[2])
