"""The route through the modules: a formula for every MLP, composed, chosen together, and refitted."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from fluxforge import recipe
from fluxforge.data import source
from fluxforge.distil import (
    Candidate,
    Choice,
    Fitted,
    Front,
    Limit,
    Sampled,
    Search,
    choose,
    consistent,
    engine,
    sample,
    small_steps,
    units_of,
)
from fluxforge.errors import DiscoveryError, InputError
from fluxforge.expression import parse
from fluxforge.gnn import Network
from fluxforge.pipeline._found import Found
from fluxforge.pipeline._progress import Progress
from fluxforge.pipeline._small_steps import (
    REFIT,
    drawn,
    in_the_limit,
    ladder,
    problems_by_step,
    with_steps,
)
from fluxforge.run import RunFolder

# Problems that constants are refitted to, and how many such sets tell the scatter.
REFIT_PROBLEMS, REFIT_SETS = 512, 5
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_SAMPLES = 2**29


def fronts_of(
    network: Network, spec: recipe.Recipe, folder: RunFolder, tell: Progress
) -> tuple[list[Sampled], dict[str, Front]]:
    """A table and a search per MLP; searches finished before are read back."""
    assert spec.search is not None
    sampled = _sampled(network, spec, spec.search.samples)
    found: dict[str, Front] = {}
    for k, each in enumerate(sampled):
        done = folder.finished(f"front-{k + 1}")
        if done is None:
            tell(f"searching a formula for {each.name} ({each.kind})", k, len(sampled))
            done = front_document(each, _searched(each, spec), None)
            folder.finish(f"front-{k + 1}", done)
        found[each.name] = _front_from(done, each)
    return sampled, found


def _sampled(network: Network, spec: recipe.Recipe, rows: int) -> list[Sampled]:
    problems = drawn(source(spec), spec, _SAMPLES, rows)
    try:
        return sample(network, problems, rows=rows)
    except InputError as error:  # numbers that are not finite, of a network that overflows
        raise DiscoveryError(f"stage distil: {error}") from error


def _searched(each: Sampled, spec: recipe.Recipe) -> Front:
    assert spec.search is not None
    wanted = spec.search
    if each.table.is_constant:
        raise DiscoveryError(
            f"stage distil: the network's {each.kind} {each.name!r} is the same number everywhere "
            f"({float(np.mean(each.table.y)):.3g}): it has learned nothing there; train longer, or with other seeds"
        )
    search = Search(
        operators=tuple(OPERATORS.get(name, name) for name in wanted.operators),
        max_complexity=wanted.most_complex,
        evaluations=wanted.evaluations,
        seconds=wanted.seconds,
        restarts=wanted.restarts,
    )
    front = engine(wanted.engine).fit(each.table, search, seed=spec.seed)
    if not wanted.units:
        return front
    kept = consistent(front, units_of(each.table.names, recipe.equation_of(spec)))
    if not kept.candidates:
        raise DiscoveryError(
            f"stage distil: every formula found for {each.name!r} mixes units; set search.units = false"
        )
    return kept


def formula(
    network: Network,
    sampled: list[Sampled],
    fronts: Mapping[str, Front],
    *,
    spec: recipe.Recipe,
    network_loss: float,
) -> Found:
    """The simplest combination that does what the network does; where the loss looks ahead, for small steps."""
    assert spec.search is not None
    limit = in_the_limit(spec)
    with jax.enable_x64(True):
        near = with_steps(spec, ladder(spec)[-1], ladder(spec)[-1]) if limit else spec
        batches = source(near, dtype="float64")
        sets = [drawn(batches, spec, REFIT + 7 * k, REFIT_PROBLEMS) for k in range(REFIT_SETS)]
        choice = choose(
            network,
            sampled,
            fronts,
            spec=spec,
            samples=sets,
            network_loss=network_loss,
            threshold=spec.search.threshold,
        )
        more: dict[str, Any] = {
            "fronts": {
                each.name: front_document(each, fronts[each.name], choice.chosen[each.name]) for each in sampled
            },
            "combinations_tried": choice.tried,
        }
        if not limit:
            return Found(choice.free, choice.fitted, more)
        problems = problems_by_step(spec, ladder(spec), REFIT_PROBLEMS)
        found = small_steps(choice.free, spec.loss, problems)
        more["against_step"] = found.rows()
        return Found(choice.free, _surer(choice, found), more)


def _surer(choice: Choice, found: Limit) -> Fitted:
    """The limit's constants with the larger uncertainty: of the extrapolation, or over sets of samples."""
    both = {name: max(own, choice.fitted.uncertainty[name]) for name, own in found.fitted.uncertainty.items()}
    return replace(found.fitted, uncertainty=both)


def front_document(each: Sampled, front: Front, chosen: Candidate | None) -> dict[str, Any]:
    """A front as plain JSON, and which of its rows was chosen."""
    rows = [{"complexity": c, "error": error, "formula": text} for c, error, text in front.rows()]
    place = list(front).index(chosen) if chosen is not None else None
    return {"kind": each.kind, "chosen": place, "ended_by_clock": front.ended_by_clock, "rows": rows}


def _front_from(document: Mapping[str, Any], each: Sampled) -> Front:
    return Front(
        tuple(
            Candidate(parse(row["formula"], each.table.names), int(row["complexity"]), float(row["error"]))
            for row in document["rows"]
        ),
        bool(document.get("ended_by_clock", False)),
    )
