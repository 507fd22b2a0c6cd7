"""The verdict on a formula, its errors on unseen meshes, its certificate, and the built-in scheme that equals it."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import equinox as eqx
import jax
import numpy as np

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._evidence import NUMERICAL_FAILURES
from fluxforge.certify.bounds._errors import step_errors
from fluxforge.certify.order import measure_time_order
from fluxforge.data._problem import Problem, exact_step
from fluxforge.data._source import source
from fluxforge.distil._constants import own_limit, read_constants
from fluxforge.distil._objective import Objective
from fluxforge.distil._stencil import geometry, power_law, stencil
from fluxforge.errors import DiscoveryError
from fluxforge.gnn._network import Network, cast
from fluxforge.loss._loss import defect_of, mean_defect, norm_of, step_of
from fluxforge.pde._equation import HEAT
from fluxforge.pipeline._formula import (
    Certified,
    Condition,
    Distilled,
    Formula,
    Judged,
    NetworkConstants,
    is_expected,
    judge,
    law_condition,
    law_record,
    take_step,
)
from fluxforge.pipeline._outcome import verify_scheme
from fluxforge.pipeline._problems import (
    JUDGEMENT_KEY,
    draw_on_meshes,
    draw_problems,
    evaluation_problems,
    judged_steps,
    needs_small_steps,
    problems_by_step,
    with_shortest_steps,
)
from fluxforge.run._progress import Progress, add_seconds
from fluxforge.run.result import Evaluation, StencilCheck, StepErrors
from fluxforge.scheme._integrate import integrate
from fluxforge.scheme._scheme import Hop, Scheme
from fluxforge.scheme._tableau import TABLEAUX

# Stencils of formula and network agree if their mean relative difference is at most this.
AGREEMENT = 0.1
# Number of problems at each Δt on which a formula is compared with its network: for pairs, and for meshes.
LOSS_PROBLEMS = (256, 48)
# Number of noisy problems on which a formula is compared with the law, for pairs and for meshes: the more, the smaller
# the wrong terms that are detected.
_NOISE_PROBLEMS = (4096, 64)
Step: TypeAlias = Callable[[Problem], State]
# Steps are equal if they differ by at most this share of their largest change: the round-off of u' = u + Δt(…) is 1e-16
# of u, and the change at the shortest trained Δt is 1e-2 of u.
STEP_TOLERANCE = 1e-9
# Factors by which parameters are changed, assigned cyclically in the order of names: a formula with a number in place
# of a parameter then differs from the scheme.
FACTORS = (1.37, 0.71, 1.13)
# Number of problems on which a formula is compared with built-in schemes, and their key.
PROBLEMS = 64
_NUMBER = 2**29 + 2**21


def judge_formula(distilled: Distilled, spec: recipe.Recipe, tell: Progress) -> Judged:
    """Compare a formula with its network and its data; returns the verdict, and errors on unseen meshes."""
    assert spec.search is not None
    seconds, network, formula = dict(distilled.seconds), distilled.trained.network, distilled.formula
    if formula is None:
        return Judged(distilled, "refused", (distilled.refusal or "",), None, None, None, None, None, seconds)
    with add_seconds(seconds, "judge"):
        tell("reading the formula's constants from the network", 0, 1)
        constants = read_network(network, formula, spec)
        judgement = judge(constants.readings, threshold=spec.search.explain, law=condition_on_law(formula, spec))
        if judgement.verdict == "recovered":
            formula = replace(
                formula, fitted=replace(formula.fitted, rational=constants.agreeing_fractions(formula.fitted))
            )
        printed = formula if judgement.verdict == "recovered" else constants.put_into(formula)
    with add_seconds(seconds, "check"):
        tell("checking the stencil", 0, 2)
        alike = compare_stencils(network, printed, spec)
        tell("measuring on unseen meshes", 1, 2)
        errors = measure_errors(network, printed, spec)
    return Judged(distilled, judgement.verdict, judgement.reasons, printed, formula, constants, alike, errors, seconds)


def read_network(network: Network, formula: Formula, spec: recipe.Recipe) -> NetworkConstants:
    """The constants for which the formula describes the network, at Δt across the trained range and in the limit."""
    with jax.enable_x64(True):
        count = LOSS_PROBLEMS[isinstance(spec.data, recipe.Meshes)]
        problems = problems_by_step(spec, judged_steps(spec), count, JUDGEMENT_KEY + 2)
        step = step_of(cast(network, "float64"))
        readings = read_constants(formula.free, step, spec.loss, problems, start=formula.fitted.values)
    limit, uncertainty = own_limit(readings, formula.fitted.values if needs_small_steps(spec) else None)
    return NetworkConstants(readings, limit, uncertainty)


def condition_on_law(formula: Formula, spec: recipe.Recipe) -> Condition | None:
    """The condition on the refitted loss; None for a loss by residual, of which no explicit formula is the minimum."""
    if spec.loss.supervised is None:
        return None
    if not spec.data.noise:
        return law_condition(formula.fitted.loss, exact=formula.fitted.exact, data_error=0.0)
    least, error = measure_noisy_losses(formula, spec)
    return law_condition(least, exact=False, data_error=error)


def measure_noisy_losses(formula: Formula, spec: recipe.Recipe) -> tuple[float, float]:
    """The least loss of a formula over its constants, and the loss of the law itself, on the same noisy data."""
    with jax.enable_x64(True):
        count = _NOISE_PROBLEMS[isinstance(spec.data, recipe.Meshes)]
        problems = draw_problems(source(spec, dtype="float64"), spec, JUDGEMENT_KEY + 3, count)
        defect, norm = defect_of(spec.loss), norm_of(spec.loss)
        each = jax.jit(jax.vmap(lambda p: mean_defect(defect(p, exact_step(p, p.T)), p, norm)))(problems)
        start = np.array(list(formula.fitted.values.values()), float)
        return Objective.of_loss(formula.free, spec.loss).fit(problems, start=start).loss, float(each.mean())


def compare_stencils(network: Network, formula: Formula, spec: recipe.Recipe) -> StencilCheck:
    """The power laws fitted to the stencils of network and formula, and the mean relative difference of the stencils.

    An empty record if no power law can be fitted to one of them, such as a formula without neighbours, which is refused
    anyway.
    """
    with jax.enable_x64(True):
        problems = _close_problems(spec)
        columns = geometry(problems)
        theirs = stencil(step_of(cast(network, "float64")), problems)
        ours = stencil(formula.step, problems)
    size = float(np.abs(ours).mean()) if len(ours) else 0.0
    apart = float(np.abs(theirs - ours).mean()) / size if size else math.inf
    try:
        of_network, of_formula = (law_record(power_law(values, columns)) for values in (theirs, ours))
    except DiscoveryError:
        return StencilCheck()
    return StencilCheck(network=of_network, formula=of_formula, difference=apart, agree=apart <= AGREEMENT)


def _close_problems(spec: recipe.Recipe) -> Problem:
    """The problems on which stencils are compared; with the shortest trained Δt if only those determine the formula."""
    closest = with_shortest_steps(spec) if needs_small_steps(spec) else spec
    if isinstance(closest.data, recipe.Meshes):
        return draw_on_meshes(spec, closest.data.fourier)
    return draw_problems(source(closest, dtype="float64"), spec, JUDGEMENT_KEY + 1, 1000)


def measure_errors(network: Network, formula: Formula, spec: recipe.Recipe) -> Evaluation:
    """Errors of one step and of a rollout of network and formula on unseen meshes, against the law of the data."""
    wanted = spec.evaluation
    if not wanted.meshes:
        return Evaluation(meshes=0)
    with jax.enable_x64(True):
        problems = evaluation_problems(spec)
        steps: dict[str, Step] = {"network": step_of(cast(network, "float64")), "formula": formula.step}
        errors = {
            name: StepErrors(**step_errors(step, problems, rollout=wanted.rollout)) for name, step in steps.items()
        }
    return Evaluation(meshes=wanted.meshes, cells=wanted.cells, rollout=wanted.rollout, **errors)


def certify_formula(judged: Judged, spec: recipe.Recipe, tell: Progress) -> Certified:
    """Verify a formula as a scheme of its equation, and find the built-in scheme that equals it, if any."""
    seconds, formula = dict(judged.seconds), judged.formula
    if formula is None:
        return Certified(judged, None, None, None, (), None, False, seconds)
    with add_seconds(seconds, "certify"):
        scheme = formula.scheme(spec.name, recipe.equation_of(spec))
        certificate = verify_scheme(scheme, tell)
        order = None if certificate.time is None else certificate.time.order
        match = matching_scheme(formula, spec)
        unrounded = measure_unrounded_order(judged, spec)
        described = _describe_certificate(certificate, scheme, order, unrounded)
        findings = (*described, describe_match(match, spec))
        expected = is_expected(spec, judged.verdict, order, match)
    return Certified(judged, scheme, certificate, match, findings, order, expected, seconds)


def _describe_certificate(
    certificate: Certificate, scheme: Scheme, order: float | None, unrounded: float | None
) -> list[str]:
    """The main findings of the certificate, one line each; they do not affect the verdict."""
    kept = certificate.conservation is not None and certificate.conservation.holds
    printed = "not established" if order is None else f"{order:.2f}"
    beside = "" if unrounded is None else f"; with the network's unrounded constants it is {unrounded:.2f}"
    equation = scheme.equation
    total = "the total heat" if equation == HEAT else f"the total of {equation.unknown}"
    # With a reaction, or flow through walls, the total changes: the certificate then tests the fluxes between cells.
    total += "" if equation.only_diffuses else ", apart from reactions and walls"
    lines = [f"the scheme {'conserves' if kept else 'does not conserve'} {total}"]
    lines.append(f"the order in time of the printed formula is {printed}{beside}")
    if equation.only_diffuses:
        K = certificate.space["squares"].diffusion if "squares" in certificate.space else None
        reference = "α" if equation == HEAT else "that of the equation"
        apart = "was not established" if K is None else f"differs from {reference} by {np.abs(K - np.eye(2)).max():.1%}"
        lines.append(f"its diffusivity on squares {apart}")
    return lines


def measure_unrounded_order(judged: Judged, spec: recipe.Recipe) -> float | None:
    """The order in time of the formula with the network's own constants; None if it cannot be measured."""
    assert judged.formula is not None
    assert judged.constants is not None
    limit = judged.constants.limit
    if not all(math.isfinite(value) for value in limit.values()):
        return None
    try:
        stages = judged.formula.free.fill_constants(limit)
        return measure_time_order(Scheme(f"unrounded-{spec.name}", stages, equation=recipe.equation_of(spec))).order
    except NUMERICAL_FAILURES:
        return None


def matching_scheme(formula: Formula, spec: recipe.Recipe) -> str | None:
    """The name of the explicit built-in scheme of the recipe's equation that takes the same steps as the formula.

    Both are evaluated on random problems of the recipe, with the values of the parameters and with changed ones, so
    that the form in which the formula is written does not matter. None if no integrator of as many rounds does.
    """
    equation = recipe.equation_of(spec)
    rounds = sum(1 if all(m.hop is Hop.EDGE for m in stage.messages.values()) else 2 for stage in formula.stages)
    with jax.enable_x64(True):
        longest = judged_steps(spec)[0]
        here = problems_by_step(spec, (longest,), PROBLEMS, _NUMBER)[longest]
        samples = (here, _change_parameters(here))
        theirs = [_answers(formula.step, problems) for problems in samples]
        for tableau in TABLEAUX.values():
            if tableau.theta != 0 or len(tableau.rows) != rounds:
                continue
            ours = [_answers(partial(take_step, integrate(tableau, equation).stages), problems) for problems in samples]
            if all(_is_same(*each) for each in zip(theirs, ours, samples, strict=True)):
                return tableau.name
    return None


def describe_match(name: str | None, spec: recipe.Recipe) -> str:
    """A sentence that names the built-in scheme that equals the formula, or says that there is none."""
    equation = recipe.equation_of(spec).name
    if name is None:
        return f"the printed formula is not a built-in scheme of the equation {equation!r}"
    return f"the printed formula is the scheme {name!r} of the equation {equation!r}"


def _change_parameters(problems: Problem) -> Problem:
    moved = {
        name: value * FACTORS[k % len(FACTORS)] for k, (name, value) in enumerate(sorted(problems.parameters.items()))
    }
    return replace(problems, parameters=moved)


def _answers(step: Step, problems: Problem) -> np.ndarray:
    return np.asarray(eqx.filter_jit(jax.vmap(step))(problems))


def _is_same(theirs: np.ndarray, ours: np.ndarray, problems: Problem) -> bool:
    live = np.asarray(problems.graph.live)
    change = np.abs(ours - np.asarray(problems.T))[live].max()
    # `<=` is False for NaN, so that a step that is not finite equals none.
    return bool(np.abs(theirs - ours)[live].max() <= STEP_TOLERANCE * change)
