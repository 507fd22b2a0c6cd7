"""D_j = μ_j D_{j−1} + ν_j D_{j−2} + μ̃_j Δt f(T + D_{j−1}) + γ̃_j Δt f(T),  T' = T + D_s,  f = L T + S.

Runge–Kutta–Legendre of order two: Meyer, Balsara & Aslam, J. Comput. Phys. 257 (2014) 594–626, eqs. 16–17, written for
the increments D_j = Y_j − T: their weights 1 − μ − ν on T would not add up to one after rounding, and heat would drift.
Stable on [−(s² + s − 2)/2, 0] with s stages.
"""

from functools import cache

import sympy as sp

from fluxforge.errors import InputError
from fluxforge.expression import to_text
from fluxforge.scheme._builder import SchemeBuilder
from fluxforge.scheme._claims import Claims
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._symbols import NEXT, Ghost
from fluxforge.scheme.reference._flux import FLUX, PLAIN_FLUX_ORDERS


def rkl2(s: int) -> Scheme:
    """The scheme with s ≥ 2 stages, in exact rationals."""
    if not 2 <= s <= 60:
        raise InputError(f"rkl2 has 2 to 60 stages, got {s}")
    w = sp.Rational(4, s * s + s - 2)
    builder = SchemeBuilder().stage(
        {"z1": FLUX},
        {"rate": (Ghost.ZERO, "z1/V + S"), "D1": (Ghost.ZERO, f"({to_text(_b(1) * w)})*dt*(z1/V + S)")},
    )
    for j in range(2, s + 1):
        mu = sp.Rational(2 * j - 1, j) * _b(j) / _b(j - 1)
        nu = -sp.Rational(j - 1, j) * _b(j) / _b(j - 2)
        gamma = -(1 - _b(j - 1)) * mu * w
        before = f" + ({to_text(nu)})*D{j - 2}" if j > 2 else ""
        text = f"({to_text(mu)})*D{j - 1}{before} + ({to_text(mu * w)})*dt*(z{j}/V + S) + ({to_text(gamma)})*dt*rate"
        flux = f"alpha*A/delta*(T_N - T_P + D{j - 1}_N - D{j - 1}_P)"
        builder.stage({f"z{j}": flux}, {f"D{j}": (Ghost.ZERO, text)} if j < s else {NEXT: f"T + {text}"})
    return builder.build(
        f"rkl2-{s}",
        summary=f"two-point flux, Runge-Kutta-Legendre of order 2 with {s} stages: a stabilised baseline",
        claims=Claims(
            conservative=True, time_order=2, generator=True, space=PLAIN_FLUX_ORDERS, stable_to=(s * s + s - 2) / 2
        ),
    )


@cache
def _b(j: int) -> sp.Rational:
    return sp.Rational(1, 3) if j < 2 else sp.Rational(j * j + j - 2, 2 * j * (j + 1))


RKL2_8 = rkl2(8)
