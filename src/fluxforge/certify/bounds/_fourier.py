"""The Fourier step beside the largest stable step of the explicit first-order scheme."""

import math
from dataclasses import dataclass

from fluxforge.mesh import DualGraph, fourier_step
from fluxforge.pde import HEAT
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import step_limit

# Eigenvalues of large meshes are known to about five digits.
_DIGITS = 1e-4


@dataclass(frozen=True)
class FourierCheck:
    """`fourier` = min V/Σ α A/δ, `limit` = 2/λ_max, `ratio` = limit/fourier: 1 where the condition is sharp."""

    mesh: str
    cells: int
    fourier: float
    limit: float
    ratio: float

    @property
    def sufficient(self) -> bool:
        """Whether every step that meets the condition is stable."""
        return self.ratio >= 1.0 - _DIGITS

    @property
    def necessary(self) -> bool:
        """Whether every step that does not meet it is unstable."""
        return self.ratio <= 1.0 + _DIGITS


def fourier_is_sufficient(graph: DualGraph, *, diffusivity: float = 1.0) -> FourierCheck:
    """Δt_Fourier ≤ 2/λ_max, by Gershgorin's circles: the lemma says necessary, and sufficient is what it is."""
    fourier = fourier_step(graph, diffusivity)
    found = step_limit(BUILT_IN["euler"], graph, parameters=HEAT.settings(diffusivity=diffusivity))
    assert found is not None
    ratio = 1.0 if math.isinf(fourier) else found.dt / fourier
    return FourierCheck(graph.origin, graph.cells, fourier, found.dt, ratio)
