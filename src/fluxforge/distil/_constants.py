"""The numbers of a formula: fitted to the training loss in float64, and taken as fractions where they are that sure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.data import Problem
from fluxforge.distil._free import Free
from fluxforge.distil._objective import Objective

# Fractions of at most this denominator are candidates.
DENOMINATOR = 12
# A fraction is taken within so many uncertainties, if there are so many times that to the next candidate.
WITHIN, APART = 3.0, 4.0
# What float64 leaves of constants that are equal in exact arithmetic.
ROUND_OFF = 1e-9


@dataclass(frozen=True)
class Fitted:
    """Constants after a refit, their uncertainty, what rounding does to the loss, and whether the loss is round-off."""

    values: Mapping[str, float]
    uncertainty: Mapping[str, float]
    loss: float
    rational: Mapping[str, Fraction]
    rational_loss: float
    exact: bool = False

    @property
    def chosen(self) -> dict[str, sp.Expr | float]:
        """The fraction where there is one, the number otherwise."""
        exact = {name: sp.Rational(each.numerator, each.denominator) for name, each in self.rational.items()}
        return {**self.values, **exact}


def refit(free: Free, loss: recipe.Loss, samples: Sequence[Problem]) -> Fitted:
    """Minimise the training loss over the constants, on each set of samples by itself; the first one's counts.

    The uncertainty is the scatter over the sets, or the numerical error where that is larger: infinite for a constant
    that nothing determines.
    """
    names = tuple(free.values)
    objective = Objective.of_loss(free, loss)
    fits = [objective.fit(problems) for problems in samples]
    best = fits[0]
    scatter = np.std([fit.values for fit in fits], axis=0, ddof=1) if len(fits) > 1 else np.zeros(len(names))
    uncertainty = np.maximum(scatter, best.error)
    rational = nearest_fractions(dict(zip(names, best.values, strict=True)), dict(zip(names, uncertainty, strict=True)))
    rounded = np.array([float(rational.get(name, value)) for name, value in zip(names, best.values, strict=True)])
    return Fitted(
        values=dict(zip(names, map(float, best.values), strict=True)),
        uncertainty=dict(zip(names, map(float, uncertainty), strict=True)),
        loss=best.loss,
        rational=rational,
        rational_loss=objective(rounded, samples[0]),
        exact=best.exact,
    )


def nearest_fractions(values: Mapping[str, float], uncertainty: Mapping[str, float]) -> dict[str, Fraction]:
    """The fraction each constant is taken for; none where its uncertainty does not tell it from the next candidate."""
    found = {name: nearest_fraction(value, uncertainty[name]) for name, value in values.items()}
    return {name: near for name, near in found.items() if near is not None}


def nearest_fraction(value: float, uncertainty: float) -> Fraction | None:
    """The fraction of denominator at most 12 that a number ± uncertainty stands for, if it stands for one.

    Next to p/q the nearest other candidate is 1/(12 q) away or farther.
    """
    if not (math.isfinite(value) and math.isfinite(uncertainty)):
        return None
    near = Fraction(float(value)).limit_denominator(DENOMINATOR)
    spacing = 1.0 / (DENOMINATOR * near.denominator)
    close = abs(value - near) <= WITHIN * uncertainty + ROUND_OFF
    return near if close and APART * uncertainty <= spacing else None
