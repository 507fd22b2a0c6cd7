"""Two-point fluxes F(u_P, u_N) by algebra and intervals: consistency, antisymmetry, monotonicity, Osher's E-condition.

F is the flux out of P along n: F(u, u) = f(u) a·n; seen from N it is −F. It is monotone if F does not fall with u_P nor
rise with u_N, and an E-flux if sign(u_N − u_P)(F − f(u) a·n) ≤ 0 for every u between u_P and u_N.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import sympy as sp

from fluxforge.certify import _intervals as iv
from fluxforge.certify._bisection import Least, least_value
from fluxforge.certify._enclose import enclose, slope_or_zero
from fluxforge.certify._intervals import Interval
from fluxforge.certify._pieces import Range, Ranges, pieces, settle
from fluxforge.errors import NumericalError
from fluxforge.expression import evaluate, symbol
from fluxforge.pde import Equation, Rank
from fluxforge.scheme import Hop, Scheme

P, N, STEP = symbol("u_P"), symbol("u_N"), symbol("dt")
# States between which a flux is examined, unless the equation says otherwise: densities lie between 0 and 1.
RANGE: Range = (-1.0, 1.0)
RANGES: dict[str, Range] = {"traffic": (0.0, 1.0), "reaction-diffusion": (0.0, 1.0)}
# Cell Péclet numbers |a·n| δ/K up to this one, and Courant numbers up to 1, where a flux depends on them.
LARGEST_PECLET = 1000.0
# Sides of the smallest boxes, relative to the range of u, and what is left undecided on them, of the largest slope.
WIDTH, SLACK = 2.0**-9, 4e-3
POINTS = 400
# Round-off of a formula of some dozen operations on numbers up to 1, times the largest of its terms.
ROUNDED = 1e-12


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
    return Flux(formula.xreplace(own), scheme.equation, RANGES.get(scheme.equation.name, RANGE))


@dataclass(frozen=True)
class Identity:
    """Whether two formulas are the same: `by` algebra, or by numbers at random points; `apart` is the largest gap."""

    holds: bool
    by: str
    apart: float = 0.0
    at: str = ""


def is_consistent(flux: Flux) -> Identity:
    """F(u, u) = f(u) a·n."""
    u = flux.equation.u
    at = {symbol(f"{name}_N"): symbol(f"{name}_P") for name in _of_cells(flux.equation)}
    return _same(flux.formula.xreplace({P: u, N: u}).xreplace(at), flux.carried.xreplace(at), flux)


def is_antisymmetric(flux: Flux) -> Identity:
    """F(u_P, u_N; n) = −F(u_N, u_P; −n)."""
    swap = {P: N, N: P}
    for name in _of_cells(flux.equation):
        one, other = symbol(f"{name}_P"), symbol(f"{name}_N")
        swap |= {one: other, other: one}
    turned = {symbol(p.normal_name): -symbol(p.normal_name) for p in flux.equation.parameters if p.rank is Rank.VECTOR}
    return _same(flux.formula, -flux.formula.xreplace(swap).xreplace(turned), flux)


def _of_cells(equation: Equation) -> list[str]:
    return [p.name for p in equation.parameters if p.rank is Rank.SCALAR]


def _same(one: sp.Expr, other: sp.Expr, flux: Flux) -> Identity:
    """By algebra where expanding decides it, if need be on each side of every kink; otherwise at random points.

    Points can refute an identity, and only suggest one.
    """
    gap = sp.expand(one - other)
    if gap == 0:
        return Identity(True, "algebra")
    ranges = {v: _domain(v, flux) for v in gap.free_symbols}
    if all(sp.expand(piece.formula) == 0 for piece in pieces(gap, ranges)):
        return Identity(True, "algebra, case by case")
    symbols = sorted(gap.free_symbols, key=str)
    rng = np.random.default_rng(0)
    values = {v: rng.uniform(*_domain(v, flux), POINTS) for v in symbols}
    with np.errstate(all="ignore"):
        left, right, off = (
            np.broadcast_to(evaluate(part, values, np), (POINTS,)) for part in (one, other, one - other)
        )
    size = np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
    relative = np.where(np.isfinite(off), np.abs(off) / size, np.inf)
    worst = int(np.argmax(relative))
    where = ", ".join(f"{v} = {values[v][worst]:.3g}" for v in symbols)
    return Identity(bool(relative[worst] <= ROUNDED), f"{POINTS} random points", float(relative[worst]), where)


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
    """1 for lengths and parameters, K for what K is made of, 0 for what a face of a row of cells has none of."""
    if v.name.endswith(("_t", "_nt")):
        return sp.S.Zero
    return K if v.name.rsplit("_", 1)[0] in conducting or v.name in conducting else sp.S.One


@dataclass(frozen=True)
class Monotonicity:
    """The least ∂F/∂u_P and −∂F/∂u_N, enclosed, over the states and a·n = ±1, or Péclet numbers up to `peclet`.

    With diffusion the slopes are those for |a·n| + K/δ = 1.

    `scale` is the largest |a f′(u)|. `slack` is what intervals leave open. `peclet` is None without diffusion.
    """

    rising: Least
    falling: Least
    scale: float
    variables: tuple[str, ...]
    peclet: float | None = None

    @property
    def slack(self) -> float:
        """The largest fall that counts as none."""
        return SLACK * self.scale

    @property
    def holds(self) -> bool | None:
        """True and False are proved; None where intervals do not decide."""
        if min(self.rising.value, self.falling.value) < -self.slack:
            return False
        return True if min(self.rising.bound, self.falling.bound) >= -self.slack else None

    @property
    def exactly(self) -> bool:
        """Whether nothing was left open."""
        return min(self.rising.bound, self.falling.bound) >= 0


def monotonicity(flux: Flux, *, peclet: float = LARGEST_PECLET) -> Monotonicity:
    """By interval bisection over the states; of a flux with diffusion, over cell Péclet numbers, too.

    Raises NumericalError for a formula without interval form.
    """
    top = largest_speed(flux)
    cases = _cases(flux, peclet)
    if not flux.diffuses:
        found = [_slopes(formula, ranges) for formula, ranges in cases]
        both = [reduce(Least.worse, side) for side in zip(*found, strict=True)]
        return Monotonicity(both[0], both[1], top, tuple(str(v) for v in cases[0][1]))
    ((formula, ranges),) = cases
    rising, falling = _slopes(formula, ranges)
    return Monotonicity(rising, falling, top, tuple(str(v) for v in ranges), peclet)


def _cases(flux: Flux, peclet: float) -> list[tuple[sp.Expr, Ranges]]:
    """The formulas to examine: a·n = 1 and −1 where F is proportional to |a·n| on either side of 0, or all of them."""
    if flux.diffuses or flux.speed is None:
        return [one_dimensional(flux, peclet=peclet)]
    if is_proportional(flux):
        # Seen from the other cell, a·n = −1 is a·n = 1.
        speeds = (1.0,) if is_antisymmetric(flux).holds else (1.0, -1.0)
        return [one_dimensional(flux, speed) for speed in speeds]
    return [one_dimensional(flux)]


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


def _slopes(formula: sp.Expr, ranges: Ranges) -> tuple[Least, Least]:
    """The least slope along u_P and the least negative slope along u_N, piece by piece."""
    sides = []
    for v, turn in ((P, 1), (N, -1)):
        found = [_least_slope(turn * piece.formula, v, piece.ranges) for piece in pieces(formula, ranges)]
        sides.append(reduce(Least.worse, found))
    return sides[0], sides[1]


def _least_slope(formula: sp.Expr, v: sp.Symbol, ranges: Ranges) -> Least:
    """The least difference quotient along v, from slopes and, where these are unbounded, from values at the ends."""
    names = list(ranges)
    low, high = (np.array([ranges[name][k] for name in names]) for k in (0, 1))
    forms = list(dict.fromkeys((formula, sp.expand(formula))))
    fixed = _without_influence(forms[-1], v, ranges)
    high = np.where([name in fixed for name in names], low, high)

    def bounds(low: np.ndarray, high: np.ndarray) -> Interval:
        boxes = {name: Interval(low[:, k], high[:, k]) for k, name in enumerate(names)}
        # Expanded, equal terms cancel; as it stands, a difference of states is a small factor. Both are right.
        slopes = (slope_or_zero(enclose(form, boxes, (v,)).slopes[0], (len(low),)) for form in forms)
        return reduce(iv.intersect, slopes)

    size = float((high - low).max(initial=0.0)) or 1.0
    found = least_value(bounds, low, high, width=WIDTH * size)
    if np.isfinite(found.bound) or found.open_at is None:
        return found
    return found.worse(_across(formula, v, names, np.array(found.open_at), WIDTH * size))


def _without_influence(formula: sp.Expr, v: sp.Symbol, ranges: Ranges) -> set[sp.Symbol]:
    """Variables that the slope along v does not depend on: F is affine in v and they are not in its coefficient."""
    inside = any(node.has(v) for node in formula.atoms(sp.Function) | formula.atoms(sp.Min, sp.Max))
    if inside or not formula.is_polynomial(v):
        return set()
    slope = sp.expand(sp.diff(formula, v))
    return set(ranges) - slope.free_symbols


def _across(formula: sp.Expr, v: sp.Symbol, names: list[sp.Symbol], at: np.ndarray, width: float) -> Least:
    """The quotient of values on either side of a point, rigorous as a value, for jumps that slopes cannot bound."""
    k = names.index(v)
    ends = []
    for side in (-width, width):
        moved = at.copy()
        moved[k] += side
        boxes = {name: Interval(moved[[i]], moved[[i]]) for i, name in enumerate(names)}
        ends.append((moved[k], enclose(formula, boxes).value))
    (left, below), (right, above) = ends
    quotient = iv.divide(iv.subtract(above, below), iv.subtract(iv.point(right), iv.point(left)))
    return Least(-np.inf, float(quotient.high[0]), tuple(at.tolist()), 1, tuple(at.tolist()))


def peclet_limit(flux: Flux) -> float:
    """The cell Péclet number up to which a flux that fails at large ones is monotone, by bisection; 0 for none."""
    low, high = 0.0, LARGEST_PECLET
    for _ in range(24):
        middle = np.sqrt(max(low, 1e-3) * high)
        low, high = (middle, high) if monotonicity(flux, peclet=middle).holds else (low, middle)
        if high < 2e-3 or high < 1.0005 * low:
            break
    return float(low)


@dataclass(frozen=True)
class EFlux:
    """Osher's condition: `excess` is the largest sign(u_N − u_P)(F − f(u) a·n) found, positive where it is violated.

    `follows`: from monotonicity. `at` are u_P, u_N and u between them.
    """

    holds: bool | None
    excess: float
    at: tuple[float, float, float]
    follows: bool = False


def e_condition(flux: Flux, monotone: Monotonicity) -> EFlux:
    """A monotone flux is an E-flux. Of another one, a counterexample is sought, and otherwise intervals are asked."""
    if monotone.holds:
        return EFlux(True, 0.0, (0.0, 0.0, 0.0), follows=True)
    if flux.diffuses or flux.speed is None:
        raise NumericalError("asked of transport without diffusion only")
    worst = max((case for speed in (1.0, -1.0) for case in _excesses(flux, speed)), key=lambda case: case[0])
    tolerance = monotone.slack
    if worst[0] > tolerance:
        return EFlux(False, worst[0], worst[1])
    return EFlux(None, worst[0], worst[1])


def _excesses(flux: Flux, speed: float) -> Iterator[tuple[float, tuple[float, float, float]]]:
    """The largest excess over a grid of u_P, u_N and u between them, Δt halfway where it matters."""
    formula, ranges = one_dimensional(flux, speed)
    at = np.linspace(*flux.states, 41)
    share = np.linspace(0.0, 1.0, 41)
    p, n, s = (part.ravel() for part in np.meshgrid(at, at, share, indexing="ij"))
    u = p + s * (n - p)
    values = {P: p, N: n} | ({STEP: np.full(p.shape, 0.5)} if STEP in ranges else {})
    F = np.broadcast_to(evaluate(formula, values, np), p.shape)
    f = np.broadcast_to(evaluate(flux.equation.transported, {flux.equation.u: u}, np), p.shape)
    excess = np.sign(n - p) * (F - speed * f)
    k = int(np.argmax(excess))
    yield float(excess[k]), (float(p[k]), float(n[k]), float(u[k]))
