"""A formula on parts of its domain, with moduli, signs, minima and maxima decided where intervals decide them.

½u − ½|u| is [−½w, ½w] on every interval of width w, and 0 once |u| = u is known: what is decided is written out first.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import sympy as sp

from fluxforge.certify._enclose import enclose
from fluxforge.certify._intervals import Interval

Range = tuple[float, float]
Ranges = Mapping[sp.Symbol, Range]


class Piece(NamedTuple):
    """A formula on one part of the domain."""

    formula: sp.Expr
    ranges: Ranges


def pieces(formula: sp.Expr, ranges: Ranges) -> Iterator[Piece]:
    """The formula on the parts into which its kinks along single variables divide the domain."""
    parts = {v: list(pairwise((low, *_kinks(formula, v, low, high), high))) for v, (low, high) in ranges.items()}
    for chosen in product(*parts.values()):
        own = dict(zip(parts, chosen, strict=True))
        yield Piece(settle(formula, own), own)


def _kinks(formula: sp.Expr, v: sp.Symbol, low: float, high: float) -> list[float]:
    """Where something inside a modulus, a sign or a comparison of v alone changes its sign, if it is affine in v."""
    found = set()
    for gap in _gaps(formula):
        if gap.free_symbols == {v} and gap.is_polynomial(v) and sp.degree(gap, v) == 1:
            at = float(-gap.subs(v, 0) / sp.diff(gap, v))
            found.add(at) if low < at < high else None
    return sorted(found)


def _gaps(formula: sp.Expr) -> Iterator[sp.Expr]:
    for node in sp.preorder_traversal(formula):
        if isinstance(node, sp.Abs | sp.sign):
            yield node.args[0]
        elif isinstance(node, sp.Min | sp.Max) or type(node).__name__ in ("Below", "AtMost"):
            yield from (one - other for i, one in enumerate(node.args) for other in node.args[i + 1 :])


def settle(formula: sp.Expr, ranges: Ranges) -> sp.Expr:
    """The formula with everything replaced that is the same on the whole part."""
    if not formula.args:
        return formula
    parts = [settle(part, ranges) for part in formula.args]
    name = type(formula).__name__
    if name == "Abs":
        low, high = _bounds(parts[0], ranges)
        return parts[0] if low >= 0 else -parts[0] if high <= 0 else sp.Abs(parts[0], evaluate=False)
    if name == "sign":
        low, high = _bounds(parts[0], ranges)
        return sp.S.One if low > 0 else sp.S.NegativeOne if high < 0 else formula.func(*parts)
    if name in ("Min", "Max"):
        return _extreme(formula.func, parts, ranges)
    if name in ("Below", "AtMost"):
        low, high = _bounds(parts[0] - parts[1], ranges)
        return sp.S.One if high < 0 else sp.S.Zero if low > 0 else formula.func(*parts)
    return formula.func(*parts)


def _extreme(kind: type[sp.Expr], parts: list[sp.Expr], ranges: Ranges) -> sp.Expr:
    """Min or max without arguments that another one is never beyond."""
    turn = 1 if kind is sp.Max else -1
    kept: list[sp.Expr] = []
    for part in dict.fromkeys(sp.expand(part) for part in parts):
        if any(_bounds(turn * (other - part), ranges)[0] >= 0 for other in kept):
            continue
        kept = [other for other in kept if _bounds(turn * (part - other), ranges)[0] < 0]
        kept.append(part)
    return kept[0] if len(kept) == 1 else kind(*kept, evaluate=False)


def _bounds(formula: sp.Expr, ranges: Ranges) -> Range:
    """Bounds on the whole part; everything where a symbol has no range."""
    formula = sp.expand(formula)
    if formula.free_symbols - set(ranges):
        return -np.inf, np.inf
    boxes = {v: Interval(np.array([low]), np.array([high])) for v, (low, high) in ranges.items()}
    value = enclose(formula, boxes).value
    return float(value.low[0]), float(value.high[0])
