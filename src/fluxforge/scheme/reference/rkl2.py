"""Y_j = μ_j Y_{j−1} + ν_j Y_{j−2} + (1 − μ_j − ν_j) Y₀ + μ̃_j Δt f(Y_{j−1}) + γ̃_j Δt f(Y₀),  f = L T + S.

Runge–Kutta–Legendre of order two: Meyer, Balsara & Aslam, J. Comput. Phys. 257 (2014) 594–626, eqs. 16–17.
Stable on [−(s² + s − 2)/2, 0] with s stages.
"""

from functools import cache

import sympy as sp

from fluxforge.expression import to_text
from fluxforge.scheme._builder import SchemeBuilder
from fluxforge.scheme._claims import Claims
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._symbols import NEXT, Ghost
from fluxforge.scheme.reference._flux import FLUX, PLAIN_FLUX_ORDERS, flux_of


def rkl2(s: int) -> Scheme:
    """The scheme with s ≥ 2 stages, in exact rationals."""
    w = sp.Rational(4, s * s + s - 2)
    builder = SchemeBuilder().stage(
        {"z1": FLUX}, {"rate0": (Ghost.ZERO, "z1/V + S"), "Y1": f"T + {_b(1) * w}*dt*(z1/V + S)"}
    )
    for j in range(2, s + 1):
        mu = sp.Rational(2 * j - 1, j) * _b(j) / _b(j - 1)
        nu = -sp.Rational(j - 1, j) * _b(j) / _b(j - 2)
        gamma = -(1 - _b(j - 1)) * mu * w
        before = f"Y{j - 2}" if j > 2 else "T"
        text = (
            f"({_t(mu)})*Y{j - 1} + ({_t(nu)})*{before} + ({_t(1 - mu - nu)})*T"
            f" + ({_t(mu * w)})*dt*(z{j}/V + S) + ({_t(gamma)})*dt*rate0"
        )
        builder.stage({f"z{j}": flux_of(f"Y{j - 1}")}, {f"Y{j}" if j < s else NEXT: text})
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


def _t(number: sp.Rational) -> str:
    return str(to_text(number))


RKL2_8 = rkl2(8)
