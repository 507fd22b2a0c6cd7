"""Whether two formulas are the same: by algebra, if need be on each side of every kink, or at random points."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sympy as sp

from fluxforge.certify._pieces import Range, pieces
from fluxforge.expression._evaluate import evaluate

# Random points at which formulas are compared.
POINTS = 400
# Round-off of a formula of some dozen operations on numbers up to 1, times the largest of its terms.
ROUNDED = 1e-12
# Cases double with every kink: with more variables than this, random points are used at once.
MOST_VARIABLES = 4


@dataclass(frozen=True)
class Identity:
    """Whether two formulas are the same: `by` algebra, or by numbers at random points; `apart` is the largest gap."""

    holds: bool
    by: str
    apart: float = 0.0
    at: str = ""


def compare_formulas(
    one: sp.Expr, other: sp.Expr, domain: Callable[[sp.Symbol], Range], *, by_points: bool = False
) -> Identity:
    """Compare by algebra where expanding decides it, otherwise at random points, which can refute an identity only.

    `by_points` uses points at once: expanding a limited slope takes SymPy minutes.
    """
    gap = one - other if by_points else sp.expand(one - other)
    if gap == 0:
        return Identity(True, "algebra")
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    if not by_points and len(symbols) <= MOST_VARIABLES and _vanishes_by_cases(gap, {v: domain(v) for v in symbols}):
        return Identity(True, "algebra, case by case")
    rng = np.random.default_rng(0)
    values = {v: rng.uniform(*domain(v), POINTS) for v in symbols}
    with np.errstate(all="ignore"):
        left, right = (np.broadcast_to(evaluate(part, values, np), (POINTS,)) for part in (one, other))
        off = np.abs(left - right) / np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
    off = np.where(np.isfinite(off), off, np.inf)
    worst = int(np.argmax(off))
    where = ", ".join(f"{v} = {values[v][worst]:.3g}" for v in symbols)
    return Identity(bool(off[worst] <= ROUNDED), f"{POINTS} random points", float(off[worst]), where)


def _vanishes_by_cases(gap: sp.Expr, ranges: dict[sp.Symbol, Range]) -> bool:
    return all(sp.expand(piece.formula) == 0 for piece in pieces(gap, ranges))
