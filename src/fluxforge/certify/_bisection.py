"""The least value of a function over a box, by bisection with enclosures, until its sign is decided."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fluxforge.certify._intervals import Interval

Bounds = Callable[[np.ndarray, np.ndarray], Interval]
"""Enclosures of a function over boxes: lower and upper corners of shape (boxes, variables)."""

MOST_BOXES = 40_000
DEEPER = 2.0**-14
# Where the least value is negative, the search stops this near to it.
NEAR = 0.05


@dataclass(frozen=True)
class Least:
    """`bound` ≤ the least value ≤ `value`, which is taken at `at`; `value` is ∞ where no point was finite.

    Where the function is nowhere negative, `bound` is 0: how far above zero it stays is not computed. `boxes` counts
    the enclosures, and `open_at` is the middle of the undecided box with the lowest bound.
    """

    bound: float
    value: float
    at: tuple[float, ...]
    boxes: int
    open_at: tuple[float, ...] | None = None

    def worse(self, other: "Least") -> "Least":
        """The least value over two domains together."""
        value, at = min((self.value, self.at), (other.value, other.at))
        bound, open_at = (self.bound, self.open_at) if self.bound <= other.bound else (other.bound, other.open_at)
        return Least(bound, value, at, self.boxes + other.boxes, open_at)


def least_value(bounds: Bounds, low: np.ndarray, high: np.ndarray, *, width: float, enough: float) -> Least:
    """Bisect the box until the function is shown not to be negative, or to be above −`enough` on sides of `width`.

    Boxes on which less is shown are bisected further, to a 2¹⁴th of `width`, so that narrow dents are found. Sides are
    compared as they are: variables should be of one scale. Boxes that cannot hold anything much below the least value
    found so far are dropped. After `MOST_BOXES` at once the rest is left as it is.
    """
    low, high = np.atleast_2d(np.asarray(low, float)), np.atleast_2d(np.asarray(high, float))
    value, at, count = np.inf, tuple(float(x) for x in 0.5 * (low + high)[0]), 0
    bound, open_at = 0.0, None
    while len(low):
        found = bounds(low, high)
        middle = 0.5 * (low + high)
        points = bounds(middle, middle)
        count += len(low)
        finite = np.where(np.isfinite(points.high) & np.isfinite(points.low), points.high, np.inf)
        best = int(np.argmin(finite))
        if finite[best] < value:
            value, at = float(finite[best]), tuple(float(x) for x in middle[best])
        # Once something is negative, what could be lower by a few percent only is dropped; `bound` says so.
        ask = found.low < min(0.0, (1 + NEAR) * value)
        low, high, lower = low[ask], high[ask], found.low[ask]
        side = (high - low).max(axis=1, initial=0.0)
        small = ((side <= width) & (lower >= -enough)) | (side <= width * DEEPER)
        if 2 * (~small).sum() > MOST_BOXES:
            small[:] = True
        if small.any():
            worst = int(np.argmin(np.where(small, lower, np.inf)))
            if lower[worst] < bound:
                bound, open_at = float(lower[worst]), tuple(float(x) for x in 0.5 * (low[worst] + high[worst]))
        low, high = _halve_boxes(low[~small], high[~small])
    return Least(min(bound, (1 + NEAR) * value), value, at, count, open_at)


def _halve_boxes(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each box in two, across its longest side."""
    if not len(low):
        return low, high
    rows, side = np.arange(len(low)), np.argmax(high - low, axis=1)
    middle = 0.5 * (low[rows, side] + high[rows, side])
    upper, lower = low.copy(), high.copy()
    upper[rows, side], lower[rows, side] = middle, middle
    return np.concatenate([low, upper]), np.concatenate([lower, high])
