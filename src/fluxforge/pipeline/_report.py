"""The record of a run that searches a formula, and its report with fields computed by network, formula and law."""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge._machine import environment
from fluxforge._types import CellField, State
from fluxforge.data._ensemble import evaluation_meshes
from fluxforge.data._model import model_of
from fluxforge.data._problem import Problem, exact_step
from fluxforge.data._source import source
from fluxforge.errors import FluxforgeError, InputError, InstabilityError
from fluxforge.gnn._network import Network, cast
from fluxforge.loss._loss import step_of
from fluxforge.mesh._mesh import Mesh
from fluxforge.pde._equation import HEAT
from fluxforge.pipeline._folder import command_of, recipe_of
from fluxforge.pipeline._formula import Certified, take_step
from fluxforge.pipeline._outcome import Outcome
from fluxforge.pipeline._problems import evaluation_problems
from fluxforge.report._discovery_page import write_discovery
from fluxforge.run._folder import RunFolder
from fluxforge.run.result import AblationResults, Constants, Discovery, Loss
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._picture import comparison_figures
from fluxforge.train._optimise import optimiser
from fluxforge.train._step import begin

# Index of the evaluation mesh whose fields are drawn: meshes alternate regular and irregular, so the first irregular.
DRAWN_MESH = 1
Step = Callable[[Problem], State]


def describe_certified(certified: Certified, spec: recipe.Recipe) -> Discovery:
    """The record of a run up to its certificate; fields of a stage that was not reached are absent."""
    judged = certified.judged
    distilled, fronts = judged.distilled, judged.distilled.fronts
    discovery = Discovery(
        recipe=spec.name,
        seed=spec.seed,
        member=distilled.trained.member,
        skipped=distilled.trained.skipped,
        seconds=dict(certified.seconds),
        verdict=judged.verdict,
        recovered=judged.verdict == "recovered",
        reasons=judged.reasons,
        ended_by_clock=None if fronts is None else tuple(n for n, front in fronts.items() if front.ended_by_clock),
        fronts=None if fronts is None else dict(fronts),
    )
    formula, fitted, constants = judged.formula, judged.fitted, judged.constants
    if formula is None or fitted is None or constants is None or certified.certificate is None:
        return discovery
    evidence, readings = formula.evidence, constants.rows()
    steps = sorted((*(evidence.against_step or ()), *readings), key=lambda row: -row.step)
    return replace(
        discovery,
        fronts=evidence.fronts or discovery.fronts,
        constants_fitted=Constants(values=dict(fitted.fitted.values), uncertainty=dict(fitted.fitted.uncertainty)),
        messages=formula.messages,
        outputs=formula.outputs,
        constants=dict(formula.fitted.values),
        constants_uncertainty=dict(formula.fitted.uncertainty),
        rational={name: str(value) for name, value in formula.fitted.rational.items()},
        loss=Loss(network=distilled.network_loss, formula=formula.fitted.loss, rational=formula.fitted.rational_loss),
        combinations_tried=evidence.combinations_tried,
        # Only the constants of a formula for small steps are extrapolated to Δt = 0.
        against_step=tuple(steps) if evidence.against_step else None,
        laws=evidence.laws,
        order=evidence.order,
        explained=constants.explained,
        limit=dict(constants.limit),
        limit_uncertainty=dict(constants.uncertainty),
        readings=readings,
        stencil=judged.stencil,
        evaluation=judged.evaluation,
        as_expected=certified.as_expected,
        scheme=certified.match,
        findings=certified.findings,
        order_in_time=certified.order_in_time,
        certificate=certified.certificate.to_document(),
    )


def describe_discovery(certified: Certified, ablations: AblationResults, spec: recipe.Recipe) -> Outcome[Discovery]:
    """The outcome of a run: its whole record, with equation, environment and ablations, and scheme and certificate."""
    model, described = model_of(spec), describe_certified(certified, spec)
    result = replace(
        described,
        equation=model.equation.name,
        parameters=dict(model.values),
        # For heat, α is also recorded as `diffusivity`, its name in recipes.
        diffusivity=recipe.diffusivity_of(spec) if model.equation == HEAT else None,
        update=spec.network.update,
        environment=environment(),
        expected=spec.expect,
        as_expected=bool(described.as_expected),
        ablations=ablations,
        seconds={**described.seconds, "ablations": ablations.seconds},
    )
    return Outcome(result, certified.scheme, certified.certificate)


def report_formula(outcome: Outcome[Discovery], folder: RunFolder, into: Path) -> list[Path]:
    """Write the report of a run and its figures; returns their paths."""
    result, scheme = outcome.result, outcome.scheme
    return write_discovery(
        result,
        into,
        scheme=scheme,
        certificate=outcome.certificate,
        metrics=folder.metrics.read(),
        command=command_of(folder),
        pictures={} if scheme is None else draw_fields(scheme, recipe_of(folder), folder, result.member),
    )


def draw_fields(scheme: Scheme, spec: recipe.Recipe, folder: RunFolder, member: int | None) -> dict[str, Figure]:
    """Figures by title: the fields after the rollout of the evaluation, on one colour scale, and their differences.

    The network is number `member` of the last checkpoint. It is left out if it cannot be read, as is a field that is no
    longer finite. If fewer than two fields are left, there are no figures: that is no reason for a run to fail.
    """
    if not spec.evaluation.meshes:
        return {}
    try:
        mesh, fields = _roll_out(scheme, read_member(spec, folder, member), spec)
    except (InputError, InstabilityError):
        return {}
    fields = {name: values for name, values in fields.items() if np.isfinite(values).all()}
    if len(fields) < 2:
        return {}
    return comparison_figures(mesh, fields, [*combinations(fields, 2)], unknown=scheme.equation.unknown)


def read_member(spec: recipe.Recipe, folder: RunFolder, member: int | None) -> Network | None:
    """A trained network from the last checkpoint of a run; None if none can be read.

    Also None for a recipe with `training.polish`, whose second phase is not in checkpoints.
    """
    if spec.training.polish is not None:
        return None
    with jax.enable_x64(spec.training.precision == "float64"):
        state = begin(spec, optimiser(spec.training), source(spec))
        try:
            checkpoint = folder.checkpoints.latest(state, fingerprint=recipe.fingerprint(spec))
        except FluxforgeError:
            return None
    if checkpoint is None:
        return None
    network: Network = jax.tree.map(
        lambda leaf: leaf[member or 0] if eqx.is_array(leaf) else leaf, checkpoint[1].network
    )
    return network


def _roll_out(scheme: Scheme, network: Network | None, spec: recipe.Recipe) -> tuple[Mesh, dict[str, CellField]]:
    """A mesh of the evaluation, and the fields of network, formula and reference on it after the rollout, by name.

    The reference is the law of the data. The problems are those of the evaluation, so that its compiled code is reused.
    """
    wanted = spec.evaluation
    k = min(DRAWN_MESH, wanted.meshes - 1)
    mesh = evaluation_meshes(wanted, spec.seed)[k]
    with jax.enable_x64(True):
        problem: Problem = jax.tree.map(lambda leaf: leaf[k], evaluation_problems(spec))
        steps: dict[str, Step] = {} if network is None else {"network": step_of(cast(network, "float64"))}
        steps["formula"] = partial(take_step, scheme.stages)
        steps["reference"] = lambda p: exact_step(p, p.T)
        fields = {name: _repeat(step, problem, wanted.rollout) for name, step in steps.items()}
    return mesh, {name: values[: len(mesh.cells)] for name, values in fields.items()}


def _repeat(step: Step, problem: Problem, count: int) -> CellField:
    """The state of a problem after `count` steps; padded cells stay at zero."""

    @eqx.filter_jit
    def run(problem: Problem) -> jax.Array:
        def once(_: Any, T: jax.Array) -> jax.Array:
            after = jnp.asarray(step(eqx.tree_at(lambda p: p.T, problem, T)))
            return jnp.where(problem.graph.live, after, 0.0)

        last: jax.Array = jax.lax.fori_loop(0, count, once, problem.T)
        return last

    return np.asarray(run(problem))
