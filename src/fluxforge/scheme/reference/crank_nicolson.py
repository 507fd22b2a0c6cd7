"""T' − T = ½Δt (L T + L T') + Δt S: Crank–Nicolson, and the paper's formula for it."""

import math

import sympy as sp

from fluxforge.scheme._builder import SchemeBuilder
from fluxforge.scheme._claims import Claims
from fluxforge.scheme.reference._flux import FLUX, NO_ORDER, PLAIN_FLUX_ORDERS

CRANK_NICOLSON = (
    SchemeBuilder()
    .stage({"z": FLUX}, {"T_new": "T + dt/V*z + dt*S"})
    .build(
        "crank-nicolson",
        theta=sp.Rational(1, 2),
        summary="two-point flux, trapezoidal rule: implicit, second order",
        claims=Claims(conservative=True, time_order=2, generator=True, space=PLAIN_FLUX_ORDERS, stable_to=math.inf),
    )
)

CRANK_NICOLSON_PRINTED = (
    SchemeBuilder()
    .stage({"z": FLUX}, {"T_new": "T - dt/V*z"})
    .build(
        "crank-nicolson-printed",
        theta=sp.Rational(1, 2),
        summary="Crank-Nicolson as the paper prints it: wrong sign, no source",
        claims=Claims(conservative=True, generator=False, space=NO_ORDER, stable_to=0.0),
    )
)
