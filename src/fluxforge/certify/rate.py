"""The rate of change of an equation that is not linear: what a scheme does in a short step, against the equation."""

from dataclasses import dataclass

import numpy as np

from fluxforge.errors import NumericalError
from fluxforge.mesh import DualGraph, Settings, reference_step
from fluxforge.scheme import Scheme, find
from fluxforge.stepping import general_stepper

# Steps of this part of the reference step: (T' − T)/Δt at Δt and Δt/2 extrapolate to 0 with an error of the order of
# its square, 1e-10, and of round-off, 2ε/SHORT = 1e-10 of T over the reference step.
SHORT = 1e-5
SAME = 1e-7


@dataclass(frozen=True)
class Rate:
    """How far ∂T'/∂Δt at Δt = 0 is from the equation's own two-point flux and reaction, the worst of several states.

    `apart` is relative to the larger of the rate and the state over a reference step.
    """

    apart: float

    @property
    def holds(self) -> bool:
        """Whether it is the equation's, as far as short steps can tell."""
        return self.apart <= SAME


def rate_of_change(scheme: Scheme, graph: DualGraph, *, parameters: Settings) -> Rate:
    """Compare with Euler's scheme for the same equation, from a state in (0, 1), one of both signs and a constant one.

    Raises NumericalError where no state gives finite rates.
    """
    rng = np.random.default_rng(0)
    states = (rng.random(graph.cells), rng.standard_normal(graph.cells), np.full(graph.cells, 0.3))
    source = rng.standard_normal(graph.cells)
    worst = [
        apart for T in states if np.isfinite(apart := _apart(scheme, graph, T=T, source=source, parameters=parameters))
    ]
    if not worst:
        raise NumericalError("the equation has no finite rate of change on any of the states tried")
    return Rate(max(worst))


def _apart(scheme: Scheme, graph: DualGraph, *, T: np.ndarray, source: np.ndarray, parameters: Settings) -> float:
    unit = reference_step(scheme.equation, graph, parameters, T)
    # An equation that only grows has none; the unit of time is then as good as any other.
    unit = unit if np.isfinite(unit) else 1.0
    own, wanted = (
        _slope(each, graph, T=T, source=source, dt=SHORT * unit, parameters=parameters)
        for each in (scheme, find("euler", scheme.equation))
    )
    size = max(np.abs(wanted).max(), np.abs(own).max(), np.abs(T).max() / unit)
    return float(np.abs(own - wanted).max() / size)


def _slope(
    scheme: Scheme, graph: DualGraph, *, T: np.ndarray, source: np.ndarray, dt: float, parameters: Settings
) -> np.ndarray:
    """(T' − T)/Δt extrapolated from Δt and Δt/2 to 0."""
    found = []
    for step in (dt, dt / 2):
        stepper = general_stepper(scheme, graph, dt=step, parameters=parameters, source=source, dtype="float64")
        found.append((np.asarray(stepper(T)) - T) / step)
    return np.asarray(2.0 * found[1] - found[0])
