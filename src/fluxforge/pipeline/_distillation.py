"""The steps from a recipe to a formula with a verdict: train, distil, judge."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import equinox as eqx
import jax
import numpy as np

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.certify.bounds._errors import step_errors
from fluxforge.data._problem import Problem, exact_step
from fluxforge.data._source import source
from fluxforge.distil._constants import own_limit, read_constants
from fluxforge.distil._objective import Objective
from fluxforge.distil._stencil import geometry, power_law, stencil
from fluxforge.errors import DiscoveryError, ExpressionError, SchemeError, TrainingError
from fluxforge.gnn._flux_form import FluxNetwork
from fluxforge.gnn._network import AbstractNetwork, Network, cast
from fluxforge.loss._loss import data_loss, defect_of, mean_defect, norm_of, step_of
from fluxforge.pipeline import _modules, _stencil_route
from fluxforge.pipeline._folder import training_progress
from fluxforge.pipeline._formula import Condition, Formula, NetworkConstants, Verdict, judge, law_condition, law_record
from fluxforge.pipeline._problems import (
    draw_problems,
    evaluation_problems,
    judged_steps,
    needs_small_steps,
    problems_by_step,
    with_shortest_steps,
)
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, add_seconds
from fluxforge.run.result import Evaluation, FrontTable, StencilCheck, StepErrors
from fluxforge.train._train import Trained, train

# Stencils of formula and network are called alike if they differ by less than this, in the mean.
AGREEMENT = 0.1
_JUDGE = 2**29 + 2
# Problems at each Δt on which a formula is held against its network: of pairs, of meshes.
_PROBLEMS = (256, 48)
# Problems on which a formula is held against the law under noise: the more, the smaller a wrong term that is seen.
_NOISY = (4096, 64)


@dataclass(frozen=True)
class TrainedMember:
    """The network of least loss of a training, its index among the seeds, and the steps each seed skipped.

    Index and steps are None of a network that was trained elsewhere.
    """

    network: Network
    member: int | None = None
    skipped: tuple[int, ...] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Distilled:
    """The formula of a network, or the reason why there is none.

    `fronts` are the candidates of each MLP, None of a route that has none or did not get there; `network_loss` is the
    network's own loss.
    """

    trained: TrainedMember
    formula: Formula | None
    refusal: str | None
    fronts: Mapping[str, FrontTable] | None
    network_loss: float
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Judged:
    """A verdict, its reasons, and the formula as it is printed, with what was measured of it.

    `fitted` has the constants of least loss. An approximation is printed with the network's own constants instead.
    """

    distilled: Distilled
    verdict: Verdict
    reasons: tuple[str, ...]
    formula: Formula | None
    fitted: Formula | None
    constants: NetworkConstants | None
    stencil: StencilCheck | None
    evaluation: Evaluation | None
    seconds: Mapping[str, float]

    @property
    def recovered(self) -> bool:
        """Whether the formula is what the network learned."""
        return self.verdict == "recovered"


def train_network(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> TrainedMember:
    """Train all seeds of a recipe, or continue from the last checkpoint, and choose the one of least loss.

    Raises TrainingError if none has a finite loss. Seconds are those of this process.
    """
    seconds: dict[str, float] = {}
    with add_seconds(seconds, "train"):
        trained = train(spec, source(spec), folder=folder, tell=training_progress(tell))
    network, member = _choose_member(trained, spec)
    return TrainedMember(network, member, tuple(trained.skipped), seconds)


def distil_network(trained: TrainedMember, spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Distilled:
    """Search the formula of a network by the recipe's route; finished searches are read back from the folder."""
    assert spec.search is not None
    seconds, network = dict(trained.seconds), trained.network
    loss = _network_loss(network, spec)
    formula: Formula | None = None
    refusal: str | None = None
    fronts: dict[str, FrontTable] | None = None
    # Findings about formulas become a refusal. A full disk, too little memory or a fault of the program is none of
    # these: it is raised, and nothing is recorded.
    try:
        if spec.search.route == "stencil":
            with add_seconds(seconds, "distil"):
                formula = _stencil_route.formula(network, spec=spec, tell=tell)
        else:
            with add_seconds(seconds, "distil"):
                sampled, found = _modules.fronts_of(network, spec, folder, tell)
            fronts = {each.name: _modules.front_table(each, found[each.name], None) for each in sampled}
            with add_seconds(seconds, "refit"):
                tell("choosing formulas and refitting constants", 0, 1)
                formula = _modules.formula(network, sampled, found, spec=spec, network_loss=loss)
    except (DiscoveryError, SchemeError, ExpressionError) as error:
        refusal = str(error)
    return Distilled(trained, formula, refusal, fronts, loss, seconds)


def judge_formula(distilled: Distilled, spec: recipe.Recipe, tell: Progress) -> Judged:
    """Hold a formula against its network and its data: the verdict, and errors on unseen meshes."""
    seconds, network, formula = dict(distilled.seconds), distilled.trained.network, distilled.formula
    if formula is None:
        return Judged(distilled, "refused", (distilled.refusal or "",), None, None, None, None, None, seconds)
    with add_seconds(seconds, "judge"):
        tell("reading the formula's constants from the network", 0, 1)
        own = read_network(network, formula, spec)
        judgement = judge(own.readings, threshold=_threshold(spec), law=_condition_on_law(formula, spec))
        if judgement.verdict == "recovered":
            formula = replace(formula, fitted=replace(formula.fitted, rational=own.agreeing_fractions(formula.fitted)))
        printed = formula if judgement.verdict == "recovered" else own.put_into(formula)
    with add_seconds(seconds, "check"):
        tell("checking the stencil", 0, 2)
        alike = _compare_stencils(network, printed, spec)
        tell("measuring on unseen meshes", 1, 2)
        errors = _measure_errors(network, printed, spec)
    reasons = tuple(judgement.reasons)
    return Judged(distilled, judgement.verdict, reasons, printed, formula, own, alike, errors, seconds)


def read_network(network: Network, formula: Formula, spec: recipe.Recipe) -> NetworkConstants:
    """The formula's constants as the network has them, at Δt across the trained range and in their limit."""
    with jax.enable_x64(True):
        count = _PROBLEMS[isinstance(spec.data, recipe.Meshes)]
        problems = problems_by_step(spec, judged_steps(spec), count, _JUDGE + 2)
        step = step_of(cast(network, "float64"))
        readings = read_constants(formula.free, step, spec.loss, problems, start=formula.fitted.values)
    limit, uncertainty = own_limit(readings, formula.fitted.values if needs_small_steps(spec) else None)
    return NetworkConstants(readings, limit, uncertainty)


def _threshold(spec: recipe.Recipe) -> float:
    assert spec.search is not None
    return spec.search.explain


def _condition_on_law(formula: Formula, spec: recipe.Recipe) -> Condition | None:
    """The condition on the refitted loss. A residual has none: no explicit formula is its minimum."""
    if spec.loss.supervised is None:
        return None
    if not spec.data.noise:
        return law_condition(formula.fitted.loss, exact=formula.fitted.exact, data_error=0.0)
    least, error = _noisy_losses(formula, spec)
    return law_condition(least, exact=False, data_error=error)


def _noisy_losses(formula: Formula, spec: recipe.Recipe) -> tuple[float, float]:
    """The least loss of a formula on noisy data, and the loss of the law itself on the same data."""
    with jax.enable_x64(True):
        count = _NOISY[isinstance(spec.data, recipe.Meshes)]
        problems = draw_problems(source(spec, dtype="float64"), spec, _JUDGE + 3, count)
        defect, norm = defect_of(spec.loss), norm_of(spec.loss)
        each = jax.jit(jax.vmap(lambda p: mean_defect(defect(p, exact_step(p, p.T)), p, norm)))(problems)
        start = np.array(list(formula.fitted.values.values()), float)
        return Objective.of_loss(formula.free, spec.loss).fit(problems, start=start).loss, float(each.mean())


def _choose_member(trained: Trained, spec: recipe.Recipe) -> tuple[Network, int]:
    """Of several seeds the one with the least loss on problems none has seen."""
    best = _least_loss(trained, spec, [trained.member(k) for k in range(trained.seeds)])
    return trained.member(best), best


def choose_flux_member(trained: Trained, spec: recipe.Recipe) -> tuple[FluxNetwork, int]:
    """The same of networks in the form of a flux."""
    best = _least_loss(trained, spec, [trained.flux_member(k) for k in range(trained.seeds)])
    return trained.flux_member(best), best


def _least_loss(trained: Trained, spec: recipe.Recipe, members: Sequence[AbstractNetwork]) -> int:
    fresh = draw_problems(source(spec), spec, _JUDGE, 64 if isinstance(spec.data, recipe.Meshes) else 512)
    losses = [math.inf if trained.failed[k] else _loss_of(each, fresh, spec) for k, each in enumerate(members)]
    best = least_finite(losses)
    if best is None:
        failed = sum(bool(trained.failed[k]) for k in range(trained.seeds))
        raise TrainingError(
            f"none of the {trained.seeds} trained networks has a finite loss on problems it has not seen "
            f"({failed} of them failed in training): lower training.learning_rate, or change the seed"
        )
    return best


def least_finite(losses: Sequence[float]) -> int | None:
    """The place of the least finite loss; None where none is finite. (argmin would choose the first NaN.)"""
    finite = [k for k, loss in enumerate(losses) if math.isfinite(loss)]
    return min(finite, key=lambda k: losses[k], default=None)


def _network_loss(network: Network, spec: recipe.Recipe) -> float:
    """The network's own loss; where the limit of small steps counts, at the shortest it was trained with."""
    with jax.enable_x64(True):
        asked = with_shortest_steps(spec) if needs_small_steps(spec) else spec
        fresh = draw_problems(
            source(asked, dtype="float64"), spec, _JUDGE, 64 if isinstance(spec.data, recipe.Meshes) else 512
        )
        return _loss_of(cast(network, "float64"), fresh, spec)


def _loss_of(network: AbstractNetwork, problems: Problem, spec: recipe.Recipe) -> float:
    terms = eqx.filter_jit(data_loss(spec.loss))(network, problems)
    return float(sum(terms.values()))


def _compare_stencils(network: Network, formula: Formula, spec: recipe.Recipe) -> StencilCheck:
    """The stencil's power law from the network alone, beside the formula's, and how far the stencils are apart.

    An empty record if one of them is no power law: a formula without neighbours, for instance, which is refused anyway.
    """
    with jax.enable_x64(True):
        problems = _close_problems(spec)
        columns = geometry(problems)
        theirs = stencil(step_of(cast(network, "float64")), problems)
        ours = stencil(formula.step, problems)
    size = float(np.abs(ours).mean()) if len(ours) else 0.0
    apart = float(np.abs(theirs - ours).mean()) / size if size else math.inf
    try:
        learned, found = (law_record(power_law(values, columns)) for values in (theirs, ours))
    except DiscoveryError:
        return StencilCheck()
    return StencilCheck(network=learned, formula=found, difference=apart, agree=apart <= AGREEMENT)


def _close_problems(spec: recipe.Recipe) -> Problem:
    """Where stencils are compared: at the shortest steps trained with, if only those determine the formula."""
    asked = with_shortest_steps(spec) if needs_small_steps(spec) else spec
    if isinstance(asked.data, recipe.Meshes):
        return _stencil_route.draw_on_meshes(spec, asked.data.fourier)
    return draw_problems(source(asked, dtype="float64"), spec, _JUDGE + 1, 1000)


def _measure_errors(network: Network, formula: Formula, spec: recipe.Recipe) -> Evaluation:
    """One step and a rollout on unseen meshes, of network and formula, against the law of the data."""
    wanted = spec.evaluation
    if not wanted.meshes:
        return Evaluation(meshes=0)
    with jax.enable_x64(True):
        problems = evaluation_problems(spec)
        steps: dict[str, Callable[[Problem], State]] = {
            "network": step_of(cast(network, "float64")),
            "formula": formula.step,
        }
        errors = {
            name: StepErrors(**step_errors(step, problems, rollout=wanted.rollout)) for name, step in steps.items()
        }
    return Evaluation(meshes=wanted.meshes, cells=wanted.cells, rollout=wanted.rollout, **errors)
