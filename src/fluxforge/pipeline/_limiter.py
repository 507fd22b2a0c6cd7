"""A discovery of a limiter in a run folder: from a recipe to the formula, its scheme, certificate and report."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import sympy as sp
from msgspec import structs

from fluxforge import recipe
from fluxforge._machine import environment
from fluxforge.certify._certificate import Certificate
from fluxforge.certify.limiter import limiter_line, limiter_region
from fluxforge.certify.transport import LimiterRegion
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.expression._print import to_text
from fluxforge.limiter._distil import ClosedForm, distil_limiter, measure_on_refits, sample_grid
from fluxforge.limiter._rows import TEST, Phi, Ratio, cfl_superbee, held_out_ratios
from fluxforge.limiter._train import TrainedLimiter, network_phi, network_share, train_limiter
from fluxforge.limiter._waves import jiang_shu_errors
from fluxforge.pde._equation import BUILT_IN
from fluxforge.pipeline._folder import command_of
from fluxforge.pipeline._formula import Verdict
from fluxforge.pipeline._outcome import Outcome, verify_scheme
from fluxforge.report._limiter_page import write_limiter
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, add_seconds
from fluxforge.run.limiter import FamilyRow, LimiterResult, LimiterRow
from fluxforge.run.result import list_reasons
from fluxforge.scheme._integrate import integrate
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._tableau import TABLEAUX
from fluxforge.scheme.limiters import C, Q, R, limited_space, limiter_of

# Number of fresh profiles of the test. The standard error of a ratio is then about 0.006 after 2,048 steps; with 192
# profiles it is 0.1, and the verdict would depend on chance. A ratio must be below 1 by this many standard errors.
TEST_ROWS = 32_768
STANDARD_ERRORS = 2.0
# Number of profiles drawn as for the refit: the standard error after 2,048 steps is then 0.017.
REFIT_ROWS = 4096
# Largest difference, in standard errors, of ratios on profiles of the refit and on fresh ones of the same distribution.
LARGEST_DIFFERENCE = 4.0
# Number of fresh profiles for the network: fewer, since its errors decide nothing and its steps take ten times as long.
NETWORK_ROWS = 2048
NETWORK, TEXTBOOK = "network", "cfl-superbee"


@dataclass(frozen=True)
class LimiterJudgement:
    """A closed form with constants of least loss, its formula φ, what is proved of its bounds, and its errors.

    `fresh` and `refit` are errors over CFL-superbee's by the number of steps, on fresh profiles and on profiles drawn
    as those of the refit; `wave` is the mean |error| on Jiang's and Shu's wave by Courant number.
    """

    form: ClosedForm
    phi: sp.Expr
    region: LimiterRegion
    fresh: Mapping[int, Ratio]
    refit: Mapping[int, Ratio]
    wave: Mapping[str, float]

    @property
    def conditions(self) -> dict[str, bool]:
        """Whether each condition on a formula holds, by its text.

        An accepted formula is within its bounds, has smaller errors than CFL-superbee on fresh profiles, and was
        refitted on profiles of the same distribution as these.
        """
        return {
            "0 ≤ φ ≤ min(2r/c, 2/(1 − c)) and φ = 0 for r ≤ 0, by intervals": self.region.holds is True,
            "φ(1) = 1": self.region.second_order,
            **{_describe_ratio(steps, ratio): _is_below_one(ratio) for steps, ratio in self.fresh.items()},
            _describe_refit(self.refit): _are_alike(self.fresh, self.refit),
        }

    @property
    def accepted(self) -> bool:
        """Whether all conditions hold."""
        return all(self.conditions.values())

    @property
    def verdict(self) -> Verdict:
        """`approximation` for an accepted formula, since there is no law that it could recover; otherwise `refused`."""
        return "approximation" if self.accepted else "refused"

    @property
    def name(self) -> str:
        """The name of the limiter, after its family."""
        return f"discovered-{self.form.family.name}"

    @property
    def row(self) -> LimiterRow:
        """The formula and its errors as a record."""
        return structs.replace(
            describe_errors(self.name, self.fresh, self.wave),
            formula=to_text(self.phi),
            continuous=self.form.family.continuous,
            in_region=self.region.holds,
            refit={f"{steps}": ratio.value for steps, ratio in self.refit.items()},
            refit_error={f"{steps}": ratio.error for steps, ratio in self.refit.items()},
        )


def _is_below_one(ratio: Ratio) -> bool:
    """Whether a ratio is below 1 by more than `STANDARD_ERRORS` standard errors; False for NaN."""
    return ratio.value + STANDARD_ERRORS * ratio.error < 1.0


def _are_alike(fresh: Mapping[int, Ratio], refit: Mapping[int, Ratio]) -> bool:
    """Whether the ratios on profiles of the refit and on fresh ones agree within their standard errors after all steps.

    If they do not, the refit had profiles of another distribution, for example always the same wave, and its constants
    are tuned to those, even if they happen to do well on fresh profiles.
    """
    # `<=` is False for NaN.
    return all(
        abs(fresh[steps].value - refit[steps].value)
        <= LARGEST_DIFFERENCE * math.hypot(fresh[steps].error, refit[steps].error)
        for steps in fresh
    )


def _worst_ratio(fresh: Mapping[int, Ratio]) -> float:
    """The largest ratio; infinite if one of them is NaN, with which the result of `max` would depend on their order."""
    return max(math.inf if math.isnan(ratio.value) else ratio.value for ratio in fresh.values())


@dataclass(frozen=True)
class MeasuredForms:
    """The refitted closed forms with their errors, and in `others` the rows of CFL-superbee and of the network."""

    judged: tuple[LimiterJudgement, ...]
    others: tuple[LimiterRow, ...]

    @property
    def best(self) -> LimiterJudgement:
        """The accepted form whose worst ratio on fresh profiles is least; if none is accepted, the best of all."""
        return min(self.judged, key=lambda each: (not each.accepted, _worst_ratio(each.fresh)))


def discover_limiter(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Outcome[LimiterResult]:
    """Train the networks of a limiter, distil closed forms, measure them, and certify and judge the best."""
    seconds: dict[str, float] = {}
    with add_seconds(seconds, "train"):
        trained = train_limiter(spec, folder, tell)
    with add_seconds(seconds, "distil"):
        forms = distil_limiter(trained.weights, spec, folder, tell)
    with add_seconds(seconds, "measure"):
        measured = measure_forms(forms, trained, spec, tell)
    with add_seconds(seconds, "certify"):
        scheme = limiter_scheme(measured.best)
        certificate = certify_limiter(measured.best.region, scheme, tell)
    described = describe_limiter(trained, forms, measured, spec)
    result = structs.replace(described, certificate=certificate.to_document(), seconds=seconds)
    return Outcome(result, scheme, certificate)


def describe_limiter(
    trained: TrainedLimiter, forms: Sequence[ClosedForm], measured: MeasuredForms, spec: recipe.Recipe
) -> LimiterResult:
    """The record of a run without its certificate and its seconds, which the caller adds."""
    best = measured.best
    return LimiterResult(
        recipe=spec.name,
        seed=spec.seed,
        member=trained.member,
        equation="advection",
        verdict=best.verdict,
        expected=spec.expect,
        as_expected=best.verdict == spec.expect,
        reasons=list_reasons(best.conditions),
        formula=to_text(best.phi),
        limiters=(*measured.others, *(each.row for each in measured.judged)),
        families=tuple(map(_describe_form, forms)),
        stuck=trained.stuck,
        shares=_tabulate_shares(trained),
        findings=_describe_findings(best),
        seconds={},
        environment=environment(),
    )


def report_limiter(outcome: Outcome[LimiterResult], folder: RunFolder, into: Path) -> list[Path]:
    """Write the report of a run; returns the paths of its files."""
    return write_limiter(
        outcome.result, into, scheme=outcome.scheme, certificate=outcome.certificate, command=command_of(folder)
    )


def measure_forms(
    forms: Sequence[ClosedForm], trained: TrainedLimiter, spec: recipe.Recipe, tell: Progress
) -> MeasuredForms:
    """Measure the refitted forms, CFL-superbee and the network, and examine the bounds of the forms."""
    refitted = [form for form in forms if form.refitted is not None]
    judged = []
    for k, form in enumerate(refitted):
        tell(f"measuring: {form.family.name}", k, len(refitted))
        phi = form.family.formula(form.refitted or ())
        region = limiter_region(phi)
        fresh, wave = measure_limiter(formula_phi(phi), spec.seed, rows=TEST_ROWS)
        with jax.enable_x64(True):
            refit = measure_on_refits(formula_phi(phi), spec, rows=REFIT_ROWS)
        judged.append(LimiterJudgement(form, phi, region, fresh, refit, wave))
    others = (
        describe_errors(TEXTBOOK, *measure_limiter(cfl_superbee, spec.seed, rows=TEST_ROWS)),
        describe_errors(NETWORK, *measure_limiter(network_phi(trained.weights), spec.seed, rows=NETWORK_ROWS)),
    )
    return MeasuredForms(tuple(judged), others)


def formula_phi(phi: sp.Expr) -> Phi:
    """A formula of r, q and c as a function of arrays."""
    return lambda r, q, c: evaluate(phi, {R: r, Q: q, C: c}, jnp) + 0 * r


def measure_limiter(phi: Phi, seed: int, *, rows: int) -> tuple[dict[int, Ratio], dict[str, float]]:
    """Errors over CFL-superbee's on `rows` profiles, by steps; errors on the Jiang–Shu wave, by Courant number."""
    with jax.enable_x64(True):
        return held_out_ratios(phi, seed=seed + TEST, rows=rows), jiang_shu_errors(phi)


def describe_errors(name: str, fresh: Mapping[int, Ratio], wave: Mapping[str, float]) -> LimiterRow:
    """The errors of a limiter as a record without a formula."""
    return LimiterRow(
        name=name,
        fresh={f"{steps}": ratio.value for steps, ratio in fresh.items()},
        fresh_error={f"{steps}": ratio.error for steps, ratio in fresh.items()},
        worst=_worst_ratio(fresh),
        jiang_shu=dict(wave),
    )


def limiter_scheme(best: LimiterJudgement) -> Scheme:
    """The scheme of a limiter with forward Euler."""
    limiter = limiter_of(best.name, best.phi, best.form.family.summary)
    return integrate(TABLEAUX["euler"], BUILT_IN["advection"], limited_space(limiter), name=best.name)


def certify_limiter(region: LimiterRegion, scheme: Scheme, tell: Progress) -> Certificate:
    """The certificate of a limiter's scheme; its first line says whether φ is within its bounds, or not known to be."""
    certificate = verify_scheme(scheme, tell)
    return replace(certificate, lines=(limiter_line(region), *certificate.lines))


def certify_again(result: LimiterResult, scheme: Scheme, tell: Progress) -> Certificate:
    """The certificate of a finished run's scheme, from the formula in its record."""
    return certify_limiter(limiter_region(parse(result.formula, ("r", "q", "c"))), scheme, tell)


def _describe_ratio(steps: int, ratio: Ratio) -> str:
    return (
        f"error after {steps} steps on fresh profiles is {ratio.value:.3f} ± {ratio.error:.3f} of CFL-superbee's "
        f"(below 1 by {STANDARD_ERRORS:g} standard errors is required)"
    )


def _describe_refit(refit: Mapping[int, Ratio]) -> str:
    ratios = ", ".join(f"{ratio.value:.3f} ± {ratio.error:.3f}" for ratio in refit.values())
    required = f"a difference of at most {LARGEST_DIFFERENCE:g} standard errors from those on fresh ones is required"
    return f"on profiles drawn as for the refit these ratios are {ratios} ({required})"


def _describe_findings(best: LimiterJudgement) -> tuple[str, ...]:
    of, at = ("r and q", "q, c") if best.form.family.downwind else ("r", "c")
    continuity = (
        f"φ is a Lipschitz-continuous function of {of}"
        if best.form.family.continuous
        else f"φ is discontinuous at r = r0({at}) and at r = r1({at})"
    )
    largest = max(best.wave.values())
    return (
        continuity,
        f"mean |error| on the wave of Jiang and Shu, which is not in the training data, is at most {largest:.3g}",
    )


def _describe_form(form: ClosedForm) -> FamilyRow:
    constants = form.refitted or tuple(float(each) for each in form.fit.constants)
    return FamilyRow(
        name=form.family.name,
        summary=form.family.summary,
        continuous=form.family.continuous,
        misfit=form.fit.misfit,
        loss=form.loss,
        constants=constants,
        refitted=form.refitted is not None,
    )


def _tabulate_shares(trained: TrainedLimiter) -> tuple[tuple[float, ...], ...]:
    """φ of the network over its upper bound, on the grid of `sample_grid` with q = 1: one row per Courant number."""
    r, c = sample_grid()
    shares = network_share(trained.weights, r, jnp.ones_like(r), c)
    return tuple(tuple(round(float(each), 4) for each in row) for row in shares)
