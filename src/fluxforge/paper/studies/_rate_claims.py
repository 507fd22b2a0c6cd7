"""The paper's list of contributions, judged on how often the shipped recipes find what it says."""

from collections.abc import Mapping
from typing import Any

from fluxforge.paper.studies._claim import Claim, Verdict
from fluxforge.paper.studies._seeds import Rate, weigh

# The words that a verdict on a network begins with if its update adds what it is to find.
BUILT_IN = "with T + Δt/V built into the network"
OTHER_LOSS = "with another loss than printed"
SMALL_STEPS = "in the limit of small steps"
# The loss as printed takes the Laplacian of the network's output.
AS_PRINTED = 1.0

TEXTS: Mapping[str, tuple[str, str]] = {
    "first-order": ("the network learns the exact corresponding first-order FV scheme", "first-order scheme"),
    "first-order-direct": ("the same, where the network predicts the new temperature itself", "first-order scheme"),
    "first-order-pinn": (
        "the same architecture trained using a physics-informed loss also exactly rediscovers the first-order scheme",
        "first-order scheme",
    ),
    "two-hop": ("a second-order scheme with a correction term exploiting the 2-hop stencil", "midpoint rule"),
    "midpoint": ("an explicit-midpoint scheme, similar to a second-order Runge-Kutta scheme", "midpoint rule"),
}


def check(result: Mapping[str, Any]) -> list[Claim]:
    """One claim per recipe that was run."""
    return [_recipe(name, result["recipes"][name]) for name in TEXTS if name in result["recipes"]]


def _recipe(name: str, found: Mapping[str, Any]) -> Claim:
    text, called = TEXTS[name]
    conditions = _conditions(found)
    verdict: Verdict = "holds under a condition" if conditions else "holds"
    counts = ", ".join(f"{key} {count}" for key, count in found["verdicts"].items())
    medians = ", ".join(
        f"{key} {each['median']:.4g} [{each['q1']:.4g}, {each['q3']:.4g}]" for key, each in found["medians"].items()
    )
    evidence = f"Recipe {name}: {counts}; it is the {called} in {Rate(**found['rates'][called]).text}"
    evidence += f"; medians and quartiles: {medians}." if medians else "."
    claim = Claim(f"rates-{name}", text, verdict, evidence, ", ".join(conditions))
    return weigh(claim, Rate(**found["rates"][called]))


def _conditions(found: Mapping[str, Any]) -> list[str]:
    """What the recipe does otherwise than the paper says."""
    conditions = [BUILT_IN] if found["update"] == "residual" else []
    if found["theta"] is not None:
        conditions.append(SMALL_STEPS if found["theta"] == AS_PRINTED else f"{OTHER_LOSS} (θ = {found['theta']:g})")
    return conditions
