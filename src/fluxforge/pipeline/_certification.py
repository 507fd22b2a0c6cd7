"""The certificate of a formula: what was found of it, and which scheme of its equation it is."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import equinox as eqx
import jax
import numpy as np

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.certify._certificate import Certificate
from fluxforge.certify._evidence import NUMERICAL_FAILURES
from fluxforge.certify._verify import verify
from fluxforge.certify.time_order import time_order
from fluxforge.data._problem import Problem
from fluxforge.graph._stages import evaluate_stages
from fluxforge.pde._equation import HEAT
from fluxforge.pipeline._distillation import Judged
from fluxforge.pipeline._formula import Formula, is_expected
from fluxforge.pipeline._problems import judged_steps, problems_by_step
from fluxforge.run._progress import Progress, add_seconds
from fluxforge.scheme._document import save
from fluxforge.scheme._integrate import integrate
from fluxforge.scheme._scheme import Hop, Scheme
from fluxforge.scheme._tableau import TABLEAUX

FAMILIES = ("squares", "right", "irregular")
RECOVERED = ("scheme.json", "certificate.json")
CANDIDATE = ("candidate.json", "candidate-certificate.json")

Step: TypeAlias = Callable[[Problem], State]
# Steps that differ by less than this part of their largest change are the same: round-off of u' = u + Δt(…) is 1e-16 u,
# and a change at the shortest Δt trained with, 1e-2 of u.
SAME = 1e-9
# Parameters are moved by these factors, in turn: a formula with numbers in place of a parameter is then another scheme.
FACTORS = (1.37, 0.71, 1.13)
PROBLEMS = 64
_NUMBER = 2**29 + 2**21


@dataclass(frozen=True)
class Certified:
    """A judged formula with its certificate; `match` is the name of the equation's scheme that it is, if any.

    `as_expected` says whether the run ended as its recipe expects. Without a formula there is none of the rest.
    """

    judged: Judged
    scheme: Scheme | None
    certificate: Certificate | None
    match: str | None
    findings: tuple[str, ...]
    order_in_time: float | None
    as_expected: bool
    seconds: Mapping[str, float]


def certify_formula(judged: Judged, spec: recipe.Recipe, folder: Path, tell: Progress) -> Certified:
    """Verify a formula, and write scheme and certificate to files whose names say whether it is recovered."""
    seconds, formula = dict(judged.seconds), judged.formula
    if formula is None:
        return Certified(judged, None, None, None, (), None, False, seconds)
    with add_seconds(seconds, "certify"):
        scheme = formula.scheme(spec.name, recipe.equation_of(spec))
        certificate = verify_scheme(scheme, tell)
        order = None if certificate.time is None else certificate.time.order
        match = matching_scheme(formula, spec)
        unrounded = _unrounded_order(judged, spec)
        described = _describe_certificate(certificate, scheme, order, unrounded)
        findings = (*described, describe_match(match, spec))
        expected = is_expected(spec, judged.verdict, order, match)
    own, beside = name_outputs(judged.recovered)
    save(scheme, folder / own)
    certificate.save(folder / beside)
    return Certified(judged, scheme, certificate, match, findings, order, expected, seconds)


def verify_scheme(scheme: Scheme, tell: Progress) -> Certificate:
    """The quick certificate on three mesh families."""
    return verify(
        scheme, families=FAMILIES, quick=True, progress=lambda what, k, of: tell(f"certifying: {what}", k - 1, of)
    )


def name_outputs(recovered: bool) -> tuple[str, str]:
    """The file names of a formula and its certificate."""
    return RECOVERED if recovered else CANDIDATE


def _describe_certificate(
    certificate: Certificate, scheme: Scheme, order: float | None, unrounded: float | None
) -> list[str]:
    """The main findings of the certificate, a line each; they do not enter the verdict."""
    kept = certificate.conservation is not None and certificate.conservation.holds
    printed = "not established" if order is None else f"{order:.2f}"
    beside = "" if unrounded is None else f"; {unrounded:.2f} with the network's own constants, unrounded"
    equation = scheme.equation
    total = "the total heat" if equation == HEAT else f"the total of {equation.unknown}"
    # What reacts, or flows through walls, is not conserved: then the certificate asks the fluxes between cells.
    total += "" if equation.only_diffuses else " but for reactions and walls"
    found = [f"the scheme {'conserves' if kept else 'does not conserve'} {total}"]
    found.append(f"its order in time is {printed} as printed{beside}")
    if equation.only_diffuses:
        K = certificate.space["squares"].diffusion if "squares" in certificate.space else None
        own = "α" if equation == HEAT else "that of the equation"
        apart = "was not established" if K is None else f"differs from {own} by {np.abs(K - np.eye(2)).max():.1%}"
        found.append(f"its diffusivity on squares {apart}")
    return found


def _unrounded_order(judged: Judged, spec: recipe.Recipe) -> float | None:
    """The order in time with the constants that the network itself has."""
    assert judged.formula is not None
    assert judged.constants is not None
    limit = judged.constants.limit
    if not all(math.isfinite(value) for value in limit.values()):
        return None
    try:
        stages = judged.formula.free.fill_constants(limit)
        return time_order(Scheme(f"unrounded-{spec.name}", stages, equation=recipe.equation_of(spec))).order
    except NUMERICAL_FAILURES:
        return None


def matching_scheme(formula: Formula, spec: recipe.Recipe) -> str | None:
    """The name of the explicit scheme of the recipe's equation that the formula is, whatever it is written like.

    Both are evaluated on random problems of the recipe, at the values of the parameters and at others. None where no
    built-in integrator of as many rounds does the same.
    """
    equation = recipe.equation_of(spec)
    rounds = sum(1 if all(m.hop is Hop.EDGE for m in stage.messages.values()) else 2 for stage in formula.stages)
    with jax.enable_x64(True):
        longest = judged_steps(spec)[0]
        here = problems_by_step(spec, (longest,), PROBLEMS, _NUMBER)[longest]
        asked = (here, _with_other_parameters(here))
        theirs = [_answers(formula.step, problems) for problems in asked]
        for tableau in TABLEAUX.values():
            if tableau.theta != 0 or len(tableau.rows) != rounds:
                continue
            ours = [_answers(_step(integrate(tableau, equation)), problems) for problems in asked]
            if all(_is_same(*each) for each in zip(theirs, ours, asked, strict=True)):
                return tableau.name
    return None


def describe_match(name: str | None, spec: recipe.Recipe) -> str:
    """A sentence about the match."""
    equation = recipe.equation_of(spec).name
    if name is None:
        return f"as printed it is no built-in scheme of the equation {equation!r}"
    return f"as printed it is the scheme {name!r} of the equation {equation!r}"


def _step(scheme: Scheme) -> Step:
    return lambda p: evaluate_stages(scheme.stages, p.graph, p.T, p.S, parameters=p.step_parameters)


def _with_other_parameters(problems: Problem) -> Problem:
    moved = {
        name: value * FACTORS[k % len(FACTORS)] for k, (name, value) in enumerate(sorted(problems.parameters.items()))
    }
    return replace(problems, parameters=moved)


def _answers(step: Step, problems: Problem) -> np.ndarray:
    return np.asarray(eqx.filter_jit(jax.vmap(step))(problems))


def _is_same(theirs: np.ndarray, ours: np.ndarray, problems: Problem) -> bool:
    live = np.asarray(problems.graph.live)
    change = np.abs(ours - np.asarray(problems.T))[live].max()
    # Not `>`: a step that is no number is not the same.
    return bool(np.abs(theirs - ours)[live].max() <= SAME * change)
