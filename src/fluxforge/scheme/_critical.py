"""The shape of a transported f(u): whether it is linear, where f′ = 0, and the sign of f′ between these points."""

from functools import cache
from itertools import pairwise

import sympy as sp

from fluxforge.errors import SchemeError
from fluxforge.pde._equation import differentiate

# Distances from a critical point at which the sign of f′ is tried, since functions such as log(u) end near some.
_DISTANCES = tuple(sp.Rational(1, 4**k) for k in range(6))


def slope_of(f: sp.Expr, u: sp.Symbol) -> sp.Expr:
    """f′(u)."""
    return differentiate(f, u)


@cache
def is_linear(f: sp.Expr, u: sp.Symbol) -> bool:
    """Whether f is affine in u."""
    return bool(sp.simplify(sp.diff(f, u, 2)) == 0)


@cache
def critical_points(f: sp.Expr, u: sp.Symbol) -> tuple[sp.Expr, ...]:
    """The real u with f′(u) = 0, in increasing order where they are numbers.

    Raises SchemeError where SymPy does not find them all, where there are infinitely many, and where it depends on
    parameters whether they are real.
    """
    slope = sp.nsimplify(sp.diff(f, u), rational=True)
    top, bottom = sp.fraction(sp.together(slope))
    found = _roots(top, u) if top.is_polynomial(u) else _solutions(slope, u)
    if found is None or not all(point.is_real for point in found):
        raise SchemeError(f"the points where the derivative of f = {f} vanishes are not known (rusanov needs none)")
    points = {_plain(point) for point in found if bottom.xreplace({u: point}) != 0}
    if all(point.is_number for point in points):
        return tuple(sorted(points, key=float))
    return tuple(sorted(points, key=str))


def _roots(top: sp.Expr, u: sp.Symbol) -> list[sp.Expr] | None:
    poly = sp.Poly(top, u)
    if poly.degree() <= 0:
        return []
    if all(coefficient.is_Rational for coefficient in poly.all_coeffs()):
        return list(sp.real_roots(poly))
    found = sp.roots(poly)
    return list(found) if sum(found.values()) == poly.degree() else None


def _solutions(slope: sp.Expr, u: sp.Symbol) -> list[sp.Expr] | None:
    found = sp.solveset(slope, u, sp.S.Reals)
    return list(found) if isinstance(found, sp.FiniteSet) else [] if found is sp.S.EmptySet else None


def _plain(point: sp.Expr) -> sp.Expr:
    """A rational as it is, another number as the nearest double: roots of polynomials may have no formula."""
    return point if point.is_Rational or not point.is_number else sp.Float(float(point.evalf(25)))


@cache
def slope_signs(f: sp.Expr, u: sp.Symbol) -> tuple[sp.Expr, ...]:
    """The sign of f′ left of the first critical point, between neighbours, and right of the last.

    A formula where it depends on parameters. Raises SchemeError for several critical points that depend on parameters,
    whose order is not known.
    """
    points = critical_points(f, u)
    if len(points) > 1 and not all(point.is_number for point in points):
        raise SchemeError(f"the order of the points where the derivative of f = {f} vanishes depends on parameters")
    if not points:
        return (_sign(f, u, [sp.S.Zero, *_DISTANCES]),)
    inner = [[(left + right) / 2] for left, right in pairwise(points)]
    before = [points[0] - distance for distance in _DISTANCES]
    after = [points[-1] + distance for distance in _DISTANCES]
    return tuple(_sign(f, u, places) for places in (before, *inner, after))


def _sign(f: sp.Expr, u: sp.Symbol, places: list[sp.Expr]) -> sp.Expr:
    """The sign of f′ at the first place where it is real; +1 where there is none, since f is not defined there."""
    slope = sp.diff(f, u)
    for place in places:
        value = sp.simplify(slope.xreplace({u: place}))
        if not value.is_number or (value.is_real and value.is_finite):
            return sp.sign(value)
    return sp.S.One
