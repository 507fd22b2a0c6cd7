"""F = α A [ (T_N − T_P)/(d·n) + ½ (∇T_P + ∇T_N)·(n − d/(d·n)) ]: over-relaxed non-orthogonal correction, Euler in time.

The gradients solve the weighted least-squares system  Σ d dᵀ/δ² ∇T = Σ d (T_N − T_P)/δ², boundary faces included.
"""

from fluxforge.scheme._builder import SchemeBuilder
from fluxforge.scheme._claims import FAMILIES, Claims
from fluxforge.scheme._symbols import Ghost

_NORMAL = "(d_x*n_x + d_y*n_y)"
_DETERMINANT = "(m_xx*m_yy - m_xy**2)"

CORRECTED = (
    SchemeBuilder()
    .stage(
        {
            "m_xx": "d_x**2/delta**2",
            "m_xy": "d_x*d_y/delta**2",
            "m_yy": "d_y**2/delta**2",
            "r_x": "d_x/delta**2*(T_N - T_P)",
            "r_y": "d_y/delta**2*(T_N - T_P)",
        },
        {
            "g_x": (Ghost.OWNER, f"(m_yy*r_x - m_xy*r_y)/{_DETERMINANT}"),
            "g_y": (Ghost.OWNER, f"(m_xx*r_y - m_xy*r_x)/{_DETERMINANT}"),
        },
    )
    .stage(
        {
            "z": f"alpha*A*((T_N - T_P)/{_NORMAL}"
            f" + (g_x_P + g_x_N)/2*(n_x - d_x/{_NORMAL}) + (g_y_P + g_y_N)/2*(n_y - d_y/{_NORMAL}))"
        },
        {"T_new": "T + dt/V*z + dt*S"},
    )
    .build(
        "corrected",
        summary="over-relaxed non-orthogonal correction with least-squares gradients, forward Euler",
        claims=Claims(
            conservative=True,
            linear_exact=True,
            time_order=1,
            generator=True,
            space=dict.fromkeys(FAMILIES, 2.0),
            stable_to=2.0,
        ),
    )
)
