"""The sentences of the paper's section 5, judged by what was trained, distilled and minimised."""

import math
from collections.abc import Mapping
from typing import Any

from fluxforge.experiments._claim import Claim, Verdict
from fluxforge.experiments._networks import NAMES

# "Significantly lower": at most this part of the first-order scheme's residual.
LOWER = 0.5
# A constant is a number if it is within this part of it.
WITHIN = 0.02
ROUND_OFF = 1e-9
# A power that is none.
FLAT = 0.3
# A diffusivity is α to within this part.
CONSISTENT = 0.05
# Of second order: at most that far below 2.
ORDER_TOLERANCE = 0.1

Result = Mapping[str, Any]


def check(result: Result) -> list[Claim]:
    """One claim per sentence that can be measured."""
    return [
        _lower_residual(result),
        _midpoint(result),
        _half(result),
        _printed_source(result),
        _two_hop(result),
        _two_hop_found(result),
        _four_layers(result),
    ]


def _lower_residual(result: Result) -> Claim:
    # Forward in time Euler has no residual at all: nothing to be lower than.
    networks = {name: found for name, found in result["networks"].items() if found["residual"]["euler"] > ROUND_OFF}
    parts = {name: found["residual"]["network"] / found["residual"]["euler"] for name, found in networks.items()}
    ours = [parts[name] for name in NAMES]
    verdict: Verdict = "holds" if max(parts.values()) <= LOWER else "does not hold"
    if verdict == "does not hold" and max(ours) <= LOWER:
        verdict = "holds under a condition"
    less = ", ".join(
        f"{name} {networks[name]['residual']['midpoint'] / networks[name]['residual']['network']:.1f}×"
        for name in NAMES
    )
    listed = ", ".join(f"{name} {part:.3f}" for name, part in parts.items())
    return Claim(
        "higher-order-residual",
        "Both GNNs successfully converged, achieving significantly lower residual losses than the standard "
        "first-order FV scheme.",
        verdict,
        f"held-out residual over Euler's: {listed}. Below the midpoint rule's at θ = ½: {less}.",
    )


def _midpoint(result: Result) -> Claim:
    found = result["discovered"]["midpoint"]
    printed = result["direct"].get("θ = 1")
    right = bool(found["recovered"]) and _near(found["constants"], {"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0})
    as_printed = printed is not None and abs(printed["limit"]["c1"] - 0.5) <= 0.5 * WITHIN
    verdict: Verdict = "does not hold" if not right else "holds" if as_printed else "holds under a condition"
    evidence = f"θ = ½, small steps: {_listed(found.get('constants', {}), found.get('constants_uncertainty', {}))}"
    if printed is not None:
        evidence += f". As printed (θ = 1) the limit is c1 = {printed['limit']['c1']:.3f}{_order(printed)}"
    return Claim(
        "higher-order-midpoint",
        "GNN-Midpoint actually learns an explicit midpoint scheme (or second order Runge–Kutta).",
        verdict,
        evidence + ".",
    )


def _half(result: Result) -> Claim:
    """Where the printed ½ comes from: c against the step, for the loss as printed."""
    rows = result["direct"]["θ = 1"]["rows"]
    values = ", ".join(f"{row['constants']['c1']:.2f} at {row['step']:g}" for row in rows if row["step"] >= 0.1)
    nearest = min(rows, key=lambda row: abs(row["constants"]["c1"] - 0.5))
    everywhere = all(abs(row["constants"]["c1"] - 0.5) <= 0.5 * 5 * WITHIN for row in rows)
    verdict: Verdict = "holds" if everywhere else "does not hold"
    found = [row["constants"]["c1"] for row in rows]
    passes = min(found) <= 0.5 <= max(found) or abs(nearest["constants"]["c1"] - 0.5) <= 0.5 * 5 * WITHIN
    if not everywhere and passes:
        verdict = "holds under a condition"
    return Claim(
        "higher-order-half",
        "The first layer advances by ½ Δt/V Σ α A/δ (T_N − T_P).",
        verdict,
        f"least residual as printed (θ = 1), c1 against Δt/Δt_Fourier: {values}; nearest to ½ at "
        f"{nearest['step']:g}." + ("" if everywhere else " It depends on the step trained with."),
    )


def _printed_source(result: Result) -> Claim:
    limits = {name: result["direct"][key]["limit"]["a1"] for name, key in (("θ = ½", "θ = 0.5"), ("θ = 1", "θ = 1"))}
    whole = [abs(limit - 1.0) <= WITHIN for limit in limits.values()]
    verdict: Verdict = "holds" if all(whole) else "holds under a condition" if any(whole) else "does not hold"
    rows = result["direct"]["θ = 1"].get("rows", ())
    beside = [row["constants"]["a1"] for row in rows if abs(row["constants"].get("c1", 0.0) - 0.5) <= 0.1]
    said = f"; where c1 is within 0.1 of ½ it is {_span(beside)}" if beside else ""
    return Claim(
        "higher-order-source",
        "The half step adds Δt S.",
        verdict,
        f"small-step limit of the coefficient of Δt S in the half step: {limits['θ = 1']:.4f} with the loss as printed "
        f"(θ = 1){said}; {limits['θ = ½']:.4f} at θ = ½.",
    )


def _two_hop(result: Result) -> Claim:
    K = {family: found[0][0] for family, found in result["printed_diffusivity"].items()}
    found = result["discovered"]["two-hop"]
    right = all(abs(value - 1.0) <= CONSISTENT for value in K.values())
    law = found.get("laws", {}).get("far")
    # The printed term knows no areas and distances: a network that learned it has no powers of them.
    flat = law is not None and all(abs(power) <= FLAT for name, power in law["exponents"].items() if name[0] in "Ad")
    verdict: Verdict = "holds" if right and flat else "holds under a condition" if flat else "does not hold"
    learned = (
        "" if law is None else f" The trained network's two-hop coefficient is {law['factor']:.2f} {_powers(law)}."
    )
    return Claim(
        "higher-order-two-hop",
        "GNN-2ndOrder learns ½ α (T_Q − T_P) over second neighbours.",
        verdict,
        f"that scheme diffuses with {K['squares']:.3f} α on squares and {K['equilateral']:.3f} α on equilateral "
        f"triangles{'' if right else ': it solves another equation'}.{learned}",
    )


def _two_hop_found(result: Result) -> Claim:
    """What a two-hop network does learn: a second-order step in time if its constants are the midpoint rule's."""
    found = result["discovered"]["two-hop"]
    # Outright if the loss as printed asks for a second-order step too.
    order = result["direct"].get("θ = 1", {}).get("certified", {}).get("order")
    outright = order is not None and order >= 2.0 - ORDER_TOLERANCE
    verdict: Verdict = "does not hold" if not found["recovered"] else "holds" if outright else "holds under a condition"
    values = _listed(found.get("constants", {}), found.get("constants_uncertainty", {}), "abcde")
    said = "recovered" if found["recovered"] else "not recovered"
    return Claim(
        "higher-order-two-hop-found",
        "A two-hop GNN discovers a second-order correction term using a two-hop stencil.",
        verdict,
        f"θ = ½, small steps, a message per path, the way back included: {said} ({values}), e and b being the "
        "factors of Δt w_PN w_NQ/V_N and of its source.",
    )


def _four_layers(result: Result) -> Claim:
    """The footnote: can four layers learn a full Runge–Kutta method?"""
    rk4 = {f"c{k}": 1.0 / (5 - k) for k in range(1, 5)}
    limits = {name: found["limit"] for name, found in result["direct_four"].items()}
    reached = {name: _near(limit, rk4) for name, limit in limits.items()}
    verdict: Verdict = "holds" if all(reached.values()) else "does not hold"
    if verdict == "does not hold" and any(reached.values()):
        verdict = "holds under a condition"
    listed = "; ".join(
        f"{name}: {_listed(limit, {}, 'c')}{_order(result['direct_four'][name])}" for name, limit in limits.items()
    )
    return Claim(
        "higher-order-four-layers",
        "It would be interesting to see if with 4 layers a GNN can actually learn a full Runge–Kutta method.",
        verdict,
        f"constants of least residual for small steps, layer by layer (RK4: 1/4, 1/3, 1/2, 1): {listed}."
        + _trained_four(result),
    )


def _trained_four(result: Result) -> str:
    """What networks of four layers came to, where they were trained."""
    found = {name: each for name, each in result["networks"].items() if name.startswith("four layers")}
    if not found:
        return ""
    parts = "; ".join(
        f"{name} residual {each['residual']['network']:.4f} (midpoint rule {each['residual']['midpoint']:.4f}), at its "
        f"longest step {_listed(each['by_step'][-1]['constants'], {}, 'c')}, which leave "
        f"{each['by_step'][-1]['constants']['unexplained']:.1%} of its step unexplained"
        for name, each in found.items()
    )
    return f" Trained: {parts}."


def _order(found: Mapping[str, Any]) -> str:
    """The order in time that was measured of the scheme with these constants, in words."""
    order = found.get("certified", {}).get("order")
    return "" if order is None else f", of order {order:.2f} in time"


def _span(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}" if len(values) > 1 else f"{values[0]:.2f}"


def _near(found: Mapping[str, float], wanted: Mapping[str, float]) -> bool:
    return all(abs(found.get(name, math.inf) - value) <= WITHIN * value for name, value in wanted.items())


def _listed(values: Mapping[str, float], off: Mapping[str, float], letters: str = "ac") -> str:
    return ", ".join(
        f"{name} = {value:.4f}" + (f" ± {off[name]:.0e}" if name in off else "")
        for name, value in values.items()
        if name[0] in letters
    )


def _powers(law: Mapping[str, Any]) -> str:
    return " ".join(f"{name}^{power:.2f}" for name, power in law["exponents"].items())
