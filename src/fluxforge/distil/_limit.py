"""Constants in the limit of small steps:  c(Δt) = c₀ + c₁ Δt + c₂ Δt² + …, refitted at shorter and shorter steps.

A residual asks for the solution at the end of the step, which no explicit formula of fixed constants reaches: the best
constants depend on Δt. What they tend to is the scheme; how they get there is a property of the loss.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from fluxforge import recipe
from fluxforge.data import Problem
from fluxforge.distil._constants import Fitted, nearest_fractions
from fluxforge.distil._free import Free
from fluxforge.distil._objective import Minimum, Objective

# Points an extrapolation goes through, and the degree of the polynomial in Δt.
POINTS, DEGREE = 5, 3


@dataclass(frozen=True)
class Limit:
    """The best constants at every step, longest first, with their numerical errors and loss; and what they tend to."""

    steps: tuple[float, ...]
    values: tuple[Mapping[str, float], ...]
    errors: tuple[Mapping[str, float], ...]
    losses: tuple[float, ...]
    fitted: Fitted

    def rows(self) -> list[dict[str, Any]]:
        """As plain JSON."""
        return [
            {"step": step, "constants": dict(values), "error": _finite(errors), "loss": loss}
            for step, values, errors, loss in zip(self.steps, self.values, self.errors, self.losses, strict=True)
        ]


def small_steps(free: Free, loss: recipe.Loss, problems: Mapping[float, Problem]) -> Limit:
    """Refit at every step, from the constants of the one before; extrapolate, and round what is nearly a fraction."""
    objective = Objective.of_loss(free, loss)
    names, steps = tuple(free.values), tuple(sorted(problems, reverse=True))
    found: list[Minimum] = []
    for step in steps:
        found.append(objective.fit(problems[step], start=found[-1] if found else None))
    values, errors = (np.asarray([getattr(each, name) for each in found]) for name in ("values", "error"))
    limit, scatter = extrapolated(np.asarray(steps), values, errors)
    rational = nearest_fractions(dict(zip(names, limit, strict=True)), dict(zip(names, scatter, strict=True)))
    shortest = problems[steps[-1]]
    rounded = np.array([float(rational.get(name, value)) for name, value in zip(names, limit, strict=True)])
    fitted = Fitted(
        values=dict(zip(names, map(float, limit), strict=True)),
        uncertainty=dict(zip(names, map(float, scatter), strict=True)),
        loss=objective(limit, shortest),
        rational=rational,
        rational_loss=objective(rounded, shortest),
    )
    rows, sure = (
        tuple(dict(zip(names, map(float, each), strict=True)) for each in table) for table in (values, errors)
    )
    return Limit(steps, rows, sure, tuple(each.loss for each in found), fitted)


def extrapolated(
    steps: Float[np.ndarray, " steps"],
    values: Float[np.ndarray, "steps constants"],
    errors: Float[np.ndarray, "steps constants"] | None = None,
) -> tuple[Float[np.ndarray, " constants"], Float[np.ndarray, " constants"]]:
    """What the values tend to as the step goes to 0, by a cubic through the shortest five; and how sure that is.

    The uncertainty is the largest of how far a polynomial of one degree less through the shortest four would end, and
    how far the cubic ends without one of the five: values of least |r| are smooth only as long as the same rows
    vanish, and a kink between two steps shows there. What the errors of the values amount to in the limit is added.
    """
    steps, values = steps[-POINTS:], values[-POINTS:]
    limit, weights = _at_zero(steps, values, DEGREE)
    others = [_at_zero(steps[1:], values[1:], DEGREE - 1)[0]]
    if len(steps) == POINTS:
        kept = [np.arange(POINTS) != k for k in range(POINTS)]
        others += [_at_zero(steps[some], values[some], DEGREE)[0] for some in kept]
    off = np.max(np.abs(np.asarray(others) - limit), axis=0)
    if errors is not None:
        off = off + np.abs(weights) @ errors[-POINTS:]
    return limit, off


def _at_zero(steps: np.ndarray, values: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The polynomial of least squares at 0, and the weight that each value has in it."""
    degree = min(degree, len(steps) - 1)
    weights = np.linalg.pinv(np.vander(steps / steps[0], degree + 1, increasing=True))[0]
    return weights @ values, weights


def _finite(errors: Mapping[str, float]) -> dict[str, float | None]:
    """None for a constant that nothing determines."""
    return {name: value if math.isfinite(value) else None for name, value in errors.items()}
