"""The schemes that networks of a shape can express when their messages are the flux, with every number free.

L layers:  hₖ = T + aₖ Δt S + cₖ ΔtL hₖ₋₁,  h₀ = T,  T' = h_L.
Two hops:  T' = T + a₂ Δt S + d ΔtL T + b Δt²L S + e (ΔtL)² T, the last written out over paths.
"""

from collections.abc import Mapping

import sympy as sp

from fluxforge.distil._free import Free
from fluxforge.scheme import Ghost, Hop, Message, Output, Stage, symbol


def layered(flux: sp.Expr, start: Mapping[str, float], layers: int) -> Free:
    """L stages; `flux` is α times a geometric factor, `start` holds a1, c1, …"""
    stages = []
    state = "T"
    values: dict[str, float] = {}
    for k in range(1, layers + 1):
        a, c, z = symbol(f"a{k}"), symbol(f"c{k}"), symbol(f"z{k}")
        name = "T_new" if k == layers else f"h{k}"
        message = flux * (symbol(f"{state}_N") - symbol(f"{state}_P"))
        output = symbol("T") + a * symbol("dt") * symbol("S") + c * symbol("dt") / symbol("V") * z
        stages.append(Stage({z.name: Message(message, Hop.EDGE)}, {name: Output(output, Ghost.DIRICHLET)}))
        state = name
        values |= {a.name: start[a.name], c.name: start[c.name]}
    return Free(tuple(stages), values)


def two_hop(flux: sp.Expr, start: Mapping[str, float]) -> Free:
    """One stage over edges and paths; `flux` is α times a geometric factor of A and δ, `start` holds a1, c1, a2, c2."""
    at = {name: symbol(name) for name in ("T", "S", "V", "dt", "chi")}
    a2, b, d, e = (symbol(name) for name in ("a2", "b", "d", "e"))
    near, far = (_leg(flux, leg) for leg in ("PN", "NQ"))
    messages = {
        "z1": Message(flux * (symbol("T_N") - symbol("T_P")), Hop.EDGE),
        # A Neumann ghost moves with its owner, so χ keeps it out of the sum of weights.
        "w": Message(at["chi"] * flux, Hop.EDGE),
        "z_source": Message(flux * (symbol("S_N") - symbol("S_P")), Hop.EDGE),
        "z2": Message(near * far / symbol("V_N") * (symbol("T_Q") - symbol("T_N")), Hop.PATH),
    }
    z1, w, of_source, z2 = (symbol(name) for name in messages)
    rate = d * z1 + e * at["dt"] * (z2 - w * z1 / at["V"]) + b * at["dt"] * of_source
    output = at["T"] + a2 * at["dt"] * at["S"] + at["dt"] / at["V"] * rate
    values = {
        "a2": start["a2"],
        "b": start["a1"] * start["c2"],
        "d": start["c2"],
        "e": start["c1"] * start["c2"],
    }
    return Free((Stage(messages, {"T_new": Output(output, Ghost.DIRICHLET)}),), values)


def _leg(flux: sp.Expr, leg: str) -> sp.Expr:
    """The flux's factor on one leg of a path."""
    return flux.subs({symbol("A"): symbol(f"A_{leg}"), symbol("delta"): symbol(f"delta_{leg}")})
