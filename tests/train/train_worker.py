"""A process that trains, and may be killed at any moment."""

import os
import sys

from small_runs import GRAPHS, tiny

from fluxforge.data import FixedSource, source
from fluxforge.run import RunFolder
from fluxforge.train import train

# A line of metrics every step and a checkpoint every third one, so that a kill loses steps that have to be made again.
SPEC = tiny(chunk=1, checkpoint_every=3)


def say(text: object) -> None:
    os.write(1, f"{text}\n".encode())


def run(folder: str) -> None:
    """Train to the end from wherever the last process stopped, telling every step."""
    new = not os.path.exists(folder)
    opened = RunFolder.create(folder, description={}, warn=say) if new else RunFolder.open(folder, warn=say)
    with opened as held:
        graphs = source(SPEC)
        assert isinstance(graphs, FixedSource)
        assert len(graphs.problems.dt) == GRAPHS
        train(SPEC, graphs, folder=held, tell=lambda step, *_: say(step))
    say("done")


def nursery() -> None:
    """For each folder read, a process that trains there: the modules are loaded once, and JAX wakes in the child."""
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            run(line.strip())
            os._exit(0)
        say(f"child {child}")
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    nursery()
