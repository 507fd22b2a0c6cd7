"""How large a field can become without blowing up: what it starts from, what its walls hold, and what enters."""

from dataclasses import dataclass

import numpy as np

from fluxforge.mesh import DualGraph

# A field this many times larger than the data allow has blown up.
BLOWN_UP = 1e8


@dataclass(frozen=True)
class Envelope:
    """|T(t)| ≤ `start` + `rate` t for the exact solution of the semi-discrete system of the plain flux.

    `start` is the largest of |initial| and of |g| on Dirichlet walls; `rate` the largest over cells of
    |S| + Σ α|q|A/V, the sum over the cell's Neumann faces.
    """

    start: float
    rate: float

    def bound(self, time: float) -> float:
        """Beyond this |T| at that time, the run has blown up; the largest float where it would overflow."""
        with np.errstate(over="ignore"):
            limit = np.float64(BLOWN_UP) * (1.0 + np.float64(self.start) + np.float64(self.rate) * np.float64(time))
        return float(np.nan_to_num(limit, nan=np.finfo(float).max, posinf=np.finfo(float).max))


def data_envelope(graph: DualGraph, *, initial: np.ndarray, source: np.ndarray, diffusivity: float) -> Envelope:
    """The envelope of a heat problem's data."""
    held = np.abs(graph.value[~graph.neumann])
    start = max(float(np.abs(initial).max()), float(held.max(initial=0.0)))
    with np.errstate(over="ignore", invalid="ignore"):
        entering = np.abs(source).astype(float)
        flux = diffusivity * np.abs(graph.value) * graph.A[graph.interior :] * graph.neumann
        np.add.at(entering, graph.owner[graph.interior :], flux / graph.V[graph.owner[graph.interior :]])
        rate = float(entering.max())
    return Envelope(start, rate)
