"""From a recipe to the formula of its network: train, then distil by one of two routes.

The route through the modules searches a formula for every MLP; the formulas are composed, chosen together, and their
constants refitted. The route through the stencil reads what a step does to its neighbours as powers of geometry:
∂T'_P/∂T_N ≈ c A^a δ^b V^v Δt^t over one hop says what the flux is. If the coefficient over two hops is the product of
two such factors, the step is a series in ΔtL; its constants are those of least residual, in the limit of small steps.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import jax
import numpy as np
import sympy as sp

from fluxforge import recipe
from fluxforge._machine import release_programs
from fluxforge.data._source import source
from fluxforge.distil._backend import Search
from fluxforge.distil._compose import choose
from fluxforge.distil._constants import small_steps
from fluxforge.distil._engines import engine
from fluxforge.distil._front import Candidate, Front, consistent, units_of
from fluxforge.distil._simplify import search_front
from fluxforge.distil._stencil import PowerLaw, far_stencil, geometry, layer_stages, power_law, series, stencil, two_hop
from fluxforge.distil._table import Sampled, sample
from fluxforge.errors import DiscoveryError, ExpressionError, InputError, SchemeError
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._network import Network, cast
from fluxforge.loss._loss import step_of
from fluxforge.pde._equation import Equation
from fluxforge.pipeline._folder import training_progress
from fluxforge.pipeline._formula import Distilled, Formula, TrainedMember, law_record, limit_rows, tabulate_front
from fluxforge.pipeline._problems import (
    REFIT,
    choose_member,
    draw_on_meshes,
    draw_problems,
    fresh_problems,
    ladder,
    loss_on,
    needs_small_steps,
    problems_by_step,
    with_shortest_steps,
    with_steps,
)
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, add_seconds
from fluxforge.run.result import Evidence, FrontTable, Laws, from_document, to_document
from fluxforge.train._train import train

# Problems that constants are refitted to, and how many such sets tell the scatter.
REFIT_PROBLEMS, REFIT_SETS = 512, 5
_SAMPLES = 2**29
# A power that is this near to a whole number is that number.
POWER_TOLERANCE = 0.25
PROBLEMS = 24


def train_network(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> TrainedMember:
    """Train all seeds of a recipe, or continue from the last checkpoint, and choose the one of least loss.

    Raises TrainingError if none has a finite loss. Seconds are those of this process.
    """
    seconds: dict[str, float] = {}
    with add_seconds(seconds, "train"):
        trained = train(spec, source(spec), folder=folder, tell=training_progress(tell))
    member = choose_member(trained, spec)
    return TrainedMember(trained.member(member), member, tuple(trained.skipped), seconds)


def distil_network(trained: TrainedMember, spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Distilled:
    """Search the formula of a network by the recipe's route; finished searches are read back from the folder."""
    assert spec.search is not None
    release_programs()
    seconds, network = dict(trained.seconds), trained.network
    loss = measure_network_loss(network, spec)
    formula: Formula | None = None
    refusal: str | None = None
    fronts: dict[str, FrontTable] | None = None
    # Findings about formulas become a refusal. A full disk, too little memory or a fault of the program is none of
    # these: it is raised, and nothing is recorded.
    try:
        if spec.search.route == "stencil":
            with add_seconds(seconds, "distil"):
                formula = read_formula(network, spec=spec, tell=tell)
        else:
            with add_seconds(seconds, "distil"):
                sampled, searched = fronts_of(network, spec, folder, tell)
            fronts = {each.name: tabulate_front(searched[each.name], each.kind, None) for each in sampled}
            with add_seconds(seconds, "refit"):
                tell("choosing formulas and refitting constants", 0, 1)
                formula = compose_formula(network, sampled, searched, spec=spec, network_loss=loss)
    except (DiscoveryError, SchemeError, ExpressionError) as error:
        refusal = str(error)
    return Distilled(trained, formula, refusal, fronts, loss, seconds)


def measure_network_loss(network: Network, spec: recipe.Recipe) -> float:
    """The network's own loss; where the limit of small steps counts, at the shortest it was trained with."""
    with jax.enable_x64(True):
        loss_spec = with_shortest_steps(spec) if needs_small_steps(spec) else spec
        return loss_on(cast(network, "float64"), fresh_problems(source(loss_spec, dtype="float64"), spec), spec)


def fronts_of(
    network: Network, spec: recipe.Recipe, folder: RunFolder, tell: Progress
) -> tuple[list[Sampled], dict[str, Front]]:
    """A table and a search per MLP; searches finished before are read back."""
    assert spec.search is not None
    sampled = sample_modules(network, spec, spec.search.samples)
    fronts: dict[str, Front] = {}
    for k, each in enumerate(sampled):
        stage = f"front-{k + 1}"
        if (done := folder.read_stage(stage)) is None:
            tell(f"searching a formula for {each.name} ({each.kind})", k, len(sampled))
            done = to_document(tabulate_front(search_module(each, spec), each.kind, None))
            folder.finish(stage, done)
        fronts[each.name] = _read_front(from_document(done, FrontTable, folder.stage_path(stage)), each)
    return sampled, fronts


def sample_modules(network: Network, spec: recipe.Recipe, rows: int) -> list[Sampled]:
    """A table of inputs and outputs per MLP; raises DiscoveryError where a network overflows."""
    problems = draw_problems(source(spec), spec, _SAMPLES, rows)
    try:
        return sample(network, problems, rows=rows)
    except InputError as error:  # numbers that are not finite, of a network that overflows
        raise DiscoveryError(f"stage distil: {error}") from error


def search_module(each: Sampled, spec: recipe.Recipe) -> Front:
    """The candidate formulas of an MLP; raises DiscoveryError where it is constant, or where all of them mix units."""
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


def compose_formula(
    network: Network,
    sampled: list[Sampled],
    fronts: Mapping[str, Front],
    *,
    spec: recipe.Recipe,
    network_loss: float,
) -> Formula:
    """The simplest combination that does what the network does; where the loss looks ahead, for small steps."""
    assert spec.search is not None
    at_small_steps = needs_small_steps(spec)
    with jax.enable_x64(True):
        near = with_steps(spec, ladder(spec)[-1], ladder(spec)[-1]) if at_small_steps else spec
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
        tables = {}
        for each in sampled:
            place = list(fronts[each.name]).index(choice.chosen[each.name])
            tables[each.name] = tabulate_front(fronts[each.name], each.kind, place)
        if not at_small_steps:
            return Formula(choice.free, choice.fitted, Evidence(fronts=tables, combinations_tried=choice.tried))
        problems = problems_by_step(spec, ladder(spec), REFIT_PROBLEMS)
        limit = small_steps(choice.free, spec.loss, problems)
        evidence = Evidence(fronts=tables, combinations_tried=choice.tried, against_step=limit_rows(limit))
        # The larger uncertainty: of the extrapolation, or over sets of samples.
        both = {name: max(error, choice.fitted.uncertainty[name]) for name, error in limit.fitted.uncertainty.items()}
        return Formula(choice.free, replace(limit.fitted, uncertainty=both), evidence)


def _read_front(table: FrontTable, each: Sampled) -> Front:
    """The front of a finished search; an error that is null was not finite."""
    rows = (
        Candidate(parse(row.formula, each.table.names), row.complexity, math.nan if row.error is None else row.error)
        for row in table.rows
    )
    return Front(tuple(rows), table.ended_by_clock is True)


def read_formula(network: Network, *, spec: recipe.Recipe, tell: Progress) -> Formula:
    """The stencil's structure with the constants of small steps."""
    with jax.enable_x64(True):
        tell("reading the stencil", 0, 2)
        near, far = read_laws(network, spec)
        flux = flux_of_law(near, recipe.equation_of(spec))
        whole = _is_whole(far)
        # Over two hops the network's own error may blur the powers; whether the flux repeated is what it does is then
        # judged by how much that explains. Powers that are whole and others than twice the flux's are no such case.
        if whole and not is_repeated(near, far):
            raise DiscoveryError(
                f"stage distil: the stencil over two hops, {describe_law(far)}, is not the flux repeated"
            )
        tell("fitting its constants at small steps", 1, 2)
        order = spec.network.layers * spec.network.hops
        problems = problems_by_step(spec, ladder(spec), PROBLEMS)
        start = series(step_of(cast(network, "float64")), problems[ladder(spec)[1]], order).nested
        free = two_hop(flux, start) if spec.network.hops == 2 else layer_stages(flux, start, spec.network.layers)
        limit = small_steps(free, spec.loss, problems)
    evidence = Evidence(
        against_step=limit_rows(limit), laws=Laws(near=law_record(near), far=law_record(far, whole)), order=order
    )
    return Formula(free, limit.fitted, evidence)


def read_laws(network: Network, spec: recipe.Recipe) -> tuple[PowerLaw, PowerLaw]:
    """Of one hop and of two, at the shortest steps trained with: at longer ones further terms bend both."""
    step = step_of(cast(network, "float64"))
    low = with_shortest_steps(spec).data
    assert isinstance(spec.data, recipe.Meshes)
    assert isinstance(low, recipe.Meshes)
    close = draw_on_meshes(spec, low.fourier)
    near = power_law(stencil(step, close), geometry(close))
    values, columns = far_stencil(step, close)
    return near, power_law(values, columns)


def flux_of_law(law: PowerLaw, equation: Equation) -> sp.Expr:
    """K A^a δ^b with the equation's K, α of heat, if the stencil is that over V times Δt."""
    powers = _whole_powers(law, "over one hop")
    if powers["V"] != -1 or powers["dt"] != 1:
        raise DiscoveryError(f"stage distil: the stencil over one hop, {describe_law(law)}, is no flux times Δt/V")
    return equation.diffusion * symbol("A") ** powers["A"] * symbol("delta") ** powers["delta"]


def is_repeated(near: PowerLaw, far: PowerLaw) -> bool:
    """Whether two hops are one hop twice: A_PN^a δ_PN^b /V_P · A_NQ^a δ_NQ^b /V_N · Δt²."""
    one, two = _whole_powers(near, "over one hop"), _whole_powers(far, "over two hops")
    legs = all(two[f"{name}_{leg}"] == one[name] for name in ("A", "delta") for leg in ("PN", "NQ"))
    return legs and two["V_P"] == two["V_N"] == one["V"] and two["dt"] == 2 * one["dt"]


def _is_whole(law: PowerLaw) -> bool:
    """Whether every power is near a whole number."""
    return all(
        math.isfinite(power) and abs(power - round(power)) <= POWER_TOLERANCE for power in law.exponents.values()
    )


def _whole_powers(law: PowerLaw, where: str) -> dict[str, int]:
    if not _is_whole(law):
        raise DiscoveryError(
            f"stage distil: the stencil {where}, {describe_law(law)}, is no product of whole powers; train longer"
        )
    return {name: round(power) for name, power in law.exponents.items()}


def describe_law(law: PowerLaw) -> str:
    """A power law as text."""
    return f"{law.factor:.3f} " + " ".join(f"{name}^{power:.2f}" for name, power in law.exponents.items())
