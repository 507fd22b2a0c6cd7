"""Linear schemes: affine maps of their fields, and one cell between walls in exact arithmetic.

R(z), z = −Δt λ, is the factor by which a scheme multiplies an eigenmode of its own generator.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Rank
from fluxforge.scheme._scheme import ALL_ENDS, NEXT, NODE_FIELDS, Ghost, Hop, Reduction, Scheme, Stage


@dataclass(frozen=True)
class Affine:
    """Σ coefficients[s] · s + constant, every coefficient free of fields."""

    coefficients: Mapping[sp.Symbol, sp.Expr]
    constant: sp.Expr


@dataclass(frozen=True)
class LinearStage:
    """A stage of a linear scheme; its `fixed` parts do not depend on T or S and can be evaluated once."""

    fixed_messages: Mapping[str, tuple[Hop, sp.Expr]]
    fixed_outputs: Mapping[str, sp.Expr]
    messages: Mapping[str, tuple[Hop, Affine]]
    outputs: Mapping[str, Affine]


@lru_cache(maxsize=256)
def linear_stages(scheme: Scheme) -> tuple[LinearStage, ...] | None:
    """The scheme as affine maps of T, S and earlier outputs, or None where it is not linear in them."""
    varying = set(NODE_FIELDS)
    stages: list[LinearStage] = []
    for stage in scheme.stages:
        linear = _linear_stage(stage, varying)
        if linear is None:
            return None
        varying |= set(linear.outputs)
        stages.append(linear)
    return tuple(stages)


def _linear_stage(stage: Stage, varying: set[str]) -> LinearStage | None:
    ends = {symbol(f"{name}_{end}") for name in varying for end in ALL_ENDS}
    fixed_messages: dict[str, tuple[Hop, sp.Expr]] = {}
    messages: dict[str, tuple[Hop, Affine]] = {}
    if any(message.reduction is not Reduction.SUM for message in stage.messages.values()):
        return None
    for name, message in stage.messages.items():
        if not message.expression.free_symbols & ends:
            fixed_messages[name] = (message.hop, message.expression)
        elif (affine := affine_form(message.expression, ends)) is not None:
            messages[name] = (message.hop, affine)
        else:
            return None
    here = {symbol(name) for name in (*varying, *messages)}
    fixed_outputs: dict[str, sp.Expr] = {}
    outputs: dict[str, Affine] = {}
    for name, output in stage.outputs.items():
        if not output.expression.free_symbols & here:
            fixed_outputs[name] = output.expression
        elif (affine := affine_form(output.expression, here)) is not None:
            outputs[name] = affine
        else:
            return None
    return LinearStage(fixed_messages, fixed_outputs, messages, outputs)


def affine_form(expression: sp.Expr, variables: set[sp.Symbol]) -> Affine | None:
    """Split an expression into coefficients of the variables and a constant; None where it is not affine in them."""
    present = sorted(expression.free_symbols & variables, key=str)
    # Derivatives of nested extremes take SymPy very long, and no function of a field is affine in it.
    if any(part.free_symbols & variables for part in expression.atoms(sp.Function, sp.Min, sp.Max)):
        return None
    coefficients = {}
    for variable in present:
        slope = sp.diff(expression, variable)
        if slope.free_symbols & variables or slope.has(sp.Derivative, sp.Subs):
            slope = sp.cancel(sp.expand(slope))
        if slope.free_symbols & variables:
            return None
        coefficients[variable] = slope
    constant = expression.xreplace(dict.fromkeys(present, sp.Integer(0)))
    if constant.has(sp.nan, sp.zoo, sp.oo):
        return None
    return Affine(coefficients, constant)


Z = symbol("z", "complex")

# One unit square with T = g on its four sides (for formulas in three coordinates a unit cube). With this diffusivity
# its only decay rate is 1 in the plane: 4 α A/δ = 8 α.
_EIGHTH = sp.Rational(1, 8)
# A velocity without symmetry.
_VELOCITY = (sp.Rational(1, 3), sp.Rational(1, 5), sp.Rational(1, 7))
# a·n of the sides where a flow with as much inflow as outflow does not change the one cell, as with a central flux:
# outflow through every side, and no two sides alike.
_OUTFLOW = tuple(sp.Rational(1, k) for k in (3, 5, 7, 11, 13, 17))
_HALF = sp.Rational(1, 2)
_WALL = symbol("g")

# Orders are compared up to this power of Δt.
HIGHEST_ORDER = 6
# The tolerance for decimal coefficients, which are stored as doubles; rational ones are compared exactly.
_DECIMAL = 1e-12


@lru_cache(maxsize=256)
def amplification(scheme: Scheme) -> sp.Expr | None:
    """R(z) as a rational function: the factor of T in one cell between walls.

    None if there is none, as for a scheme that is not linear in T. If a scheme is a function of one operator, then
    T' = R(Δt G) T on every mesh; whether it is one has to be checked on a mesh with more than one cell.
    """
    for outflow in (False, True) if scheme.equation.velocity is not None else (False,):
        cell = one_cell(scheme, outflow=outflow)
        factor = None if cell is None else _factor_of_cell(scheme, cell)
        if factor is not None:
            return factor
    return None


def _factor_of_cell(scheme: Scheme, cell: "OneCell") -> sp.Expr | None:
    """R(z) of one cell; None if the cell does not change, or if the factor is not a rational function of Δt."""
    dt = symbol("dt")
    # The rate of the one cell is 1 for the plain flux; a scheme with another generator has a z of its own.
    rate = -sp.diff(cell.T, dt).xreplace({dt: sp.Integer(0)})
    if not may_grow(scheme.equation):
        # With |rate|, a scheme that grows where the equation does not is unstable on all of the negative axis.
        rate = sp.Abs(rate)
    if not rate.is_number or not rate.is_finite or rate == 0:
        return None
    step = sp.cancel(cell.T.xreplace({dt: -Z / rate}))
    theta = scheme.theta
    factor_of_step = sp.cancel((1 + (1 - theta) * (step - 1)) / (1 - theta * (step - 1)))
    return factor_of_step if factor_of_step.is_rational_function(Z) else None


def may_grow(equation: Equation) -> bool:
    """Whether the reaction's slope is positive with the parameters of the one cell."""
    slope = sp.diff(equation.reaction, equation.u).xreplace(_parameters(equation))
    return bool(slope.is_number and slope > 0)


@dataclass(frozen=True)
class OneCell:
    """F(T) = T·(`T`) + S·(`S`) + g·(`wall`) + `constant` of one cell, its walls at g; functions of Δt."""

    T: sp.Expr
    S: sp.Expr
    wall: sp.Expr
    constant: sp.Expr


@lru_cache(maxsize=256)
def one_cell(scheme: Scheme, *, outflow: bool = False) -> OneCell | None:
    """The scheme's F on one cell between walls; None for a scheme that is not linear in T, S and wall values.

    With `outflow`, the flow leaves through every side.
    """
    if linear_stages(scheme) is None:
        return None
    known: dict[str, sp.Expr] = {"T": symbol("T"), "S": symbol("S")}
    for stage in scheme.stages:
        known.update(_outputs_of_one_cell(stage, known, scheme, outflow=outflow))
    variables = (symbol("T"), symbol("S"), _WALL)
    form = affine_form(sp.expand(known[NEXT]), set(variables))
    if form is None:
        return None
    T, S, wall = (form.coefficients.get(variable, sp.Integer(0)) for variable in variables)
    return OneCell(T, S, wall, form.constant)


@dataclass(frozen=True)
class OneCellOrder:
    """The powers of Δt up to which one step agrees with the exact solution of the scheme's own one-cell system.

    `free` is that of the factor of T, compared with e^{−λΔt}; `driven` is that of the factors of S and of the walls' g,
    compared with the integral of e^{−λΔt}. `HIGHEST_ORDER` stands for that order or a higher one.
    """

    free: int
    driven: int


@lru_cache(maxsize=256)
def one_cell_order(scheme: Scheme) -> OneCellOrder | None:
    """The order in time on one cell, exactly: Taylor coefficients in rationals, decimals to 1e-12.

    None where the step is not a rational function of Δt or the cell does not change. An order on every mesh is at most
    that on one cell.
    """
    dt = symbol("dt")
    cell = _changing_cell(scheme)
    if cell is None or not all(part.is_rational_function(dt) for part in (cell.T, cell.S, cell.wall)):
        return None
    theta = scheme.theta
    bottom = 1 - theta * (cell.T - 1)
    free = _taylor((1 + (1 - theta) * (cell.T - 1)) / bottom)
    driven = [_taylor(part / bottom) for part in (cell.S, cell.wall)]
    if free is None or any(part is None for part in driven) or not _are_same(free[0], sp.Integer(1)) or free[1] == 0:
        return None
    rate = free[1]
    exact = [rate**k / sp.factorial(k) for k in range(HIGHEST_ORDER + 1)]
    orders = [
        _count_agreeing(
            part, [sp.Integer(0), *(part[1] * rate ** (k - 1) / sp.factorial(k) for k in range(1, len(part)))]
        )
        for part in driven
        if part is not None
    ]
    return OneCellOrder(_count_agreeing(free, exact), min(orders))


def _changing_cell(scheme: Scheme) -> OneCell | None:
    """The one cell, with outflow if it does not change without."""
    cell = one_cell(scheme)
    still = cell is not None and sp.diff(cell.T, symbol("dt")) == 0
    return one_cell(scheme, outflow=True) if still and scheme.equation.velocity is not None else cell


def _taylor(expression: sp.Expr) -> list[sp.Expr] | None:
    """The coefficients of Δt⁰ … of a rational function, by long division; None where it has a pole at 0."""
    dt = symbol("dt")
    top, bottom = (sp.Poly(part, dt) for part in sp.fraction(sp.together(expression)))
    up = [top.coeff_monomial(dt**k) for k in range(HIGHEST_ORDER + 1)]
    down = [bottom.coeff_monomial(dt**k) for k in range(HIGHEST_ORDER + 1)]
    if down[0] == 0:
        return None
    coefficients: list[sp.Expr] = []
    for k in range(HIGHEST_ORDER + 1):
        coefficients.append(sp.cancel((up[k] - sum(down[j] * coefficients[k - j] for j in range(1, k + 1))) / down[0]))
    return coefficients


def _count_agreeing(coefficients: list[sp.Expr], wanted: list[sp.Expr]) -> int:
    """The largest k up to which all coefficients agree; −1 if the first ones differ."""
    different = (k for k, (a, b) in enumerate(zip(coefficients, wanted, strict=True)) if not _are_same(a, b))
    return next(different, HIGHEST_ORDER + 1) - 1


def _are_same(a: sp.Expr, b: sp.Expr) -> bool:
    apart = sp.simplify(a - b)
    return bool(abs(float(apart)) <= _DECIMAL * max(1.0, abs(float(b))) if apart.has(sp.Float) else apart == 0)


def _outputs_of_one_cell(
    stage: Stage, known: dict[str, sp.Expr], scheme: Scheme, *, outflow: bool
) -> dict[str, sp.Expr]:
    here = {symbol(name): value for name, value in known.items()}
    here |= {symbol("V"): sp.Integer(1), **_parameters(scheme.equation)}
    for name, message in stage.messages.items():
        # No path leaves a ghost and no ring surrounds one cell: those sums are empty.
        sides = _sides(scheme.dimension or 2) if message.hop is Hop.EDGE else []
        along = _OUTFLOW if outflow else (None,) * len(sides)
        terms = (
            message.expression.xreplace(_side(side, known, scheme, flow))
            for side, flow in zip(sides, along, strict=False)
        )
        here[symbol(name)] = sp.Add(*terms)
    return {name: sp.cancel(output.expression.xreplace(here)) for name, output in stage.outputs.items()}


def _sides(dimension: int) -> list[tuple[int, ...]]:
    """The normals of the sides of a unit cube: (1, 0), (−1, 0), (0, 1), (0, −1) in the plane."""
    return [tuple(sign * (i == axis) for i in range(dimension)) for axis in range(dimension) for sign in (1, -1)]


def _side(
    side: tuple[int, ...], known: dict[str, sp.Expr], scheme: Scheme, flow: sp.Expr | None
) -> dict[sp.Symbol, sp.Expr]:
    """Every symbol of an edge from the cell to the ghost on one side; `flow` is a·n, by default that of `_VELOCITY`."""
    n = tuple(sp.Integer(component) for component in side)
    values = {"A": 1, "delta": _HALF, "d_n": _HALF, "d_t": 0, "chi": 1, "V_P": 1, "V_N": sp.oo}
    values |= {f"n_{axis}": part for axis, part in zip(COORDINATES, n, strict=False)}
    values |= {f"d_{axis}": part / 2 for axis, part in zip(COORDINATES, n, strict=False)}
    rules = scheme.ghost_rules() | {"S": Ghost.ZERO}
    for name, value in known.items():
        shown = {Ghost.OWNER: value, Ghost.ZERO: sp.Integer(0), Ghost.DIRICHLET: _WALL}
        values[f"{name}_P"] = value
        values[f"{name}_N"] = shown[rules[name]]
    return {symbol(name): sp.S(value) for name, value in values.items()} | _parameters(scheme.equation, n, flow)


def _parameters(
    equation: Equation, n: tuple[sp.Expr, ...] = (), flow: sp.Expr | None = None
) -> dict[sp.Symbol, sp.Expr]:
    """The parameters' symbols in one cell or, with the normal n, on an edge: scalars and n·K n are 1/8.

    a·n is `flow`, by default that of `_VELOCITY`.
    """
    values: dict[str, sp.Expr] = {}
    for p in equation.parameters:
        along = sp.Add(*(a * component for a, component in zip(_VELOCITY, n, strict=False)))
        value = _EIGHTH if p.rank is not Rank.VECTOR else along if flow is None else flow
        values |= dict.fromkeys((*p.edge_names(), *p.cell_names) if n else p.cell_names, value)
        # The normals are along the axes, and K is a multiple of the identity.
        across = sp.sqrt(sp.Add(*(a**2 for a in _VELOCITY[: len(n)])) - along**2) if p.rank is Rank.VECTOR else 0
        values |= dict.fromkeys(p.tangential_names if n else (), sp.S(across))
        values |= {name: value * part for name, part in zip(p.conormal_names, n, strict=False)}
    return {symbol(name): value for name, value in values.items()}
