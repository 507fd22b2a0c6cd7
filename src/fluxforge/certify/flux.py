"""The two-point flux F(u_P, u_N) of a scheme as a record, and tests of its formula against the equation.

F is the flux out of P along n: F(u, u) = f(u) a·n; seen from N it is −F.
"""

from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from fluxforge.certify._problems import carried_values
from fluxforge.certify.transport import Range, Ranges
from fluxforge.errors import EquationError, SchemeError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.scheme._document import find, split_name
from fluxforge.scheme._scheme import Hop, Scheme
from fluxforge.scheme.fluxes import FLUXES, NumericalFlux
from fluxforge.scheme.limiters import LIMITERS, Limiter

P, N, STEP = symbol("u_P"), symbol("u_N"), symbol("dt")
# States between which a flux is examined, unless the equation says otherwise: densities lie between 0 and 1.
RANGE: Range = (-1.0, 1.0)
RANGES: dict[str, Range] = {"traffic": (0.0, 1.0), "reaction-diffusion": (0.0, 1.0)}


@dataclass(frozen=True)
class Flux:
    """F as a formula of u_P, u_N, a·n and other quantities of a face, and the range of states it is examined for."""

    formula: sp.Expr
    equation: Equation
    states: Range

    @property
    def speed(self) -> sp.Symbol:
        """The symbol of a·n."""
        assert self.equation.velocity is not None, "an equation without transport has no such flux"
        return symbol(self.equation.parameter(self.equation.velocity).normal_name)

    @property
    def carried(self) -> sp.Expr:
        """f(u) a·n, with the unknown's own symbol."""
        return self.equation.transported * self.speed

    @property
    def constants(self) -> dict[sp.Symbol, sp.Expr]:
        """The values of the parameters of f for which a flux is examined on a row of cells, without those of K."""
        return {v: value for v, value in carried_values(self.equation).items() if not self.conducts(v)}

    @property
    def transported(self) -> sp.Expr:
        """f(u) with these values."""
        return self.equation.transported.xreplace(self.constants)

    @property
    def diffuses(self) -> bool:
        """Whether K is part of the flux, so that it depends on the cell Péclet number."""
        return bool(self.equation.diffusion != 0)

    def conducts(self, v: sp.Symbol) -> bool:
        """Whether a symbol is a parameter of K, as such or at the end of a face."""
        conducting = {parameter.name for parameter in self.equation.diffusion.free_symbols}
        return v.name in conducting or v.name.rsplit("_", 1)[0] in conducting


def states_of(equation: Equation) -> Range:
    """The range of the unknown that fluxes are examined for."""
    return RANGES.get(equation.name, RANGE)


def has_flux_of_equation(scheme: Scheme) -> bool:
    """Whether the scheme's flux, as Δt → 0, is a two-point flux that its equation accepts as `two_point`.

    Then F(u, u) = f(u) a·n, F changes its sign when the cells are exchanged, and over short distances it is
    f(u) a·n − K ∂u/∂n. Fluxes on the downwind side, which amplify waves, are excluded.
    """
    flux = flux_of(scheme)
    if flux is None:
        return False
    unknown = scheme.equation.unknown
    ends = {P: symbol(f"{unknown}_P"), N: symbol(f"{unknown}_N"), STEP: sp.S.Zero}
    try:
        replace(scheme.equation, two_point=flux.formula.xreplace(ends))
    except EquationError:
        return False
    return _has_exact_limit(flux) and _damps(flux)


# Digits of the arithmetic, the distance over which a gradient is taken, and the tolerance. Terms of the order of the
# distance are far below the tolerance; guards of 1e-8 against division by 0 leave an error of their square. In double
# precision, an error of 1e-5 in a coefficient would not be noticed.
_DIGITS, _CLOSE, _LIMIT = 90, sp.Rational(1, 10**40), sp.Rational(1, 10**14)


def _has_exact_limit(flux: Flux) -> bool:
    """Whether F(u, u + s δ) is f(u) a·n − K s for a very short δ, in exact rationals at a few points."""
    equation, rng = flux.equation, np.random.default_rng(0)
    formula = flux.formula.xreplace({STEP: sp.S.Zero})
    # Decimals become exact fractions, since their fifteen digits would cancel.
    formula = formula.xreplace({number: sp.Rational(number) for number in formula.atoms(sp.Float)})
    for _ in range(4):
        u, slope, along = (sp.Rational(int(rng.integers(11, 89)), 97) for _ in range(3))
        # Parameters have the same value in both cells; that of a tensor is n·K n.
        parameters: dict[str, sp.Expr] = {
            p.name: sp.Rational(int(rng.integers(50, 150)), 101) for p in equation.parameters
        }
        point: dict[sp.Symbol, sp.Expr] = {P: u, N: u + slope * _CLOSE, symbol("delta"): _CLOSE}
        for each in formula.free_symbols - set(point):
            point[each] = along if each == flux.speed else parameters.get(each.name.split("_")[0], sp.Rational(7, 5))
        values = {symbol(name): value for name, value in parameters.items()} | {equation.u: u}
        wanted = flux.carried.subs({**values, flux.speed: along})
        wanted -= equation.diffusion.subs(values) * slope
        apart = (formula.subs(point) - wanted).evalf(_DIGITS)
        if not apart.is_number or not abs(apart) <= _LIMIT:
            return False
    return True


def _damps(flux: Flux) -> bool:
    """Whether no flux of transport is on the downwind side of the mean of both cells' fluxes, at random points.

    The flux of a downwind difference is also consistent, but amplifies every wave.
    """
    formula = flux.formula.xreplace({STEP: sp.S.Zero})
    rng = np.random.default_rng(0)
    symbols = sorted(formula.free_symbols | {P, N}, key=str)
    points = {v: rng.uniform(*domain_of(v, flux), 200) for v in symbols}
    points |= {v: np.full(200, 1e-9) for v in formula.free_symbols if flux.conducts(v)}
    if flux.speed not in points:
        return False
    u = flux.equation.u
    mean = sp.Add(*(flux.carried.xreplace({u: end}) for end in (P, N))) / 2
    with np.errstate(all="ignore"):
        gap = evaluate((mean - formula) * (N - P), points, np)
    # The slack covers the diffusion K = 1e-9 and round-off.
    return bool(np.all(gap >= -1e-7))


def flux_of(scheme: Scheme) -> Flux | None:
    """The flux of the scheme's first stage; None if it depends on more than the states of two cells and their face."""
    messages = list(scheme.stages[0].messages.values())
    if len(messages) != 1 or messages[0].hop is not Hop.EDGE or scheme.equation.velocity is None:
        return None
    formula = sp.expand_mul(-messages[0].expression / symbol("A"))
    states = {symbol("T_P"): P, symbol("T_N"): N}
    if symbol("A") in formula.free_symbols or not formula.has(*states):
        return None
    formula = formula.xreplace({symbol("V_P"): sp.S.One, symbol("V_N"): sp.S.One})
    return Flux(formula.xreplace(states), scheme.equation, states_of(scheme.equation))


def domain_of(v: sp.Symbol, flux: Flux) -> Range:
    """The range of a symbol: that of states, [−1, 1] for a·n, and positive numbers for all others."""
    if v in (P, N, flux.equation.u):
        return flux.states
    return (-1.0, 1.0) if v == flux.speed else (0.25, 2.0)


def one_dimensional(flux: Flux, speed: float | None = None, peclet: float | None = None) -> tuple[sp.Expr, Ranges]:
    """F between cells of unit size, and the ranges of its symbols: u_P, u_N, a·n and Δt.

    Parameters of f have their default values. a·n is `speed`, ±1, if given, and otherwise from −1 to 1. With `peclet`,
    K = 1 − |a·n|, so that the cell Péclet number |a·n|/(1 − |a·n|) takes every value up to `peclet`.
    """
    kept = {P, N, STEP, flux.speed}
    unit = sp.S.One if peclet is None else 1 - sp.Abs(flux.speed)
    values = {v: _unit_value(v, flux, unit) for v in flux.formula.free_symbols - kept}
    values |= flux.constants
    formula = flux.formula.xreplace(values)
    ranges: dict[sp.Symbol, Range] = {P: flux.states, N: flux.states}
    if speed is not None:
        formula = formula.xreplace({flux.speed: sp.Integer(int(speed))})
    else:
        largest = 1.0 if peclet is None else peclet / (1.0 + peclet)
        ranges[flux.speed] = (-largest, largest)
    if STEP in formula.free_symbols:
        ranges[STEP] = (0.0, 1.0)
    return formula, ranges


def _unit_value(v: sp.Symbol, flux: Flux, K: sp.Expr) -> sp.Expr:
    """A symbol on a row of unit cells: 1 for lengths and parameters, K for parameters of K, 0 otherwise."""
    if v.name.endswith(("_t", "_nt")):
        return sp.S.Zero
    return K if flux.conducts(v) else sp.S.One


def named_flux(scheme: Scheme) -> NumericalFlux | None:
    """The numerical flux that a scheme is named after, if its formulas are those of that name."""
    return FLUXES.get(_own_space(scheme))


def named_limiter(scheme: Scheme) -> Limiter | None:
    """The limiter that a scheme is named after, if its formulas are those of that name."""
    return LIMITERS.get(_own_space(scheme))


def steps_like_euler(scheme: Scheme) -> bool:
    """Whether a step is one of Euler's, or a convex combination of such steps, as in SSP methods of order 2 and 3."""
    if scheme.implicit:
        return False
    parts = split_name(scheme.name)
    return len(scheme.stages) == 1 or (parts is not None and parts.tableau.name in ("ssp2", "ssp3"))


def _own_space(scheme: Scheme) -> str:
    """The space in the name of a scheme; an empty text if its formulas are not those of its name."""
    parts = split_name(scheme.name)
    if parts is None:
        return ""
    try:
        named = find(scheme.name, scheme.equation, dimension=scheme.dimension or 2)
    except SchemeError:
        return ""
    return parts.space.name if named.stages == scheme.stages else ""


def range_words(states: Range) -> str:
    """`u from -1 to 1`."""
    return f"u from {states[0]:g} to {states[1]:g}"
