"""T' = T + Δt/V Σ α A/δ (T_N − T_P) + Δt S: the paper's first-order scheme."""

from fluxforge.scheme._builder import SchemeBuilder
from fluxforge.scheme._claims import Claims
from fluxforge.scheme.reference._flux import FLUX, PLAIN_FLUX_ORDERS

EULER = (
    SchemeBuilder()
    .stage({"z": FLUX}, {"T_new": "T + dt/V*z + dt*S"})
    .build(
        "euler",
        summary="the paper's first-order scheme: two-point flux, forward Euler",
        claims=Claims(conservative=True, time_order=1, generator=True, space=PLAIN_FLUX_ORDERS, stable_to=2.0),
    )
)
