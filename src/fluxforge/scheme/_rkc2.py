"""Runge–Kutta–Chebyshev methods of order two, as data."""

import sympy as sp

from fluxforge.errors import InputError
from fluxforge.scheme._integrate import Row, Tableau

_MOST_STAGES = 60
_DAMPING = sp.Rational(2, 13)


def rkc2_tableau(s: int) -> Tableau:
    """Runge–Kutta–Chebyshev of order two with s ≥ 2 stages and the usual damping ε = 2/13, in exact rationals.

    Sommeijer, Shampine & Verwer, J. Comput. Appl. Math. 88 (1998) 315-326, eqs. 2.1 to 2.4, written for increments.
    Stable on about [−⅔ (s² − 1)(1 − 2ε/15), 0].
    """
    if not 2 <= s <= _MOST_STAGES:
        raise InputError(f"rkc2 has 2 to {_MOST_STAGES} stages, got {s}")
    w0 = 1 + _DAMPING / s**2
    T, dT, ddT = _chebyshev(s, w0)
    w1 = dT[s] / ddT[s]
    b = [ddT[j] / dT[j] ** 2 if j > 1 else sp.S.Zero for j in range(s + 1)]
    b[0], b[1] = b[2], 1 / w0
    rows = [Row({0: b[1] * w1})]
    for j in range(2, s + 1):
        mu, nu, rate = 2 * b[j] * w0 / b[j - 1], -b[j] / b[j - 2], 2 * b[j] * w1 / b[j - 1]
        states = {j - 1: mu, j - 2: nu} if j > 2 else {1: mu}
        rows.append(Row({j - 1: rate, 0: -(1 - b[j - 1] * T[j - 1]) * rate}, states))
    reach = float(sp.Rational(2, 3) * (s * s - 1) * (1 - 2 * _DAMPING / 15))
    summary = f"Runge-Kutta-Chebyshev of order 2 with {s} stages: a stabilised baseline"
    return Tableau(f"rkc2-{s}", summary, tuple(rows), order=2, stable_to=reach)


def _chebyshev(s: int, x: sp.Rational) -> tuple[list[sp.Rational], list[sp.Rational], list[sp.Rational]]:
    """T_j(x), T_j'(x) and T_j''(x) up to j = s, by their recurrences."""
    T, dT, ddT = [sp.S.One, x], [sp.S.Zero, sp.S.One], [sp.S.Zero, sp.S.Zero]
    for _ in range(2, s + 1):
        T.append(2 * x * T[-1] - T[-2])
        dT.append(2 * T[-2] + 2 * x * dT[-1] - dT[-2])
        ddT.append(4 * dT[-2] + 2 * x * ddT[-1] - ddT[-2])
    return T, dT, ddT
