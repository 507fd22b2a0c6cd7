"""Formulas of a reduced flux: symbolic regression of its function g, and of transforms of g that may be simpler."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.distil._backend import Search
from fluxforge.distil._engines import engine
from fluxforge.distil._front import Candidate, Front, fit_constants, front_of, measure, merge
from fluxforge.distil._simplify import search_front
from fluxforge.distil._table import Table, tabulate
from fluxforge.errors import DiscoveryError
from fluxforge.experiment._network import FluxNetwork
from fluxforge.experiment._properties import Separation
from fluxforge.experiment._setup import Dataset
from fluxforge.expression._symbols import symbol

# The fraction of rows left out at either end of each column, where few samples trained the network.
TAIL = 0.01


@dataclass(frozen=True)
class Transform:
    """A target h(y, x) to search for in place of y; `solve` turns a formula of the target into one of y."""

    name: str
    target: Callable[[np.ndarray, np.ndarray], np.ndarray]
    solve: Callable[[sp.Expr, sp.Symbol], sp.Expr]


# A quotient is often short where the function is not: x/y of x/(1 − e⁻ˣ), 1/y of 1/(1 + x).
TRANSFORMS = (
    Transform("y", lambda y, x: y, lambda e, x: e),
    Transform("1/y", lambda y, x: 1.0 / y, lambda e, x: 1 / e),
    Transform("x/y", lambda y, x: x / y, lambda e, x: x / e),
    Transform("y/x", lambda y, x: y / x, lambda e, x: x * e),
)
# For functions of several columns that have one sign, apart from the network's error.
ROOTS = (
    Transform("sqrt(y)", lambda y, x: np.sqrt(np.maximum(y, 0.0)), lambda e, x: e**2),
    Transform("sqrt(-y)", lambda y, x: np.sqrt(np.maximum(-y, 0.0)), lambda e, x: -(e**2)),
)
# The decrease of log error that one more symbol has to bring.
PER_SYMBOL = 0.2
# The number of formulas for each part of a separable function that are combined with those for the other part.
SHORTLIST = 6
# A function has one sign if the norm of its values of the other sign is at most this fraction: that counts as error.
OTHER_SIGN = 0.05


def tabulate_network(network: FluxNetwork, data: Dataset, rows: int) -> Table:
    """A table of a network's g at columns of the data, at most `rows`, without the outermost hundredth on each side."""
    columns = network.form.arrays(data.samples).columns
    flat = columns.reshape(-1, columns.shape[-1])
    low, high = np.quantile(flat, [TAIL, 1 - TAIL], axis=0)
    inside = flat[np.all((flat >= low) & (flat <= high), axis=1)][:rows]
    return tabulate(network.form.names, inside, network.function(inside))


def search_rounds(table: Table, wanted: recipe.Search, *, seed: int) -> Iterator[Front]:
    """Yield the front of each search: `restarts` rounds with one search per transform of y.

    Quotients are tried for a single column x, if x and y have one sign each; roots for several columns, if y has one
    sign. The formulas are those of y, fitted to the table.
    """
    for restart in range(wanted.restarts):
        yield from _search_once(table, wanted, seed + 101 * restart)


def _search_once(table: Table, wanted: recipe.Search, seed: int) -> Iterator[Front]:
    once = replace(Search.of_recipe(wanted), restarts=1)
    for number, (transform, rows) in enumerate(_targets(table)):
        try:
            front = search_front(engine(wanted.engine), rows, once, seed=seed + number)
        except DiscoveryError:
            continue
        x = symbol(table.names[0])
        formulas = [variant for each in front for variant in (each.expression, *_bound_extremes(each.expression))]
        candidates = [_fit_and_measure(transform.solve(formula, x), table) for formula in formulas]
        fitted = front_of(each for each in candidates if each is not None)
        yield Front(fitted.candidates, front.ended_by_clock)


def search_parts(
    table: Table, parts: tuple[Table, Table], separation: Separation, wanted: recipe.Search, *, seed: int
) -> Front:
    """The front of formulas of y that combine one formula of each part; every part is searched as in one round."""
    fronts = [merge(*_search_part(part, wanted, seed + 53 * k)) for k, part in enumerate(parts)]
    shortlists = [sorted(front, key=_cost)[:SHORTLIST] for front in fronts]
    formulas = (separation.combine(one.expression, other.expression) for one, other in product(*shortlists))
    candidates = [_fit_and_measure(formula, table) for formula in formulas]
    combined = front_of(each for each in candidates if each is not None)
    return Front(combined.candidates, any(front.ended_by_clock for front in fronts))


def _search_part(part: Table, wanted: recipe.Search, seed: int) -> Iterator[Front]:
    if part.is_constant:
        constant = measure(sp.Float(float(np.mean(part.y))), part)
        yield Front(() if constant is None else (constant,))
        return
    yield from _search_once(part, wanted, seed)


def _cost(candidate: Candidate) -> float:
    return math.log(max(candidate.error, 1e-9)) + PER_SYMBOL * candidate.complexity


def _targets(table: Table) -> Iterator[tuple[Transform, Table]]:
    x, y = table.X[:, 0], table.y
    if table.X.shape[1] == 1:
        chosen = list(TRANSFORMS if _has_one_sign(y) and _has_one_sign(x) else TRANSFORMS[:1])
    else:
        sizes = [float(np.linalg.norm(np.maximum(side * y, 0.0))) for side in (1, -1)]
        roots = [root for k, root in enumerate(ROOTS) if sizes[1 - k] <= OTHER_SIGN * sizes[k]]
        chosen = [*roots, TRANSFORMS[0]]
    for transform in chosen:
        rows = Table(table.names, table.X, transform.target(y, x))
        if not rows.is_constant:
            yield transform, rows


def _bound_extremes(formula: sp.Expr) -> Iterator[sp.Expr]:
    """Yield the formula with a constant, ±0.01, as a further argument of a minimum or maximum that has none.

    In the populations of a search such constants die out early, since alone they change little.
    """
    for extreme in sorted(formula.atoms(sp.Min, sp.Max), key=sp.default_sort_key):
        if not any(part.is_number for part in extreme.args):
            yield from (formula.xreplace({extreme: extreme.func(*extreme.args, sp.Float(c))}) for c in (1e-2, -1e-2))


def _has_one_sign(values: np.ndarray) -> bool:
    return bool(np.all(values > 0) or np.all(values < 0))


def _fit_and_measure(formula: sp.Expr, table: Table) -> Candidate | None:
    fitted = fit_constants(formula, table)
    return None if fitted is None else measure(fitted.expression, table)
