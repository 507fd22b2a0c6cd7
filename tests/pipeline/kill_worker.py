"""Processes that run a small discovery, real but for its ablations, to be killed at any moment."""

import os
import sys
from pathlib import Path

from fault_worker import Fault, arm
from fluxforge import recipe
from fluxforge.distil import Ablations
from fluxforge.pipeline import _discover, _distillation, _judgement, _outcome, discover, resume
from run_files import SMALL


def shrink() -> None:
    """Fewer problems and families, and no ablations, which write nothing: the stages and what they write stay."""
    _judgement.LOSS_PROBLEMS = (32, 4)
    _distillation.REFIT_PROBLEMS, _distillation.REFIT_SETS = 64, 2
    _outcome.FAMILIES = ("squares",)
    _discover.ablate = lambda spec: Ablations((), 0.0, "left out")


def run(folder: Path) -> None:
    """Begin a run or resume it, and run it to its end."""
    if (folder / "run.json").exists():
        resume(folder, warn=print)
    else:
        discover(recipe.override(recipe.load("first-order"), SMALL), folder, warn=print)


def nursery() -> None:
    """For each folder and number read, a process: it kills itself at the write of that number, if that is not −1."""
    shrink()
    for line in sys.stdin:
        folder, number = line.rsplit(" ", 1)
        if (child := os.fork()) == 0:
            arm(Fault("SIGKILL", write=int(number)) if int(number) >= 0 else None, Path(folder))
            run(Path(folder))
            os._exit(0)
        os.write(1, f"child {child}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(1, f"ended {code}\n".encode())


if __name__ == "__main__":
    nursery()
