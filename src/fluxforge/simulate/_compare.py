"""Several schemes on the same problem."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxforge.errors import InputError
from fluxforge.mesh import Mesh
from fluxforge.scheme import Scheme
from fluxforge.simulate._run import Simulation, simulate


@dataclass(frozen=True)
class Comparison:
    """The runs, the first of which the others are measured against."""

    simulations: tuple[Simulation, ...]

    def table(self) -> list[dict[str, Any]]:
        """One row per scheme: its differences from the first, relative to it, and its own numbers.

        A scheme that blew up before the end has no differences.
        """
        first = self.simulations[0]
        return [_row(first, other) for other in self.simulations]


def compare(
    schemes: Sequence[str | os.PathLike[str] | Scheme],
    mesh: Mesh,
    *,
    progress: Callable[[int], None] | None = None,
    **problem: Any,
) -> Comparison:
    """Run each scheme on the same mesh, data and time step; `problem` is what `simulate` takes."""
    if not schemes:
        raise InputError("there is no scheme to compare")
    runs = []
    done = 0
    for scheme in schemes:
        before = done
        report = None if progress is None else (lambda step, before=before: progress(before + step))
        runs.append(simulate(scheme, mesh, progress=report, **problem))
        done = before + runs[-1].steps
    return Comparison(tuple(runs))


def _row(first: Simulation, other: Simulation) -> dict[str, Any]:
    row: dict[str, Any] = {"scheme": other.scheme, "l2_difference": None, "linf_difference": None}
    if first.steps == other.steps:
        apart, T, V = other.fields[-1] - first.fields[-1], first.fields[-1], first.graph.V
        size, largest = np.sqrt(V @ T**2), np.abs(T).max()
        row["l2_difference"] = float(np.sqrt(V @ apart**2) / (size or 1.0))
        row["linf_difference"] = float(np.abs(apart).max() / (largest or 1.0))
    summary = other.summary()
    return row | {key: summary[key] for key in ("min", "max", "mean", "seconds_per_step", "blew_up_at")}
