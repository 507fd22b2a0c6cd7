"""The numbers of a formula: fitted to the training loss in float64, and rounded where the loss allows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge import recipe
from fluxforge.data import Problem
from fluxforge.distil._free import Free
from fluxforge.distil._objective import Objective

# A rational is proposed up to this denominator, and taken if the loss rises by no more than this part of itself,
# or stays below what float64 leaves of an exact fit.
DENOMINATOR = 12
TOLERATED = 1e-3
NOTHING = 1e-9


@dataclass(frozen=True)
class Fitted:
    """Constants after a refit, how far they scatter over sets of samples, and what rounding them does to the loss."""

    values: Mapping[str, float]
    uncertainty: Mapping[str, float]
    loss: float
    rational: Mapping[str, Fraction]
    rational_loss: float

    @property
    def chosen(self) -> dict[str, sp.Expr | float]:
        """The rational where the loss allows it, the number otherwise."""
        exact = {name: sp.Rational(each.numerator, each.denominator) for name, each in self.rational.items()}
        return {**self.values, **exact}


def refit(free: Free, loss: recipe.Loss, samples: Sequence[Problem]) -> Fitted:
    """Minimise the training loss over the constants, on each set of samples by itself; the first one's counts.

    The uncertainty is the scatter over the sets, or the numerical error where that is larger: infinite for a constant
    that nothing determines.
    """
    names = tuple(free.values)
    objective = Objective(free, loss)
    fits = [objective.fit(problems) for problems in samples]
    best = fits[0]
    scatter = np.std([fit.values for fit in fits], axis=0, ddof=1) if len(fits) > 1 else np.zeros(len(names))
    rational, rounded = _rounded(objective, samples[0], best.values, best.loss)
    return Fitted(
        values=dict(zip(names, map(float, best.values), strict=True)),
        uncertainty=dict(zip(names, map(float, np.maximum(scatter, best.error)), strict=True)),
        loss=best.loss,
        rational=rational,
        rational_loss=rounded,
    )


def _rounded(
    objective: Objective, problems: Problem, best: Float[np.ndarray, " constants"], value: float
) -> tuple[dict[str, Fraction], float]:
    """Rationals one after the other, each kept if the loss does not mind."""
    kept: dict[str, Fraction] = {}
    values, reached = best.copy(), value
    for k, name in enumerate(objective.free.values):
        near = Fraction(float(best[k])).limit_denominator(DENOMINATOR)
        tried = values.copy()
        tried[k] = float(near)
        cost = objective(tried, problems)
        if cost <= value * (1.0 + TOLERATED) + NOTHING:
            kept[name], values, reached = near, tried, cost
    return kept, reached
