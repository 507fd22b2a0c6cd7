"""Sparse linear regression of a cell's change over candidate messages, summed over the neighbours."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Bool, Float

from fluxforge.data._problem import Problem
from fluxforge.errors import NumericalError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.graph._stages import evaluate_stages
from fluxforge.scheme._scheme import Ghost, Hop, Message, Output, Stage

EDGE_NAMES = ("T_P", "T_N", "A", "delta", "V_P", "S_P", "dt")


@dataclass(frozen=True, eq=False)
class Edges:
    """The values of `EDGE_NAMES` in every slot of every cell, and T' − T and Δt of every cell, in float64."""

    values: Mapping[sp.Symbol, Float[np.ndarray, "cells slots"]]
    mask: Bool[np.ndarray, "cells slots"]
    change: Float[np.ndarray, " cells"]
    dt: Float[np.ndarray, " cells"]

    @property
    def single(self) -> Bool[np.ndarray, " cells"]:
        """The cells with exactly one neighbour."""
        return cast("np.ndarray", self.mask.sum(axis=1) == 1)


def edges_of(problems: Problem) -> Edges:
    """The edges of a batch of problems; padding is left out."""
    values, mask, change, dt = (jax.tree.map(np.asarray, each) for each in _edges(problems))
    live = np.asarray(problems.graph.live).ravel()
    flat = {symbol(name): value.reshape(len(live), -1)[live].astype(float) for name, value in values.items()}
    return Edges(flat, mask.reshape(len(live), -1)[live], change.ravel()[live].astype(float), dt.ravel()[live])


@eqx.filter_jit
def _edges(problems: Problem) -> tuple[dict[str, jax.Array], jax.Array, jax.Array, jax.Array]:
    def one(p: Problem) -> tuple[dict[str, jax.Array], jax.Array, jax.Array, jax.Array]:
        edge = p.graph.hops[Hop.EDGE]
        nodes = p.graph.nodes({"T": p.T, "S": p.S}, {"T": Ghost.DIRICHLET, "S": Ghost.ZERO})
        values = edge.values(map(symbol, EDGE_NAMES), nodes, {"dt": p.dt})
        full = {each.name: jnp.broadcast_to(value, edge.mask.shape) for each, value in values.items()}
        return full, edge.mask, p.answer - p.T, jnp.broadcast_to(p.dt, p.T.shape)

    return jax.vmap(one)(problems)


def held_out_error(stage: Stage, problems: Problem) -> float:
    """rms(formula − answer)/rms(answer − T) over the cells of problems; infinite where the formula is not finite."""

    @eqx.filter_jit
    def errors(problems: Problem) -> tuple[jax.Array, jax.Array]:
        def one(p: Problem) -> tuple[jax.Array, jax.Array]:
            new = evaluate_stages((stage,), p.graph, p.T, p.S, parameters=p.step_parameters)
            live = p.graph.live
            return jnp.where(live, new - p.answer, 0.0), jnp.where(live, p.answer - p.T, 0.0)

        return jax.vmap(one)(problems)

    off, change = (np.asarray(each, float) for each in errors(problems))
    error = float(np.linalg.norm(off) / np.linalg.norm(change))
    return error if np.isfinite(error) else float("inf")


_A, _DELTA, _T_P, _T_N, _V, _DT, _S, _T = map(symbol, ("A", "delta", "T_P", "T_N", "V", "dt", "S", "T"))
# Thresholds that are tried, in units of the root mean square of the rate of change, and ridges. Candidates such as
# A/δ and A/√δ are nearly dependent: without a ridge their coefficients are large and of both signs in noisy data, so
# that no threshold separates them.
THRESHOLDS = tuple(float(each) for each in np.geomspace(1e-4, 0.3, 25))
RIDGES = (1e-12, 1e-6, 1e-4, 1e-3, 1e-2)
# The model with the fewest terms is chosen among those whose error is within this factor of the least,
ERROR_RATIO = 1.02
# or below this, which is the round-off of a fit whose columns are nearly dependent.
EXACT = 1e-9
# Models with more terms are skipped: they are not sparse, and fitting them takes most of the time.
MOST_TERMS = 12
_ROUNDS = 100


@dataclass(frozen=True)
class Term:
    """One candidate for T' − T: Δt · factor · Σ message, or Δt · factor without a message."""

    factor: sp.Expr
    message: sp.Expr | None


@cache
def list_terms(*, reacts: bool = False) -> tuple[Term, ...]:
    """The candidates: Σ A^a δ^b times (T_N − T_P), its square, its cube or T_P (T_N − T_P); and S, T and 1 of the cell.

    All of them occur with the factors 1 and 1/V. With a reaction (`reacts`), T² and T³ of the cell are candidates, too.
    """
    across = _T_N - _T_P
    states = (across, across**2, across**3, _T_P * across)
    powers = product((0, 1, 2), (-2, -1, -sp.Rational(1, 2), 0))
    messages = [_A**a * _DELTA**b * state for (a, b), state in product(powers, states)]
    cell = (_S, _T, *((_T**2, _T**3) if reacts else ()), sp.S.One)
    summed = [Term(factor, message) for message, factor in product(messages, (sp.S.One, 1 / _V))]
    of_cell = [Term(state * factor, None) for state, factor in product(cell, (sp.S.One, 1 / _V))]
    return (*summed, *of_cell)


@dataclass(frozen=True)
class Sparse:
    """The chosen terms with their coefficients, and the threshold and the ridge they were found with."""

    terms: tuple[tuple[float, Term], ...]
    threshold: float
    ridge: float

    def stage(self) -> Stage:
        """One round of message passing that computes T'; sums with different factors are different messages."""
        messages: dict[sp.Expr, sp.Expr] = {}
        cell = sp.S.Zero
        for number, term in self.terms:
            if term.message is None:
                cell += sp.Float(number) * term.factor
            else:
                messages[term.factor] = messages.get(term.factor, sp.S.Zero) + sp.Float(number) * term.message
        names = {factor: f"z{k + 1}" for k, factor in enumerate(messages)}
        rate = sp.Add(cell, *(factor * symbol(names[factor]) for factor in messages))
        return Stage(
            {names[factor]: Message(message) for factor, message in messages.items()},
            {"T_new": Output(_T + sp.expand(_DT * rate))},
        )


def fit_sparse(edges: Edges, judged: Edges, *, reacts: bool = False) -> Sparse:
    """STLSQ over the library at every threshold and ridge, on `edges`; the model is chosen by its error on `judged`.

    Least squares of (T' − T)/Δt, columns and target scaled to a root mean square of one. The terms that are left, at
    most `MOST_TERMS`, are fitted once more without the ridge. A model without terms predicts no change. Raises
    NumericalError if no model has a finite error.
    """
    candidates = list_terms(reacts=reacts)
    X = evaluate_terms(edges, candidates)
    sizes = np.sqrt(np.mean(X**2, axis=0))
    sizes[sizes == 0] = 1.0
    X = X / sizes
    y = edges.change / edges.dt
    size = _rms(y)
    Z, target = evaluate_terms(judged, candidates) / sizes, judged.change / judged.dt / size
    models = [
        _Model(threshold, ridge, kept, c, _rms(target - Z[:, kept] @ c))
        for (threshold, ridge), kept in _supports(X, y / size).items()
        for c in (np.linalg.lstsq(X[:, kept], y / size, rcond=None)[0],)
    ]
    models = [model for model in models if np.isfinite(model.error)]
    if not models:
        raise NumericalError("no sparse model of the step has a finite error")
    limit = max(ERROR_RATIO * min(model.error for model in models), EXACT)
    best = min((model for model in models if model.error <= limit), key=lambda model: (len(model.c), model.error))
    numbers = best.c * size / sizes[best.kept]
    terms = (term for term, kept in zip(candidates, best.kept, strict=True) if kept)
    return Sparse(tuple(zip(map(float, numbers), terms, strict=True)), best.threshold, best.ridge)


class _Model(NamedTuple):
    threshold: float
    ridge: float
    kept: Bool[np.ndarray, " terms"]
    c: Float[np.ndarray, " kept"]
    error: float


def _supports(
    X: Float[np.ndarray, "rows terms"], y: Float[np.ndarray, " rows"]
) -> dict[tuple[float, float], Bool[np.ndarray, " terms"]]:
    """Masks of the terms left at each threshold and ridge, each mask once; that of no terms if there is none."""
    supports: dict[bytes, tuple[float, float]] = {}
    gram, right = X.T @ X / len(y), X.T @ y / len(y)
    for threshold, ridge in product(THRESHOLDS, RIDGES):
        kept = stlsq(gram, right, threshold=threshold, ridge=ridge)
        if kept.sum() <= MOST_TERMS:
            supports.setdefault(kept.tobytes(), (threshold, ridge))
    nothing = np.zeros(len(right), bool).tobytes()
    return {how: np.frombuffer(kept, bool) for kept, how in (supports or {nothing: (math.inf, 0.0)}).items()}


def evaluate_terms(edges: Edges, terms: Sequence[Term]) -> Float[np.ndarray, "cells terms"]:
    """The value of every candidate in every cell, messages summed over the neighbours."""
    cell = {_V: edges.values[symbol("V_P")][:, 0], _S: edges.values[symbol("S_P")][:, 0]}
    cell[_T] = edges.values[_T_P][:, 0]
    sums = {
        message: _sum_message(message, edges) for message in {term.message for term in terms} if message is not None
    }
    ones = np.ones(len(edges.dt))
    parts = (evaluate(term.factor, cell, np) * (ones if term.message is None else sums[term.message]) for term in terms)
    return np.column_stack(list(parts))


def _sum_message(message: sp.Expr, edges: Edges) -> Float[np.ndarray, " cells"]:
    sent = np.broadcast_to(evaluate(message, edges.values, np), edges.mask.shape)
    return np.asarray(np.where(edges.mask, sent, 0.0).sum(axis=1))


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def stlsq(
    gram: Float[np.ndarray, "terms terms"], right: Float[np.ndarray, " terms"], *, threshold: float, ridge: float
) -> Bool[np.ndarray, " terms"]:
    """Sequentially thresholded least squares (Brunton, Proctor and Kutz 2016): a mask of the terms that are left.

    `gram` and `right` are XᵀX/n and Xᵀy/n. Terms whose coefficient is below the threshold are dropped and the rest is
    fitted again, until nothing changes.
    """
    kept: Bool[np.ndarray, " terms"] = np.ones(len(right), bool)
    for _ in range(_ROUNDS):
        part = gram[np.ix_(kept, kept)] + ridge * np.eye(int(kept.sum()))
        large = np.zeros(len(right), bool)
        large[kept] = np.abs(np.linalg.solve(part, right[kept])) >= threshold
        if (large == kept).all():
            break
        kept = large
    return kept
