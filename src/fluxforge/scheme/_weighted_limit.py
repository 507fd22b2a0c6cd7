"""Schemes of formulas for coefficients of faces that can be evaluated at Δt = 0, where a certificate takes limits.

The ratios of Fourier numbers in `face_invariants` are 0/0 there. They do not depend on Δt: with Δt = 1 and each cell's
rate of exchange in place of its Fo they are the same numbers.
"""

from collections.abc import Mapping

import sympy as sp

from fluxforge.expression import symbol
from fluxforge.pde import Equation
from fluxforge.scheme._integrate import Tableau
from fluxforge.scheme._scheme import Output, Scheme, Stage
from fluxforge.scheme._symbols import STEP, Ghost
from fluxforge.scheme._weighted import LOCAL, face_invariants, local_number_stage, weighted_scheme, weighted_stages

_EXCHANGE = "exchange"
"""Fo/Δt of a cell."""


def formula_scheme(
    name: str,
    tableau: Tableau,
    equation: Equation,
    formulas: Mapping[str, sp.Expr],
    *,
    free: bool = False,
    summary: str = "",
) -> Scheme:
    """The scheme whose coefficients are formulas of `face_invariants`' names, by the tags of the stages.

    `free` as in `weighted_stages`.
    """
    used = {each.name for formula in formulas.values() for each in formula.free_symbols}
    if used <= {"total"}:
        numbers = {symbol(name): each for name, each in face_invariants(equation).items()}
        whole = {tag: each.xreplace(numbers) for tag, each in formulas.items()}
        return weighted_scheme(name, tableau, equation, lambda tag: whole[tag], free=free, summary=summary)
    numbers = {symbol(name): each for name, each in _finite_invariants(equation).items()}
    whole = {tag: each.xreplace(numbers) for tag, each in formulas.items()}
    later = weighted_stages(tableau, equation, lambda tag: whole[tag], free=free)[1:]
    return Scheme(name, (_exchange_stage(equation), *later), summary=summary, equation=equation)


def _exchange_stage(equation: Equation) -> Stage:
    plain = local_number_stage(equation)
    number = plain.outputs[LOCAL].expression.xreplace({symbol(STEP): sp.S.One})
    return Stage(plain.messages, {_EXCHANGE: Output(number, Ghost.OWNER)})


def _finite_invariants(equation: Equation) -> dict[str, sp.Expr]:
    """`face_invariants` after `_exchange_stage`: what contains Fo in a ratio does not contain Δt."""
    local = {symbol(f"{LOCAL}{end}"): symbol(f"{_EXCHANGE}{end}") for end in ("_P", "_N")}
    made = {}
    for name, number in face_invariants(equation).items():
        if not number.free_symbols & local.keys():
            made[name] = number
        elif name == "total":
            made[name] = symbol(STEP) * number.xreplace(local)
        else:
            made[name] = number.xreplace({**local, symbol(STEP): sp.S.One})
    return made
