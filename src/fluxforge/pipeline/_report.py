"""The record of a run that searches a formula, from its verdict and its certificate, and its report."""

from pathlib import Path

from msgspec.structs import replace

from fluxforge import recipe
from fluxforge.certify._certificate import Certificate
from fluxforge.pipeline._certification import Certified, name_outputs, verify_scheme
from fluxforge.pipeline._distillation import Judged
from fluxforge.pipeline._fields import fields_figure
from fluxforge.pipeline._folder import recipe_of
from fluxforge.report._discovery_page import write_discovery
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress
from fluxforge.run._record import Document
from fluxforge.run.result import Constants, Discovery, Evidence, StepRow, from_document
from fluxforge.scheme._document import load
from fluxforge.scheme._scheme import Scheme


def describe_judged(judged: Judged, spec: recipe.Recipe) -> Discovery:
    """The record of a run up to its verdict."""
    distilled = judged.distilled
    fronts = distilled.fronts
    found = Discovery(
        recipe=spec.name,
        seed=spec.seed,
        member=distilled.trained.member,
        skipped=distilled.trained.skipped,
        seconds=dict(judged.seconds),
        verdict=judged.verdict,
        recovered=judged.recovered,
        reasons=judged.reasons,
        ended_by_clock=None if fronts is None else tuple(n for n, front in fronts.items() if front.ended_by_clock),
        fronts=None if fronts is None else dict(fronts),
    )
    return found if judged.formula is None else _describe_formula(found, judged)


def _describe_formula(found: Discovery, judged: Judged) -> Discovery:
    formula, fitted, own = judged.formula, judged.fitted, judged.constants
    assert formula is not None
    assert fitted is not None
    assert own is not None
    evidence = formula.evidence
    return replace(
        found,
        fronts=evidence.fronts or found.fronts,
        constants_fitted=Constants(values=dict(fitted.fitted.values), uncertainty=dict(fitted.fitted.uncertainty)),
        messages=formula.messages,
        outputs=formula.outputs,
        constants=dict(formula.fitted.values),
        constants_uncertainty=dict(formula.fitted.uncertainty),
        rational={name: str(value) for name, value in formula.fitted.rational.items()},
        loss=formula.losses(judged.distilled.network_loss),
        combinations_tried=evidence.combinations_tried,
        against_step=_all_steps(evidence, own.rows()),
        laws=evidence.laws,
        order=evidence.order,
        explained=own.explained,
        limit=dict(own.limit),
        limit_uncertainty=dict(own.uncertainty),
        readings=own.rows(),
        stencil=judged.stencil,
        evaluation=judged.evaluation,
    )


def _all_steps(evidence: Evidence, read: tuple[StepRow, ...]) -> tuple[StepRow, ...] | None:
    """Constants at all Δt, longest first; None of a formula that is not that of small steps."""
    if not evidence.against_step:
        return None
    return tuple(sorted((*evidence.against_step, *read), key=lambda row: -row.step))


def describe_certified(certified: Certified, spec: recipe.Recipe) -> Discovery:
    """The record of a run up to its certificate."""
    found = replace(describe_judged(certified.judged, spec), seconds=dict(certified.seconds))
    if certified.certificate is None:
        return found
    return replace(
        found,
        as_expected=certified.as_expected,
        scheme=certified.match,
        findings=certified.findings,
        order_in_time=certified.order_in_time,
        certificate=certified.certificate.to_document(),
    )


def write_report(
    result: Discovery,
    spec: recipe.Recipe,
    folder: RunFolder,
    into: Path,
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
) -> list[Path]:
    """Write the report of a run and its figures; returns their paths."""
    return write_discovery(
        result,
        into,
        scheme=scheme,
        certificate=certificate,
        metrics=folder.metrics.read(),
        command=str(folder.description.get("command", "")),
        picture=None if scheme is None else fields_figure(scheme, spec, folder, result.member),
    )


def rewrite_report(document: Document, folder: RunFolder, into: Path, tell: Progress) -> None:
    """Write the report of a finished run again; its scheme is in `into`, and is verified anew for the certificate."""
    result = from_document(document, Discovery, folder.path)
    # The first report was written before its own duration was known.
    seconds = {name: value for name, value in result.seconds.items() if name != "report"}
    scheme = certificate = None
    if (path := into / name_outputs(result.recovered)[0]).exists():
        scheme = load(path)
        certificate = verify_scheme(scheme, tell)
    result = replace(result, seconds=seconds)
    write_report(result, recipe_of(folder), folder, into, scheme=scheme, certificate=certificate)
