"""The midpoint rule for heat written out over two hops."""

from fluxforge.scheme._builder import SchemeBuilder
from fluxforge.scheme._claims import Claims
from fluxforge.scheme._symbols import Hop
from fluxforge.scheme.reference._space import PLAIN_FLUX_ORDERS

TWO_HOP = (
    SchemeBuilder()
    .stage(
        {
            "z1": "alpha*A/delta*(T_N - T_P)",
            # A Neumann ghost moves with its owner in the half step, so χ keeps it out of Σw.
            "d": "chi*alpha*A/delta",
            "z_source": "alpha*A/delta*(S_N - S_P)",
            "z2": (Hop.PATH, "dt/2*(alpha*A_PN/delta_PN)*(alpha*A_NQ/delta_NQ)/V_N*(T_Q - T_N)"),
        },
        {"T_new": "T + dt*S + dt/V*(z1 + z2 + dt/2*z_source - dt/(2*V)*d*z1)"},
    )
    .build(
        "two-hop",
        summary="one stage over directed two-hop paths, equal to midpoint",
        claims=Claims(conservative=True, time_order=2, generator=True, space=PLAIN_FLUX_ORDERS, stable_to=2.0),
    )
)
