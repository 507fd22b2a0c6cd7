"""Properties of a two-point flux over a range of states: consistency, monotonicity, E-condition, bounds of a step.

Consistency and antisymmetry are decided by algebra, the rest by intervals. A flux is monotone if F does not fall with
u_P nor rise with u_N, and an E-flux if sign(u_N − u_P)(F − f(u) a·n) ≤ 0 for every u between u_P and u_N.

Total variation and maximum principle with Euler steps on a row of cells are Harten's lemma:
u_i' = u_i + λ C_{i+½} (u_{i+1} − u_i) − λ D_{i−½} (u_i − u_{i−1}),  λ = Δt/h,
C = (a f(u_P) − F)/(u_N − u_P),  D = (a f(u_N) − F)/(u_N − u_P).
With C, D ≥ 0 the total variation does not grow where λ(C + D) ≤ 1 at every face, and no new extremum appears where
λ(C_{i+½} + D_{i−½}) ≤ 1 in every cell. C and D are difference quotients of F along u_N and u_P, so that a monotone flux
has them non-negative, and intervals bound them from above.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce

import numpy as np
import sympy as sp

from fluxforge.certify import _intervals as iv
from fluxforge.certify._enclose import compare_formulas, enclose, least_value, settle, slope_or_zero, split_pieces
from fluxforge.certify._evidence import Line, Verdict, verdict_of
from fluxforge.certify._intervals import Interval
from fluxforge.certify.flux import STEP, Flux, N, P, domain_of, one_dimensional, range_words
from fluxforge.certify.transport import MONOTONE_SLACK, EFlux, Identity, Least, Monotonicity, Range, Ranges, StepBound
from fluxforge.errors import NumericalError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Rank

# The largest cell Péclet number |a·n| δ/K examined.
LARGEST_PECLET = 1000.0
# Sides of the smallest boxes, relative to the range of u.
WIDTH = 2.0**-9
# The distance over which a slope is confirmed: round-off of F is 1e-10 of it.
CLOSE = 1e-6


def examine_monotonicity(flux: Flux, *, peclet: float = LARGEST_PECLET) -> Monotonicity:
    """The least slopes, by interval bisection over the states and, with diffusion, over cell Péclet numbers.

    Raises NumericalError for a formula without interval form.
    """
    top = largest_speed(flux)
    cases = _cases(flux, peclet)
    slopes = [_slopes(formula, ranges, MONOTONE_SLACK * top) for formula, ranges in cases]
    rising, falling = (reduce(Least.worse, side) for side in zip(*slopes, strict=True))
    variables = tuple(str(v) for v in cases[0][1])
    return Monotonicity(rising, falling, top, variables, peclet if flux.diffuses else None)


def _cases(flux: Flux, peclet: float) -> list[tuple[sp.Expr, Ranges]]:
    """The formulas to examine: a·n = 1 and −1 where F is proportional to |a·n| on either side of 0, or all of them."""
    if flux.diffuses:
        return [one_dimensional(flux, peclet=peclet)]
    if is_proportional(flux):
        # If F is antisymmetric, the case a·n = −1 is a·n = 1 seen from the other cell.
        speeds = (1.0,) if is_antisymmetric(flux).holds else (1.0, -1.0)
        return [one_dimensional(flux, speed) for speed in speeds]
    return [one_dimensional(flux)]


def _slopes(formula: sp.Expr, ranges: Ranges, enough: float) -> tuple[Least, Least]:
    """The least slope along u_P and the least negative slope along u_N, piece by piece."""
    sides = []
    for v, turn in ((P, 1), (N, -1)):
        slopes = [
            _least_slope(turn * piece.formula, v, piece.ranges, enough) for piece in split_pieces(formula, ranges)
        ]
        sides.append(reduce(Least.worse, slopes))
    return sides[0], sides[1]


def _least_slope(formula: sp.Expr, v: sp.Symbol, ranges: Ranges, enough: float) -> Least:
    """The least difference quotient along v, from slopes and, where these are unbounded, from values at the ends."""
    names = list(ranges)
    low, high = (np.array([ranges[name][k] for name in names]) for k in (0, 1))
    forms = [formula, sp.expand(formula)]
    if formula.is_rational_function() and not formula.atoms(sp.Function, sp.Min, sp.Max):
        forms.append(sp.expand(sp.cancel(formula)))  # Means of equal conductivities cancel.
    forms = list(dict.fromkeys(forms))
    fixed = _irrelevant_variables(forms[-1], v, ranges)
    high = np.where([name in fixed for name in names], low, high)

    def bounds(low: np.ndarray, high: np.ndarray) -> Interval:
        boxes = {name: Interval(low[:, k], high[:, k]) for k, name in enumerate(names)}
        # In the expanded form equal terms cancel; in the original one a difference of states is a small factor. Both
        # enclosures are valid.
        slopes = (slope_or_zero(enclose(form, boxes, (v,)).slopes[0], (len(low),)) for form in forms)
        return reduce(iv.intersect, slopes)

    size = float((high - low).max(initial=0.0)) or 1.0
    least = least_value(bounds, low, high, width=WIDTH * size, enough=enough)
    if least.value < 0 and not _falls_at(formula, v, dict(zip(names, least.at, strict=True)), least.value):
        least = replace(least, value=math.inf)
    if np.isfinite(least.bound) or least.open_at is None:
        return least
    return least.worse(_quotient_across(formula, v, names, np.array(least.open_at), WIDTH * size))


def _falls_at(formula: sp.Expr, v: sp.Symbol, at: dict[sp.Symbol, float], slope: float) -> bool:
    """Whether the formula falls along v from a point, to either side, at least half as fast as `slope` < 0.

    Where arguments of extrema are equal, as those of Godunov's flux at u_P = u_N, the enclosure of a slope at that
    point is that of one argument, which the formula itself need not have.
    """
    here, *beside = (float(evaluate(formula, at | {v: at[v] + h}, np)) for h in (0.0, -CLOSE, CLOSE))
    return min((here - beside[0]) / CLOSE, (beside[1] - here) / CLOSE) <= 0.5 * slope


def _irrelevant_variables(formula: sp.Expr, v: sp.Symbol, ranges: Ranges) -> set[sp.Symbol]:
    """The variables on which the slope along v does not depend; none if v occurs in a function, min or max."""
    inside = any(node.has(v) for node in formula.atoms(sp.Function) | formula.atoms(sp.Min, sp.Max))
    if inside or not formula.is_polynomial(v):
        return set()
    slope = sp.expand(sp.diff(formula, v))
    return set(ranges) - slope.free_symbols


def _quotient_across(formula: sp.Expr, v: sp.Symbol, names: list[sp.Symbol], at: np.ndarray, width: float) -> Least:
    """The difference quotient across a point, as a value that the slope takes, for jumps that slopes do not bound."""
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


def find_peclet_limit(flux: Flux) -> float:
    """The cell Péclet number up to which a flux that is not monotone at large ones is monotone; 0 if at none."""
    low, high = 0.0, LARGEST_PECLET
    while high > 2e-3 and high > 1.0002 * low:
        middle = float(np.sqrt(max(low, 1e-3) * high))
        slopes = examine_monotonicity(flux, peclet=middle)
        # Without the slack of `holds`: at the limit itself the slope is 0.
        right = min(slopes.rising.bound, slopes.falling.bound) >= -1e-6
        low, high = (middle, high) if right else (low, middle)
    return low


def examine_e_condition(flux: Flux, monotone: Monotonicity) -> EFlux:
    """Osher's condition, from monotonicity, or refuted by a search for a counterexample; undecided if none is found.

    Raises NumericalError for a flux with diffusion that is not monotone.
    """
    if monotone.holds:
        return EFlux(True, 0.0, (0.0, 0.0, 0.0), follows=True)
    if flux.diffuses:
        raise NumericalError("examined for transport without diffusion only")
    excess, at = max((_largest_excess(flux, speed) for speed in (1.0, -1.0)), key=lambda case: case[0])
    return EFlux(False if excess > monotone.slack else None, excess, at)


def _largest_excess(flux: Flux, speed: float) -> tuple[float, tuple[float, float, float]]:
    """The largest excess, and where, over a grid of u_P, u_N and u between them; Δt = ½ if F depends on it."""
    formula, ranges = one_dimensional(flux, speed)
    at = np.linspace(*flux.states, 41)
    share = np.linspace(0.0, 1.0, 41)
    p, n, s = (part.ravel() for part in np.meshgrid(at, at, share, indexing="ij"))
    u = p + s * (n - p)
    values = {P: p, N: n} | ({STEP: np.full(p.shape, 0.5)} if STEP in ranges else {})
    F = np.broadcast_to(evaluate(formula, values, np), p.shape)
    f = np.broadcast_to(evaluate(flux.transported, {flux.equation.u: u}, np), p.shape)
    excess = np.sign(n - p) * (F - speed * f)
    k = int(np.argmax(excess))
    return float(excess[k]), (float(p[k]), float(n[k]), float(u[k]))


def identity_line(consistent: Identity, antisymmetric: Identity) -> Line:
    """The line on whether F is a flux of the equation."""
    parts = []
    for answer, right, wrong in (
        (consistent, "F(u, u) = f(u) a·n", "F(u, u) differs from f(u) a·n"),
        (antisymmetric, "F changes its sign with its cells", "F does not change its sign with its cells"),
    ):
        found = f"{right} ({answer.by})" if answer.holds else f"{wrong} by {answer.apart:.2g} at {answer.at}"
        parts.append(found)
    method = "algebra; random points where it does not decide"
    return Line("consistent flux", verdict_of(consistent.holds and antisymmetric.holds), "; ".join(parts), method)


def monotone_line(slopes: Monotonicity, limit: float | None, states: Range) -> Line:
    """The line on whether ∂F/∂u_P ≥ 0 ≥ ∂F/∂u_N, with the worst point if not."""
    method = f"interval bisection over {range_words(states)}"
    method += "" if slopes.peclet is None else f" and cell Péclet numbers |a·n| δ/K up to {slopes.peclet:g}"
    if slopes.holds is None:
        evidence = f"only ∂F/∂u_P ≥ {slopes.rising.bound:.2g} and ∂F/∂u_N ≤ {-slopes.falling.bound:.2g} are proved"
        return Line("monotone flux", Verdict.UNKNOWN, evidence, method)
    if slopes.holds:
        gap = "" if slopes.exactly else f" to within {-min(slopes.rising.bound, slopes.falling.bound):.1g}"
        peclet = "" if slopes.peclet is None else f", cell Péclet numbers up to {slopes.peclet:g}"
        evidence = f"∂F/∂u_P ≥ 0 ≥ ∂F/∂u_N{gap} for {range_words(states)}{peclet}"
        return Line("monotone flux", Verdict.HOLDS, evidence, method)
    where = _worst_point(slopes)
    if limit:
        return Line("monotone flux", Verdict.MEASURED, f"up to a cell Péclet number of {limit:.3g}; {where}", method)
    return Line("monotone flux", Verdict.FAILS, where, method)


def _worst_point(slopes: Monotonicity) -> str:
    """A phrase on the worst slope of the wrong sign and where it is taken."""
    rises = slopes.rising.value <= slopes.falling.value
    worst = slopes.rising if rises else slopes.falling
    value = worst.value if rises else -worst.value
    at = [f"{name} = {x:.3g}" for name, x in zip(slopes.variables, worst.at, strict=True)]
    return f"{'∂F/∂u_P' if rises else '∂F/∂u_N'} = {value:.3g} at {', '.join(at)}"


def entropy_line(e_flux: EFlux) -> Line:
    """The line on Osher's condition, from which convergence to the entropy solution follows."""
    name, method = "E-flux", "sign(u_N − u_P)(F − f(u) a·n) ≤ 0 for all u between"
    if e_flux.follows:
        return Line(name, Verdict.HOLDS, "every monotone flux is an E-flux", "from monotonicity")
    if e_flux.holds is False:
        p, n, u = e_flux.at
        evidence = f"the condition is violated by {e_flux.excess:.3g} at u_P = {p:.3g}, u_N = {n:.3g}, u = {u:.3g}"
        return Line(name, Verdict.FAILS, evidence, method)
    evidence = f"no counterexample on a grid of 41³ states; the largest value is {e_flux.excess:.2g}"
    return Line(name, Verdict.UNKNOWN, evidence, method)


def is_consistent(flux: Flux) -> Identity:
    """F(u, u) = f(u) a·n."""
    domain = partial(domain_of, flux=flux)
    u = flux.equation.u
    at = {symbol(f"{name}_N"): symbol(f"{name}_P") for name in _cell_parameters(flux.equation)}
    return compare_formulas(flux.formula.xreplace({P: u, N: u}).xreplace(at), flux.carried.xreplace(at), domain)


def is_antisymmetric(flux: Flux) -> Identity:
    """F(u_P, u_N; n) = −F(u_N, u_P; −n)."""
    domain = partial(domain_of, flux=flux)
    swap = {P: N, N: P}
    for name in _cell_parameters(flux.equation):
        one, other = symbol(f"{name}_P"), symbol(f"{name}_N")
        swap |= {one: other, other: one}
    turned = {symbol(p.normal_name): -symbol(p.normal_name) for p in flux.equation.parameters if p.rank is Rank.VECTOR}
    return compare_formulas(flux.formula, -flux.formula.xreplace(swap).xreplace(turned), domain)


def _cell_parameters(equation: Equation) -> list[str]:
    return [p.name for p in equation.parameters if p.rank is Rank.SCALAR]


def is_proportional(flux: Flux) -> bool:
    """Whether F is a·n times a formula of |a·n| Δt and the states, for a·n > 0 and for a·n < 0."""
    formula, ranges = one_dimensional(flux)
    speed = flux.speed
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
    (slope,) = enclose(flux.transported, box, (u,)).slopes
    size = iv.absolute(slope_or_zero(slope, (1,)))
    if not np.isfinite(size.high).all():
        raise NumericalError("the derivative of f is not finite over the range of states")
    return float(size.high.max())


# Intervals per side into which the range of u is divided.
PARTS = 256
# The number of random rows from which steps are made, and of cells in each.
ROWS, CELLS = 4000, 12
# Growth beyond this, relative to the total variation, is not round-off.
GROWTH = 1e-10


def bound_step(flux: Flux, top: float, *, antisymmetric: bool) -> StepBound:
    """The bounds of Courant numbers for a monotone, antisymmetric flux of transport alone; `top` is the largest |f′|.

    Raises NumericalError for a flux that depends on Δt, that diffuses or is not antisymmetric.
    """
    formula, ranges = one_dimensional(flux, 1.0)
    if flux.diffuses or STEP in ranges or not antisymmetric:
        raise NumericalError("bounds need transport without diffusion, and an antisymmetric flux without Δt")
    edges = np.linspace(*flux.states, PARTS + 1)
    with np.errstate(all="ignore"):
        C, D = _coefficients(formula, flux, Interval(edges[:-1], edges[1:]))
    # C of the face ahead has the cell as its P, D of the face behind as its N.
    of_cell = C.max(axis=1) + D.max(axis=0)
    variation, extrema = top / (C + D).max(), top / of_cell.max()
    return StepBound(float(variation), float(extrema), *_measure_limits(formula, flux, top))


def _coefficients(formula: sp.Expr, flux: Flux, parts: Interval) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds of C and D for u_P in part i and u_N in part j, as matrices."""
    count = len(parts.low)
    shape = (count, count)
    p = Interval(np.repeat(parts.low, count), np.repeat(parts.high, count))
    n = Interval(np.tile(parts.low, count), np.tile(parts.high, count))
    between = iv.hull(p, n)
    along_n = enclose(formula, {P: p, N: between}, (N,)).slopes[0]
    along_p = enclose(formula, {P: between, N: n}, (P,)).slopes[0]
    C = iv.negate(slope_or_zero(along_n, p.low.shape))
    D = slope_or_zero(along_p, p.low.shape)
    F = enclose(formula, {P: p, N: n}).value
    jump = iv.subtract(n, p)
    quotients = [
        iv.divide(iv.subtract(enclose(flux.transported, {flux.equation.u: end}).value, F), jump) for end in (p, n)
    ]
    return iv.intersect(C, quotients[0]).high.reshape(shape), iv.intersect(D, quotients[1]).high.reshape(shape)


def _measure_limits(formula: sp.Expr, flux: Flux, top: float) -> tuple[float, float]:
    """The smallest Courant numbers at which a step from a random row makes the variation, or an extremum, grow."""
    rng = np.random.default_rng(0)
    low, high = flux.states
    rows = rng.uniform(low, high, (ROWS, CELLS))
    # The ends and the middle of the range are frequent among them, since they make the worst rows.
    some = rng.choice([low, high, 0.5 * (low + high)], (ROWS, CELLS))
    rows = np.where(rng.random((ROWS, CELLS)) < rng.random((ROWS, 1)), rows, some)
    F = np.broadcast_to(evaluate(formula, {P: rows, N: np.roll(rows, -1, axis=1)}, np), rows.shape)
    change = -(F - np.roll(F, 1, axis=1))

    def grows(courant: float) -> tuple[bool, bool]:
        after = rows + courant / top * change
        before = _variation(rows)
        neighbours = np.stack([np.roll(rows, k, axis=1) for k in (-1, 0, 1)])
        beyond = np.maximum(after - neighbours.max(axis=0), neighbours.min(axis=0) - after).max()
        varied = bool((_variation(after) > before * (1 + GROWTH) + GROWTH).any())
        return varied, bool(beyond > GROWTH * (high - low))

    return _first_failure(lambda c: grows(c)[0]), _first_failure(lambda c: grows(c)[1])


def _variation(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(np.roll(rows, -1, axis=1) - rows).sum(axis=1))


def _first_failure(fails: Callable[[float], bool]) -> float:
    """The smallest Courant number up to 4 for which `fails` is true, by bisection; infinite if it is not true at 4."""
    low, high = 0.0, 4.0
    if not fails(high):
        return float("inf")
    for _ in range(24):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


def bound_line(bound: StepBound, states: Range) -> Line:
    """The line on the Courant numbers up to which the total variation does not grow and no new extremum appears."""
    evidence = (
        f"on a row of cells with Euler steps, {range_words(states)}: total variation does not grow up to Courant "
        f"number {bound.variation:.3g} (random rows: {_describe_limit(bound.measured_variation)}), no new extremum up "
        f"to {bound.extrema:.3g} (random rows: {_describe_limit(bound.measured_extrema)})"
    )
    method = "Harten's coefficients by intervals; one step from 4,000 random rows"
    sound = bound.measured_variation >= bound.variation and bound.measured_extrema >= bound.extrema
    return Line("total variation and maximum principle", verdict_of(sound), evidence, method)


def _describe_limit(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "no growth up to 4"
