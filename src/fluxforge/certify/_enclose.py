"""Enclosures of a formula over boxes: of its values, and of its difference quotients along each variable.

The slope along v encloses (F(x) − F(y))/(x_v − y_v) for all x and y of a box that differ in v alone. It follows the
rules of differentiation, with |·|, min, max and sign taken as quotients: at a kink it contains the slopes of both
sides, and at a jump it is unbounded: a derivative that is right on either side only would miss these.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce

import numpy as np
import sympy as sp

from fluxforge.certify import _intervals as iv
from fluxforge.certify._intervals import Interval
from fluxforge.errors import NumericalError

Boxes = Mapping[sp.Symbol, Interval]


@dataclass(frozen=True)
class Enclosure:
    """Bounds of a formula on every box, and of its difference quotients; None where a quotient is 0 identically."""

    value: Interval
    slopes: tuple[Interval | None, ...]


def enclose(formula: sp.Expr, boxes: Boxes, variables: Sequence[sp.Symbol] = ()) -> Enclosure:
    """Bounds of a formula, and of its slopes along the `variables`, over boxes that are arrays of one shape.

    Raises NumericalError for what has no interval form, and for a symbol without a box.
    """
    with np.errstate(all="ignore"):
        walk = _Walk(boxes, tuple(variables))
        found = walk.of(formula)
    shape = np.broadcast_shapes(*(box.low.shape for box in boxes.values())) if boxes else (1,)
    slopes = tuple(None if slope is None else _spread(slope, shape) for slope in found.slopes)
    return Enclosure(_spread(found.value, shape), slopes)


def slope_or_zero(slope: Interval | None, shape: tuple[int, ...]) -> Interval:
    """The slope as an interval."""
    return iv.point(np.zeros(shape)) if slope is None else slope


def _spread(a: Interval, shape: tuple[int, ...]) -> Interval:
    return Interval(np.broadcast_to(a.low, shape), np.broadcast_to(a.high, shape))


class _Walk:
    """Encloses every node of a formula once."""

    def __init__(self, boxes: Boxes, variables: tuple[sp.Symbol, ...]) -> None:
        self.variables = variables
        self.none: tuple[Interval | None, ...] = (None,) * len(variables)
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
        slopes = (y if x is None else x if y is None else iv.add(x, y) for x, y in zip(a.slopes, b.slopes, strict=True))
        return Enclosure(iv.add(a.value, b.value), tuple(slopes))

    def _times(self, a: Enclosure, b: Enclosure) -> Enclosure:
        left = _scale_bounds(a.slopes, b.value)
        right = _scale_bounds(b.slopes, a.value)
        slopes = (y if x is None else x if y is None else iv.add(x, y) for x, y in zip(left, right, strict=True))
        return Enclosure(iv.multiply(a.value, b.value), tuple(slopes))

    def _power(self, node: sp.Pow) -> Enclosure:
        if node.base == sp.E:
            return self._function("exp", self.of(node.exp))
        if not node.exp.is_number:
            raise NumericalError("a power whose exponent is not a number has no interval form")
        exponent = int(node.exp) if node.exp.is_Integer else float(node.exp)
        base = self.of(node.base)
        steepness = iv.multiply(_constant(node.exp), iv.power(base.value, exponent - 1))
        return Enclosure(iv.power(base.value, exponent), _scale_bounds(base.slopes, steepness))

    def _function(self, name: str, a: Enclosure) -> Enclosure:
        value, steepness = _FUNCTIONS[name](a.value)
        return Enclosure(value, _scale_bounds(a.slopes, steepness))

    def extreme(self, node: sp.Basic) -> Enclosure:
        """Min or max: the slope of the one that is taken, of both where that is not decided."""
        return reduce(lambda a, b: self._extreme(a, b, most=isinstance(node, sp.Max)), map(self.of, node.args))

    def _extreme(self, a: Enclosure, b: Enclosure, *, most: bool) -> Enclosure:
        above, below = a.value.low >= b.value.high, a.value.high <= b.value.low
        first, second = (above, below) if most else (below, above)
        taken = Interval(np.where(first, 1.0, 0.0), np.where(second & ~first, 0.0, 1.0))
        value = (iv.larger if most else iv.smaller)(a.value, b.value)
        pairs = zip(a.slopes, b.slopes, strict=True)
        return Enclosure(value, tuple(_choose_slope(taken, x, y) for x, y in pairs))

    def compare(self, node: sp.Basic) -> Enclosure:
        """A comparison as a number: a jump where it is not decided."""
        value = iv.compare(*(self.of(side).value for side in node.args), strict=type(node).__name__ == "Below")
        open_ = value.low != value.high
        jump = Interval(np.where(open_, -np.inf, 0.0), np.where(open_, np.inf, 0.0))
        return Enclosure(value, tuple(jump if v in node.free_symbols else None for v in self.variables))

    def select(self, node: sp.Basic) -> Enclosure:
        """where(condition, a, b): the slopes of both where it is not decided, and unbounded unless they meet."""
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


def _scale_bounds(slopes: Iterable[Interval | None], by: Interval) -> tuple[Interval | None, ...]:
    return tuple(None if slope is None else iv.multiply(slope, by) for slope in slopes)


def _choose_slope(condition: Interval, a: Interval | None, b: Interval | None) -> Interval | None:
    if a is None and b is None:
        return None
    return iv.choose(condition, slope_or_zero(a, (1,)), slope_or_zero(b, (1,)))


def _constant(number: sp.Expr) -> Interval:
    """A number as a double, or the two doubles around it."""
    value = float(number)
    if number.is_Rational and np.isfinite(value):
        return iv.point(value) if Fraction(value) == Fraction(int(number.p), int(number.q)) else iv.around(value)
    return iv.point(value) if number.is_Float else iv.around(value)


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
    # From −1 to 1 across 0, also where the interval only touches 0.
    return iv.absolute(a), Interval(np.where(a.low >= 0, 1.0, -1.0), np.where(a.high <= 0, -1.0, 1.0))


def _sign(a: Interval) -> tuple[Interval, Interval]:
    # It only rises: a quotient across 0 is not negative.
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


# The values of a function, and its difference quotients.
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
