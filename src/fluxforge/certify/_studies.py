"""Results of studies in space and time: errors at successive refinements, observed orders, patch tests."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from fluxforge.scheme._linear import HIGHEST_ORDER, OneCellOrder

# The largest difference between the last two rates, and among the last three, for which an order is quoted.
RATE_TOLERANCE = 0.15
DRIFT = 0.5
# Relative errors below this are round-off: some hundred operations in double precision.
ROUND_OFF = 1e-13
LEAST_LEVELS = 4
# The largest share of the last error that may be a plateau.
LARGEST_PLATEAU = 0.25
# No scheme here converges faster.
MOST_RATE = 12.0
# The largest standard error of a rate from which an order is quoted.
MOST_SCATTER = 0.25


@dataclass(frozen=True)
class Rates:
    """Errors e_k at sizes h_k, and the rates log(e_k/e_{k+1})/log(h_k/h_{k+1}) between them.

    `order` is the last rate, quoted only if there are at least `least` levels, the last two rates agree within 0.15,
    the last three lie within 0.5 of each other, every refinement reduced the error, no error is at the level of
    round-off, the last error is at most `below`, and the errors tend to zero rather than to a plateau; otherwise None.
    `scatter` are the relative standard errors of the errors, if these are means over several meshes: the tolerances
    for rates are then larger by twice the standard error of their difference, and that of the last rate must be at
    most 0.25.
    """

    sizes: tuple[float, ...]
    errors: tuple[float, ...]
    below: float = math.inf
    least: int = LEAST_LEVELS
    scatter: tuple[float, ...] = ()

    def __str__(self) -> str:
        return "exact to round-off" if self.exact else "rates " + " ".join(f"{rate:.2f}" for rate in self.rates)

    @property
    def rates(self) -> tuple[float, ...]:
        """The rate of each refinement; NaN where an error is zero or not finite."""
        e, h = np.array(self.errors), np.array(self.sizes)
        with np.errstate(all="ignore"):
            return tuple(float(r) for r in np.log(e[:-1] / e[1:]) / np.log(h[:-1] / h[1:]))

    @property
    def exact(self) -> bool:
        """Whether every error is round-off, from which no order can be measured."""
        return all(error <= ROUND_OFF for error in self.errors)

    @property
    def asymptotic(self) -> bool:
        """Whether the rates have settled and no error is at the level of round-off."""
        rates = self.rates
        if len(self.errors) < self.least or not np.isfinite(rates).all() or min(self.errors) <= ROUND_OFF:
            return False
        last, difference = self._scatter_of_rates()
        if last > MOST_SCATTER:
            return False
        slack = 2 * difference
        return (
            abs(rates[-1] - rates[-2]) <= RATE_TOLERANCE + slack and max(rates[-3:]) - min(rates[-3:]) <= DRIFT + slack
        )

    def _scatter_of_rates(self) -> tuple[float, float]:
        """The standard errors of the last rate, and of its difference from the one before, which share an error."""
        if not self.scatter:
            return 0.0, 0.0
        before, now = (math.log(a / b) for a, b in zip(self.sizes[-3:], self.sizes[-2:], strict=False))
        first, middle, last = self.scatter[-3:]
        of_difference = ((first / before) ** 2, (middle * (1 / before + 1 / now)) ** 2, (last / now) ** 2)
        return math.hypot(middle, last) / now, math.sqrt(sum(of_difference))

    @property
    def order(self) -> float | None:
        """The observed order, or None."""
        falls = all(b < a for a, b in zip(self.errors, self.errors[1:], strict=False))
        usable = self.asymptotic and falls and self.rates[-1] > RATE_TOLERANCE
        return self.rates[-1] if usable and self.errors[-1] <= self.below and self.plateau <= LARGEST_PLATEAU else None

    @property
    def plateau(self) -> float:
        """The limit c of the errors as a share of the last one, from e = c + a·h^p through the last three levels.

        0 if the last rate is not smaller than the one before, since the fitted limit would not be positive then.
        """
        if len(self.errors) < 3 or not self.rates[-1] < self.rates[-2] or not self.rates[-1] > 0:
            return 0.0
        (e1, e2, e3), (h1, h2, h3) = self.errors[-3:], self.sizes[-3:]

        def off(p: float) -> float:
            return (e1 - e2) * (h2**p - h3**p) - (e2 - e3) * (h1**p - h2**p)

        if off(MOST_RATE) * off(1e-3) > 0:
            return 0.0
        p = brentq(off, 1e-3, MOST_RATE)
        return max(0.0, 1 - (e2 / e3 - 1) * h3**p / (h2**p - h3**p))

    @property
    def stalled(self) -> bool:
        """Whether the errors have demonstrably stopped falling: the last refinement took away less than a fifth."""
        if len(self.errors) < self.least or self.order is not None or self.exact:
            return False
        return not self.errors[-1] <= 0.8 * self.errors[-2]

    @property
    def convergent(self) -> bool:
        """Whether the error demonstrably goes to zero: an order can be quoted, or every error is round-off."""
        return self.exact or self.order is not None

    @property
    def outcome(self) -> str:
        """The order in words; without one, errors that have stalled are distinguished from rates that do not settle."""
        if self.exact:
            return "exact"
        if self.order is not None:
            return f"converges, order {self.order:.2f}"
        return "does not converge" if self.stalled else "no order established"


def format_order(value: float | None) -> str:
    """An order with two decimals, or `none`."""
    return "none" if value is None else f"{value:.2f}"


# An observed order and the exact one are the same if they differ by no more than this.
SAME_ORDER = 0.1


@dataclass(frozen=True)
class TimeStudy:
    """Errors at a fixed time for a free run (T₀, S = 0) and a driven one (T₀ = 0, S non-uniform).

    They are relative to the solution; a run whose errors are round-off does not limit the order. `one_cell` is the
    order on one cell in exact arithmetic, `series` the number of Taylor coefficients in Δt of a step on an irregular
    mesh with mixed walls that agree with those of the exact solution. None if they were not measured or do not exist.
    """

    free: Rates
    driven: Rates
    one_cell: OneCellOrder | None
    series: int | None

    @property
    def exact_order(self) -> int | None:
        """The order from the algebra, the smallest of those known; None without one below the highest examined."""
        known = [] if self.series is None else [self.series]
        if self.one_cell is not None:
            known += [self.one_cell.free, self.one_cell.driven]
        return None if not known or min(known) >= HIGHEST_ORDER else min(known)

    @property
    def order(self) -> float | None:
        """The observed order if it agrees with that from the algebra or is lower, otherwise that from the algebra.

        Errors at a few Δt do not distinguish a coefficient of 0.50001 from ½; the algebra does.
        """
        exact, observed = self.exact_order, self.observed
        if exact is None or (observed is not None and abs(observed - exact) <= SAME_ORDER):
            return observed
        return float(exact) if observed is None or exact < observed else observed

    @property
    def observed(self) -> float | None:
        """The observed order, the smaller of the two runs; None if a run has none and is not exact."""
        orders = [run.order for run in (self.free, self.driven) if not run.exact]
        known = [order for order in orders if order is not None]
        return min(known) if known and len(known) == len(orders) else None


@dataclass(frozen=True)
class SpaceStudy:
    """Relative errors of the steady state of the scheme's equation for one manufactured u.

    The error is against u at the centroids: L2 is volume-weighted, both are relative to the norm of u. On random
    families it is the root mean square over several meshes of each size.
    """

    family: str
    cells: tuple[int, ...]
    l2: Rates
    linf: Rates
    problem: str


# Residuals below this are round-off: sums of some dozen terms over differences of nearby values.
EXACT = 1e-10


@dataclass(frozen=True)
class PatchTest:
    """max |G p + r + N S_p| over cells and polynomials p of each degree, times h²/(K max|p|); 0 is exact.

    S_p is the source that makes p a steady solution of the equation, and K the size of its diffusion.

    `cell` is where the residual of degree 1 is largest: a linear field that is not steady is a counterexample. `walls`
    is that cell's boundary data: "held" (p given on every wall) or "mixed" (∂p/∂n on the right and lower ones).
    """

    residual: dict[int, float]
    cell: int
    polynomial: str
    walls: str

    def exact(self, degree: int) -> bool:
        """Whether all polynomials up to that degree are steady to round-off."""
        return all(self.residual[k] <= EXACT for k in range(degree + 1))
