"""T½ = T + ½Δt (L T + S);  T' = T + Δt (L T½ + S): the explicit midpoint rule, and the paper's misprint of it."""

from fluxforge.scheme._builder import SchemeBuilder
from fluxforge.scheme._claims import Claims
from fluxforge.scheme.reference._flux import FLUX, PLAIN_FLUX_ORDERS, flux_of

MIDPOINT = (
    SchemeBuilder()
    .stage({"z": FLUX}, {"half": "T + dt/(2*V)*z + dt/2*S"})
    .stage({"z_half": flux_of("half")}, {"T_new": "T + dt/V*z_half + dt*S"})
    .build(
        "midpoint",
        summary="two-point flux, explicit midpoint rule (second-order Runge-Kutta)",
        claims=Claims(conservative=True, time_order=2, generator=True, space=PLAIN_FLUX_ORDERS, stable_to=2.0),
    )
)

MIDPOINT_PRINTED = (
    SchemeBuilder()
    .stage({"z": FLUX}, {"half": "T + dt/(2*V)*z + dt*S"})
    .stage({"z_half": flux_of("half")}, {"T_new": "T + dt/V*z_half + dt*S"})
    .build(
        "midpoint-printed",
        summary="the midpoint rule as the paper prints it: a whole source step in the half step",
        claims=Claims(conservative=True, time_order=1, generator=True, stable_to=2.0),
    )
)
