"""Formulas of the coefficients of a network in the form of a flux: search, choice and the order in time.

Formulas of coefficients have to keep the network's order in time. With order 2 they are searched as g in
c = 1 + total/(1 + total) g. Whatever g is, as long as it is bounded as Δt → 0, what c adds to the integrator is of
third order in Δt. A candidate that is not bounded there, such as one with 1/total or log(total), is left out. With
order 1, c itself is searched, and candidates that grow as a power of 1/Δt are left out: with those the limit of small
steps is another equation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge._types import CellField
from fluxforge.distil._backend import Search
from fluxforge.distil._engines import engine
from fluxforge.distil._front import Candidate, Front
from fluxforge.distil._simplify import search_front
from fluxforge.distil._table import Table
from fluxforge.errors import DiscoveryError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._flux_form import FluxNetwork, learned_part
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._equation import Equation
from fluxforge.pipeline._carry import FIELDS, Case, initial_field, mesh_parameters, relative_error, unseen_mesh
from fluxforge.pipeline._carry_checks import LEAST_KEPT
from fluxforge.run._progress import Progress
from fluxforge.run.result import FrontRow, FrontTable
from fluxforge.scheme._weighted import face_invariants
from fluxforge.stepping._frozen_flux import face_coefficients, face_numbers

# Formulas are chosen on a mesh of its own: neither trained on nor among those of the table.
_CHOOSING, _CHOICE_CELLS = 7, 400
_SAMPLED = (0.1, 0.3, 0.6, 1.0)
# Errors of the coefficients, from coarse to fine, among which the shortest formulas that keep enough are looked for.
_LEVELS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.0)
# `total` at which g is looked at, and the most it may still change by from one to the next, relative to its size or to
# 1: log(total) changes by seven, 1/total a thousandfold, √total by 1e-4.
_SMALL = (1e-8, 1e-11, 1e-14)
_SETTLED = 1e-3
# The most that a coefficient may grow by from one to the next: log(total) grows by a third, 1/√total by 31.
_GROWS = 10.0
# Values of the other numbers, which lie between 0 and 1; those of a reaction, r Δt, vanish with Δt.
_OTHERS = np.array([0.05, 0.17, 0.4])


@dataclass(frozen=True)
class Distilled:
    """Formulas of the faces' numbers, by coefficient, the share of the gain they keep, and all candidates."""

    formulas: Mapping[str, sp.Expr]
    kept: float
    fronts: Mapping[str, FrontTable]


def distil_coefficients(
    network: FluxNetwork, values: Mapping[str, recipe.Value], spec: recipe.Recipe, tell: Progress
) -> Distilled:
    """Search a formula for each coefficient, and take the shortest that together keep the network's gain.

    Raises DiscoveryError where none do.
    """
    assert spec.search is not None
    limits = Search.of_recipe(spec.search)
    fronts: dict[str, Front] = {}
    names = [each.coefficient.name for each in network.weighted]
    for k, name in enumerate(names):
        tell(f"searching a formula for {name}", k, len(names))
        table = sample_coefficient(network, k, values, spec)
        fronts[name] = impose_order(
            search_front(engine(spec.search.engine), table, limits, seed=spec.seed), network.order
        )
    gain = _Gain(network, values, spec)
    best: tuple[float, dict[str, int]] = (-np.inf, {})
    for level in _LEVELS:
        chosen = {name: _choose_shortest(front, level) for name, front in fronts.items()}
        kept = gain([fronts[name].candidates[k].expression for name, k in chosen.items()])
        best = max(best, (kept, chosen), key=lambda pair: pair[0])
        if kept >= LEAST_KEPT:
            best = (kept, chosen)
            break
    kept, chosen = best
    if kept == -np.inf:
        raise DiscoveryError("the network gains nothing over its integrator at a step that formulas are chosen by")
    if kept < LEAST_KEPT:
        raise DiscoveryError(
            f"the best formulas keep {kept:.0%} of the network's gain over its integrator (at least {LEAST_KEPT:.0%})"
        )
    formulas = {name: fronts[name].candidates[k].expression for name, k in chosen.items()}
    return Distilled(formulas, kept, {name: _front_table(front, chosen[name]) for name, front in fronts.items()})


def sample_coefficient(
    network: FluxNetwork, stage: int, values: Mapping[str, recipe.Value], spec: recipe.Recipe
) -> Table:
    """Coefficients of a stage at faces of an unseen mesh, over the steps trained with; with order 2 the g in them."""
    assert spec.search is not None
    assert isinstance(spec.data, recipe.Meshes)
    graph, own = choose_mesh(network.equation, values, spec)
    names = tuple(face_invariants(network.equation))
    columns, outputs = [], []
    for share in _SAMPLED:
        case = Case(graph, network.equation, own, share * spec.data.fourier[1])
        numbers = face_numbers(network.equation, graph, case.dt, parameters=own)
        found = face_coefficients(network, graph, case.dt, parameters=own)[stage]
        used = graph.slot_mask
        columns.append(np.stack([numbers[name][used] for name in names], axis=1))
        outputs.append(learned_values(found[used], numbers["total"][used], network.order))
    X, y = np.concatenate(columns), np.concatenate(outputs)
    kept = np.random.default_rng(spec.seed).permutation(len(y))[: spec.search.samples]
    return Table(names, X[kept], y[kept])


def choose_mesh(
    equation: Equation, values: Mapping[str, recipe.Value], spec: recipe.Recipe
) -> tuple[DualGraph, Settings]:
    """The mesh on which formulas are chosen, and the parameters on it."""
    assert isinstance(spec.data, recipe.Meshes)
    graph = dual(unseen_mesh(_CHOICE_CELLS, spec.seed + _CHOOSING))
    own = mesh_parameters(equation, values, graph, jumps=spec.data.jumps, seed=spec.seed + _CHOOSING)
    return graph, own


class _Gain:
    """The share of the network's gain over its integrator that formulas keep: the least of both kinds of field."""

    def __init__(self, network: FluxNetwork, values: Mapping[str, recipe.Value], spec: recipe.Recipe) -> None:
        assert isinstance(spec.data, recipe.Meshes)
        self.network = network
        graph, own = choose_mesh(network.equation, values, spec)
        self.cases = [Case(graph, network.equation, own, share * spec.data.fourier[1]) for share in (0.4, 0.85)]
        self.fields = [initial_field(graph, kind, spec.seed + _CHOOSING, network.equation) for kind in FIELDS]
        self.exact = [[case.resolve(T) for T in self.fields] for case in self.cases]

    def __call__(self, formulas: Sequence[sp.Expr]) -> float:
        found = []
        for case, exact in zip(self.cases, self.exact, strict=True):
            steps = (case.formula(self.network, formulas), case.step(self.network), case.plain(self.network))
            for T, wanted in zip(self.fields, exact, strict=True):
                ours, networks, plain = (relative_error(step(T), wanted, T) for step in steps)
                found.append((plain - ours) / (plain - networks) if plain > networks else -np.inf)
        finite = [each if np.isfinite(each) else -np.inf for each in found]
        return float(min(finite))


def _choose_shortest(front: Front, level: float) -> int:
    """The shortest candidate whose error is at most the level, or the one of least error."""
    errors = [candidate.error for candidate in front.candidates]
    return next((k for k, error in enumerate(errors) if error <= level), int(np.argmin(errors)))


def _front_table(front: Front, chosen: int) -> FrontTable:
    rows = tuple(FrontRow(complexity=each.complexity, error=each.error, formula=each.text) for each in front.candidates)
    return FrontTable(kind="coefficient", chosen=chosen, ended_by_clock=front.ended_by_clock, rows=rows)


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
    return np.array(
        [_evaluate_at(g, {name: t * _OTHERS if _vanishes(name) else _OTHERS for name in names}) for t in _SMALL]
    )


def _vanishes(name: str) -> bool:
    return name == "total" or name.startswith("reaction")


def _evaluate_at(g: sp.Expr, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        found = evaluate(g, {symbol(name): each for name, each in numbers.items()}, np)
    return np.broadcast_to(np.asarray(found, dtype=float), _OTHERS.shape)
