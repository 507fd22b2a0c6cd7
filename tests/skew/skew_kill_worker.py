"""A process that runs a small discovery of a flux for skewed meshes, to be killed at one of its writes."""

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from fault_worker import Fault, arm
from fluxforge.mesh import generate
from fluxforge.pipeline import _outcome, _skew, _skew_stages, discover, resume
from fluxforge.run.skew import SkewResult
from fluxforge.skew import Coefficients, HeldOut, _problems, least_coercivity, measure_extremes

SMALL = {"search.evaluations": 16, "data.meshes": 4, "data.fields": 2, "data.samples": 1000, "data.problems": 2}


def shrink(patch: Callable[[Any, str, Any], None] = setattr) -> None:
    """Smaller meshes, no pictures, and a network that is consistent without training; what the stages write stays.

    `patch` is `setattr`, or a monkeypatch's.
    """
    consistent = Coefficients(((np.zeros((3, 3)), np.array([1.0, 1.0, -1.0])),), np.zeros(3), np.ones(3))
    patch(_skew, "train_coefficients", lambda *_, **__: consistent)
    patch(_skew, "CELLS", (50, 200, 800))
    # Meshes cost most, and are the same in every run.
    patch(_problems, "generate", cache(generate))
    for name, value in {"N": 4, "SEEDS": (1,)}.items():
        patch(_skew, f"JUDGED_{name}", value)
    patch(_skew, "STRETCHED_MESHES", 4)
    patch(_skew_stages, "HeldOut", partial(HeldOut, meshes=2, finest=2, sizes=(3, 4, 6, 8)))
    patch(_skew_stages, "measure_extremes", partial(measure_extremes, count=4, n=4))
    patch(_skew_stages, "least_coercivity", partial(least_coercivity, count=4, n=4))
    patch(_outcome, "FAMILIES", ("squares",))
    patch(_skew, "write_skew", _write_report)


def _write_report(result: SkewResult, folder: Path, **_: object) -> list[Path]:
    (folder / "report.html").write_text("\n".join(result.reasons), encoding="utf-8")
    return [folder / "report.html"]


def main(folder: str, number: str) -> None:
    """Begin a run in a folder or resume it; the process kills itself at the write of that number, if it is not −1."""
    shrink()
    arm(Fault("SIGKILL", write=int(number)) if int(number) >= 0 else None, Path(folder))
    if (Path(folder) / "run.json").exists():
        resume(folder)
    else:
        discover("skew", folder, changes=SMALL)


if __name__ == "__main__":
    main(*sys.argv[1:])
