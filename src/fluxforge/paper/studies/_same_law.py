"""Whether a formula that was found is the exchange law that its data were made with, coefficient by coefficient."""

from collections.abc import Mapping

import sympy as sp

from fluxforge import recipe
from fluxforge.recipe import exchange_law
from fluxforge.scheme import Stage, semi_discrete, symbol

# Constants refitted to exact data are those of the law but for rounding; the smallest term of any decoy is 2e-2.
EXACT = 1e-6
# Refitted to data with noise of relative size s, they are within s/3. Their standard error is about s/30, from 512
# problems of two cells; T_N and T_P, which vary together, are told apart less well than a constant by itself.
WITHIN_NOISE = 1.0 / 3.0


def departure(stages: tuple[Stage, ...], spec: recipe.Recipe) -> float | None:
    """The largest difference of a coefficient from the law's, over the law's largest; None if that cannot be said.

    The formula is T' = T + Δt (r(T) + S) + Δt/V Σ m with a message m, for c = 1: what its output does to the sum is put
    into the message, so that gauges cancel. Both are expanded, and every product of powers that either has is compared.
    Formulas of several stages, or that are not linear in their sum, are no such law.
    """
    equation = recipe.equation_of(spec)
    at = {symbol(name): sp.Float(value) for name, value in recipe.settings(spec).items() if isinstance(value, float)}
    found = _message(stages)
    if found is None:
        return None
    message, rest = (each.subs(at) for each in found)
    own = semi_discrete(equation)
    law = exchange_law(spec.data, equation)
    wanted = (own.messages["z"].expression if law is None else law).subs(at)
    alone = symbol("T") + symbol("dt") * own.outputs["rate"].expression.subs(symbol("z"), 0)
    size = max(map(abs, _coefficients(wanted).values()))
    off = {**_coefficients(message - wanted), **_coefficients(rest - alone.subs(at))}
    return max((abs(each) for each in off.values()), default=0.0) / size


def is_law(stages: tuple[Stage, ...], spec: recipe.Recipe) -> bool:
    """Whether the formula is the law of the recipe's data: to rounding, or within what their noise leaves open."""
    off = departure(stages, spec)
    return off is not None and off <= max(EXACT, WITHIN_NOISE * spec.data.noise)


def _message(stages: tuple[Stage, ...]) -> tuple[sp.Expr, sp.Expr] | None:
    """What a neighbour adds to V/Δt (T' − T), and what T' is without neighbours; None if there is no such form."""
    if len(stages) != 1 or len(stages[0].messages) != 1:
        return None
    ((name, message),) = stages[0].messages.items()
    output = stages[0].outputs["T_new"].expression
    factor = sp.diff(output, symbol(name))
    if symbol(name) in sp.expand(factor).free_symbols:
        return None
    own: Mapping[sp.Symbol, sp.Symbol] = {
        symbol("T"): symbol("T_P"),
        symbol("S"): symbol("S_P"),
        symbol("V"): symbol("V_P"),
    }
    sent = (factor * symbol("V") / symbol("dt")).subs(own) * message.expression
    return sent, output.subs(symbol(name), 0)


def _coefficients(expression: sp.Expr) -> dict[sp.Expr, float]:
    """Numbers by what they are multiplied with, after expansion."""
    terms = sp.expand(expression).as_coefficients_dict()
    return {product: float(number) for product, number in terms.items() if number}
