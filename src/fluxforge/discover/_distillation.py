"""Train, distil, refit, certify: from a recipe to a scheme that is believed, or to the reason why none is."""

import math
import time
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from fluxforge import recipe
from fluxforge.data import AbstractSource, Problem, source, unseen_meshes, unseen_problems
from fluxforge.discover._folder import environment
from fluxforge.discover._progress import Progress, training_progress
from fluxforge.distil import (
    Candidate,
    Choice,
    Front,
    Sampled,
    Search,
    choose,
    engine,
    geometry,
    power_law,
    sample,
    stencil,
)
from fluxforge.errors import DiscoveryError, FluxforgeError
from fluxforge.expression import parse, to_text
from fluxforge.gnn import Network, cast
from fluxforge.loss import data_loss, step_of
from fluxforge.run import RunFolder
from fluxforge.scheme import Scheme, Stage
from fluxforge.simulate import staged
from fluxforge.train import Trained, train
from fluxforge.verify.extrapolation import step_errors

# Problems that constants are refitted to, and how many such sets tell the scatter.
REFIT_PROBLEMS, REFIT_SETS = 512, 5
# Formula and network agree if their stencils differ by less than this, in the mean.
AGREEMENT = 0.1
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_SAMPLES, _REFIT, _JUDGE = 2**29, 2**29 + 1, 2**29 + 2


def distilled(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> tuple[dict[str, Any], Choice | None]:
    """The document of a run up to the formula, and the formula; seconds per stage are of this process."""
    seconds: dict[str, float] = {}
    with _timed(seconds, "train"):
        trained = train(spec, source(spec), folder=folder, tell=training_progress(tell))
    network, member = _best(trained, spec)
    document: dict[str, Any] = {
        "recipe": spec.name,
        "seed": spec.seed,
        "diffusivity": spec.diffusivity,
        "member": member,
        "environment": environment(),
        "seconds": seconds,
        "recovered": False,
        "reasons": [],
    }
    assert spec.search is not None
    batches = source(spec)
    with _timed(seconds, "distil"):
        sampled = sample(network, _drawn(batches, spec, _SAMPLES, spec.search.samples), rows=spec.search.samples)
        fronts = _fronts(sampled, spec, folder, tell)
    document["fronts"] = {each.name: _front_document(each, fronts[each.name], None) for each in sampled}
    with _timed(seconds, "refit"), jax.enable_x64(True):
        tell("choosing formulas and refitting constants", 0, 1)
        wide = source(spec, dtype="float64")
        samples = [_drawn(wide, spec, _REFIT + 7 * k, REFIT_PROBLEMS) for k in range(REFIT_SETS)]
        reference = _loss_of(cast(network, "float64"), samples[0], spec)
        try:
            choice = choose(
                network,
                sampled,
                fronts,
                spec=spec,
                samples=samples,
                network_loss=reference,
                threshold=spec.search.threshold,
            )
        except FluxforgeError as error:
            document["reasons"].append(str(error))
            return document, None
    document |= _chosen_document(choice, sampled, fronts, reference)
    with _timed(seconds, "check"):
        tell("checking the stencil", 0, 2)
        document["stencil"] = _stencil_document(network, choice, spec)
        tell("measuring on unseen meshes", 1, 2)
        document["evaluation"] = _evaluation(network, choice, spec)
    return document, choice


class _timed:  # noqa: N801
    """Seconds of a block, added under a name."""

    def __init__(self, seconds: dict[str, float], name: str) -> None:
        self._seconds, self._name = seconds, name

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._name] = self._seconds.get(self._name, 0.0) + time.perf_counter() - self._start


def _drawn(batches: AbstractSource, spec: recipe.Recipe, number: int, count: int) -> Problem:
    """Problems like those of the training, which it has not seen."""
    key = jax.random.fold_in(jax.random.key(spec.seed), number)
    drawn: Problem = eqx.filter_jit(lambda key: batches.batch(key, count))(key)
    return drawn


def _loss_of(network: Network, problems: Problem, spec: recipe.Recipe) -> float:
    terms = eqx.filter_jit(data_loss(spec.loss))(network, problems)
    return float(sum(terms.values()))


def _best(trained: Trained, spec: recipe.Recipe) -> tuple[Network, int]:
    """Of several seeds the one with the least loss on problems none has seen."""
    fresh = _drawn(source(spec), spec, _JUDGE, 512)
    losses = [math.inf if trained.failed[k] else _loss_of(trained.member(k), fresh, spec) for k in range(trained.seeds)]
    best = int(np.argmin(losses))
    return trained.member(best), best


def _fronts(sampled: list[Sampled], spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> dict[str, Front]:
    """A search per MLP; those finished before are read back."""
    assert spec.search is not None
    wanted = spec.search
    chosen = engine(wanted.engine)
    found: dict[str, Front] = {}
    for k, each in enumerate(sampled):
        done = folder.finished(f"front-{k + 1}")
        if done is not None:
            found[each.name] = _front_from(done, each)
            continue
        if each.table.is_constant:
            raise DiscoveryError(
                f"stage distil: the network's {each.kind} {each.name!r} is the same number everywhere "
                f"({float(np.mean(each.table.y)):.3g}): it has learned nothing there; train longer, or with other seeds"
            )
        tell(f"searching a formula for {each.name} ({each.kind})", k, len(sampled))
        search = Search(
            operators=tuple(OPERATORS.get(name, name) for name in wanted.operators),
            max_complexity=wanted.most_complex,
            seconds=wanted.seconds,
            restarts=wanted.restarts,
        )
        found[each.name] = chosen.fit(each.table, search, seed=spec.seed)
        folder.finish(f"front-{k + 1}", _front_document(each, found[each.name], None))
    return found


def _front_document(each: Sampled, front: Front, chosen: Candidate | None) -> dict[str, Any]:
    rows = [{"complexity": c, "error": error, "formula": text} for c, error, text in front.rows()]
    place = list(front).index(chosen) if chosen is not None else None
    return {"kind": each.kind, "chosen": place, "rows": rows}


def _front_from(document: Mapping[str, Any], each: Sampled) -> Front:
    return Front(
        tuple(
            Candidate(parse(row["formula"], each.table.names), int(row["complexity"]), float(row["error"]))
            for row in document["rows"]
        )
    )


def _chosen_document(
    choice: Choice, sampled: list[Sampled], fronts: Mapping[str, Front], reference: float
) -> dict[str, Any]:
    stages = choice.free.filled(choice.fitted.chosen)
    fitted = choice.fitted
    return {
        "fronts": {each.name: _front_document(each, fronts[each.name], choice.chosen[each.name]) for each in sampled},
        "messages": {name: to_text(m.expression) for stage in stages for name, m in stage.messages.items()},
        "outputs": {name: to_text(o.expression) for stage in stages for name, o in stage.outputs.items()},
        "constants": dict(fitted.values),
        "constants_uncertainty": dict(fitted.uncertainty),
        "rational": {name: str(value) for name, value in fitted.rational.items()},
        "combinations_tried": choice.tried,
        "loss": {"network": reference, "formula": fitted.loss, "rational": fitted.rational_loss},
    }


def scheme_of(choice: Choice, name: str) -> Scheme:
    """The chosen formulas as a scheme like any other."""
    stages = choice.free.filled(choice.fitted.chosen)
    return Scheme(f"discovered-{name}", stages, summary=f"discovered by the recipe {name}")


def _step_of(stages: tuple[Stage, ...]) -> Any:
    return lambda p: staged(stages, p.around, p.T, p.S, parameters={"dt": p.dt, "alpha": p.diffusivity})


def _stencil_document(network: Network, choice: Choice, spec: recipe.Recipe) -> dict[str, Any]:
    """The stencil's power law from the network alone, beside the formula's, and how far the stencils are apart."""
    with jax.enable_x64(True):
        problems = _drawn(source(spec, dtype="float64"), spec, _JUDGE + 1, 1000)
        columns = geometry(problems)
        theirs = stencil(step_of(cast(network, "float64")), problems)
        ours = stencil(_step_of(choice.free.filled(choice.fitted.chosen)), problems)
    apart = float(np.abs(theirs - ours).mean() / np.abs(ours).mean()) if len(ours) else math.inf
    laws = {name: vars(power_law(values, columns)) for name, values in (("network", theirs), ("formula", ours))}
    return {**laws, "difference": apart, "agree": apart <= AGREEMENT}


def _evaluation(network: Network, choice: Choice, spec: recipe.Recipe) -> dict[str, Any]:
    """One step and a rollout on unseen meshes, of network and formula, against the first-order scheme."""
    wanted = spec.evaluation
    if not wanted.meshes:
        return {"meshes": 0}
    with jax.enable_x64(True):
        around = unseen_meshes(wanted, spec.seed)
        problems = unseen_problems(around, spec.seed, fourier=wanted.fourier, diffusivity=spec.diffusivity)
        steps = {
            "network": step_of(cast(network, "float64")),
            "formula": _step_of(choice.free.filled(choice.fitted.chosen)),
        }
        found = {name: step_errors(step, problems, rollout=wanted.rollout) for name, step in steps.items()}
    return {"meshes": wanted.meshes, "cells": wanted.cells, "rollout": wanted.rollout, **found}
