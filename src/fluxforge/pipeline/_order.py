"""Formulas of coefficients that keep a network's order in time: searched as g in c = 1 + total/(1 + total) g.

Whatever g is, as long as it is bounded where Δt goes to 0, what c adds to the integrator is of third order in Δt. A
candidate that is not bounded there, such as one with 1/total or log(total), is left out. Without an order imposed, c
itself is searched, and candidates are left out that grow as a power of 1/Δt: with those the limit of small steps is
another equation.
"""

from collections.abc import Mapping

import numpy as np
import sympy as sp

from fluxforge._types import CellField
from fluxforge.distil import Candidate, Front
from fluxforge.errors import DiscoveryError
from fluxforge.expression import evaluate, symbol
from fluxforge.gnn import learned_part

# `total` at which g is looked at, and the most it may still change by from one to the next, relative to its size or to
# 1: log(total) changes by seven, 1/total a thousandfold, √total by 1e-4.
_SMALL = (1e-8, 1e-11, 1e-14)
_SETTLED = 1e-3
# The most that a coefficient may grow by from one to the next: log(total) grows by a third, 1/√total by 31.
_GROWS = 10.0
# Values of the other numbers, which lie between 0 and 1; those of a reaction, r Δt, vanish with Δt.
_OTHERS = np.array([0.05, 0.17, 0.4])


def learned_values(coefficients: CellField, total: CellField, order: int) -> CellField:
    """What a formula is searched for: the coefficient itself, or with order 2 the g in it."""
    if order == 1:
        return coefficients
    return np.asarray((coefficients - 1.0) * (1.0 + total) / total)


def impose_order(front: Front, order: int) -> Front:
    """The candidates as formulas of the coefficients, those left out that would lower the order.

    Raises DiscoveryError where none is left.
    """
    keeps = is_consistent if order == 1 else is_bounded
    kept = [each for each in front.candidates if keeps(each.expression)]
    if not kept:
        raise DiscoveryError("every candidate formula of a coefficient grows without bound as Δt goes to 0")
    if order == 1:
        return Front(tuple(kept), front.ended_by_clock)
    scale = learned_part(symbol("total"), order)
    made = (Candidate(1 + scale * each.expression, each.complexity, each.error) for each in kept)
    return Front(tuple(made), front.ended_by_clock)


def is_bounded(g: sp.Expr) -> bool:
    """Whether a formula of the faces' numbers settles to a number as Δt, and with it total, goes to 0."""
    values = _near_zero(g)
    if not np.isfinite(values).all():
        return False
    size = np.maximum(1.0, np.abs(values[0]))
    return bool((np.abs(np.diff(values, axis=0)) <= _SETTLED * size).all())


def is_consistent(c: sp.Expr) -> bool:
    """Whether c Δt vanishes with Δt, so that a step with this coefficient is Δt f(u) to first order."""
    size = np.maximum(1.0, np.abs(_near_zero(c)))
    return bool(np.isfinite(size).all() and (size[1:] <= _GROWS * size[:-1]).all())


def _near_zero(g: sp.Expr) -> np.ndarray:
    """A formula of the faces' numbers at ever shorter steps, a row for each."""
    names = {each.name for each in g.free_symbols}
    return np.array([_at(g, {name: t * _OTHERS if _vanishes(name) else _OTHERS for name in names}) for t in _SMALL])


def _vanishes(name: str) -> bool:
    return name == "total" or name.startswith("reaction")


def _at(g: sp.Expr, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        found = evaluate(g, {symbol(name): each for name, each in numbers.items()}, np)
    return np.broadcast_to(np.asarray(found, dtype=float), _OTHERS.shape)
