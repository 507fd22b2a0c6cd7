"""The schemes we compare with: data, not loops."""

from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.reference.corrected import CORRECTED
from fluxforge.scheme.reference.crank_nicolson import CRANK_NICOLSON, CRANK_NICOLSON_PRINTED
from fluxforge.scheme.reference.euler import EULER
from fluxforge.scheme.reference.midpoint import MIDPOINT, MIDPOINT_PRINTED
from fluxforge.scheme.reference.rk4 import RK4
from fluxforge.scheme.reference.rkl2 import RKL2_8, rkl2
from fluxforge.scheme.reference.two_hop import TWO_HOP, TWO_HOP_PRINTED

BUILT_IN: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        EULER,
        MIDPOINT,
        MIDPOINT_PRINTED,
        RK4,
        RKL2_8,
        TWO_HOP,
        TWO_HOP_PRINTED,
        CRANK_NICOLSON,
        CRANK_NICOLSON_PRINTED,
        CORRECTED,
    )
}

__all__ = ["BUILT_IN", "rkl2"]
