"""T' = T + Δt/6 (k₁ + 2k₂ + 2k₃ + k₄), k = L T + S at the four classical stages."""

from fluxforge.scheme._builder import SchemeBuilder
from fluxforge.scheme._claims import Claims
from fluxforge.scheme._symbols import Ghost
from fluxforge.scheme.reference._flux import FLUX, PLAIN_FLUX_ORDERS


def _moved(weight: str, rate: str) -> str:
    """The flux of T + weight·Δt·rate."""
    return f"alpha*A/delta*(T_N - T_P + {weight}*dt*({rate}_N - {rate}_P))"


RK4 = (
    SchemeBuilder()
    .stage({"z1": FLUX}, {"k1": (Ghost.ZERO, "z1/V + S")})
    .stage({"z2": _moved("1/2", "k1")}, {"k2": (Ghost.ZERO, "z2/V + S")})
    .stage({"z3": _moved("1/2", "k2")}, {"k3": (Ghost.ZERO, "z3/V + S")})
    .stage({"z4": _moved("1", "k3")}, {"T_new": "T + dt/6*(k1 + 2*k2 + 2*k3 + z4/V + S)"})
    .build(
        "rk4",
        summary="two-point flux, the classical fourth-order Runge-Kutta method",
        claims=Claims(
            conservative=True, time_order=4, generator=True, space=PLAIN_FLUX_ORDERS, stable_to=2.785293563405282
        ),
    )
)
