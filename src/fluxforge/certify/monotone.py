"""Monotonicity and Osher's E-condition of a two-point flux, by interval bisection over a range of states.

A flux is monotone if F does not fall with u_P nor rise with u_N, and an E-flux if sign(u_N − u_P)(F − f(u) a·n) ≤ 0 for
every u between u_P and u_N.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np
import sympy as sp

from fluxforge.certify import _intervals as iv
from fluxforge.certify._bisection import Least, least_value
from fluxforge.certify._enclose import enclose, slope_or_zero
from fluxforge.certify._intervals import Interval
from fluxforge.certify._pieces import Ranges, pieces
from fluxforge.certify.flux import STEP, Flux, N, P, is_antisymmetric, is_proportional, largest_speed, one_dimensional
from fluxforge.errors import NumericalError
from fluxforge.expression._evaluate import evaluate

# Cell Péclet numbers |a·n| δ/K up to this one, where a flux depends on them.
LARGEST_PECLET = 1000.0
# Sides of the smallest boxes, relative to the range of u, and the undecided part of a slope, relative to the largest.
WIDTH, SLACK = 2.0**-9, 4e-3


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
        """The largest violation that is tolerated."""
        return SLACK * self.scale

    @property
    def holds(self) -> bool | None:
        """True and False are proved; None where intervals do not decide."""
        if min(self.rising.value, self.falling.value) < -self.slack:
            return False
        return True if min(self.rising.bound, self.falling.bound) >= -self.slack else None

    @property
    def exactly(self) -> bool:
        """Whether the intervals decided it without slack."""
        return min(self.rising.bound, self.falling.bound) >= 0


def monotonicity(flux: Flux, *, peclet: float = LARGEST_PECLET) -> Monotonicity:
    """By interval bisection over the states; of a flux with diffusion, over cell Péclet numbers, too.

    Raises NumericalError for a formula without interval form.
    """
    top = largest_speed(flux)
    cases = _cases(flux, peclet)
    if not flux.diffuses:
        found = [_slopes(formula, ranges, SLACK * top) for formula, ranges in cases]
        both = [reduce(Least.worse, side) for side in zip(*found, strict=True)]
        return Monotonicity(both[0], both[1], top, tuple(str(v) for v in cases[0][1]))
    ((formula, ranges),) = cases
    rising, falling = _slopes(formula, ranges, SLACK * top)
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


def _slopes(formula: sp.Expr, ranges: Ranges, enough: float) -> tuple[Least, Least]:
    """The least slope along u_P and the least negative slope along u_N, piece by piece."""
    sides = []
    for v, turn in ((P, 1), (N, -1)):
        found = [_least_slope(turn * piece.formula, v, piece.ranges, enough) for piece in pieces(formula, ranges)]
        sides.append(reduce(Least.worse, found))
    return sides[0], sides[1]


def _cancel_terms(formula: sp.Expr) -> tuple[sp.Expr, ...]:
    """The formula as one polynomial or quotient, where it is rational: means of equal conductivities cancel."""
    if formula.is_rational_function() and not formula.atoms(sp.Function, sp.Min, sp.Max):
        return (sp.expand(sp.cancel(formula)),)
    return ()


def _least_slope(formula: sp.Expr, v: sp.Symbol, ranges: Ranges, enough: float) -> Least:
    """The least difference quotient along v, from slopes and, where these are unbounded, from values at the ends."""
    names = list(ranges)
    low, high = (np.array([ranges[name][k] for name in names]) for k in (0, 1))
    forms = list(dict.fromkeys((formula, sp.expand(formula), *_cancel_terms(formula))))
    fixed = _without_influence(forms[-1], v, ranges)
    high = np.where([name in fixed for name in names], low, high)

    def bounds(low: np.ndarray, high: np.ndarray) -> Interval:
        boxes = {name: Interval(low[:, k], high[:, k]) for k, name in enumerate(names)}
        # Expanded, equal terms cancel; as it stands, a difference of states is a small factor. Both are right.
        slopes = (slope_or_zero(enclose(form, boxes, (v,)).slopes[0], (len(low),)) for form in forms)
        return reduce(iv.intersect, slopes)

    size = float((high - low).max(initial=0.0)) or 1.0
    found = least_value(bounds, low, high, width=WIDTH * size, enough=enough)
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
    while high > 2e-3 and high > 1.0002 * low:
        middle = float(np.sqrt(max(low, 1e-3) * high))
        found = monotonicity(flux, peclet=middle)
        # Without the slack of `holds`: at the limit itself the slope is 0.
        right = min(found.rising.bound, found.falling.bound) >= -1e-6
        low, high = (middle, high) if right else (low, middle)
    return low


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
    """Osher's condition: from monotonicity; otherwise by a search for a counterexample, and then by intervals."""
    if monotone.holds:
        return EFlux(True, 0.0, (0.0, 0.0, 0.0), follows=True)
    if flux.diffuses or flux.speed is None:
        raise NumericalError("asked of transport without diffusion only")
    worst = max((_largest_excess(flux, speed) for speed in (1.0, -1.0)), key=lambda case: case[0])
    tolerance = monotone.slack
    if worst[0] > tolerance:
        return EFlux(False, worst[0], worst[1])
    return EFlux(None, worst[0], worst[1])


def _largest_excess(flux: Flux, speed: float) -> tuple[float, tuple[float, float, float]]:
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
    return float(excess[k]), (float(p[k]), float(n[k]), float(u[k]))
