"""Time integrators as data.

D_i = Σ_j states[i][j] D_j + Δt Σ_j rates[i][j] k_j,  k_j = f(u + D_j),  D_0 = 0,  u' = u + D_s,

f being the right-hand side of c ∂u/∂t = …, divided by c. A Runge–Kutta method has no `states`; methods of recurrences
(Runge–Kutta–Legendre, the strong-stability-preserving ones in Shu's and Osher's form) have.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import sympy as sp

from fluxforge.errors import InputError

Weights = Mapping[int, sp.Rational]


@dataclass(frozen=True)
class Row:
    """D_i of one stage: weights of earlier D_j (j ≥ 1) and of the rates k_j (j < i)."""

    rates: Weights
    states: Weights = field(default_factory=dict)


@dataclass(frozen=True)
class Tableau:
    """An explicit integrator, or with θ > 0 the implicit one u' − u = (1 − θ)(F(u) − u) + θ(F(u') − u').

    - `order` in time, and `stable_to`: |R(z)| ≤ 1 on [−stable_to, 0] of the real axis;
    - `labels` names intermediate states, where they have a name of their own.
    """

    name: str
    summary: str
    rows: tuple[Row, ...]
    order: int
    stable_to: float
    theta: sp.Expr = sp.S.Zero
    labels: Mapping[int, str] = field(default_factory=dict)


def runge_kutta(rows: tuple[tuple[sp.Rational | int, ...], ...]) -> tuple[Row, ...]:
    """The rows of a Butcher tableau without the empty first one; the last row given is the weights b."""
    return tuple(Row({j: sp.Rational(weight) for j, weight in enumerate(row) if weight}) for row in rows)


_HALF = sp.Rational(1, 2)
_RKL2 = re.compile(r"rkl2-([1-9][0-9]?)")
# The most stages of the stabilised methods rkl2 and rkc2.
_MOST_STABILISED = 60
# ε of rkc2, as its authors choose it.
_RKC_DAMPING = sp.Rational(2, 13)
EULER = Tableau("euler", "forward Euler", runge_kutta(((1,),)), order=1, stable_to=2.0)
MIDPOINT = Tableau(
    "midpoint",
    "explicit midpoint rule (second-order Runge-Kutta)",
    runge_kutta(((_HALF,), (0, 1))),
    order=2,
    stable_to=2.0,
    labels={1: "half"},
)
RK4 = Tableau(
    "rk4",
    "the classical fourth-order Runge-Kutta method",
    runge_kutta(((_HALF,), (0, _HALF), (0, 0, 1), tuple(sp.Rational(b, 6) for b in (1, 2, 2, 1)))),
    order=4,
    stable_to=2.785293563405282,
)
SSP2 = Tableau(
    "ssp2",
    "strong-stability-preserving Runge-Kutta method of order 2 (Shu and Osher)",
    (Row({0: sp.S.One}), Row({1: _HALF}, {1: _HALF})),
    order=2,
    stable_to=2.0,
)
SSP3 = Tableau(
    "ssp3",
    "strong-stability-preserving Runge-Kutta method of order 3 (Shu and Osher)",
    (
        Row({0: sp.S.One}),
        Row({1: sp.Rational(1, 4)}, {1: sp.Rational(1, 4)}),
        Row({2: sp.Rational(2, 3)}, {2: sp.Rational(2, 3)}),
    ),
    order=3,
    stable_to=2.5127453266183255,
)
CRANK_NICOLSON = Tableau(
    "crank-nicolson",
    "trapezoidal rule: implicit, second order",
    EULER.rows,
    order=2,
    stable_to=float("inf"),
    theta=_HALF,
)
IMPLICIT = Tableau(
    "implicit",
    "backward Euler: implicit, first order",
    EULER.rows,
    order=1,
    stable_to=float("inf"),
    theta=sp.S.One,
)


def rkl2_tableau(s: int) -> Tableau:
    """Runge–Kutta–Legendre of order two with s ≥ 2 stages, in exact rationals: stable on [−(s² + s − 2)/2, 0].

    Meyer, Balsara & Aslam, J. Comput. Phys. 257 (2014) 594–626, eqs. 16–17, written for the increments D_j = Y_j − u:
    their weights 1 − μ − ν on u would not add up to one after rounding, and the total would drift.
    """
    if not 2 <= s <= _MOST_STABILISED:
        raise InputError(f"rkl2 has 2 to {_MOST_STABILISED} stages, got {s}")
    w = sp.Rational(4, s * s + s - 2)
    rows = [Row({0: _b(1) * w})]
    for j in range(2, s + 1):
        mu = sp.Rational(2 * j - 1, j) * _b(j) / _b(j - 1)
        nu = -sp.Rational(j - 1, j) * _b(j) / _b(j - 2)
        states = {j - 1: mu, j - 2: nu} if j > 2 else {1: mu}
        rows.append(Row({j - 1: mu * w, 0: -(1 - _b(j - 1)) * mu * w}, states))
    summary = f"Runge-Kutta-Legendre of order 2 with {s} stages: a stabilised baseline"
    return Tableau(f"rkl2-{s}", summary, tuple(rows), order=2, stable_to=(s * s + s - 2) / 2)


@cache
def _b(j: int) -> sp.Rational:
    return sp.Rational(1, 3) if j < 2 else sp.Rational(j * j + j - 2, 2 * j * (j + 1))


def rkc2_tableau(s: int) -> Tableau:
    """Runge–Kutta–Chebyshev of order two with s ≥ 2 stages and the usual damping ε = 2/13, in exact rationals.

    Sommeijer, Shampine & Verwer, J. Comput. Appl. Math. 88 (1998) 315-326, eqs. 2.1 to 2.4, written for increments.
    Stable on about [−⅔ (s² − 1)(1 − 2ε/15), 0].
    """
    if not 2 <= s <= _MOST_STABILISED:
        raise InputError(f"rkc2 has 2 to {_MOST_STABILISED} stages, got {s}")
    w0 = 1 + _RKC_DAMPING / s**2
    T, dT, ddT = _chebyshev(s, w0)
    w1 = dT[s] / ddT[s]
    b = [ddT[j] / dT[j] ** 2 if j > 1 else sp.S.Zero for j in range(s + 1)]
    b[0], b[1] = b[2], 1 / w0
    rows = [Row({0: b[1] * w1})]
    for j in range(2, s + 1):
        mu, nu, rate = 2 * b[j] * w0 / b[j - 1], -b[j] / b[j - 2], 2 * b[j] * w1 / b[j - 1]
        states = {j - 1: mu, j - 2: nu} if j > 2 else {1: mu}
        rows.append(Row({j - 1: rate, 0: -(1 - b[j - 1] * T[j - 1]) * rate}, states))
    reach = float(sp.Rational(2, 3) * (s * s - 1) * (1 - 2 * _RKC_DAMPING / 15))
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


TABLEAUX: Mapping[str, Tableau] = {
    tableau.name: tableau for tableau in (EULER, MIDPOINT, RK4, rkl2_tableau(8), SSP2, SSP3, CRANK_NICOLSON, IMPLICIT)
}
"""The methods that serve every equation, by name; `rkl2-N` has any number of stages from 2 to 60."""


def find_tableau(name: str) -> Tableau | None:
    """The time integrator of that name, `rkl2-N` for any N among them; None where there is none."""
    if (stages := _RKL2.fullmatch(name)) is not None and 2 <= int(stages[1]) <= _MOST_STABILISED:
        return rkl2_tableau(int(stages[1]))
    return TABLEAUX.get(name)
