"""Observed orders from errors at successive refinements."""

import math
from dataclasses import dataclass

import numpy as np

AGREE = 0.15
DRIFT = 0.5
ROUND_OFF = 1e-13
LEAST_LEVELS = 4


@dataclass(frozen=True)
class Rates:
    """Errors e_k at sizes h_k, and the rates log(e_k/e_{k+1})/log(h_k/h_{k+1}) between them.

    `order` is the last rate, quoted only from at least four levels, if the last two rates agree within 0.15, the last
    three lie within 0.5 of each other, every refinement reduced the error, and no error sits on round-off; otherwise
    it is None.
    """

    sizes: tuple[float, ...]
    errors: tuple[float, ...]

    @property
    def rates(self) -> tuple[float, ...]:
        """The rate of each refinement; NaN where an error is zero or not finite."""
        e, h = np.array(self.errors), np.array(self.sizes)
        with np.errstate(all="ignore"):
            return tuple(float(r) for r in np.log(e[:-1] / e[1:]) / np.log(h[:-1] / h[1:]))

    @property
    def exact(self) -> bool:
        """Whether every error is round-off: nothing to measure an order from."""
        return all(error <= ROUND_OFF for error in self.errors)

    @property
    def asymptotic(self) -> bool:
        """Whether the rates have settled and no error sits on round-off."""
        rates = self.rates
        if len(self.errors) < LEAST_LEVELS or not np.isfinite(rates).all() or min(self.errors) <= ROUND_OFF:
            return False
        return abs(rates[-1] - rates[-2]) <= AGREE and max(rates[-3:]) - min(rates[-3:]) <= DRIFT

    @property
    def order(self) -> float | None:
        """The observed order, or None."""
        falls = all(b < a for a, b in zip(self.errors, self.errors[1:], strict=False))
        return self.rates[-1] if self.asymptotic and falls and self.rates[-1] > AGREE else None

    @property
    def convergent(self) -> bool:
        """Whether the error demonstrably goes to zero: an order can be quoted, or every error is round-off."""
        return self.exact or self.order is not None


def decades(value: float) -> float:
    """log₁₀, for axes that must bear zero."""
    return math.log10(value) if value > 0 else -17.0
