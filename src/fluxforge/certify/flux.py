"""The two-point flux F(u_P, u_N) of a scheme as a value, and by algebra whether it is one of its equation.

F is the flux out of P along n: F(u, u) = f(u) a·n; seen from N it is −F.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import sympy as sp

from fluxforge.certify import _intervals as iv
from fluxforge.certify._enclose import enclose, slope_or_zero
from fluxforge.certify._identity import Identity, compare_formulas
from fluxforge.certify._intervals import Interval
from fluxforge.certify._pieces import Range, Ranges, settle
from fluxforge.errors import EquationError, NumericalError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Rank
from fluxforge.scheme._scheme import Hop, Scheme

P, N, STEP = symbol("u_P"), symbol("u_N"), symbol("dt")
# States between which a flux is examined, unless the equation says otherwise: densities lie between 0 and 1.
RANGE: Range = (-1.0, 1.0)
RANGES: dict[str, Range] = {"traffic": (0.0, 1.0), "reaction-diffusion": (0.0, 1.0)}


@dataclass(frozen=True)
class Flux:
    """F as a formula of u_P, u_N, a·n and what else a face has, for states of a range."""

    formula: sp.Expr
    equation: Equation
    states: Range

    @property
    def speed(self) -> sp.Symbol | None:
        """The symbol of a·n."""
        name = self.equation.velocity
        return None if name is None else symbol(self.equation.parameter(name).normal_name)

    @property
    def carried(self) -> sp.Expr:
        """f(u) a·n, with the unknown's own symbol."""
        return self.equation.transported * (self.speed or 0)

    @property
    def diffuses(self) -> bool:
        """Whether K is part of the flux, so that it depends on the cell Péclet number."""
        return bool(self.equation.diffusion != 0)


def states_of(equation: Equation) -> Range:
    """The range of the unknown that fluxes are examined for."""
    return RANGES.get(equation.name, RANGE)


def has_flux_of_equation(scheme: Scheme) -> bool:
    """Whether the scheme's flux, as Δt → 0, is a two-point flux of its equation: one that the equation itself takes.

    Then F(u, u) = f(u) a·n, F changes its sign with its cells, and over short distances it is f(u) a·n − K ∂u/∂n.
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


# Digits, the distance over which a gradient is taken, and what differs from 0 there. Terms of the order of the distance
# are far smaller; guards of divisions by 0, of 1e-8, leave their square. In double precision an error of 1e-5 in a
# coefficient would not be seen.
_DIGITS, _CLOSE, _LIMIT = 90, sp.Rational(1, 10**40), sp.Rational(1, 10**14)


def _has_exact_limit(flux: Flux) -> bool:
    """Whether F(u, u + s δ) is f(u) a·n − K s for a very short δ, in exact rationals at a few points."""
    equation, rng = flux.equation, np.random.default_rng(0)
    formula = flux.formula.xreplace({STEP: sp.S.Zero})
    # Decimals become exact fractions, since their fifteen digits would cancel.
    formula = formula.xreplace({number: sp.Rational(number) for number in formula.atoms(sp.Float)})
    for _ in range(4):
        u, slope, along = (sp.Rational(int(rng.integers(11, 89)), 97) for _ in range(3))
        # The same value in both cells, and along the normal that of a tensor.
        held: dict[str, sp.Expr] = {p.name: sp.Rational(int(rng.integers(50, 150)), 101) for p in equation.parameters}
        given: dict[sp.Symbol, sp.Expr] = {P: u, N: u + slope * _CLOSE, symbol("delta"): _CLOSE}
        for each in formula.free_symbols - set(given):
            given[each] = along if each == flux.speed else held.get(each.name.split("_")[0], sp.Rational(7, 5))
        own = {symbol(name): value for name, value in held.items()} | {equation.u: u}
        wanted = flux.carried.subs({**own, **({} if flux.speed is None else {flux.speed: along})})
        wanted -= equation.diffusion.subs(own) * slope
        apart = (formula.subs(given) - wanted).evalf(_DIGITS)
        if not apart.is_number or not abs(apart) <= _LIMIT:
            return False
    return True


def _damps(flux: Flux) -> bool:
    """Whether no flux of transport is on the downwind side of the mean of both cells' fluxes, at random points.

    The flux of a downwind difference is also consistent, but amplifies every wave.
    """
    formula = flux.formula.xreplace({STEP: sp.S.Zero})
    conducting = {v.name for v in flux.equation.diffusion.free_symbols}
    rng = np.random.default_rng(0)
    symbols = sorted(formula.free_symbols | {P, N}, key=str)
    points = {v: rng.uniform(*_domain(v, flux), 200) for v in symbols}
    for v in formula.free_symbols:
        if v.name in conducting or v.name.rsplit("_", 1)[0] in conducting:
            points[v] = np.full(200, 1e-9)
    if flux.speed is not None and flux.speed not in points:
        return False
    u = flux.equation.u
    mean = sp.Add(*(flux.carried.xreplace({u: end}) for end in (P, N))) / 2
    with np.errstate(all="ignore"):
        gap = evaluate((mean - formula) * (N - P), points, np)
    # K = 1e-9 and round-off are what may be missing.
    return bool(np.all(gap >= -1e-7))


def flux_of(scheme: Scheme) -> Flux | None:
    """The flux of the scheme's first stage in the states of two cells; None where it reads more than these."""
    messages = list(scheme.stages[0].messages.values())
    if len(messages) != 1 or messages[0].hop is not Hop.EDGE or scheme.equation.velocity is None:
        return None
    formula = sp.expand_mul(-messages[0].expression / symbol("A"))
    own = {symbol("T_P"): P, symbol("T_N"): N}
    if symbol("A") in formula.free_symbols or not formula.has(*own):
        return None
    formula = formula.xreplace({symbol("V_P"): sp.S.One, symbol("V_N"): sp.S.One})
    return Flux(formula.xreplace(own), scheme.equation, states_of(scheme.equation))


def is_consistent(flux: Flux) -> Identity:
    """F(u, u) = f(u) a·n."""
    domain = partial(_domain, flux=flux)
    u = flux.equation.u
    at = {symbol(f"{name}_N"): symbol(f"{name}_P") for name in _of_cells(flux.equation)}
    return compare_formulas(flux.formula.xreplace({P: u, N: u}).xreplace(at), flux.carried.xreplace(at), domain)


def is_antisymmetric(flux: Flux) -> Identity:
    """F(u_P, u_N; n) = −F(u_N, u_P; −n)."""
    domain = partial(_domain, flux=flux)
    swap = {P: N, N: P}
    for name in _of_cells(flux.equation):
        one, other = symbol(f"{name}_P"), symbol(f"{name}_N")
        swap |= {one: other, other: one}
    turned = {symbol(p.normal_name): -symbol(p.normal_name) for p in flux.equation.parameters if p.rank is Rank.VECTOR}
    return compare_formulas(flux.formula, -flux.formula.xreplace(swap).xreplace(turned), domain)


def _of_cells(equation: Equation) -> list[str]:
    return [p.name for p in equation.parameters if p.rank is Rank.SCALAR]


def _domain(v: sp.Symbol, flux: Flux) -> Range:
    """States of the range, normal components of both signs, and anything else positive."""
    if v in (P, N, flux.equation.u):
        return flux.states
    return (-1.0, 1.0) if v == flux.speed else (0.25, 2.0)


def one_dimensional(flux: Flux, speed: float | None = None, peclet: float | None = None) -> tuple[sp.Expr, Ranges]:
    """F between cells of unit size, and the ranges of what is left: u_P, u_N, a·n and Δt.

    a·n is `speed` where that is given, ±1, and otherwise from −1 to 1. With `peclet`, K = 1 − |a·n|, so that the cell
    Péclet number |a·n|/(1 − |a·n|) takes every value up to that one.
    """
    kept = {P, N, STEP, flux.speed}
    unit = sp.S.One if peclet is None or flux.speed is None else 1 - sp.Abs(flux.speed)
    conducting = {v.name for v in flux.equation.diffusion.free_symbols}
    values = {v: _unit(v, conducting, unit) for v in flux.formula.free_symbols - kept}
    formula = flux.formula.xreplace(values)
    ranges: dict[sp.Symbol, Range] = {P: flux.states, N: flux.states}
    if flux.speed is not None and speed is not None:
        formula = formula.xreplace({flux.speed: sp.Integer(int(speed))})
    elif flux.speed is not None:
        largest = 1.0 if peclet is None else peclet / (1.0 + peclet)
        ranges[flux.speed] = (-largest, largest)
    if STEP in formula.free_symbols:
        ranges[STEP] = (0.0, 1.0)
    return formula, ranges


def _unit(v: sp.Symbol, conducting: set[str], K: sp.Expr) -> sp.Expr:
    """A symbol on a row of unit cells: 1 for lengths and parameters, K for parameters of K, 0 otherwise."""
    if v.name.endswith(("_t", "_nt")):
        return sp.S.Zero
    return K if v.name.rsplit("_", 1)[0] in conducting or v.name in conducting else sp.S.One


def is_proportional(flux: Flux) -> bool:
    """Whether F is a·n times a formula without it, for a·n > 0 and for a·n < 0; Δt belongs to a·n."""
    formula, ranges = one_dimensional(flux)
    speed = flux.speed
    assert speed is not None
    if STEP in ranges:
        formula = formula.xreplace({STEP: STEP / sp.Abs(speed)})
    for side in ((1e-3, 1.0), (-1.0, -1e-3)):
        settled = settle(formula, {**ranges, speed: side})
        if speed in sp.expand(sp.cancel(sp.expand(settled) / speed)).free_symbols:
            return False
    return True


def largest_speed(flux: Flux) -> float:
    """An upper bound of |f′(u)| over the range of states, from 4,096 intervals."""
    edges = np.linspace(*flux.states, 4097)
    u = flux.equation.u
    box = {u: Interval(edges[:-1], edges[1:])}
    (slope,) = enclose(flux.equation.transported, box, (u,)).slopes
    size = iv.absolute(slope_or_zero(slope, (1,)))
    if not np.isfinite(size.high).all():
        raise NumericalError("the derivative of f is not finite over the range of states")
    return float(size.high.max())
