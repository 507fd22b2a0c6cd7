"""How large a field can become without blowing up: what it starts from, what its walls hold, and what enters."""

from dataclasses import dataclass

import numpy as np

from fluxforge.mesh import DualGraph, Settings, exchange_weights
from fluxforge.pde import Equation
from fluxforge.stepping._reaction import linear_reaction

# A field this many times larger than the data allow has blown up.
BLOWN_UP = 1e8


@dataclass(frozen=True)
class Envelope:
    """|T(t)| ≤ `start` + `rate` t for the exact solution of the semi-discrete system of the plain flux.

    `start` is the largest of |initial| and of |g| on Dirichlet walls; `rate` the largest over cells of
    (|S| + |r(0)| + Σ A|∂F/∂u| |q|δ/V)/c (for heat, α|q|A/V), the sum over the cell's Neumann faces.
    """

    start: float
    rate: float

    def bound(self, time: float) -> float:
        """Beyond this |T| at that time, the run has blown up; the largest float where it would overflow."""
        with np.errstate(over="ignore"):
            limit = np.float64(BLOWN_UP) * (1.0 + np.float64(self.start) + np.float64(self.rate) * np.float64(time))
        return float(np.nan_to_num(limit, nan=np.finfo(float).max, posinf=np.finfo(float).max))


def data_envelope(
    equation: Equation, graph: DualGraph, parameters: Settings | None, *, initial: np.ndarray, source: np.ndarray
) -> Envelope:
    """The envelope of a problem's data; unlimited where a reaction may let the field grow, or is not linear."""
    reaction = linear_reaction(equation, graph, parameters)
    if reaction is None or reaction.growth > 0:
        return Envelope(np.inf, 0.0)
    held = np.abs(graph.value[~graph.neumann])
    start = max(float(np.abs(initial).max()), float(held.max(initial=0.0)))
    with np.errstate(over="ignore", invalid="ignore"):
        entering = np.abs(source).astype(float)
        slope = np.concatenate([np.zeros(graph.interior), np.where(graph.neumann, np.abs(graph.value), 0.0)])
        across = (slope * graph.delta)[graph.slot_face] * graph.slot_mask
        entering += (across * exchange_weights(equation, graph, parameters, initial)).sum(axis=1) / graph.V
        rate = float((entering / reaction.capacity + np.abs(reaction.constant)).max())
    return Envelope(start, rate)
