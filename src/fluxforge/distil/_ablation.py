"""Ablation: formulas found without a network, by the same search and by sparse regression on the data."""

import math
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import equinox as eqx
import jax
import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge._types import JsonObject
from fluxforge.data._problem import Problem
from fluxforge.data._source import source
from fluxforge.distil._backend import Search
from fluxforge.distil._engines import engine
from fluxforge.distil._front import Front, choose_knee, merge
from fluxforge.distil._simplify import search_front
from fluxforge.distil._sparse import EDGE_NAMES, Edges, edges_of, fit_sparse, held_out_error
from fluxforge.distil._table import Table, tabulate
from fluxforge.errors import DiscoveryError
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import symbol
from fluxforge.scheme._scheme import Message, Output, Stage

# Folded into the seed's random key, so that these problems differ from those of training, refits and evaluation.
_KEY = 2**29 + 2**20
PROBLEMS, ROWS, MOST_BATCHES = 1_000, 2_000, 40
# The least number of cells with a single message for a search.
FEWEST_CELLS = 200
# Seven variables at once want a larger search than the four or five of a network's part: with the populations of 600
# and 12,000 evaluations that suffice there, the best error on the heat recipe's data was 8 %; with populations of 2,000
# and 80,000 evaluations the formula is found.
POPULATION, MORE_EVALUATIONS = 2_000, 20 / 3
# The largest number of searches if none fits exactly, so that noisy data do not make a run much longer.
MOST_RESTARTS = 2
# A front with a smaller error than this fits exact data to round-off.
EXACT = 1e-9
# Symbols of an edge or its far end, not of the receiving cell.
_OF_EDGE = frozenset(map(symbol, ("T_N", "A", "delta")))
_OF_CELL = {symbol(f"{name}_P"): symbol(name) for name in ("T", "V", "S")}


@dataclass(frozen=True)
class Ablation:
    """A formula found without a network.

    `messages` are summed over the neighbours, and `update` is T' as a formula of these sums; `error` is
    rms(formula − answer)/rms(answer − T) on held-out problems, infinite if nothing was found; `note` then has the
    reason.
    """

    method: str
    messages: dict[str, str]
    update: str
    error: float
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Ablations:
    """The ablations of a recipe, or the reason why there are none."""

    found: tuple[Ablation, ...]
    seconds: float
    reason: str = ""

    def document(self) -> JsonObject:
        """The ablations as plain JSON values; an error that is not finite is null."""
        rows = [{**asdict(each), "error": each.error if math.isfinite(each.error) else None} for each in self.found]
        return {"reason": self.reason, "seconds": self.seconds, "found": rows}


def no_ablation(spec: recipe.Recipe) -> str:
    """The reason why a recipe has no ablation, in one line; an empty string if it has one."""
    network = spec.network
    if spec.loss.supervised is None or spec.loss.residual is not None:
        return "without supervised answers there is nothing to regress"
    if not isinstance(spec.data, recipe.Pairs):
        return "only data of kind 'pairs' are regressed without a network"
    if network.layers * network.hops > 1:
        return "a step of several layers or hops is no sum of one message per neighbour"
    return ""


def ablate(spec: recipe.Recipe) -> Ablations:
    """Both ablations of a one-layer supervised recipe on pairs: the search, and sparse regression.

    The search makes 20/3 times as many evaluations as the recipe's own, within the same limit in seconds, if there is
    one. For a recipe that has no ablation, the result has the reason only.
    """
    began = time.perf_counter()
    if reason := no_ablation(spec):
        return Ablations((), 0.0, reason)
    with jax.enable_x64(True):
        key = jax.random.fold_in(jax.random.key(spec.seed), _KEY)
        draw = _Draw(key, source(spec, dtype="float64"))
        fitted, judged, held = (draw(number) for number in range(3))
        sparse = _regress(edges_of(fitted), edges_of(judged), held, reacts=recipe.equation_of(spec).reaction != 0)
        searched = _search_formula(spec, draw, held)
    return Ablations((searched, sparse), time.perf_counter() - began)


class _Draw(eqx.Module):
    """Batches of the recipe's problems, by number, drawn apart from those of training."""

    key: jax.Array
    batches: Any

    def __call__(self, number: int) -> Problem:
        return _batch(self.batches, jax.random.fold_in(self.key, number))


@eqx.filter_jit
def _batch(batches: Any, key: jax.Array) -> Problem:
    # One batch size, so that this is compiled once.
    drawn: Problem = batches.batch(key, PROBLEMS)
    return drawn


def _regress(fitted: Edges, judged: Edges, held: Problem, *, reacts: bool) -> Ablation:
    began = time.perf_counter()
    sparse = fit_sparse(fitted, judged, reacts=reacts)
    stage = sparse.stage()
    error = held_out_error(stage, held)
    note = f"{len(sparse.terms)} terms at a threshold of {sparse.threshold:.1e} and a ridge of {sparse.ridge:.0e}"
    return _record("sparse regression", stage, error, began, note)


def _record(method: str, stage: Stage, error: float, began: float, note: str) -> Ablation:
    messages = {name: to_text(each.expression) for name, each in stage.messages.items()}
    update = to_text(stage.outputs["T_new"].expression)
    return Ablation(method, messages, update, error, time.perf_counter() - began, note)


def _tabulate_single_messages(draw: _Draw) -> Table | None:
    """Table of T' − T in cells with one message against the quantities of the cell and its edge; None if too few."""
    X, y, rows = [], [], 0
    for number in range(3, 3 + MOST_BATCHES):
        edges = edges_of(draw(number))
        single = edges.single
        slot = edges.mask[single].argmax(axis=1)[:, None]
        columns = [np.take_along_axis(edges.values[symbol(name)][single], slot, axis=1) for name in EDGE_NAMES]
        X.append(np.hstack(columns))
        y.append(edges.change[single])
        rows += len(y[-1])
        # A quarter of the batches with less than a quarter of the cells needed: the others would not be enough.
        if rows >= ROWS or (number == 12 and rows < FEWEST_CELLS // 4):
            break
    return tabulate(EDGE_NAMES, np.vstack(X)[:ROWS], np.concatenate(y)[:ROWS]) if rows >= FEWEST_CELLS else None


def _search_formula(spec: recipe.Recipe, draw: _Draw, held: Problem) -> Ablation:
    """The recipe's own search for a formula of T' − T in cells with one message."""
    method, began = "search without a network", time.perf_counter()
    if (table := _tabulate_single_messages(draw)) is None:
        return Ablation(method, {}, "", math.inf, 0.0, "too few cells of the data have a single message")
    try:
        front = _front(spec, table)
        best = choose_knee(front)
    except DiscoveryError as error:
        return Ablation(method, {}, "", math.inf, time.perf_counter() - began, str(error))
    stage = split_change(best.expression)
    note = f"error {best.error:.1e} on {len(table.y)} cells with a single message"
    note += "; ended by the limit search.seconds" if front.ended_by_clock else ""
    return _record(method, stage, held_out_error(stage, held), began, note)


def _front(spec: recipe.Recipe, table: Table) -> Front:
    """The front of at most two searches; of one, if it fits the data to round-off or was ended by the clock."""
    wanted = spec.search or recipe.Search()
    front = Front(())
    for restart in range(min(wanted.restarts, MOST_RESTARTS)):
        if front.ended_by_clock or front.best_error < EXACT:
            break
        larger = round(wanted.evaluations * MORE_EVALUATIONS)
        search = replace(Search.of_recipe(wanted), restarts=1, population=POPULATION, evaluations=larger)
        front = merge(front, search_front(engine(wanted.engine), table, search, seed=spec.seed + restart))
    return front


def split_change(change: sp.Expr) -> Stage:
    """A formula of T' − T in a cell with one message → a stage for any number of them.

    The terms of the expanded formula that contain T_N, A or δ form the message, which is summed over the neighbours;
    the others belong to the cell and count once.
    """
    terms = sp.Add.make_args(sp.expand(change))
    cell_terms = sp.Add(*(term for term in terms if not term.free_symbols & _OF_EDGE))
    message = sp.factor_terms(sp.Add(*(term for term in terms if term.free_symbols & _OF_EDGE)))
    update = symbol("T") + cell_terms.subs(_OF_CELL) + (symbol("z1") if message != 0 else 0)
    return Stage({"z1": Message(message)} if message != 0 else {}, {"T_new": Output(update)})
