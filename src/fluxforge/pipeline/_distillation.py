"""From a recipe to the formula of its network: train, then distil by one of two routes.

The route `modules` searches a formula for every MLP; one candidate per MLP is chosen such that their composition
describes the network, and its constants are refitted. The route `stencil` fits the Jacobian of a step by powers of the
geometry: ∂T'_P/∂T_N ≈ c A^a δ^b V^v Δt^t over one hop gives the flux. If the coefficient over two hops is the product
of two such factors, the step is a series in ΔtL; its constants are those of least residual as Δt → 0.
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

# Problems per set that constants are refitted to, and number of independent sets, from which their scatter follows.
REFIT_PROBLEMS, REFIT_SETS = 512, 5
# Key of the problems on which MLPs are sampled.
_SAMPLES = 2**29
# A fitted power is taken as the nearest whole number if it differs from it by no more than this.
POWER_TOLERANCE = 0.25
# Number of problems per Δt to which the constants of the route `stencil` are fitted.
PROBLEMS = 24


def train_network(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> TrainedMember:
    """Train all seeds of a recipe, or continue from the last checkpoint, and choose the network of least loss.

    Raises TrainingError if none has a finite loss. The seconds do not include those of an interrupted process.
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
    # Only these errors are findings about formulas, and become a refusal. Others, such as a full disk or too little
    # memory, are raised, and nothing is recorded.
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
    """The mean loss of the network on fresh problems, in float64.

    If the loss determines a formula for small steps only, at the shortest time steps of the training.
    """
    with jax.enable_x64(True):
        loss_spec = with_shortest_steps(spec) if needs_small_steps(spec) else spec
        return loss_on(cast(network, "float64"), fresh_problems(source(loss_spec, dtype="float64"), spec), spec)


def fronts_of(
    network: Network, spec: recipe.Recipe, folder: RunFolder, tell: Progress
) -> tuple[list[Sampled], dict[str, Front]]:
    """For each MLP its table of samples and the front of its search; finished searches are read back."""
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
    """A table of inputs and outputs per MLP, of `rows` rows; raises DiscoveryError if the network overflows."""
    problems = draw_problems(source(spec), spec, _SAMPLES, rows)
    try:
        return sample(network, problems, rows=rows)
    except InputError as error:  # the values of a network that overflows are not finite
        raise DiscoveryError(f"stage distil: {error}") from error


def search_module(each: Sampled, spec: recipe.Recipe) -> Front:
    """The candidate formulas of an MLP; raises DiscoveryError if it is constant or all candidates mix units."""
    assert spec.search is not None
    wanted = spec.search
    if each.table.is_constant:
        raise DiscoveryError(
            f"stage distil: the network's {each.kind} {each.name!r} has the same value for all inputs "
            f"({float(np.mean(each.table.y)):.3g}), so no formula can be fitted; train longer, or with other seeds"
        )
    front = search_front(engine(wanted.engine), each.table, Search.of_recipe(wanted), seed=spec.seed)
    if not wanted.units:
        return front
    kept = consistent(front, units_of(each.table.names, recipe.equation_of(spec)))
    if not kept.candidates:
        raise DiscoveryError(
            f"stage distil: no formula found for {each.name!r} is consistent in its units; set search.units = false"
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
    """The simplest combination of candidates that reproduces the network, with refitted constants.

    If the loss determines a formula for small steps only, its constants are extrapolated to Δt = 0.
    """
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
        # The larger of two uncertainties: of the extrapolation, and over the sets of samples.
        both = {name: max(error, choice.fitted.uncertainty[name]) for name, error in limit.fitted.uncertainty.items()}
        return Formula(choice.free, replace(limit.fitted, uncertainty=both), evidence)


def _read_front(table: FrontTable, each: Sampled) -> Front:
    """The front of a finished search from its record, in which an error that was not finite is null."""
    rows = (
        Candidate(parse(row.formula, each.table.names), row.complexity, math.nan if row.error is None else row.error)
        for row in table.rows
    )
    return Front(tuple(rows), table.ended_by_clock is True)


def read_formula(network: Network, *, spec: recipe.Recipe, tell: Progress) -> Formula:
    """The formula by the route `stencil`: its structure from powers of the geometry, its constants in the limit Δt → 0.

    Raises DiscoveryError if the powers are not those of a flux, or over two hops of another one than the flux repeated.
    """
    with jax.enable_x64(True):
        tell("reading the stencil", 0, 2)
        near, far = read_laws(network, spec)
        flux = flux_of_law(near, recipe.equation_of(spec))
        whole = _is_whole(far)
        # Over two hops the fitted powers need not be whole, because of the network's own error. The repeated flux is
        # then tested only by how much of the network it explains. Whole powers that differ from it refute it.
        if whole and not is_repeated(near, far):
            raise DiscoveryError(
                f"stage distil: the stencil over two hops, {describe_law(far)}, is not that of the flux applied twice"
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
    """The power laws of the stencil over one hop and over two, at the shortest time steps of the training.

    At longer ones, terms of higher order in Δt contribute to both.
    """
    step = step_of(cast(network, "float64"))
    low = with_shortest_steps(spec).data
    assert isinstance(spec.data, recipe.Meshes)
    assert isinstance(low, recipe.Meshes)
    close = draw_on_meshes(spec, low.fourier)
    near = power_law(stencil(step, close), geometry(close))
    values, columns = far_stencil(step, close)
    return near, power_law(values, columns)


def flux_of_law(law: PowerLaw, equation: Equation) -> sp.Expr:
    """The flux K A^a δ^b, K of the equation, if Δt/V times the flux has this stencil; otherwise DiscoveryError."""
    powers = _whole_powers(law, "over one hop")
    if powers["V"] != -1 or powers["dt"] != 1:
        raise DiscoveryError(f"stage distil: the stencil over one hop, {describe_law(law)}, is not Δt/V times a flux")
    return equation.diffusion * symbol("A") ** powers["A"] * symbol("delta") ** powers["delta"]


def is_repeated(near: PowerLaw, far: PowerLaw) -> bool:
    """Whether the law over two hops is that over one hop twice: A_PN^a δ_PN^b /V_P · A_NQ^a δ_NQ^b /V_N · Δt²."""
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
            f"stage distil: the stencil {where}, {describe_law(law)}, has exponents that are not integers; train longer"
        )
    return {name: round(power) for name, power in law.exponents.items()}


def describe_law(law: PowerLaw) -> str:
    """A power law as text: its factor with three decimals, then each name with its power, as in `0.998 A^1.01`."""
    return f"{law.factor:.3f} " + " ".join(f"{name}^{power:.2f}" for name, power in law.exponents.items())
