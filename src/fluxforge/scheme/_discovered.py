"""Limiters that `fluxforge discover limiter` and `limiter-downwind` have found, as formulas with their provenance."""

from typing import NamedTuple


class Discovered(NamedTuple):
    """A formula of r, q and c, what it is, and the run that it comes from."""

    summary: str
    formula: str
    provenance: str


_RUN = (
    "--preset paper, seed 0, on one H200, at the commit before the formula was built in; the document of the run was "
    "not kept; measured again on two CPU cores (results/limiter.json); bounds hold by the form of the formula; "
    "Lipschitz-continuous: "
)

DISCOVERED: dict[str, Discovered] = {
    "discovered-jump": Discovered(
        "discovered limiter that jumps from a line to its bound",
        "max(0, min(min(2*r/c, 2/(1 - c)), "
        "where((0.314 + 0.001*c + 0.56*c**2 < r)*(r < 1.193 + 1.278*c + 1.319*c**2), "
        "1 + (0.322 + 0.365*c)*(r - 1), 2/(1 - c))))",
        f"fluxforge discover limiter {_RUN}no",
    ),
    "discovered-ramp": Discovered(
        "discovered limiter with ramps from a line to its bound",
        "max(0, min(min(2*r/c, 2/(1 - c)), 1 + (0.397 + 0.206*c)*(r - 1) + max(max(0, "
        "1.619*(0.316 + 0.701*c - 0.131*c**2 - r)/c), 1.158*(r - 1.037 - 0.674*c - 1.237*c**2)/(1 - c))))",
        f"fluxforge discover limiter {_RUN}yes",
    ),
    "discovered-downwind": Discovered(
        "discovered limiter that sees the downwind difference too",
        "max(0, min(min(2*r/c, 2/(1 - c)), 1 + (0.16 + 0.342*c)*(r - 1) "
        "+ (-0.176 + 0.003*c)*(min(2.215, max(-0.215, q)) - 1) + max(max(0, "
        "1.434*(0.9385 + 0.359*c + 0.287*c**2 - 1.311*q/(1 + abs(q)) - r)/c), "
        "1.01*(r - 1.856 - 2.704*c - 0.53*c**2 - 0.218*q/(1 + abs(q)))/(1 - c))))",
        f"fluxforge discover limiter-downwind {_RUN}yes",
    ),
}
"""The formulas, by the name of the limiter."""
