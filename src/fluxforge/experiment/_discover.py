"""A discovery from experiments: data, network, reduction, network of the reduced flux, search, verdict."""

import math
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge.distil._front import Candidate, Front, merge
from fluxforge.distil._table import Table
from fluxforge.experiment._data import make_dataset
from fluxforge.experiment._fit import ROUND_OFF, FittedFormula, fit_formula
from fluxforge.experiment._network import FluxNetwork, load_network, train_network
from fluxforge.experiment._properties import Check, Probe, Separation, find_separation, separate
from fluxforge.experiment._reduce import reduce_flux
from fluxforge.experiment._scheme import Comparison, compare_flux, guard_formula, simplify_flux
from fluxforge.experiment._search import PER_SYMBOL, search_parts, search_rounds, tabulate_network
from fluxforge.experiment._setup import Dataset, Form, evaluate_on, whole_form
from fluxforge.run._checkpoint import Checkpoints
from fluxforge.run._progress import Progress, Warn, add_seconds
from fluxforge.run.result import list_reasons

# A reduced network that errs by more than this multiple of the whole one's error contradicts the reduction.
REDUCTION_RATIO = 1.5
# With larger errors of the data than this, relative to their size, formulas cannot be distinguished.
LARGEST_DATA_ERROR = 0.01
# Even the true law differs from held-out data by their noise, and a network by more, up to chance. A formula may be
# worse than the network by this factor.
NETWORK_RATIO = 1.05
# Candidates whose error on the table exceeds this multiple of the network's own error, and of the least error of the
# front, are not fitted to the data.
CANDIDATE_RATIO = 30.0
# Numbers of the steps, from which their random seeds are derived.
_WHOLE, _REDUCED, _TESTS, _SEARCH = 1, 2, 3, 4


@dataclass(frozen=True, eq=False)
class Trained:
    """The data, a network of the whole flux, the properties tested on it, and a network of the reduced flux.

    `separation` describes how the function of the reduced flux separates; None if it does not.
    """

    data: Dataset
    whole: FluxNetwork
    reduced: FluxNetwork
    checks: tuple[Check, ...]
    separation: Separation | None
    seconds: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Discovered:
    """The formula and its verdict, with the reasons; `flux` is the formula in the symbols of schemes.

    `explained` is 1 − rms(formula − network)/rms(network) on held-out samples, −∞ without a formula.
    """

    trained: Trained
    front: Front
    ended_by_clock: bool
    formula: FittedFormula | None
    flux: sp.Expr | None
    guarded: bool
    explained: float
    verdict: str
    reasons: tuple[str, ...]
    textbook: Comparison | None
    seconds: Mapping[str, float]


def train_and_reduce(
    spec: recipe.Recipe, tell: Progress, folder: Path | None = None, warn: Warn = lambda _: None
) -> Trained:
    """Measure the fluxes, train a network of them, reduce it, and train the network of the reduced flux.

    Networks are saved in `folder`, if given, and loaded from it if they exist already; an interrupted training
    continues from its last checkpoint there. `warn` is called with a line about a damaged network or checkpoint.
    """
    seconds: dict[str, float] = {}
    with add_seconds(seconds, "data"):
        tell("measuring fluxes by brute force", 0, 1)
        data = make_dataset(spec)
    with add_seconds(seconds, "train"):
        form = whole_form(data.experiment)
        whole = _train(form, data, spec, _WHOLE, tell, folder, warn)
    with add_seconds(seconds, "reduce"):
        tell("testing the network", 0, 1)
        probe = Probe(data.experiment, whole, data.size, np.random.default_rng([spec.seed, _TESTS]))
        reduction = reduce_flux(probe)
        reduced = _train(reduction.form, data, spec, _REDUCED, tell, folder, warn)
    confirmed = reduced.error <= max(REDUCTION_RATIO * whole.error, REDUCTION_RATIO * data.relative_error)
    words = "a network of the reduced form is no worse on held-out data than that of the whole flux"
    checks = (
        *reduction.checks,
        Check("reduction", words, reduced.error, REDUCTION_RATIO * whole.error, used=confirmed),
    )
    if not confirmed:
        checks = tuple(replace(check, used=False) for check in checks)
        reduced = whole
    with add_seconds(seconds, "reduce"):
        separation, check = _test_separation(reduced, data, spec)
    return Trained(data, whole, reduced, checks if check is None else (*checks, check), separation, seconds)


def _test_separation(
    network: FluxNetwork, data: Dataset, spec: recipe.Recipe
) -> tuple[Separation | None, Check | None]:
    """The separation of g, or None, and the check of it, or None for a g of one column or without variation."""
    assert spec.search is not None
    table = tabulate_network(network, data, spec.search.samples)
    separation, check = (None, None) if table.is_constant else find_separation(network, table)
    return separation, None if check is None else replace(check, used=separation is not None)


def _train(
    form: Form, data: Dataset, spec: recipe.Recipe, step: int, tell: Progress, folder: Path | None, warn: Warn
) -> FluxNetwork:
    name, what = ("network", "the flux") if step == _WHOLE else ("reduced", "its reduction")
    path = None if folder is None else folder / f"{name}.safetensors"
    if path is not None and path.exists():
        if (kept := load_network(path, form)) is not None:
            return kept
        warn(f"{path}: is damaged, or not a network of this run: the network is trained again")
    place = None if folder is None else folder / f"training-{name}"
    checkpoints = None if place is None else Checkpoints(place, warn=warn)

    def report_step(step: int, steps: int, error: float) -> None:
        tell(f"training a network of {what} (error {error:.1e})", step, steps)

    trained = train_network(form, data, spec, key=random_key(spec, step), tell=report_step, checkpoints=checkpoints)
    if path is not None and place is not None:
        trained.save(path)
        # The saved network replaces the checkpoints.
        shutil.rmtree(place, ignore_errors=True)
    return trained


def discover_flux(trained: Trained, spec: recipe.Recipe, tell: Progress) -> Discovered:
    """Search a formula of the reduced flux, fit it to the data, and judge it."""
    assert spec.search is not None
    seconds = dict(trained.seconds)
    with add_seconds(seconds, "search"):
        outcome = _search(trained, spec, tell)
    formula, network = outcome.formula, trained.whole
    explained, flux, guarded = -math.inf, None, False
    if formula is not None:
        held = trained.data.held_out
        theirs = network(held.samples)
        ours = evaluate_on(held.samples, formula.flux)
        explained = 1.0 - float(np.sqrt(np.mean((ours - theirs) ** 2) / np.mean(theirs**2)))
        g, guarded = guard_formula(formula.g, trained.reduced.form.names)
        flux = simplify_flux(trained.reduced.form.compose(g))
    verdict, reasons = _judge(formula, explained, trained, spec)
    textbook = None
    if flux is not None and spec.textbook is not None:
        textbook = compare_flux(flux, spec.textbook, trained.data.experiment)
    return Discovered(
        trained,
        outcome.front,
        outcome.ended_by_clock,
        formula,
        flux,
        guarded,
        explained,
        verdict,
        reasons,
        textbook,
        seconds,
    )


@dataclass(frozen=True)
class _SearchOutcome:
    front: Front
    formula: FittedFormula | None
    ended_by_clock: bool


def _search(trained: Trained, spec: recipe.Recipe, tell: Progress) -> _SearchOutcome:
    """Search until a formula agrees with the data; after the last round, the one of least error and length is taken."""
    assert spec.search is not None
    network, data = trained.reduced, trained.data
    table = tabulate_network(network, data, spec.search.samples)
    if table.is_constant:
        return _SearchOutcome(Front(()), fit_formula(sp.Float(float(np.mean(table.y))), network.form, data), False)
    front, clock = Front(()), False
    tried: dict[str, FittedFormula | None] = {}
    for number, more in enumerate(_search_fronts(trained, table, spec), start=1):
        tell(f"searching (error {front.best_error if front.candidates else 1.0:.1e})", number, number + 1)
        front, clock = merge(front, more), clock or more.ended_by_clock
        best = front.best_error
        # The front of this round, too: a formula dropped by `merge`, worse on the network, may be better on the data.
        for candidate in (*more, *front):
            if candidate.text in tried or candidate.error > max(
                CANDIDATE_RATIO * best, CANDIDATE_RATIO * network.error
            ):
                continue
            tried[candidate.text] = fitted = fit_formula(candidate.expression, network.form, data)
            if fitted is not None and fitted.agrees and _is_no_worse(fitted, network):
                return _SearchOutcome(front, fitted, clock)
    return _SearchOutcome(front, _choose_least(front, tried), clock)


def _is_no_worse(formula: FittedFormula, network: FluxNetwork) -> bool:
    """Whether the formula's error on held-out data is at most NETWORK_RATIO times the network's.

    A formula with a larger error misses more than noise, even if it agrees with the data within error bars that are
    too large.
    """
    return formula.error <= NETWORK_RATIO * network.error + ROUND_OFF


def _search_fronts(trained: Trained, table: Table, spec: recipe.Recipe) -> Iterator[Front]:
    """The fronts of successive searches: for the parts of g, if it separates, then for g itself."""
    assert spec.search is not None
    seed, separation = random_key(spec, _SEARCH), trained.separation
    if separation is not None:
        values = separate(trained.reduced, table, separation)
        parts = tuple(
            Table(tuple(table.names[k] for k in group), table.X[:, list(group)], part)
            for group, part in zip(separation.groups, values, strict=True)
        )
        yield search_parts(table, (parts[0], parts[1]), separation, spec.search, seed=seed)
    yield from search_rounds(table, spec.search, seed=seed)


def _choose_least(front: Front, tried: Mapping[str, FittedFormula | None]) -> FittedFormula | None:
    """The formula that minimises log error + PER_SYMBOL · complexity, with its error on held-out data; None if none."""

    def cost(candidate: Candidate) -> float:
        fitted = tried.get(candidate.text)
        return math.inf if fitted is None else math.log(max(fitted.error, 1e-9)) + PER_SYMBOL * candidate.complexity

    chosen = min(front, key=cost, default=None)
    return None if chosen is None else tried.get(chosen.text)


def _judge(
    formula: FittedFormula | None, explained: float, trained: Trained, spec: recipe.Recipe
) -> tuple[str, tuple[str, ...]]:
    """The verdict (recovered, approximation or refused), and one line per condition, with yes or NO."""
    assert spec.search is not None
    data = trained.data
    if formula is None:
        return "refused", ("NO: a formula of the reduced flux was found",)
    within = f"{formula.share:.1%} of held-out fluxes within 3 estimated errors ({data.relative_error:.1e} rms)"
    error = f"the formula's error on held-out fluxes is {formula.error:.1e} (limit {spec.search.threshold:g})"
    least = min(spec.search.explain, 1.0 - 1.5 * trained.whole.error)
    checks = {
        f"{error}": formula.error <= spec.search.threshold,
        f"it agrees with the data: {within}": formula.agrees,
        f"its error on held-out fluxes is at most {NETWORK_RATIO:g} times that of the network, "
        f"{trained.reduced.error:.1e}": (_is_no_worse(formula, trained.reduced)),
        f"it explains {explained:.1%} of the network's flux (at least {least:.1%} is required)": explained >= least,
        f"the data are accurate enough: error {data.relative_error:.1e} (limit {LARGEST_DATA_ERROR:g})": (
            data.relative_error <= LARGEST_DATA_ERROR
        ),
    }
    reasons = list_reasons(checks)
    if all(checks.values()):
        return "recovered", reasons
    return ("approximation" if formula.error <= spec.search.threshold else "refused"), reasons


def random_key(spec: recipe.Recipe, step: int) -> int:
    """A random seed for one step of a run, derived from the recipe's seed."""
    return int(np.random.SeedSequence([spec.seed, step]).generate_state(1)[0] % 2**31)
