"""Interval arithmetic on arrays of boxes: [low, high] contains every exact result, whatever rounding does.

Sums, products, quotients and roots are rounded outward where they are not exact, which error-free transformations
decide; functions of the C library are widened by eight units in the last place. [−∞, ∞] stands for "nothing is known",
as after a division by an interval that contains 0.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Vector libraries of NumPy promise four units in the last place.
_ULPS = 8 * np.finfo(float).eps
# 2²⁷ + 1, by which Veltkamp's splitting multiplies.
_SPLITTING_FACTOR = 134217729.0
# Below it the error of a product underflows, and above it the splitting overflows: such products count as inexact.
_TINY, _HUGE = 1e-250, 1e150


class Interval(NamedTuple):
    """Lower and upper bounds, arrays of one shape with at least one axis."""

    low: np.ndarray
    high: np.ndarray


def point(value: float | np.ndarray) -> Interval:
    """The interval of one exact number."""
    array = np.atleast_1d(np.asarray(value, float))
    return Interval(array, array)


def enclose_rounded(value: float) -> Interval:
    """The interval of a number that was rounded to the nearest double."""
    return Interval(np.array([np.nextafter(value, -np.inf)]), np.array([np.nextafter(value, np.inf)]))


def _entire_where(unknown: np.ndarray, bounds: Interval) -> Interval:
    return Interval(np.where(unknown, -np.inf, bounds.low), np.where(unknown, np.inf, bounds.high))


def _order_bounds(low: np.ndarray, high: np.ndarray) -> Interval:
    """The interval of two bounds; [−∞, ∞] where one is not a number."""
    return _entire_where(np.isnan(low) | np.isnan(high), Interval(low, high))


def _sum(a: np.ndarray, b: np.ndarray, towards: float) -> np.ndarray:
    """The sum rounded towards ±∞ where it is not exact (Knuth's two-sum)."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    # Where an operand is infinite the error is not a number, and the sum is not changed.
    inexact = error > 0 if towards > 0 else error < 0
    return np.where(inexact, np.nextafter(total, towards), total)


class _Split(NamedTuple):
    """A number as the sum of two halves of at most 26 bits each (Veltkamp's splitting)."""

    value: np.ndarray
    high: np.ndarray
    low: np.ndarray


def _split(value: np.ndarray) -> _Split:
    high = _SPLITTING_FACTOR * value - (_SPLITTING_FACTOR * value - value)
    return _Split(value, high, value - high)


def _product(a: _Split, b: _Split) -> tuple[np.ndarray, np.ndarray]:
    """The rounded product and exact − rounded (Dekker's product), NaN where that is not known.

    0·∞ = 0, since bounds are limits.
    """
    total = a.value * b.value
    error = ((a.high * b.high - total) + a.high * b.low + a.low * b.high) + a.low * b.low
    size = np.maximum(np.abs(a.value), np.abs(b.value))
    safe = (np.abs(total) > _TINY) & (size < _HUGE)
    nothing = (a.value == 0) | (b.value == 0)
    return np.where(nothing, 0.0, total), np.where(nothing, 0.0, np.where(safe, error, np.nan))


def _inexact(error: np.ndarray, towards: float) -> np.ndarray:
    """Whether a product with this error must be rounded towards ±∞; true if the error is unknown (NaN)."""
    return ~(error <= 0) if towards > 0 else ~(error >= 0)


def _bound(products: Sequence[tuple[np.ndarray, np.ndarray]], towards: float) -> np.ndarray:
    """The extreme of some products, rounded outward if one of those that attain it has an error."""
    extreme: np.ndarray = (np.maximum if towards > 0 else np.minimum).reduce([total for total, _ in products])
    inexact = [(total == extreme) & _inexact(error, towards) for total, error in products]
    outward: np.ndarray = np.nextafter(extreme, towards)
    return np.where(np.logical_or.reduce(inexact), outward, extreme)


def add(a: Interval, b: Interval) -> Interval:
    """The sums."""
    return _order_bounds(_sum(a.low, b.low, -np.inf), _sum(a.high, b.high, np.inf))


def negate(a: Interval) -> Interval:
    """The negatives."""
    return Interval(-a.high, -a.low)


def subtract(a: Interval, b: Interval) -> Interval:
    """The differences, a and b taken as independent."""
    return add(a, negate(b))


def multiply(a: Interval, b: Interval) -> Interval:
    """The products, a and b taken as independent."""
    # An interval that is a point has one end, which halves the work.
    ends_a, ends_b = [[_split(end) for end in (v[:1] if v.low is v.high else v)] for v in (a, b)]
    products = [_product(x, y) for x in ends_a for y in ends_b]
    return _order_bounds(_bound(products, -np.inf), _bound(products, np.inf))


def invert(a: Interval) -> Interval:
    """1/a; [−∞, ∞] where a contains 0."""
    unknown = (a.low <= 0) & (a.high >= 0)
    low, high = (_quotient(end, towards) for end, towards in ((a.high, -np.inf), (a.low, np.inf)))
    return _entire_where(unknown, _order_bounds(low, high))


def _quotient(b: np.ndarray, towards: float) -> np.ndarray:
    """1/b rounded outward, unless b is a power of two."""
    exact = np.frexp(b)[0]
    total = 1.0 / b
    return np.where(np.abs(exact) == 0.5, total, np.nextafter(total, towards))


def divide(a: Interval, b: Interval) -> Interval:
    """The quotients; [−∞, ∞] where b contains 0."""
    return multiply(a, invert(b))


def power(a: Interval, exponent: int | float) -> Interval:
    """a**exponent; for an exponent that is not an integer, [−∞, ∞] where a has negative values."""
    if exponent < 0:
        return invert(power(a, -exponent))
    if exponent == int(exponent):
        return _whole_power(a, int(exponent))
    if exponent == 0.5:
        root = Interval(_root(a.low, -np.inf), _root(a.high, np.inf))
        return _entire_where(a.low < 0, _order_bounds(root.low, root.high))
    bounds = _widen(np.power(a.low, exponent), np.power(a.high, exponent))
    return _entire_where(a.low < 0, Interval(np.maximum(bounds.low, 0.0), bounds.high))


def _root(a: np.ndarray, towards: float) -> np.ndarray:
    root = np.sqrt(np.maximum(a, 0.0))
    exact = (root * root == a) & (np.frexp(root)[0] * 2.0**26 == np.floor(np.frexp(root)[0] * 2.0**26))
    return np.where(exact, root, np.maximum(np.nextafter(root, towards), 0.0))


def _whole_power(a: Interval, n: int) -> Interval:
    if n == 0:
        return point(np.ones_like(a.low))
    if n % 2 == 0:
        a = absolute(a)
    low, high = a.low, a.high
    for _ in range(n - 1):
        # For odd powers, negative ends are multiplied by the modulus, so that rounding outward stays outward.
        low = _bound([_product(_split(low), _split(np.abs(a.low)))], -np.inf)
        high = _bound([_product(_split(high), _split(np.abs(a.high)))], np.inf)
    return _order_bounds(low, high)


def _widen(low: np.ndarray, high: np.ndarray) -> Interval:
    """Move bounds outward by eight units in the last place."""
    least = np.finfo(float).tiny
    return _order_bounds(low - (_ULPS * np.abs(low) + least), high + (_ULPS * np.abs(high) + least))


def exponential(a: Interval) -> Interval:
    """The exponentials; exp(0) = 1 is exact."""
    bounds = _widen(np.exp(a.low), np.exp(a.high))
    low, high = np.where(a.low == 0, 1.0, np.maximum(bounds.low, 0.0)), np.where(a.high == 0, 1.0, bounds.high)
    return _order_bounds(low, high)


def logarithm(a: Interval) -> Interval:
    """The logarithms; [−∞, ∞] where a is not positive."""
    return _entire_where(~(a.low > 0), _widen(np.log(np.maximum(a.low, 1e-300)), np.log(np.maximum(a.high, 1e-300))))


def hyperbolic_tangent(a: Interval) -> Interval:
    """The values of tanh, within [−1, 1]."""
    bounds = _widen(np.tanh(a.low), np.tanh(a.high))
    return Interval(np.maximum(bounds.low, -1.0), np.minimum(bounds.high, 1.0))


def cosine(a: Interval) -> Interval:
    """The cosines, within [−1, 1]."""
    return sine(add(a, enclose_rounded(math.pi / 2)))


def sine(a: Interval) -> Interval:
    """The sines, within [−1, 1]; an extremum within 1e-9 of an interval counts as inside."""
    ends = [np.sin(end) for end in a]
    bounds = _widen(np.minimum(*ends), np.maximum(*ends))
    top, bottom = (_contains_multiple(a, at) for at in (math.pi / 2, -math.pi / 2))
    far = ~((np.abs(a.low) < 1e6) & (np.abs(a.high) < 1e6))
    low = np.where(bottom | far, -1.0, np.maximum(bounds.low, -1.0))
    high = np.where(top | far, 1.0, np.minimum(bounds.high, 1.0))
    return Interval(low, high)


def _contains_multiple(a: Interval, offset: float) -> np.ndarray:
    """Whether offset + 2πk is inside, or within 1e-9 of it: far more than the round-off of numbers up to 1e6."""
    with np.errstate(all="ignore"):
        first = np.ceil((a.low - 1e-9 - offset) / (2 * math.pi))
        return np.asarray(first <= (a.high + 1e-9 - offset) / (2 * math.pi))


def absolute(a: Interval) -> Interval:
    """The moduli."""
    inside = (a.low <= 0) & (a.high >= 0)
    low, high = np.abs(a.low), np.abs(a.high)
    return Interval(np.where(inside, 0.0, np.minimum(low, high)), np.maximum(low, high))


def sign(a: Interval) -> Interval:
    """The signs −1, 0 or 1, or the interval between two of them where the sign is undecided."""
    return Interval(np.sign(a.low), np.sign(a.high))


def smaller(a: Interval, b: Interval) -> Interval:
    """The minima."""
    return Interval(np.minimum(a.low, b.low), np.minimum(a.high, b.high))


def larger(a: Interval, b: Interval) -> Interval:
    """The maxima."""
    return Interval(np.maximum(a.low, b.low), np.maximum(a.high, b.high))


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest intervals that contain both."""
    return Interval(np.minimum(a.low, b.low), np.maximum(a.high, b.high))


def intersect(a: Interval, b: Interval) -> Interval:
    """The intersection of two enclosures of the same number."""
    return Interval(np.maximum(a.low, b.low), np.minimum(a.high, b.high))


def compare(a: Interval, b: Interval, *, strict: bool) -> Interval:
    """1 where a < b (or a ≤ b, if not `strict`), 0 where this is false, [0, 1] where it is undecided."""
    true = a.high < b.low if strict else a.high <= b.low
    false = a.low >= b.high if strict else a.low > b.high
    return Interval(np.where(true, 1.0, 0.0), np.where(false, 0.0, 1.0))


def choose(condition: Interval, a: Interval, b: Interval) -> Interval:
    """Interval a where the condition is not 0, b where it is 0, the hull of both where that is undecided."""
    first = (condition.low > 0) | (condition.high < 0)
    second = (condition.low == 0) & (condition.high == 0)
    both = hull(a, b)
    low = np.where(first, a.low, np.where(second, b.low, both.low))
    high = np.where(first, a.high, np.where(second, b.high, both.high))
    return Interval(low, high)
