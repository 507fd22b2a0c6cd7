"""Formulas without a network: the same search on the measured fluxes themselves, and sparse regression."""

import time
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.distil._backend import Search
from fluxforge.distil._engines import engine
from fluxforge.distil._simplify import search_front
from fluxforge.distil._table import tabulate
from fluxforge.errors import DiscoveryError
from fluxforge.experiment._setup import Dataset, Variable, evaluate_on
from fluxforge.expression._print import to_text

# Thresholds below which a term of a sparse regression is dropped, in units of the fluxes.
THRESHOLDS = tuple(float(each) for each in np.geomspace(1e-4, 0.3, 12))
MOST_TERMS = 12
# The ridge, relative to the mean square of a term; it is needed since products of variables are nearly dependent.
RIDGE = 1e-10
# The largest number of factors in a product: variables, their moduli and inverses.
DEGREE = 3


@dataclass(frozen=True)
class WithoutNetwork:
    """A formula of the flux found without a network, its error on held-out fluxes and the seconds it took.

    If none was found, `formula` is the reason and `error` is infinite.
    """

    method: str
    formula: str
    error: float
    seconds: float


def search_without_network(data: Dataset, spec: recipe.Recipe, seed: int) -> WithoutNetwork:
    """The recipe's own search, with as many restarts and evaluations, for the flux as a function of all variables."""
    assert spec.search is not None
    began, wanted, fitted = time.perf_counter(), spec.search, data.fitted
    names = data.experiment.names
    table = tabulate(names, np.stack([fitted.samples[name] for name in names], axis=1), fitted.flux)
    method = "search without a network"
    try:
        front = search_front(engine(wanted.engine), table, Search.of_recipe(wanted), seed=seed)
        best = min(front, key=lambda candidate: candidate.error).expression
    except DiscoveryError as error:
        return WithoutNetwork(method, str(error), float("inf"), time.perf_counter() - began)
    return WithoutNetwork(method, to_text(best), _error(best, data.held_out), time.perf_counter() - began)


def regress_sparsely(data: Dataset) -> WithoutNetwork:
    """Sequentially thresholded least squares over products of up to three variables, moduli and inverses.

    Of the models at all thresholds, the one with the least error on held-out fluxes is returned.
    """
    began, fitted = time.perf_counter(), data.fitted
    terms = _library(data.experiment.variables)
    X = np.stack([evaluate_on(fitted.samples, term) for term in terms], axis=1)
    sizes = np.sqrt(np.mean(X**2, axis=0))
    gram, right = (X / sizes).T @ (X / sizes), (X / sizes).T @ fitted.flux
    best: tuple[float, sp.Expr] = (float("inf"), sp.S.Zero)
    for threshold in THRESHOLDS:
        kept = np.arange(len(terms))
        for _ in range(20):
            ridge = RIDGE * len(X) * np.eye(len(kept))
            c = np.linalg.solve(gram[np.ix_(kept, kept)] + ridge, right[kept]) / sizes[kept]
            large = np.abs(c) * sizes[kept] > threshold * fitted.size
            if large.all() or not large.any():
                break
            kept = kept[large]
        if len(kept) > MOST_TERMS:
            continue
        formula = sp.Add(*(sp.Float(float(value)) * terms[k] for value, k in zip(c, kept, strict=True)))
        best = min(best, (_error(formula, data.held_out), formula), key=lambda each: each[0])
    text = to_text(best[1]) if best[1] != 0 else f"no formula of at most {MOST_TERMS} terms"
    return WithoutNetwork("sparse regression", text, best[0], time.perf_counter() - began)


def _library(variables: tuple[Variable, ...]) -> list[sp.Expr]:
    """All products of up to DEGREE factors x and 1/x of positive variables, x and |x| of others."""
    factors: list[sp.Expr] = []
    for each in variables:
        factors += [each.symbol, 1 / each.symbol] if each.positive else [each.symbol, sp.Abs(each.symbol)]
    products = {
        sp.Mul(*chosen) for degree in range(1, DEGREE + 1) for chosen in combinations_with_replacement(factors, degree)
    }
    return sorted((term for term in products if term.free_symbols), key=sp.default_sort_key)


def _error(formula: sp.Expr, data: Dataset) -> float:
    error = data.distance(evaluate_on(data.samples, formula))
    return error if np.isfinite(error) else float("inf")
