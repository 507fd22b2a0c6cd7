"""The schemes we compare with: tableaux applied to the heat equation, and a few formulas of their own."""

from dataclasses import replace

from fluxforge.pde import HEAT
from fluxforge.scheme import _tableau
from fluxforge.scheme._integrate import integrate
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._tableau import Tableau
from fluxforge.scheme.reference._space import PLAIN_FLUX_ORDERS
from fluxforge.scheme.reference.corrected import CORRECTED, corrected_in
from fluxforge.scheme.reference.printed import CRANK_NICOLSON_PRINTED, MIDPOINT_PRINTED, TWO_HOP_PRINTED
from fluxforge.scheme.reference.two_hop import TWO_HOP


def _heat(tableau: Tableau) -> Scheme:
    return integrate(tableau, HEAT, space=PLAIN_FLUX_ORDERS)


def rkl2(s: int) -> Scheme:
    """Runge–Kutta–Legendre of order two with s stages for the heat equation."""
    return _heat(_tableau.rkl2(s))


BUILT_IN: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        replace(_heat(_tableau.EULER), summary="the paper's first-order scheme: two-point flux, forward Euler"),
        _heat(_tableau.MIDPOINT),
        MIDPOINT_PRINTED,
        _heat(_tableau.RK4),
        rkl2(8),
        TWO_HOP,
        TWO_HOP_PRINTED,
        _heat(_tableau.CRANK_NICOLSON),
        CRANK_NICOLSON_PRINTED,
        CORRECTED,
    )
}

__all__ = ["BUILT_IN", "corrected_in", "rkl2"]
