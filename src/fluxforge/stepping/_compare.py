"""Several schemes on the same problem."""

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxforge._arguments import check_function, describe_value
from fluxforge.errors import InputError
from fluxforge.mesh import Mesh, as_mesh
from fluxforge.scheme import Scheme
from fluxforge.stepping._run import Simulation, simulate


@dataclass(frozen=True)
class Comparison:
    """The runs, the first of which the others are measured against."""

    simulations: tuple[Simulation, ...]

    def table(self) -> list[dict[str, Any]]:
        """One row per scheme: its differences from the first, relative to it, and its own numbers.

        A scheme that blew up before the end has no differences.
        """
        first = self.simulations[0]
        with np.errstate(all="ignore"):
            return [_row(first, other) for other in self.simulations]


def compare(
    schemes: Sequence[str | os.PathLike[str] | Scheme],
    mesh: Mesh | str | os.PathLike[str],
    *,
    progress: Callable[[int], None] | None = None,
    **problem: Any,
) -> Comparison:
    """Run each scheme on the same mesh, data and time step; `problem` is what `simulate` takes.

    Raises InputError, naming the argument, for an argument that cannot be used.
    """
    if isinstance(schemes, str | os.PathLike | Scheme) or not isinstance(schemes, Sequence):
        raise InputError(f"schemes should be a list of schemes, got {describe_value(schemes)}")
    if not schemes:
        raise InputError("there is no scheme to compare: schemes is empty")
    known = set(inspect.signature(simulate).parameters) - {"scheme", "mesh", "progress"}
    if stray := sorted(set(problem) - known):
        raise InputError(f"unknown argument {stray[0]!r:.60}; known: {', '.join(sorted(known))}")
    check_function(progress, "progress")
    mesh = as_mesh(mesh)
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
        largest = float(np.abs(T).max()) or 1.0
        # Divided first: squares of large fields would overflow.
        size = np.sqrt(V @ (T / largest) ** 2) or 1.0
        row["l2_difference"] = float(np.sqrt(V @ (apart / largest) ** 2) / size)
        row["linf_difference"] = float(np.abs(apart).max() / largest)
    summary = other.summary()
    return row | {key: summary[key] for key in ("min", "max", "mean", "seconds_per_step", "blew_up_at")}
