"""Train, distil, refit, judge: from a recipe to a formula with a verdict, or to the reason why there is none."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import numpy as np

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.certify.bounds import step_errors
from fluxforge.data import Problem, exact_step, hops_of, model_of, source, unseen_meshes, unseen_problems
from fluxforge.distil import Objective, geometry, own_limit, power_law, read_constants, stencil
from fluxforge.errors import DiscoveryError, ExpressionError, SchemeError, TrainingError
from fluxforge.gnn import Network, cast
from fluxforge.loss import averaged, data_loss, defect_of, norm_of, step_of
from fluxforge.pde import HEAT
from fluxforge.pipeline import _modules, _stencil_route
from fluxforge.pipeline._folder import environment
from fluxforge.pipeline._found import Found, Own
from fluxforge.pipeline._judge import Condition, judge, law_condition
from fluxforge.pipeline._progress import Progress, training_progress
from fluxforge.pipeline._small_steps import (
    drawn,
    in_the_limit,
    judged_steps,
    problems_by_step,
    shortest,
    timed,
)
from fluxforge.run import RunFolder
from fluxforge.scheme import Hop
from fluxforge.train import Trained, train

# Stencils of formula and network are called alike if they differ by less than this, in the mean.
AGREEMENT = 0.1
_JUDGE = 2**29 + 2
# Problems at each Δt on which a formula is held against its network: of pairs, of meshes.
_PROBLEMS = (256, 48)
# Problems on which a formula is held against the law under noise: the more, the smaller a wrong term that is seen.
_NOISY = (4096, 64)


def distilled(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> tuple[dict[str, Any], Found | None]:
    """The document of a run up to the formula, and the formula; seconds per stage are of this process."""
    seconds: dict[str, float] = {}
    with timed(seconds, "train"):
        trained = train(spec, source(spec), folder=folder, tell=training_progress(tell))
    network, member = _best(trained, spec)
    document: dict[str, Any] = {
        "recipe": spec.name,
        "seed": spec.seed,
        **_physics(spec),
        "member": member,
        "update": spec.network.update,
        "skipped": list(trained.skipped),
        "environment": environment(),
        "seconds": seconds,
    }
    return explained(network, spec, folder, document=document, tell=tell)


def _physics(spec: recipe.Recipe) -> dict[str, Any]:
    """The equation by name and the values of its parameters; of heat also its α under the word `diffusivity`."""
    model = model_of(spec)
    words = {"diffusivity": recipe.diffusivity_of(spec)} if model.equation == HEAT else {}
    return {"equation": model.equation.name, "parameters": dict(model.values), **words}


def explained(
    network: Network, spec: recipe.Recipe, folder: RunFolder, *, document: dict[str, Any], tell: Progress
) -> tuple[dict[str, Any], Found | None]:
    """A trained network's document with its verdict, and its formula if there is one."""
    document |= {"verdict": "refused", "recovered": False, "reasons": []}
    seconds = document.setdefault("seconds", {})
    reference = _reference(network, spec)
    try:
        found = _route(network, spec, folder, document=document, reference=reference, tell=tell)
    except (DiscoveryError, SchemeError, ExpressionError) as error:
        # Findings about formulas. A full disk, too little memory or a fault of the program is none: it is raised, and
        # nothing is recorded.
        document["reasons"].append(str(error))
        return document, None
    with timed(seconds, "judge"):
        tell("reading the formula's constants from the network", 0, 1)
        own = read_network(network, found, spec)
        judgement = judge(own.readings, threshold=_threshold(spec), law=_law(found, spec))
        if judgement.verdict == "recovered":
            found = replace(found, fitted=replace(found.fitted, rational=own.agreeing(found.fitted)))
        document["constants_fitted"] = {
            "values": dict(found.fitted.values),
            "uncertainty": dict(found.fitted.uncertainty),
        }
        printed = found if judgement.verdict == "recovered" else own.filled_into(found)
    document |= printed.document(reference) | own.document(found.more.get("against_step", ()))
    document |= {"verdict": judgement.verdict, "recovered": judgement.verdict == "recovered"}
    document["reasons"] = judgement.reasons
    with timed(seconds, "check"):
        tell("checking the stencil", 0, 2)
        document["stencil"] = _stencil_document(network, printed, spec)
        tell("measuring on unseen meshes", 1, 2)
        document["evaluation"] = _evaluation(network, printed, spec)
    return document, printed


def read_network(network: Network, found: Found, spec: recipe.Recipe) -> Own:
    """The formula's constants as the network has them, at Δt across the trained range and in their limit."""
    with jax.enable_x64(True):
        count = _PROBLEMS[isinstance(spec.data, recipe.Meshes)]
        problems = problems_by_step(spec, judged_steps(spec), count, _JUDGE + 2)
        step = step_of(cast(network, "float64"))
        readings = read_constants(found.free, step, spec.loss, problems, start=found.fitted.values)
    limit, uncertainty = own_limit(readings, found.fitted.values if in_the_limit(spec) else None)
    return Own(readings, limit, uncertainty)


def _threshold(spec: recipe.Recipe) -> float:
    assert spec.search is not None
    return spec.search.explain


def _law(found: Found, spec: recipe.Recipe) -> Condition | None:
    """The condition on the refitted loss. A residual has none: no explicit formula is its minimum."""
    if spec.loss.supervised is None:
        return None
    if not spec.data.noise:
        return law_condition(found.fitted.loss, exact=found.fitted.exact, data_error=0.0)
    least, error = _noisy_losses(found, spec)
    return law_condition(least, exact=False, data_error=error)


def _noisy_losses(found: Found, spec: recipe.Recipe) -> tuple[float, float]:
    """The least loss of a formula on noisy data, and the loss of the law itself on the same data."""
    with jax.enable_x64(True):
        count = _NOISY[isinstance(spec.data, recipe.Meshes)]
        problems = drawn(source(spec, dtype="float64"), spec, _JUDGE + 3, count)
        defect, norm = defect_of(spec.loss), norm_of(spec.loss)
        each = jax.jit(jax.vmap(lambda p: averaged(defect(p, exact_step(p, p.T)), p, norm)))(problems)
        start = np.array(list(found.fitted.values.values()), float)
        return Objective.of_loss(found.free, spec.loss).fit(problems, start=start).loss, float(each.mean())


def _route(
    network: Network,
    spec: recipe.Recipe,
    folder: RunFolder,
    *,
    document: dict[str, Any],
    reference: float,
    tell: Progress,
) -> Found:
    assert spec.search is not None
    seconds = document["seconds"]
    if spec.search.route == "stencil":
        with timed(seconds, "distil"):
            return _stencil_route.formula(network, spec=spec, tell=tell)
    with timed(seconds, "distil"):
        sampled, fronts = _modules.fronts_of(network, spec, folder, tell)
    document["ended_by_clock"] = [name for name, front in fronts.items() if front.ended_by_clock]
    document["fronts"] = {each.name: _modules.front_document(each, fronts[each.name], None) for each in sampled}
    with timed(seconds, "refit"):
        tell("choosing formulas and refitting constants", 0, 1)
        return _modules.formula(network, sampled, fronts, spec=spec, network_loss=reference)


def _best(trained: Trained, spec: recipe.Recipe) -> tuple[Network, int]:
    """Of several seeds the one with the least loss on problems none has seen."""
    fresh = drawn(source(spec), spec, _JUDGE, 64 if isinstance(spec.data, recipe.Meshes) else 512)
    losses = [math.inf if trained.failed[k] else _loss_of(trained.member(k), fresh, spec) for k in range(trained.seeds)]
    best = least_finite(losses)
    if best is None:
        failed = sum(bool(trained.failed[k]) for k in range(trained.seeds))
        raise TrainingError(
            f"none of the {trained.seeds} trained networks has a finite loss on problems it has not seen "
            f"({failed} of them failed in training): lower training.learning_rate, or change the seed"
        )
    return trained.member(best), best


def least_finite(losses: Sequence[float]) -> int | None:
    """The place of the least finite loss; None where none is finite. (argmin would choose the first NaN.)"""
    finite = [k for k, loss in enumerate(losses) if math.isfinite(loss)]
    return min(finite, key=lambda k: losses[k], default=None)


def _reference(network: Network, spec: recipe.Recipe) -> float:
    """The network's own loss; where the limit of small steps counts, at the shortest it was trained with."""
    with jax.enable_x64(True):
        asked = shortest(spec) if in_the_limit(spec) else spec
        fresh = drawn(source(asked, dtype="float64"), spec, _JUDGE, 64 if isinstance(spec.data, recipe.Meshes) else 512)
        return _loss_of(cast(network, "float64"), fresh, spec)


def _loss_of(network: Network, problems: Problem, spec: recipe.Recipe) -> float:
    terms = eqx.filter_jit(data_loss(spec.loss))(network, problems)
    return float(sum(terms.values()))


def _stencil_document(network: Network, found: Found, spec: recipe.Recipe) -> dict[str, Any]:
    """The stencil's power law from the network alone, beside the formula's, and how far the stencils are apart.

    Nothing if one of them is no power law: a formula without neighbours, for instance, which is refused anyway.
    """
    with jax.enable_x64(True):
        problems = _close_problems(spec)
        columns = geometry(problems)
        theirs = stencil(step_of(cast(network, "float64")), problems)
        ours = stencil(found.step, problems)
    size = float(np.abs(ours).mean()) if len(ours) else 0.0
    apart = float(np.abs(theirs - ours).mean()) / size if size else math.inf
    try:
        laws = {name: vars(power_law(values, columns)) for name, values in (("network", theirs), ("formula", ours))}
    except DiscoveryError:
        return {}
    return {**laws, "difference": apart, "agree": apart <= AGREEMENT}


def _close_problems(spec: recipe.Recipe) -> Problem:
    """Where stencils are compared: at the shortest steps trained with, if only those determine the formula."""
    asked = shortest(spec) if in_the_limit(spec) else spec
    if isinstance(asked.data, recipe.Meshes):
        return _stencil_route.asked(spec, asked.data.fourier)
    return drawn(source(asked, dtype="float64"), spec, _JUDGE + 1, 1000)


def _evaluation(network: Network, found: Found, spec: recipe.Recipe) -> dict[str, Any]:
    """One step and a rollout on unseen meshes, of network and formula, against the law of the data."""
    wanted = spec.evaluation
    if not wanted.meshes:
        return {"meshes": 0}
    with jax.enable_x64(True):
        around = unseen_meshes(wanted, spec.seed, hops={*hops_of(spec.network), Hop.PATH})
        model = model_of(spec)
        law = recipe.exchange_law(spec.data, model.equation)
        problems = unseen_problems(around, spec.seed, fourier=wanted.fourier, model=model, law=law)
        steps: dict[str, Callable[[Problem], State]] = {
            "network": step_of(cast(network, "float64")),
            "formula": found.step,
        }
        errors = {name: step_errors(step, problems, rollout=wanted.rollout) for name, step in steps.items()}
    return {"meshes": wanted.meshes, "cells": wanted.cells, "rollout": wanted.rollout, **errors}
