"""Limiters that `fluxforge discover limiter` has found, as formulas with their provenance."""

from typing import NamedTuple


class Discovered(NamedTuple):
    """A formula of r and c, what it is, and the run that it comes from."""

    summary: str
    formula: str
    provenance: str


_PROVED = "bounds proved by intervals, Lipschitz-continuous in r: "

DISCOVERED: dict[str, Discovered] = {
    "discovered-jump": Discovered(
        "discovered limiter that jumps from a line to its bound",
        "max(0, min(min(2*r/c, 2/(1 - c)), "
        "where((0.288 + 0.259*c + 0.266*c**2 < r)*(r < 1.283 + 1.376*c + 1.027*c**2), "
        "1 + (0.336 + 0.34*c)*(r - 1), 2/(1 - c))))",
        "fluxforge discover limiter, seed 0, with an earlier refit: 3,600 candidates, 24 rows a generation, the worst "
        f"ratio of each; {_PROVED}no",
    ),
    "discovered-ramp": Discovered(
        "discovered limiter with ramps from a line to its bound",
        "max(0, min(min(2*r/c, 2/(1 - c)), 1 + (0.357 + 0.284*c)*(r - 1) + max(max(0, "
        "31.788*(0.304 + 0.219*c + 0.256*c**2 - r)/c), 3.433*(r - 1.061 - 2.072*c + 0.202*c**2)/(1 - c))))",
        f"fluxforge discover limiter, seed 0; {_PROVED}yes",
    ),
}
"""The formulas, by the name of the limiter."""
