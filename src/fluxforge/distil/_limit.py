"""Constants in the limit of small steps:  c(Δt) = c₀ + c₁ Δt + c₂ Δt² + …, refitted at shorter and shorter steps.

A residual asks for the solution at the end of the step, which no explicit formula of fixed constants reaches: the best
constants depend on Δt. What they tend to is the scheme; how they get there is a property of the loss.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from fluxforge import recipe
from fluxforge.data import Problem
from fluxforge.distil._constants import DENOMINATOR, Fitted, Free, Objective

# Points an extrapolation goes through, and the degree of the polynomial in Δt.
POINTS, DEGREE = 5, 3
# A rational is taken where the limit is this near to it, or within three times its own uncertainty;
# neither may be more than FAR.
NEAR, FAR = 1e-3, 1e-2


@dataclass(frozen=True)
class Limit:
    """The best constants at every step, longest first, their loss there, and what they tend to."""

    steps: tuple[float, ...]
    values: tuple[Mapping[str, float], ...]
    losses: tuple[float, ...]
    fitted: Fitted

    def rows(self) -> list[dict[str, Any]]:
        """As plain JSON."""
        return [
            {"step": step, "constants": dict(values), "loss": loss}
            for step, values, loss in zip(self.steps, self.values, self.losses, strict=True)
        ]


def small_steps(free: Free, loss: recipe.Loss, problems: Mapping[float, Problem]) -> Limit:
    """Refit at every step, from the constants of the one before; extrapolate, and round what is nearly a fraction."""
    objective = Objective(free, loss)
    names, steps = tuple(free.values), tuple(sorted(problems, reverse=True))
    found: list[np.ndarray] = []
    losses: list[float] = []
    for step in steps:
        start = found[-1] if found else None
        best, value = objective.fit(problems[step], start=start)
        found.append(best)
        losses.append(value)
    limit, scatter = extrapolated(np.asarray(steps), np.asarray(found))
    rational = {
        name: near
        for name, value, off in zip(names, limit, scatter, strict=True)
        if off <= FAR and abs(value - (near := _nearest(value))) <= max(NEAR, min(3.0 * off, FAR))
    }
    shortest = problems[steps[-1]]
    rounded = np.array([float(rational.get(name, value)) for name, value in zip(names, limit, strict=True)])
    fitted = Fitted(
        values=dict(zip(names, map(float, limit), strict=True)),
        uncertainty=dict(zip(names, map(float, scatter), strict=True)),
        loss=objective(limit, shortest),
        rational=rational,
        rational_loss=objective(rounded, shortest),
    )
    rows = tuple(dict(zip(names, map(float, each), strict=True)) for each in found)
    return Limit(steps, rows, tuple(losses), fitted)


def extrapolated(
    steps: Float[np.ndarray, " steps"], values: Float[np.ndarray, "steps constants"]
) -> tuple[Float[np.ndarray, " constants"], Float[np.ndarray, " constants"]]:
    """What the values tend to as the step goes to 0, by a cubic through the shortest five; and how sure that is.

    The uncertainty is how far a polynomial of one degree less, through the shortest four, would end.
    """
    limit = _at_zero(steps[-POINTS:], values[-POINTS:], DEGREE)
    other = _at_zero(steps[-POINTS + 1 :], values[-POINTS + 1 :], DEGREE - 1)
    return limit, np.abs(limit - other)


def _at_zero(steps: np.ndarray, values: np.ndarray, degree: int) -> np.ndarray:
    degree = min(degree, len(steps) - 1)
    scaled = steps / steps[0]
    return np.linalg.lstsq(np.vander(scaled, degree + 1, increasing=True), values, rcond=None)[0][0]


def _nearest(value: float) -> Fraction:
    return Fraction(value).limit_denominator(DENOMINATOR)
