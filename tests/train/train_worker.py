"""A process that trains, and may be killed at any moment."""

import os
import signal
import sys

from small_runs import GRAPHS, tiny

from fluxforge.data import FixedSource, source
from fluxforge.run import RunFolder
from fluxforge.train import train

# A line of metrics every step and a checkpoint every third one, so that a kill loses steps that have to be repeated.
SPEC = tiny(chunk=1, checkpoint_every=3)


# Steps after which a process that its alarm has missed is killed: two kills come before the last of the 40 steps.
MOST_LATER = 5


def say(text: object) -> None:
    os.write(1, f"{text}\n".encode())


def run(folder: str, steps: int, later: float) -> None:
    """Train from the last checkpoint, printing every step; after so many of them, set an alarm that ends the process.

    It goes off after `later` seconds of this process's own processor time, so that it may strike anywhere in a step.
    The kernel looks at such alarms only at its clock ticks, which may miss a process that rarely runs for long: a few
    steps later the process kills itself.
    """
    told = 0

    def tell(step: int, *_: object) -> None:
        nonlocal told
        say(step)
        told += 1
        if told == steps:
            signal.setitimer(signal.ITIMER_VIRTUAL, later)  # the signal's default action ends a process at once
        elif steps and told == steps + MOST_LATER:
            os.kill(os.getpid(), signal.SIGKILL)

    new = not os.path.exists(folder)
    opened = RunFolder.create(folder, description={}, warn=say) if new else RunFolder.open(folder, warn=say)
    with opened as held:
        graphs = source(SPEC)
        assert isinstance(graphs, FixedSource)
        assert len(graphs.problems.dt) == GRAPHS
        train(SPEC, graphs, folder=held, tell=tell)
    say("done")


def nursery() -> None:
    """For each line "folder steps later", a process that trains there; modules are imported once, before the fork."""
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            folder, steps, later = line.split()
            run(folder, int(steps), float(later))
            os._exit(0)
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    nursery()
