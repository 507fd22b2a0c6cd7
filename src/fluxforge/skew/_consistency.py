"""Whether a network found consistency: ψ₂ = 1 and ψ₁ + ψ₃ = 0, in the limit of fine meshes.

Only linear fields tell the sum ψ₁ + ψ₃ from ψ₁: for them (T_N − T_P)/δ = ḡ·d/δ. Curved fields add a truncation error of
the size of the mesh, which biases the fit of a few thousandths on coarse meshes. So the two numbers are fitted on
unseen meshes of three sizes, and extrapolated in h².
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fluxforge.distil._constants import nearest_fraction
from fluxforge.skew._data import FaceTable
from fluxforge.skew._network import Coefficients

CELLS = (200, 800, 3_200)
"""Cells of the meshes on which the numbers are fitted: each has half the width of the one before."""

# Root mean square of ψ₂ − 1 and of ψ₁ + ψ₃ over the faces that a network may have left.
LARGEST_SPREAD = 0.03


@dataclass(frozen=True)
class FittedNumber:
    """One number at every size of mesh, its limit, the uncertainty of that, and the fraction it is, if it is one."""

    by_size: tuple[float, ...]
    limit: float
    uncertainty: float
    fraction: Fraction | None

    @property
    def text(self) -> str:
        """The limit with its uncertainty, and the fraction."""
        taken = "" if self.fraction is None else f" (taken as {self.fraction})"
        return f"{self.limit:.5f} ± {self.uncertainty:.5f}{taken}"


@dataclass(frozen=True)
class Consistency:
    """ψ₂ and ψ₁ + ψ₃ in the limit of fine meshes, and how far the network's own values are from 1 and 0.

    `spread` are root mean squares over the faces of the finest meshes.
    """

    normal: FittedNumber
    total: FittedNumber
    normal_spread: float
    total_spread: float

    @property
    def holds(self) -> bool:
        """Whether both numbers are 1 and 0, and those of single faces near them."""
        exact = self.normal.fraction == 1 and self.total.fraction == 0
        return exact and max(self.normal_spread, self.total_spread) <= LARGEST_SPREAD

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        normal, total = (
            f"{each.limit:.5f} ± {each.uncertainty:.5f}"
            + ("" if each.fraction is None else f" (taken as {each.fraction})")
            for each in (self.normal, self.total)
        )
        return f"ψ₂ = {normal}, ψ₁ + ψ₃ = {total} in the limit of fine meshes"


def fit_limits(network: Coefficients, tables: Sequence[FaceTable]) -> Consistency:
    """Fit the numbers on tables of three sizes of mesh, coarse to fine, the network's ψ₁ being given."""
    fitted = np.array([_fit(network, table) for table in tables])
    numbers = []
    for values in fitted.T:
        change = float(values[-1] - values[-2])
        # Between the last two sizes h² falls to a quarter; the error of the limit is taken as what is still changing.
        limit = float(values[-1]) + change / 3.0
        uncertainty = max(abs(change), 1e-6)
        numbers.append(
            FittedNumber(tuple(map(float, values)), limit, uncertainty, nearest_fraction(limit, uncertainty))
        )
    psi = network(tables[-1].inputs)
    spread = [float(np.sqrt(np.mean(off**2))) for off in (psi[:, 1] - 1.0, psi[:, 0] + psi[:, 2])]
    return Consistency(numbers[0], numbers[1], *spread)


def _fit(network: Coefficients, table: FaceTable) -> np.ndarray:
    """F/A − ψ₁ ((T_N − T_P)/δ − ḡ·d/δ) = a ḡ·n + b ḡ·d/δ by least squares: a and b."""
    rise, normal, along = table.columns.T
    left = table.flux - network(table.inputs)[:, 0] * (rise - along)
    return np.asarray(np.linalg.lstsq(np.stack([normal, along], axis=1), left, rcond=None)[0])


def linear_defect(table: FaceTable, psi: np.ndarray) -> float:
    """Largest error of ψ₂ = 1, ψ₃ = −ψ₁ on a table of linear fields, for any ψ₁: round-off, if the formula is right."""
    rise, normal, along = table.columns.T
    return float(np.abs(normal + psi * (rise - along) - table.flux).max())
