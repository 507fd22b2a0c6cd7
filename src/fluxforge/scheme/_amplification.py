"""R(z), the factor by which a scheme multiplies an eigenmode of its own generator, z = −Δt λ, in exact arithmetic."""

from functools import lru_cache

import sympy as sp

from fluxforge.scheme._linear import affine_form
from fluxforge.scheme._scheme import Scheme, Stage
from fluxforge.scheme._symbols import NEXT, Hop, symbol

Z = sp.Symbol("z")

# One unit square whose four sides hold T = 0, with α chosen so that its single decay rate is 1.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1))
_ALPHA = sp.Rational(1, 8)
_HALF = sp.Rational(1, 2)


@lru_cache(maxsize=256)
def amplification(scheme: Scheme) -> sp.Expr | None:
    """R(z) as a rational function, from one cell between cold walls; None where there is none.

    For a scheme that is a function of one operator, T' = R(Δt G) T on every mesh. Whether it is one has to be
    checked on a mesh with more than one cell.
    """
    dt = symbol("dt")
    known: dict[str, sp.Expr] = {"T": symbol("T"), "S": sp.Integer(0)}
    for stage in scheme.stages:
        known.update(_one_cell(stage, known, scheme))
    factor = affine_form(sp.expand(known[NEXT]), {symbol("T")})
    if factor is None or sp.simplify(factor.constant) != 0:
        return None
    change = factor.coefficients.get(symbol("T"), sp.Integer(0))
    # The one cell's own rate is 1 for the plain flux; a scheme with another generator is measured in its own z.
    rate = sp.Abs(sp.diff(change, dt).xreplace({dt: sp.Integer(0)}))
    if not rate.is_number or not rate.is_finite or rate == 0:
        return None
    step = sp.cancel(change.xreplace({dt: -Z / rate}))
    theta = scheme.theta
    factor_of_step = sp.cancel((1 + (1 - theta) * (step - 1)) / (1 - theta * (step - 1)))
    return factor_of_step if factor_of_step.is_rational_function(Z) else None


def _one_cell(stage: Stage, known: dict[str, sp.Expr], scheme: Scheme) -> dict[str, sp.Expr]:
    here = {symbol(name): value for name, value in known.items()}
    here |= {symbol("V"): sp.Integer(1), symbol("alpha"): _ALPHA}
    for name, message in stage.messages.items():
        # No path leaves a ghost and no ring surrounds one cell: those sums are empty.
        sides = _SIDES if message.hop is Hop.EDGE else ()
        terms = (message.expression.xreplace(_side(side, known, scheme)) for side in sides)
        here[symbol(name)] = sp.Add(*terms)
    return {name: sp.cancel(output.expression.xreplace(here)) for name, output in stage.outputs.items()}


def _side(side: tuple[int, int], known: dict[str, sp.Expr], scheme: Scheme) -> dict[sp.Symbol, sp.Expr]:
    """Every symbol of an edge from the cell to the ghost on one side."""
    x, y = (sp.Integer(component) for component in side)
    values = {"A": 1, "delta": _HALF, "n_x": x, "n_y": y, "d_x": x / 2, "d_y": y / 2, "chi": 1, "alpha": _ALPHA}
    values |= {"V_P": 1, "V_N": sp.oo}
    rules = scheme.ghost_rules()
    for name, value in known.items():
        values[f"{name}_P"] = value
        values[f"{name}_N"] = value if rules.get(name) == "owner" else 0
    return {symbol(name): sp.S(value) for name, value in values.items()}
