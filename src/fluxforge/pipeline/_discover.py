"""`discover`: a recipe in, a run out."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from fluxforge import recipe
from fluxforge._arguments import check_function, check_kind, check_path, check_text
from fluxforge.data import model_of
from fluxforge.distil import ablate, engine
from fluxforge.errors import InputError
from fluxforge.gnn import Network
from fluxforge.graph import device_memory
from fluxforge.pde import HEAT
from fluxforge.pipeline._certification import Certified, certify_formula, name_outputs
from fluxforge.pipeline._coefficients import discover_coefficients
from fluxforge.pipeline._distillation import Judged, TrainedMember, distil_network, judge_formula, train_network
from fluxforge.pipeline._experiment import check_experiment, discover_experiment, rewrite_experiment
from fluxforge.pipeline._folder import (
    Progress,
    Warn,
    check_outputs,
    description,
    environment,
    finite,
    recipe_of,
    record_outputs,
    run_folder,
    silent,
)
from fluxforge.pipeline._generalisation import generalise
from fluxforge.pipeline._limiter import discover_limiter, rewrite_limiter
from fluxforge.pipeline._problems import needs_small_steps
from fluxforge.pipeline._report import rewrite_carry, rewrite_report, write_generalisation, write_report
from fluxforge.pipeline._run import CARRY, DISCOVERY, Run, result_stage
from fluxforge.pipeline._skew import check_skew
from fluxforge.pipeline._skew_run import finish_skew_run
from fluxforge.report import write_carry
from fluxforge.run import RunFolder
from fluxforge.run.carry import CarryResult
from fluxforge.run.result import (
    Constants,
    Discovery,
    Document,
    Evidence,
    Generalisation,
    StepRow,
    from_document,
    to_document,
)


def discover(
    source: str | os.PathLike[str] | recipe.Recipe = "first-order",
    output: str | os.PathLike[str] | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    command: str = "",
    tell: Progress = silent,
    warn: Warn = lambda _: None,
) -> Run:
    """Run a recipe in a new folder.

    The recipe is a shipped one by name, a TOML file, or a `Recipe`; `changes` are fields of it by their names with
    dots, such as `{"training.steps": 5000}`. The folder is runs/RECIPE, with a number after it if that is taken,
    unless `output` is given. Raises InputError for an argument or a recipe that cannot be used.
    """
    _check_arguments(source, output, changes, command, tell, warn)
    spec = source if isinstance(source, recipe.Recipe) else recipe.load(source)
    spec = recipe.self_contained(recipe.override(spec, changes) if changes else spec)
    output = free_folder(spec) if output is None else Path(output)
    check_feasible(spec)
    described = {**description(spec), "command": command}
    with RunFolder.create(output, description=described, warn=warn) as folder:
        return finish_run(spec, folder, tell)


def _check_arguments(
    source: object, output: object, changes: object, command: object, tell: object, warn: object
) -> None:
    if not isinstance(source, recipe.Recipe):
        check_path(source, "source", "a recipe, the name of a shipped one or the path of a .toml file")
    if changes is not None:
        for field in check_kind(changes, "changes", Mapping, "a mapping from fields to values"):
            check_text(field, "changes: a field")
    if output is not None:
        check_path(output, "output", "the path of a folder")
    check_text(command, "command"), check_function(tell, "tell"), check_function(warn, "warn")


def free_folder(spec: recipe.Recipe) -> Path:
    """The folder runs/RECIPE, or runs/RECIPE-2 and so on if that exists."""
    folder = Path("runs") / spec.name
    candidates = (folder, *(folder.with_name(f"{folder.name}-{k}") for k in range(2, 10_000)))
    return next(each for each in candidates if not each.exists())


def check_feasible(spec: recipe.Recipe) -> None:
    """Refuse, before any training, a recipe that cannot be run to its end; raises InputError."""
    recipe.check(spec)
    if isinstance(spec.data, recipe.Rows):
        return
    if isinstance(spec.data, recipe.Experiment):
        check_experiment(spec)
        return
    if isinstance(spec.data, recipe.Skew):
        check_skew(spec)
        return
    recipe.refuse_too_large(spec, device_memory())
    if not spec.arms and spec.search is None:
        raise InputError(f"recipe {spec.name!r}: has neither 'arms' to compare nor a 'search' for formulas")
    if spec.search is not None and needs_small_steps(spec) and isinstance(spec.data, recipe.TwoCells):
        why = "a residual gives its formula at small steps, and two cells have one Δt; choose data of kind 'pairs'"
        raise InputError(f"recipe {spec.name!r}: fields 'loss.residual' and 'data.kind': {why}")
    if spec.search is not None and spec.search.route == "modules":
        engine(spec.search.engine)


def resume(output: str | os.PathLike[str], *, tell: Progress = silent, warn: Warn = lambda _: None) -> Run:
    """Continue an interrupted run; of a finished one, read the result and write files that are missing again."""
    with RunFolder.open(Path(output), warn=warn) as folder:
        return finish_run(recipe_of(folder), folder, tell)


def finish_run(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Run:
    """Run what is not finished in a folder, and check the files of what is."""
    stage = result_stage(spec)
    if spec.network.form == "flux":
        return finish_flux_run(spec, folder, tell)
    if isinstance(spec.data, recipe.Skew):
        return finish_skew_run(spec, folder, tell)
    document: Document | None = folder.read_stage(stage)
    if document is None:
        if isinstance(spec.data, recipe.Rows):
            document = discover_limiter(spec, folder, tell)
        elif isinstance(spec.data, recipe.Experiment):
            document = discover_experiment(spec, folder, tell)
        else:
            document = compare_arms(spec, folder, tell) if spec.arms else discover_formula(spec, folder, tell)
        folder.finish(stage, document)
    elif isinstance(spec.data, recipe.Rows):
        check_outputs(folder, spec, lambda into: rewrite_limiter(document, into))
    elif isinstance(spec.data, recipe.Experiment):
        check_outputs(folder, spec, lambda into: rewrite_experiment(document, folder, into, tell))
    elif spec.arms:
        check_outputs(
            folder, spec, lambda into: write_generalisation(from_document(document, Generalisation, folder.path), into)
        )
    else:
        check_outputs(
            folder,
            spec,
            lambda into: rewrite_report(from_document(document, Discovery, folder.path), spec, folder, into, tell),
        )
    return Run(folder.path, spec, document)


def finish_flux_run(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Run:
    """The same for a network in the form of a flux."""
    document: Document | None = folder.read_stage(CARRY)
    if document is None:
        found, scheme, certificate = discover_coefficients(spec, folder, tell)
        document = finite(to_document(found))
        paths = write_carry(from_document(document, CarryResult, folder.path), scheme, folder.path)
        texts = () if certificate is None else tuple(folder.path / name for name in name_outputs(False))
        record_outputs(folder, spec, paths, texts=texts)
        folder.finish(CARRY, document)
    else:
        check_outputs(folder, spec, lambda into: rewrite_carry(from_document(document, CarryResult, folder.path), into))
    return Run(folder.path, spec, document)


def compare_arms(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Document:
    """Train and measure the arms of a recipe, and write document and figures."""
    result = generalise(spec, folder, tell)
    record_outputs(folder, spec, write_generalisation(result, folder.path))
    return to_document(result)


def discover_formula(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Document:
    """From a recipe to its scheme, certificate and report in the folder, step by step; returns the document."""
    trained = train_network(spec, folder, tell)
    distilled = distil_network(trained, spec, folder, tell)
    judged = judge_formula(distilled, spec, tell)
    certified = certify_formula(judged, spec, folder.path, tell)
    discovery = search_without_network(describe_certified(certified, spec), spec, tell)
    return report_discovery(discovery, certified, spec, folder, tell)


def explain(network: Network, spec: recipe.Recipe, output: Path, *, tell: Progress = silent) -> Document:
    """From a network that is trained already to its formula and certificate, in a run folder; returns the document."""
    with run_folder(output, spec, warn=lambda _: None) as folder:
        if (done := folder.read_stage(DISCOVERY)) is not None:
            check_outputs(folder, spec, lambda into: None)
            return done
        distilled = distil_network(TrainedMember(network), spec, folder, tell)
        certified = certify_formula(judge_formula(distilled, spec, tell), spec, folder.path, tell)
        document: Document = finite(to_document(describe_certified(certified, spec)))
        record_outputs(folder, spec, (), texts=_texts(certified, folder))
        folder.finish(DISCOVERY, document)
    return document


def search_without_network(discovery: Discovery, spec: recipe.Recipe, tell: Progress) -> Discovery:
    """Search formulas in the data themselves, to see what the network was needed for; and say what the run was."""
    tell("searching without a network", 0, 1)
    ablations = ablate(spec).document()
    model = model_of(spec)
    return replace(
        discovery,
        equation=model.equation.name,
        parameters=dict(model.values),
        # Heat's α under its own word.
        diffusivity=recipe.diffusivity_of(spec) if model.equation == HEAT else None,
        update=spec.network.update,
        environment=environment(),
        expected=spec.expect,
        as_expected=bool(discovery.as_expected),
        ablations=ablations,
        seconds={**discovery.seconds, "ablations": ablations["seconds"]},
    )


def report_discovery(
    discovery: Discovery, certified: Certified, spec: recipe.Recipe, folder: RunFolder, tell: Progress
) -> Document:
    """Write the report, and record the files of the run; returns the document."""
    tell("writing the report", 0, 1)
    began = time.perf_counter()
    document = to_document(discovery)
    scheme, certificate = certified.scheme, certified.certificate
    # As it will be read, so that a report that is written again is the same.
    result = from_document(document, Discovery, folder.path)
    paths = write_report(result, spec, folder, folder.path, scheme=scheme, certificate=certificate)
    document["seconds"]["report"] = time.perf_counter() - began
    record_outputs(folder, spec, paths, texts=_texts(certified, folder))
    whole: Document = finite(document)
    return whole


def _texts(certified: Certified, folder: RunFolder) -> tuple[Path, ...]:
    """The files of scheme and certificate, if there are any."""
    names = () if certified.scheme is None else name_outputs(certified.judged.recovered)
    return tuple(folder.path / name for name in names)


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
