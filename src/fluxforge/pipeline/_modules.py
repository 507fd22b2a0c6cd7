"""The route through the modules: a formula for every MLP, composed, chosen together, and refitted."""

import math
from collections.abc import Mapping
from dataclasses import replace

import jax
import numpy as np

from fluxforge import recipe
from fluxforge.data._source import source
from fluxforge.distil._backend import Search
from fluxforge.distil._compose import Choice, choose
from fluxforge.distil._constants import Fitted, Limit, small_steps
from fluxforge.distil._engines import engine
from fluxforge.distil._front import Candidate, Front, consistent, units_of
from fluxforge.distil._simplify import search_front
from fluxforge.distil._table import Sampled, sample
from fluxforge.errors import DiscoveryError, InputError
from fluxforge.expression._parse import parse
from fluxforge.gnn._network import Network
from fluxforge.pipeline._formula import Formula, limit_rows
from fluxforge.pipeline._problems import (
    REFIT,
    draw_problems,
    ladder,
    needs_small_steps,
    problems_by_step,
    with_steps,
)
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress
from fluxforge.run.result import Evidence, FrontRow, FrontTable, from_document, to_document

# Problems that constants are refitted to, and how many such sets tell the scatter.
REFIT_PROBLEMS, REFIT_SETS = 512, 5
_SAMPLES = 2**29


def fronts_of(
    network: Network, spec: recipe.Recipe, folder: RunFolder, tell: Progress
) -> tuple[list[Sampled], dict[str, Front]]:
    """A table and a search per MLP; searches finished before are read back."""
    assert spec.search is not None
    sampled = _sample_modules(network, spec, spec.search.samples)
    found: dict[str, Front] = {}
    for k, each in enumerate(sampled):
        stage = f"front-{k + 1}"
        if (done := folder.read_stage(stage)) is None:
            tell(f"searching a formula for {each.name} ({each.kind})", k, len(sampled))
            done = to_document(front_table(each, _search_module(each, spec), None))
            folder.finish(stage, done)
        found[each.name] = _read_front(from_document(done, FrontTable, folder.path / "stages" / f"{stage}.json"), each)
    return sampled, found


def _sample_modules(network: Network, spec: recipe.Recipe, rows: int) -> list[Sampled]:
    problems = draw_problems(source(spec), spec, _SAMPLES, rows)
    try:
        return sample(network, problems, rows=rows)
    except InputError as error:  # numbers that are not finite, of a network that overflows
        raise DiscoveryError(f"stage distil: {error}") from error


def _search_module(each: Sampled, spec: recipe.Recipe) -> Front:
    assert spec.search is not None
    wanted = spec.search
    if each.table.is_constant:
        raise DiscoveryError(
            f"stage distil: the network's {each.kind} {each.name!r} is the same number everywhere "
            f"({float(np.mean(each.table.y)):.3g}): it has learned nothing there; train longer, or with other seeds"
        )
    front = search_front(engine(wanted.engine), each.table, Search.of_recipe(wanted), seed=spec.seed)
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
) -> Formula:
    """The simplest combination that does what the network does; where the loss looks ahead, for small steps."""
    assert spec.search is not None
    limit = needs_small_steps(spec)
    with jax.enable_x64(True):
        near = with_steps(spec, ladder(spec)[-1], ladder(spec)[-1]) if limit else spec
        batches = source(near, dtype="float64")
        sets = [draw_problems(batches, spec, REFIT + 7 * k, REFIT_PROBLEMS) for k in range(REFIT_SETS)]
        choice = choose(
            network,
            sampled,
            fronts,
            spec=spec,
            samples=sets,
            network_loss=network_loss,
            threshold=spec.search.threshold,
        )
        tables = {each.name: front_table(each, fronts[each.name], choice.chosen[each.name]) for each in sampled}
        if not limit:
            return Formula(choice.free, choice.fitted, Evidence(fronts=tables, combinations_tried=choice.tried))
        problems = problems_by_step(spec, ladder(spec), REFIT_PROBLEMS)
        found = small_steps(choice.free, spec.loss, problems)
        evidence = Evidence(fronts=tables, combinations_tried=choice.tried, against_step=limit_rows(found))
        return Formula(choice.free, _widen_uncertainty(choice, found), evidence)


def _widen_uncertainty(choice: Choice, found: Limit) -> Fitted:
    """The limit's constants with the larger uncertainty: of the extrapolation, or over sets of samples."""
    both = {name: max(own, choice.fitted.uncertainty[name]) for name, own in found.fitted.uncertainty.items()}
    return replace(found.fitted, uncertainty=both)


def front_table(each: Sampled, front: Front, chosen: Candidate | None) -> FrontTable:
    """A front as a record, and which of its rows was chosen."""
    rows = tuple(FrontRow(complexity=c, error=error, formula=text) for c, error, text in front.rows())
    place = list(front).index(chosen) if chosen is not None else None
    return FrontTable(kind=each.kind, chosen=place, ended_by_clock=front.ended_by_clock, rows=rows)


def _read_front(table: FrontTable, each: Sampled) -> Front:
    """The front of a finished search; an error that is null was not finite."""
    rows = (
        Candidate(parse(row.formula, each.table.names), row.complexity, math.nan if row.error is None else row.error)
        for row in table.rows
    )
    return Front(tuple(rows), table.ended_by_clock is True)
