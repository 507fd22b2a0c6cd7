"""`discover` and `resume`: run the recipe of a discovery to its end in a run folder."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeAlias

import msgspec

from fluxforge import recipe
from fluxforge._arguments import check_function, check_kind, check_path, check_text
from fluxforge._machine import release_programs
from fluxforge.certify._certificate import Certificate
from fluxforge.distil._ablation import ablate
from fluxforge.distil._engines import engine
from fluxforge.errors import InputError
from fluxforge.gnn._network import Network
from fluxforge.graph._pad import device_memory
from fluxforge.pipeline._distillation import distil_network, train_network
from fluxforge.pipeline._experiment import check_experiment, discover_experiment, report_experiment
from fluxforge.pipeline._flux_form import discover_flux_form, report_flux_form
from fluxforge.pipeline._folder import check_outputs, describe_run, recipe_of, record_outputs, run_folder
from fluxforge.pipeline._formula import TrainedMember
from fluxforge.pipeline._generalisation import compare_arms, report_arms
from fluxforge.pipeline._judgement import certify_formula, judge_formula
from fluxforge.pipeline._limiter import certify_again, discover_limiter, report_limiter
from fluxforge.pipeline._outcome import (
    CARRY,
    DISCOVERY,
    EXPERIMENT,
    GENERALISATION,
    LIMITER,
    SKEW,
    Outcome,
    SomeResult,
    WriteReport,
    read_result,
    result_stage,
    run_kind,
    verify_scheme,
)
from fluxforge.pipeline._problems import needs_small_steps
from fluxforge.pipeline._report import describe_certified, describe_discovery, report_formula
from fluxforge.pipeline._run import Run
from fluxforge.pipeline._skew import check_skew, discover_skew, report_skew
from fluxforge.run._folder import RunFolder
from fluxforge.run._outputs import Result, name_outputs
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.run.result import AblationResults, Discovery, from_document, to_document
from fluxforge.scheme._document import load, save
from fluxforge.scheme._scheme import Scheme


def discover(
    source: str | os.PathLike[str] | recipe.Recipe = "first-order",
    output: str | os.PathLike[str] | None = None,
    *,
    changes: recipe.Changes | None = None,
    command: str = "",
    tell: Progress = silent,
    warn: Warn = lambda _: None,
) -> Run:
    """Run a recipe in a new folder.

    The recipe is a shipped one by name, a TOML file, or a `Recipe`; `changes` are fields of it by their names with
    dots, such as `{"training.steps": 5000}`; a table, as in `{"training": {"steps": 5000}}`, replaces the whole table
    of the recipe. The folder is runs/RECIPE, with a number after it if that is taken, unless `output` is given. Raises
    InputError for an argument or a recipe that cannot be used.
    """
    _check_arguments(source, output, changes, command, tell, warn)
    spec = source if isinstance(source, recipe.Recipe) else recipe.load(source)
    spec = recipe.self_contained(recipe.override(spec, changes, "changes") if changes else spec)
    output = free_folder(spec) if output is None else Path(output)
    check_feasible(spec)
    with RunFolder.create(output, description=describe_run(spec, command), warn=warn) as folder:
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
    names = chain([spec.name], (f"{spec.name}-{k}" for k in count(2)))
    return next(folder for name in names if not (folder := Path("runs") / name).exists())


def check_feasible(spec: recipe.Recipe) -> None:
    """Raise InputError, before any training, for a recipe that cannot be run to its end."""
    recipe.check(spec)
    KINDS[run_kind(spec)].check(spec)


def resume(output: str | os.PathLike[str], *, tell: Progress = silent, warn: Warn = lambda _: None) -> Run:
    """Continue an interrupted run; for a finished one, read the result and restore missing files.

    Raises InputError if the folder has no run, or another process uses it, and for arguments of the wrong kind.
    """
    check_path(output, "output", "the path of a run folder"), check_function(tell, "tell"), check_function(warn, "warn")
    with RunFolder.open(Path(output), warn=warn) as folder:
        return finish_run(recipe_of(folder), folder, tell)


def finish_run(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Run:
    """Run the stages that are not finished in a folder, and return the run; for a finished run, check its files."""
    kind = KINDS[run_kind(spec)]
    result = read_result(spec, folder)
    if result is None:
        release_programs()
        outcome = kind.discover(spec, folder, tell)
        tell("writing the report", 0, 1)
        result = write_outputs(outcome, kind.report, spec, folder)
        folder.finish(result_stage(spec), to_document(result))
    else:
        check_outputs(folder, spec, lambda into: report_again(result, kind, folder, into, tell))
    return Run(folder.path, spec, result)


def report_again(
    result: SomeResult, kind: "RunKind[SomeResult]", folder: RunFolder, into: Path, tell: Progress
) -> None:
    """Write the report of a finished run into another folder, which has its scheme file."""
    # Only the page shows the certificate, which takes longer than all figures.
    certify = None if (folder.path / "report.html").exists() else kind.certify
    outcome = read_outcome(result, into / name_outputs(result).scheme, certify, tell)
    kind.report(outcome, folder, into)


def discover_formula(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Outcome[Discovery]:
    """Train the networks of a recipe, distil, judge and certify a formula, and search formulas without a network."""
    trained = train_network(spec, folder, tell)
    distilled = distil_network(trained, spec, folder, tell)
    judged = judge_formula(distilled, spec, tell)
    certified = certify_formula(judged, spec, tell)
    ablations = search_without_network(spec, tell)
    return describe_discovery(certified, ablations, spec)


def explain(network: Network, spec: recipe.Recipe, output: Path) -> Discovery:
    """Distil, judge and certify the formula of a trained network in the run folder `output`; returns the record.

    A finished discovery in that folder is read back.
    """
    with run_folder(output, spec, warn=lambda _: None) as folder:
        if (done := folder.read_stage(DISCOVERY)) is not None:
            check_outputs(folder, spec, lambda into: None)
        else:
            distilled = distil_network(TrainedMember(network), spec, folder, silent)
            certified = certify_formula(judge_formula(distilled, spec, silent), spec, silent)
            outcome = Outcome(describe_certified(certified, spec), certified.scheme, certified.certificate)
            record_outputs(folder, spec, (), texts=save_schemes(outcome, folder.path))
            folder.finish(DISCOVERY, done := to_document(outcome.result))
        return from_document(done, Discovery, folder.path)


def search_without_network(spec: recipe.Recipe, tell: Progress) -> AblationResults:
    """Search formulas in the data themselves (the ablation), for comparison with the formula of the network."""
    tell("searching without a network", 0, 1)
    return msgspec.convert(ablate(spec).document(), AblationResults)


def save_schemes(outcome: Outcome[SomeResult], folder: Path) -> tuple[Path, ...]:
    """Write the schemes and the certificate of an outcome; returns the paths, none if there is no scheme."""
    if outcome.scheme is None or outcome.certificate is None:
        return ()
    scheme_path, certificate_path = (folder / name for name in name_outputs(outcome.result))
    save(outcome.scheme, scheme_path)
    outcome.certificate.save(certificate_path)
    for name, scheme in outcome.others.items():
        save(scheme, folder / name)
    return (scheme_path, certificate_path, *(folder / name for name in outcome.others))


def write_outputs(
    outcome: Outcome[SomeResult], report: WriteReport[SomeResult], spec: recipe.Recipe, folder: RunFolder
) -> SomeResult:
    """Write schemes, certificate and report, and record the digests of all files; returns the record of the run."""
    began = perf_counter()
    texts = save_schemes(outcome, folder.path)
    # The report is written from the record as it is read back, so that a report written later is identical.
    result = from_document(to_document(outcome.result), type(outcome.result), folder.path)
    paths = report(replace(outcome, result=result), folder, folder.path)
    record_outputs(folder, spec, (*paths, *(folder.path / name for name in outcome.networks)), texts=texts)
    return msgspec.structs.replace(result, seconds={**result.seconds, "report": perf_counter() - began})


def check_networks(spec: recipe.Recipe) -> None:
    """Raise an error for a recipe of networks on graphs that cannot be run to its end.

    InputError if it is too large for the device, has neither arms nor a search, or has a residual that needs small
    steps with the single Δt of `two-cells`; FluxforgeError if the engine of its search is not installed.
    """
    recipe.refuse_too_large(spec, device_memory())
    if not spec.arms and spec.search is None:
        raise InputError(f"recipe {spec.name!r}: has neither 'arms' nor 'search', and needs one of them")
    if spec.search is not None and needs_small_steps(spec) and isinstance(spec.data, recipe.TwoCells):
        why = "the formula of a residual is determined at small steps, and 'two-cells' has a single Δt; choose 'pairs'"
        raise InputError(f"recipe {spec.name!r}: fields 'loss.residual' and 'data.kind': {why}")
    if spec.search is not None and spec.search.route == "modules":
        engine(spec.search.engine)


# Computes the certificate of a finished run from its record and its scheme.
Certify: TypeAlias = Callable[[SomeResult, Scheme, Progress], Certificate]


@dataclass(frozen=True)
class RunKind(Generic[SomeResult]):
    """The functions for one kind of runs: check a recipe before the run, run it to its outcome, write the report.

    `certify` computes the certificate that the report shows again, for a report that is written again; None if the
    report has none.
    """

    discover: Callable[[recipe.Recipe, RunFolder, Progress], Outcome[SomeResult]]
    report: WriteReport[SomeResult]
    check: Callable[[recipe.Recipe], object] = check_networks
    certify: Certify[SomeResult] | None = None


def read_outcome(
    result: SomeResult, scheme_path: Path, certify: Certify[SomeResult] | None, tell: Progress
) -> Outcome[SomeResult]:
    """The outcome of a finished run, from its record and its scheme file, if there is one; certified by `certify`."""
    # Without the duration of the report, which the first report could not show.
    seconds = {name: value for name, value in result.seconds.items() if name != "report"}
    scheme = load(scheme_path) if scheme_path.exists() else None
    certificate = None if certify is None or scheme is None else certify(result, scheme, tell)
    return Outcome(msgspec.structs.replace(result, seconds=seconds), scheme, certificate)


def certify_scheme(_: Result, scheme: Scheme, tell: Progress) -> Certificate:
    """The certificate of a scheme, to which the record of its run adds nothing."""
    return verify_scheme(scheme, tell)


KINDS: Mapping[str, RunKind[Any]] = {
    CARRY: RunKind(discover_flux_form, report_flux_form, certify=certify_scheme),
    DISCOVERY: RunKind(discover_formula, report_formula, certify=certify_scheme),
    EXPERIMENT: RunKind(discover_experiment, report_experiment, check_experiment, certify_scheme),
    GENERALISATION: RunKind(compare_arms, report_arms),
    LIMITER: RunKind(discover_limiter, report_limiter, lambda _: None, certify_again),
    SKEW: RunKind(discover_skew, report_skew, check_skew, certify_scheme),
}
"""The functions of each kind of runs, by the name that `run_kind` returns."""
