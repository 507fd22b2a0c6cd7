"""Interval enclosures: whatever a formula is at points of a box lies inside, and so do its difference quotients."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.certify import _intervals as iv
from fluxforge.certify._enclose import enclose, slope_or_zero
from fluxforge.certify._intervals import Interval
from fluxforge.errors import NumericalError
from fluxforge.expression import parse, symbol
from strategies import few

x, y = symbol("x"), symbol("y")
numbers = st.sampled_from([sp.Rational(1, 3), sp.Rational(-7, 2), sp.Integer(2), sp.Float(0.1), sp.pi])
leaves = st.one_of(st.sampled_from([x, y]), numbers)


def _box(low: float, high: float) -> Interval:
    return Interval(np.array([low]), np.array([high]))


def _grow(parts: st.SearchStrategy[sp.Expr]) -> st.SearchStrategy[sp.Expr]:
    pairs = st.tuples(parts, parts)
    unary = st.sampled_from([sp.Abs, sp.sign, sp.tanh, sp.sin, sp.cos])
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: sp.Max(*p, evaluate=False)),
        pairs.map(lambda p: sp.Min(*p, evaluate=False)),
        pairs.map(lambda p: p[0] / (2 + sp.Abs(p[1]))),
        st.tuples(parts, st.sampled_from([2, 3])).map(lambda p: p[0] ** p[1]),
        st.tuples(unary, parts).map(lambda p: p[0](p[1])),
        parts.map(lambda p: sp.exp(sp.sin(p))),
        parts.map(lambda p: sp.sqrt(1 + p**2)),
        parts.map(lambda p: sp.log(1 + p**2)),
        parts.map(lambda p: (1 + sp.Abs(p)) ** sp.Rational(3, 2)),
    )


formulas = st.recursive(leaves, _grow, max_leaves=8)
ends = st.tuples(st.floats(-3, 3), st.floats(-3, 3)).map(sorted)
inside = st.floats(0, 1)


def _at(formula: sp.Expr, at: dict[sp.Symbol, mpmath.mpf]) -> mpmath.mpf:
    """The formula with sixty digits, so that its own round-off decides nothing."""
    function = sp.lambdify(list(at), formula, modules="mpmath")
    return mpmath.re(function(*at.values()))


def _between(box: list[float], share: float) -> float:
    return min(max(box[0] + share * (box[1] - box[0]), box[0]), box[1])


@few(120)
@given(formulas, ends, ends, inside, inside, inside)
def test_values_and_difference_quotients_lie_inside(
    formula: sp.Expr, bx: list[float], by: list[float], s: float, t: float, other: float
) -> None:
    boxes = {x: _box(*bx), y: _box(*by)}
    enclosure = enclose(formula, boxes, (x, y))
    with mpmath.workdps(60):
        at = {x: mpmath.mpf(_between(bx, s)), y: mpmath.mpf(_between(by, t))}
        moved = {**at, x: mpmath.mpf(_between(bx, other))}
        one, two = _at(formula, at), _at(formula, moved)
        assert mpmath.mpf(float(enclosure.value.low[0])) <= one <= mpmath.mpf(float(enclosure.value.high[0]))
        # 60 digits against the width of the smallest step between doubles in [−3, 3]: the quotient itself is exact.
        if at[x] != moved[x] and abs(at[x] - moved[x]) > 1e-30:
            quotient = (one - two) / (at[x] - moved[x])
            slope = slope_or_zero(enclosure.slopes[0], (1,))
            slack = mpmath.mpf(10) ** -25 * (1 + abs(quotient))
            assert mpmath.mpf(float(slope.low[0])) - slack <= quotient <= mpmath.mpf(float(slope.high[0])) + slack


@few(80)
@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_sums_and_products_are_rounded_outward_and_only_where_they_are_inexact(a: float, b: float) -> None:
    one, two = iv.point(a), iv.point(b)
    for interval, exact in (
        (iv.add(one, two), Fraction(a) + Fraction(b)),
        (iv.multiply(one, two), Fraction(a) * Fraction(b)),
    ):
        assert Fraction(float(interval.low[0])) <= exact <= Fraction(float(interval.high[0]))
        if exact != 0 and abs(exact) > 1e-200 and Fraction(float(exact)) == exact:
            assert float(interval.low[0]) == float(interval.high[0]) == float(exact)


def test_a_kink_shows_the_slopes_of_both_sides_and_a_jump_none() -> None:
    box = {x: _box(-1.0, 1.0)}
    (slope,) = enclose(sp.Abs(x), box, (x,)).slopes
    assert slope is not None
    assert (slope.low, slope.high) == (-1.0, 1.0)
    (slope,) = enclose(-sp.sign(x), box, (x,)).slopes
    assert slope is not None
    assert (slope.low, slope.high) == (-np.inf, 0.0)
    for text, wanted in (("max(x, 3*x)", (1.0, 3.0)), ("min(x, -2)", (0.0, 0.0)), ("max(x, -2)", (1.0, 1.0))):
        (slope,) = enclose(parse(text, ("x",)), box, (x,)).slopes
        assert slope is not None
        assert (slope.low, slope.high) == wanted


def test_what_is_not_finite_is_said_to_be_unknown() -> None:
    box = {x: Interval(np.array([-1.0, 1.0]), np.array([1.0, 2.0]))}
    for formula in (1 / x, sp.log(x), sp.sqrt(x)):
        value = enclose(formula, box).value
        assert np.isneginf(value.low[0])
        assert np.isposinf(value.high[0])
        assert np.isfinite([value.low[1], value.high[1]]).all()
    with pytest.raises(NumericalError, match="no range is given for y"):
        enclose(x + y, box)
    with pytest.raises(NumericalError, match="gamma has no interval form"):
        enclose(sp.gamma(x), box)
