"""Limiters that `fluxforge discover limiter` has found, as formulas with their provenance."""

from typing import NamedTuple


class Discovered(NamedTuple):
    """A formula of r and c, what it is, and the run that it comes from."""

    summary: str
    formula: str
    provenance: str


_RUN = "fluxforge discover limiter, recipe limiter, seed 0; bounds proved by intervals, Lipschitz-continuous in r: "

DISCOVERED: dict[str, Discovered] = {
    "discovered-jump": Discovered(
        "discovered limiter that jumps from a line to its bound",
        "max(0, min(min(2*r/c, 2/(1 - c)), "
        "where((0.288 + 0.259*c + 0.266*c**2 < r)*(r < 1.283 + 1.376*c + 1.027*c**2), "
        "1 + (0.336 + 0.34*c)*(r - 1), 2/(1 - c))))",
        f"{_RUN}no",
    ),
    "discovered-ramp": Discovered(
        "discovered limiter with ramps from a line to its bound",
        "max(0, min(min(2*r/c, 2/(1 - c)), 1 + (0.341 + 0.313*c)*(r - 1) + max(max(0, "
        "11.454*(0.303 + 0.307*c + 0.199*c**2 - r)/c), 9.044*(r - 1.036 - 2.615*c + 0.479*c**2)/(1 - c))))",
        f"{_RUN}yes",
    ),
}
"""The formulas, by the name of the limiter."""
