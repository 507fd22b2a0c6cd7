"""Formulas over boxes: enclosures of values and difference quotients, least values, and identities of two formulas.

The slope along v encloses (F(x) − F(y))/(x_v − y_v) for all x and y of a box that differ in v alone. It follows the
rules of differentiation, with |·|, min, max and sign taken as quotients: at a kink it contains the slopes of both
sides, and at a jump it is unbounded. The derivative on either side would not bound it there.

Moduli, extrema and comparisons that intervals decide are first replaced (`settle`): as it stands, ½u − ½|u| is
[−½w, ½w] on every interval of width w where u ≥ 0, and it is 0 once |u| = u is known.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import sympy as sp

from fluxforge.certify import _intervals as iv
from fluxforge.certify._intervals import Interval
from fluxforge.certify.transport import Identity, Least, Range, Ranges
from fluxforge.errors import NumericalError
from fluxforge.expression._evaluate import evaluate

Boxes = Mapping[sp.Symbol, Interval]
Slopes = tuple[Interval | None, ...]
"""The difference quotients along each variable; None where they are 0 identically."""


@dataclass(frozen=True)
class Enclosure:
    """Bounds of a formula, and of its difference quotients, on every box."""

    value: Interval
    slopes: Slopes


def enclose(formula: sp.Expr, boxes: Boxes, variables: Sequence[sp.Symbol] = ()) -> Enclosure:
    """Bounds of a formula, and of its slopes along the `variables`, over boxes that are arrays of one shape.

    Raises NumericalError for a function without an interval form, and for a symbol without a box.
    """
    with np.errstate(all="ignore"):
        walk = _Walk(boxes, tuple(variables))
        whole = walk.of(formula)
    shape = np.broadcast_shapes(*(box.low.shape for box in boxes.values())) if boxes else (1,)
    slopes = tuple(None if slope is None else _spread(slope, shape) for slope in whole.slopes)
    return Enclosure(_spread(whole.value, shape), slopes)


def slope_or_zero(slope: Interval | None, shape: tuple[int, ...]) -> Interval:
    """The slope; the interval [0, 0] for None."""
    return iv.point(np.zeros(shape)) if slope is None else slope


def _spread(a: Interval, shape: tuple[int, ...]) -> Interval:
    return Interval(np.broadcast_to(a.low, shape), np.broadcast_to(a.high, shape))


class _Walk:
    """Encloses every node of a formula once."""

    def __init__(self, boxes: Boxes, variables: tuple[sp.Symbol, ...]) -> None:
        self.variables = variables
        self.none: Slopes = (None,) * len(variables)
        self.known: dict[sp.Basic, Enclosure] = {}
        for symbol, box in boxes.items():
            slopes = tuple(iv.point(1.0) if symbol == v else None for v in variables)
            self.known[symbol] = Enclosure(box, slopes)

    def of(self, node: sp.Basic) -> Enclosure:
        """The enclosure of a node."""
        if node not in self.known:
            self.known[node] = self._node(node)
        return self.known[node]

    def _node(self, node: sp.Basic) -> Enclosure:
        if node.is_Number or node in (sp.pi, sp.E):
            return Enclosure(_constant(node), self.none)
        if node.is_Symbol:
            raise NumericalError(f"no range is given for {node}")
        if node.is_Add:
            return reduce(self._plus, map(self.of, node.args))
        if node.is_Mul:
            return reduce(self._times, map(self.of, node.args))
        if node.is_Pow:
            return self._power(node)
        name = type(node).__name__
        if name in _FUNCTIONS:
            return self._function(name, self.of(node.args[0]))
        if name in _CHOICES:
            return _CHOICES[name](self, node)
        raise NumericalError(f"a {name} has no interval form")

    def _plus(self, a: Enclosure, b: Enclosure) -> Enclosure:
        return Enclosure(iv.add(a.value, b.value), _add_slopes(a.slopes, b.slopes))

    def _times(self, a: Enclosure, b: Enclosure) -> Enclosure:
        slopes = _add_slopes(_scale_slopes(a.slopes, b.value), _scale_slopes(b.slopes, a.value))
        return Enclosure(iv.multiply(a.value, b.value), slopes)

    def _power(self, node: sp.Pow) -> Enclosure:
        if node.base == sp.E:
            return self._function("exp", self.of(node.exp))
        if not node.exp.is_number:
            raise NumericalError("a power whose exponent is not a number has no interval form")
        exponent = int(node.exp) if node.exp.is_Integer else float(node.exp)
        base = self.of(node.base)
        steepness = iv.multiply(_constant(node.exp), iv.power(base.value, exponent - 1))
        return Enclosure(iv.power(base.value, exponent), _scale_slopes(base.slopes, steepness))

    def _function(self, name: str, a: Enclosure) -> Enclosure:
        value, steepness = _FUNCTIONS[name](a.value)
        return Enclosure(value, _scale_slopes(a.slopes, steepness))

    def extreme(self, node: sp.Basic) -> Enclosure:
        """Min or max, with the slope of the argument that is taken, or the hull of both slopes if that is undecided."""
        return reduce(lambda a, b: self._extreme(a, b, most=isinstance(node, sp.Max)), map(self.of, node.args))

    def _extreme(self, a: Enclosure, b: Enclosure, *, most: bool) -> Enclosure:
        above, below = a.value.low >= b.value.high, a.value.high <= b.value.low
        first, second = (above, below) if most else (below, above)
        taken = Interval(np.where(first, 1.0, 0.0), np.where(second & ~first, 0.0, 1.0))
        value = (iv.larger if most else iv.smaller)(a.value, b.value)
        pairs = zip(a.slopes, b.slopes, strict=True)
        return Enclosure(value, tuple(_choose_slope(taken, x, y) for x, y in pairs))

    def compare(self, node: sp.Basic) -> Enclosure:
        """A comparison as a number, with an unbounded slope where it is undecided."""
        value = iv.compare(*(self.of(side).value for side in node.args), strict=type(node).__name__ == "Below")
        open_ = value.low != value.high
        jump = Interval(np.where(open_, -np.inf, 0.0), np.where(open_, np.inf, 0.0))
        return Enclosure(value, tuple(jump if v in node.free_symbols else None for v in self.variables))

    def select(self, node: sp.Basic) -> Enclosure:
        """where(condition, a, b); if undecided, the slope is the hull of both, unbounded unless the branches meet."""
        condition, a, b = map(self.of, node.args)
        open_ = condition.value.low != condition.value.high
        slopes = []
        for v, x, y in zip(self.variables, a.slopes, b.slopes, strict=True):
            slope = _choose_slope(condition.value, x, y)
            if v in node.args[0].free_symbols and not _is_continuous(node):
                slope = slope_or_zero(slope, (1,))
                slope = Interval(np.where(open_, -np.inf, slope.low), np.where(open_, np.inf, slope.high))
            slopes.append(slope)
        return Enclosure(iv.choose(condition.value, a.value, b.value), tuple(slopes))


def _add_slopes(a: Slopes, b: Slopes) -> Slopes:
    return tuple(y if x is None else x if y is None else iv.add(x, y) for x, y in zip(a, b, strict=True))


def _scale_slopes(slopes: Slopes, by: Interval) -> Slopes:
    return tuple(None if slope is None else iv.multiply(slope, by) for slope in slopes)


def _choose_slope(condition: Interval, a: Interval | None, b: Interval | None) -> Interval | None:
    if a is None and b is None:
        return None
    return iv.choose(condition, slope_or_zero(a, (1,)), slope_or_zero(b, (1,)))


def _constant(number: sp.Expr) -> Interval:
    """A number as a double, or the two doubles around it."""
    value = float(number)
    if number.is_Rational:
        exact = np.isfinite(value) and Fraction(value) == Fraction(int(number.p), int(number.q))
    else:
        # A Float of SymPy may have been created with more digits than a double, and its exponent has no bounds.
        exact = number.is_Float and sp.Float(value) == number
    return iv.point(value) if exact else iv.enclose_rounded(value)


@cache
def _is_continuous(node: sp.Basic) -> bool:
    """Whether both branches of where(…) agree where its condition changes, by algebra; False where that is unknown."""
    condition, a, b = node.args
    if len(condition.args) != 2:
        return False
    gap = condition.args[0] - condition.args[1]
    for v in sorted(gap.free_symbols, key=str):
        if gap.is_polynomial(v) and sp.degree(gap, v) == 1:
            at = -gap.subs(v, 0) / sp.diff(gap, v)
            return bool(sp.simplify((a - b).subs(v, at)) == 0)
    return False


def _absolute(a: Interval) -> tuple[Interval, Interval]:
    # Quotients are 1 where a ≥ 0, −1 where a ≤ 0, and anything between them across 0 and where a = [0, 0].
    rises, falls = a.low >= 0, a.high <= 0
    return iv.absolute(a), Interval(np.where(rises & ~falls, 1.0, -1.0), np.where(falls & ~rises, -1.0, 1.0))


def _sign(a: Interval) -> tuple[Interval, Interval]:
    # The sign is nondecreasing: its quotients are not negative.
    value = iv.sign(a)
    return value, Interval(np.zeros_like(value.low), np.where(value.low == value.high, 0.0, np.inf))


def _tangent(a: Interval) -> tuple[Interval, Interval]:
    value = iv.divide(iv.sine(a), iv.cosine(a))
    return value, iv.add(iv.point(1.0), iv.power(value, 2))


def _cotangent(a: Interval) -> tuple[Interval, Interval]:
    value = iv.divide(iv.cosine(a), iv.sine(a))
    return value, iv.negate(iv.add(iv.point(1.0), iv.power(value, 2)))


def _hyperbolic_tangent(a: Interval) -> tuple[Interval, Interval]:
    value = iv.hyperbolic_tangent(a)
    return value, iv.subtract(iv.point(1.0), iv.power(value, 2))


# Enclosures of the values of a function over an interval, and of its difference quotients.
_FUNCTIONS: Mapping[str, Callable[[Interval], tuple[Interval, Interval]]] = {
    "exp": lambda a: (iv.exponential(a), iv.exponential(a)),
    "log": lambda a: (iv.logarithm(a), iv.invert(a)),
    "sin": lambda a: (iv.sine(a), iv.cosine(a)),
    "cos": lambda a: (iv.cosine(a), iv.negate(iv.sine(a))),
    "tan": _tangent,
    "cot": _cotangent,
    "tanh": _hyperbolic_tangent,
    "Abs": _absolute,
    "sign": _sign,
}
_CHOICES: Mapping[str, Callable[[_Walk, sp.Basic], Enclosure]] = {
    "Min": _Walk.extreme,
    "Max": _Walk.extreme,
    "Below": _Walk.compare,
    "AtMost": _Walk.compare,
    "Select": _Walk.select,
}


class Piece(NamedTuple):
    """A formula on one part of the domain."""

    formula: sp.Expr
    ranges: Ranges


def split_pieces(formula: sp.Expr, ranges: Ranges) -> Iterator[Piece]:
    """The formula on the parts into which its kinks along single variables divide the domain."""
    parts = {v: list(pairwise((low, *_kinks(formula, v, low, high), high))) for v, (low, high) in ranges.items()}
    for chosen in product(*parts.values()):
        part = dict(zip(parts, chosen, strict=True))
        yield Piece(settle(formula, part), part)


def _kinks(formula: sp.Expr, v: sp.Symbol, low: float, high: float) -> list[float]:
    """The points in (low, high) where the argument of a modulus, sign or comparison, affine in v alone, is zero."""
    kinks = set()
    for gap in _gaps(formula):
        if gap.free_symbols == {v} and gap.is_polynomial(v) and sp.degree(gap, v) == 1:
            at = float(-gap.subs(v, 0) / sp.diff(gap, v))
            kinks.add(at) if low < at < high else None
    return sorted(kinks)


def _gaps(formula: sp.Expr) -> Iterator[sp.Expr]:
    for node in sp.preorder_traversal(formula):
        if isinstance(node, sp.Abs | sp.sign):
            yield node.args[0]
        elif isinstance(node, sp.Min | sp.Max) or type(node).__name__ in ("Below", "AtMost"):
            yield from (one - other for i, one in enumerate(node.args) for other in node.args[i + 1 :])


def settle(formula: sp.Expr, ranges: Ranges) -> sp.Expr:
    """The formula in which moduli, signs, extrema and comparisons are replaced if intervals decide them everywhere."""
    if not formula.args:
        return formula
    parts = [settle(part, ranges) for part in formula.args]
    name = type(formula).__name__
    if name == "Abs":
        low, high = _bounds(parts[0], ranges)
        return parts[0] if low >= 0 else -parts[0] if high <= 0 else sp.Abs(parts[0], evaluate=False)
    if name == "sign":
        low, high = _bounds(parts[0], ranges)
        return sp.S.One if low > 0 else sp.S.NegativeOne if high < 0 else formula.func(*parts)
    if name in ("Min", "Max"):
        return _extreme(formula.func, parts, ranges)
    if name in ("Below", "AtMost"):
        low, high = _bounds(parts[0] - parts[1], ranges)
        return sp.S.One if high < 0 else sp.S.Zero if low > 0 else formula.func(*parts)
    return formula.func(*parts)


def _extreme(kind: type[sp.Expr], parts: list[sp.Expr], ranges: Ranges) -> sp.Expr:
    """Min or max without the arguments that are shown never to be the only extremum."""
    turn = 1 if kind is sp.Max else -1
    kept: list[sp.Expr] = []
    for part in dict.fromkeys(sp.expand(part) for part in parts):
        if any(_bounds(turn * (other - part), ranges)[0] >= 0 for other in kept):
            continue
        kept = [other for other in kept if _bounds(turn * (part - other), ranges)[0] < 0]
        kept.append(part)
    return kept[0] if len(kept) == 1 else kind(*kept, evaluate=False)


def _bounds(formula: sp.Expr, ranges: Ranges) -> Range:
    """Bounds of a formula over the ranges; (−∞, ∞) if a symbol has no range."""
    formula = sp.expand(formula)
    if formula.free_symbols - set(ranges):
        return -np.inf, np.inf
    boxes = {v: Interval(np.array([low]), np.array([high])) for v, (low, high) in ranges.items()}
    value = enclose(formula, boxes).value
    return float(value.low[0]), float(value.high[0])


Bounds = Callable[[np.ndarray, np.ndarray], Interval]
"""Enclosures of a function over boxes: lower and upper corners of shape (boxes, variables)."""

# The largest number of boxes at a time, which bounds memory; and the smallest side, relative to `width`, to which boxes
# are halved while the sign is undecided.
MOST_BOXES = 40_000
LEAST_SIDE = 2.0**-14
# A negative least value is determined to this relative accuracy.
SEARCH_TOLERANCE = 0.05


def least_value(bounds: Bounds, low: np.ndarray, high: np.ndarray, *, width: float, enough: float) -> Least:
    """Bisect the box until the function is shown not to be negative, or to be above −`enough` on sides of `width`.

    Boxes on which neither is shown are bisected further, to a 2¹⁴th of `width`, so that narrow dents are found. Sides
    are compared without scaling: variables should be of one scale. Boxes that cannot contain values much below the
    least one found so far are dropped. If more than `MOST_BOXES` would be open, bisection ends with the bounds known.
    """
    low, high = np.atleast_2d(np.asarray(low, float)), np.atleast_2d(np.asarray(high, float))
    value, at, count = np.inf, tuple(float(x) for x in 0.5 * (low + high)[0]), 0
    bound, open_at = 0.0, None
    while len(low):
        enclosure = bounds(low, high)
        middle = 0.5 * (low + high)
        points = bounds(middle, middle)
        count += len(low)
        finite = np.where(np.isfinite(points.high) & np.isfinite(points.low), points.high, np.inf)
        best = int(np.argmin(finite))
        if finite[best] < value:
            value, at = float(finite[best]), tuple(float(x) for x in middle[best])
        # Once a value is negative, boxes that could lower it by a few per cent only are dropped; the result allows it.
        ask = enclosure.low < min(0.0, (1 + SEARCH_TOLERANCE) * value)
        low, high, lower = low[ask], high[ask], enclosure.low[ask]
        side = (high - low).max(axis=1, initial=0.0)
        small = ((side <= width) & (lower >= -enough)) | (side <= width * LEAST_SIDE)
        if 2 * (~small).sum() > MOST_BOXES:
            small[:] = True
        if small.any():
            worst = int(np.argmin(np.where(small, lower, np.inf)))
            if lower[worst] < bound:
                bound, open_at = float(lower[worst]), tuple(float(x) for x in 0.5 * (low[worst] + high[worst]))
        low, high = _halve_boxes(low[~small], high[~small])
    return Least(min(bound, (1 + SEARCH_TOLERANCE) * value), value, at, count, open_at)


def _halve_boxes(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each box in two, across its longest side."""
    if not len(low):
        return low, high
    rows, side = np.arange(len(low)), np.argmax(high - low, axis=1)
    middle = 0.5 * (low[rows, side] + high[rows, side])
    upper, lower = low.copy(), high.copy()
    upper[rows, side], lower[rows, side] = middle, middle
    return np.concatenate([low, upper]), np.concatenate([lower, high])


# Number of random points at which formulas are compared.
POINTS = 400
# Round-off of a formula of some dozen operations on numbers up to 1, times the largest of its terms.
ROUND_OFF = 1e-12
# Cases double with every kink: with more variables than this, random points are used at once.
MOST_VARIABLES = 4


def compare_formulas(
    one: sp.Expr, other: sp.Expr, domain: Callable[[sp.Symbol], Range], *, by_points: bool = False
) -> Identity:
    """Whether two formulas are equal: by algebra if expansion shows it, otherwise at random points.

    Points can only refute an identity. With `by_points` algebra is skipped: expanding a limited slope takes SymPy
    minutes.
    """
    gap = one - other if by_points else sp.expand(one - other)
    if gap == 0:
        return Identity(True, "algebra")
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    if not by_points and len(symbols) <= MOST_VARIABLES:
        pieces = split_pieces(gap, {v: domain(v) for v in symbols})
        if all(sp.expand(piece.formula) == 0 for piece in pieces):
            return Identity(True, "algebra, case by case")
    rng = np.random.default_rng(0)
    values = {v: rng.uniform(*domain(v), POINTS) for v in symbols}
    with np.errstate(all="ignore"):
        left, right = (np.broadcast_to(evaluate(part, values, np), (POINTS,)) for part in (one, other))
        off = np.abs(left - right) / np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
    off = np.where(np.isfinite(off), off, np.inf)
    worst = int(np.argmax(off))
    where = ", ".join(f"{v} = {values[v][worst]:.3g}" for v in symbols)
    return Identity(bool(off[worst] <= ROUND_OFF), f"{POINTS} random points", float(off[worst]), where)
