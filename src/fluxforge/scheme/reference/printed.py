"""Formulas as the paper prints them, misprints included, and its two-hop formula."""

import sympy as sp

from fluxforge.scheme._builder import SchemeBuilder
from fluxforge.scheme._claims import Claims
from fluxforge.scheme._symbols import Hop
from fluxforge.scheme.reference._space import NO_ORDER

_FLUX = "alpha*A/delta*(T_N - T_P)"

MIDPOINT_PRINTED = (
    SchemeBuilder()
    .stage({"z": _FLUX}, {"half": "T + dt/(2*V)*z + dt*S"})
    .stage({"z_half": "alpha*A/delta*(half_N - half_P)"}, {"T_new": "T + dt/V*z_half + dt*S"})
    .build(
        "midpoint-printed",
        summary="the midpoint rule as the paper prints it: a whole source step in the half step",
        claims=Claims(conservative=True, time_order=1, generator=True, stable_to=2.0),
    )
)

CRANK_NICOLSON_PRINTED = (
    SchemeBuilder()
    .stage({"z": _FLUX}, {"T_new": "T - dt/V*z"})
    .build(
        "crank-nicolson-printed",
        theta=sp.Rational(1, 2),
        summary="Crank-Nicolson as the paper prints it: wrong sign, no source",
        claims=Claims(conservative=True, generator=False, space=NO_ORDER, stable_to=0.0),
    )
)

TWO_HOP_PRINTED = (
    SchemeBuilder()
    .stage(
        {"z1": _FLUX, "z2": (Hop.RING, "alpha/2*(T_Q - T_P)")},
        {"T_new": "T + dt*S + dt/V*(z1 + z2)"},
    )
    .build(
        "two-hop-printed",
        summary="the two-hop formula as the paper prints it: solves another heat equation",
        claims=Claims(conservative=True, time_order=1, generator=False, space=NO_ORDER, stable_to=2.0),
    )
)
