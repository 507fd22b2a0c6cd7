"""Constants of a formula: the schemes a network's shape can express, fits to the training loss, and fractions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.data._problem import Problem
from fluxforge.distil._objective import Free, Objective, name_values
from fluxforge.expression._symbols import symbol
from fluxforge.scheme._scheme import Ghost, Hop, Message, Output, Stage


def layer_stages(flux: sp.Expr, start: Mapping[str, float], layers: int) -> Free:
    """hₖ = T + aₖ Δt S + cₖ ΔtL hₖ₋₁ with h₀ = T and T' = h_L, as L stages with aₖ and cₖ free.

    `flux` is α times a geometric factor, `start` holds a1, c1, …
    """
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
    """T' = T + a₂ Δt S + d ΔtL T + b Δt²L S + e (ΔtL)² T, the last term summed over paths, as one stage.

    `flux` is α times a geometric factor of A and δ, `start` holds a1, c1, a2, c2.
    """
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


# Fractions of at most this denominator are candidates.
DENOMINATOR = 12
# A fraction is accepted within WITHIN uncertainties, if the next candidate is at least APART of them away.
WITHIN, APART = 3.0, 4.0
# Constants that are equal in exact arithmetic differ by less in float64.
ROUND_OFF = 1e-9


@dataclass(frozen=True)
class Fitted:
    """Constants after a refit with their uncertainties, the fractions they are rounded to, and the loss with either."""

    values: Mapping[str, float]
    uncertainty: Mapping[str, float]
    loss: float
    rational: Mapping[str, Fraction]
    rational_loss: float
    exact: bool = False

    @property
    def chosen(self) -> dict[str, sp.Expr | float]:
        """The fraction where there is one, the number otherwise."""
        exact = {name: sp.Rational(each.numerator, each.denominator) for name, each in self.rational.items()}
        return {**self.values, **exact}


def refit(free: Free, loss: recipe.Loss, samples: Sequence[Problem]) -> Fitted:
    """Minimise the training loss over the constants, on each set of samples separately; the first gives the values.

    The uncertainty is the scatter over the sets, or the numerical error where that is larger: infinite for an
    undetermined constant.
    """
    names = tuple(free.values)
    objective = Objective.of_loss(free, loss)
    fits = [objective.fit(problems) for problems in samples]
    best = fits[0]
    scatter = np.std([fit.values for fit in fits], axis=0, ddof=1) if len(fits) > 1 else np.zeros(len(names))
    uncertainty = np.maximum(scatter, best.error)
    values, off = name_values(names, best.values), name_values(names, uncertainty)
    rational = nearest_fractions(values, off)
    rounded = np.array([float(rational.get(name, value)) for name, value in values.items()])
    return Fitted(
        values=values,
        uncertainty=off,
        loss=best.loss,
        rational=rational,
        rational_loss=objective(rounded, samples[0]),
        exact=best.exact,
    )


def nearest_fractions(values: Mapping[str, float], uncertainty: Mapping[str, float]) -> dict[str, Fraction]:
    """The fraction that each constant is rounded to; none if its uncertainty does not exclude the next candidate."""
    found = {name: nearest_fraction(value, uncertainty[name]) for name, value in values.items()}
    return {name: near for name, near in found.items() if near is not None}


def nearest_fraction(value: float, uncertainty: float) -> Fraction | None:
    """The fraction of denominator at most 12 within the uncertainty of a number; None if that is not unique.

    Next to p/q the nearest other candidate is 1/(12 q) away or farther.
    """
    if not (math.isfinite(value) and math.isfinite(uncertainty)):
        return None
    near = Fraction(float(value)).limit_denominator(DENOMINATOR)
    spacing = 1.0 / (DENOMINATOR * near.denominator)
    close = abs(value - near) <= WITHIN * uncertainty + ROUND_OFF
    return near if close and APART * uncertainty <= spacing else None
