"""The region of a limiter φ(r, q, c): where a flux-limited scheme of Lax and Wendroff is total-variation diminishing.

φ = 0 for r ≤ 0, and 0 ≤ φ ≤ min(2r/c, 2/(1 − c)) for r > 0 and Courant numbers c in (0, 1): Harten's lemma for linear
transport with forward Euler, in which φ may depend on anything else, such as the ratio q of the downwind difference. A
φ of r alone that obeys 0 ≤ φ ≤ min(2r, 2), Sweby's region, obeys it for every c. Second order needs φ = 1 where r and q
are 1. A φ that is clipped to the bounds is within them by its form; everything else is shown by intervals over r, q and
c, with a counterexample where it fails.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import pairwise

import numpy as np
import sympy as sp

from fluxforge.certify._enclose import enclose, least_value, settle
from fluxforge.certify._evidence import Line, Verdict, verdict_of
from fluxforge.certify._intervals import Interval
from fluxforge.certify.transport import REGION_SLACK, Least, LimiterRegion, Range
from fluxforge.expression._symbols import Select, symbol

R, Q, C = symbol("r"), symbol("q"), symbol("c")
# The variable t in place of q = t/(1 − |t|), so that the sides of boxes that are bisected are of one scale.
_T = symbol("t")
# Ratios are examined up to this size, in parts whose ends grow by the same factor.
LARGEST_RATIO = 1e6
PARTS = 14
# Parts of the Courant numbers on which φ(1, c) is simplified.
AT_ONE_PARTS = 8
AT_ONE_HALVINGS = 20  # Poles at the ends of the Courant numbers need short parts.
COURANT: Range = (2.0**-20, 1.0 - 2.0**-20)
_DOWNWIND: Range = (-1.0 + 2.0**-20, 1.0 - 2.0**-20)
# The least side of a box relative to its part.
WIDTH = 2.0**-8
# No jump may lie this near to r = q = 1: a scheme with φ = 1 at that point only is not of second order.
NEAR_ONE = 2.0**-10


def limiter_region(phi: sp.Expr) -> LimiterRegion:
    """Examine φ, a formula of `R`, `Q` and `C`: the margins of all bounds, and its value at r = q = 1."""
    about = (_value_at_one(phi), _jumps_at_one(phi), C in phi.free_symbols, Q in phi.free_symbols)
    if is_clipped(phi):
        return LimiterRegion({"φ by its form": Least(0.0, 0.0, (1.0, 0.5, 0.5), 0)}, *about)
    phi = phi.xreplace({Q: _T / (1 - sp.Abs(_T))})
    positive, negative = list(_ratio_parts()), [(-high, -low) for low, high in _ratio_parts()]
    # Multiplied by c and 1 − c, the bounds have no poles; taken inside minima, terms that φ shares with a bound cancel.
    margins = {
        "φ ≥ 0": _least_margin(phi, positive),
        "φ ≤ 2r/c": _least_margin(_push(lambda one: 2 * R - C * one, phi), positive, relative=True),
        "φ ≤ 2/(1 − c)": _least_margin(_push(lambda one: 2 - (1 - C) * one, phi), positive),
        "φ = 0 for r ≤ 0": _least_margin(-phi, negative).worse(_least_margin(phi, negative)),
    }
    return LimiterRegion(margins, *about)


def is_clipped(phi: sp.Expr) -> bool:
    """Whether φ is max(0, min(2r/c, 2/(1 − c), …)): no larger than either for r > 0, and 0 where 2r/c ≤ 0."""
    if not (isinstance(phi, sp.Max) and len(phi.args) == 2 and sp.S.Zero in phi.args):
        return False
    inner = next(part for part in phi.args if part != 0)
    return {2 * R / C, 2 / (1 - C)} <= set(_minimum_parts(inner))


def _minimum_parts(formula: sp.Expr) -> Iterator[sp.Expr]:
    """The arguments of a minimum, nested minima flattened; any other formula as it is."""
    if isinstance(formula, sp.Min):
        for part in formula.args:
            yield from _minimum_parts(part)
    else:
        yield formula


def _value_at_one(phi: sp.Expr) -> sp.Expr:
    """φ(1, 1, c), with the comparisons and extrema that it contains decided on parts of the Courant numbers.

    If the values on these parts differ, the formula is decided on the whole range only, as far as possible.
    """
    formula = phi.xreplace({R: sp.S.One, Q: sp.S.One})

    def decide(part: Range) -> sp.Expr:
        return sp.simplify(settle(formula, {C: part}))

    values = set(_decide_over_courant(decide, (sp.Min, sp.Max, sp.Abs, Select)))
    return values.pop() if len(values) == 1 else decide(COURANT)


def _jumps_at_one(phi: sp.Expr) -> bool:
    """Whether a comparison in φ is undecided within `NEAR_ONE` of r = q = 1, for some Courant number."""
    near = (1 - NEAR_ONE, 1 + NEAR_ONE)
    decided = _decide_over_courant(lambda part: settle(phi, {R: near, Q: near, C: part}), (Select,))
    return any(each.has(Select) for each in decided)


def _decide_over_courant(decide: Callable[[Range], sp.Expr], undecided: tuple[type, ...]) -> Iterator[sp.Expr]:
    """The results of `decide` on parts of the Courant numbers, halved while a result has one of `undecided` types."""
    waiting = [(part, 0) for part in pairwise(np.linspace(*COURANT, AT_ONE_PARTS + 1).tolist())]
    while waiting:
        (low, high), depth = waiting.pop()
        value = decide((low, high))
        if value.has(*undecided) and depth < AT_ONE_HALVINGS:
            middle = (low + high) / 2
            waiting += [((low, middle), depth + 1), ((middle, high), depth + 1)]
        else:
            yield value


def _ratio_parts() -> Iterator[Range]:
    """Parts of the ratios r: from 0 to 2⁻⁸, then by equal factors to the largest one; 1 is an end of a part."""
    ends = np.concatenate([[0.0], np.geomspace(2.0**-8, 1.0, 9), np.geomspace(1.0, LARGEST_RATIO, PARTS)[1:]])
    return zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)


def _push(fall: Callable[[sp.Expr], sp.Expr], phi: sp.Expr) -> sp.Expr:
    """A decreasing affine map of φ, applied to the arguments of its minima and maxima, which exchange roles."""
    if isinstance(phi, sp.Min | sp.Max):
        kind = sp.Max if isinstance(phi, sp.Min) else sp.Min
        return kind(*(_push(fall, part) for part in phi.args), evaluate=False)
    return _factor_margin(fall(phi))


def _least_margin(margin: sp.Expr, parts: Iterable[Range], *, relative: bool = False) -> Least:
    """The least of a margin over all parts; `relative` to r where that is larger than 1."""
    least = (_least_on_part(margin, part, max(part[0], 1.0) if relative else 1.0) for part in parts)
    return reduce(Least.worse, least)


def _least_on_part(margin: sp.Expr, part: Range, scale: float) -> Least:
    """The least of a margin, divided by `scale`, over ratios r of one part and all c and q."""
    settled = settle(margin, {R: part, C: COURANT, _T: _DOWNWIND})
    forms = list(dict.fromkeys((settled, _factor_margin(settled))))

    def bounds(low: np.ndarray, high: np.ndarray) -> Interval:
        boxes = {name: Interval(low[:, k], high[:, k]) for k, name in enumerate((R, C, _T))}
        each = [enclose(form, boxes).value for form in forms]
        top, bottom = np.minimum.reduce([e.high for e in each]), np.maximum.reduce([e.low for e in each])
        return Interval(bottom / scale, top / scale)

    ends = np.array([part, COURANT, _DOWNWIND])
    # Variables that do not occur in the margin are not bisected.
    for k, name in enumerate((C, _T), start=1):
        if name not in settled.free_symbols:
            ends[k] = 0.5
    side = float((ends[:, 1] - ends[:, 0]).max())
    return least_value(bounds, ends[:, 0], ends[:, 1], width=WIDTH * side, enough=REGION_SLACK)


def _factor_margin(margin: sp.Expr) -> sp.Expr:
    return margin if margin.atoms(sp.Min, sp.Max, sp.Abs) else sp.factor(sp.together(margin))


def limiter_line(region: LimiterRegion) -> Line:
    """The line on whether φ stays within the region, with a point where it does not."""
    name = "limiter within the region of Harten and Sweby"
    also = f", |q| ≤ {1 / (1 - _DOWNWIND[1]):.1g}" if region.downwind else ""
    method = f"interval bisection over |r| ≤ {LARGEST_RATIO:g}{also} and Courant numbers c from 0 to 1"
    if region.violated is not None:
        at = region.margins[region.violated]
        c = f", c = {at.at[1]:.3g}" if region.depends or "c" in region.violated else ""
        c += f", q = {at.at[2] / (1 - abs(at.at[2])):.3g}" if region.downwind else ""
        evidence = f"{region.violated} is broken by {-at.value:.3g} at r = {at.at[0]:.4g}{c}"
        return Line(name, Verdict.FAILS, evidence, method)
    order = f"φ(1) = {region.at_one}: first order only"
    if region.second_order:
        order = "φ(1) = 1: second order"
    elif region.jumps_at_one:
        order = "φ jumps at or near r = 1: first order only"
    evidence = f"0 ≤ φ ≤ min(2r/c, 2/(1 − c)), and φ = 0 for r ≤ 0; {order}"
    if region.holds and min(one.bound for one in region.margins.values()) < 0:
        method += f"; to within {REGION_SLACK:g}, and no point violates a bound"
    if region.by_form:
        method = "φ is max(0, min(2r/c, 2/(1 − c), …)); φ(1) with its comparisons decided by intervals"
    return Line(name, verdict_of(True) if region.holds else Verdict.UNKNOWN, evidence, method)


def limited_bound_line() -> Line:
    """The line on the Courant number that the region of a limiter implies."""
    evidence = "for linear f on a row of cells with Euler steps: total variation does not grow up to Courant number 1"
    return Line("total variation", Verdict.HOLDS, evidence, "Harten's lemma, from the region of the limiter")
