"""`discover`: a recipe in, a run out."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge._arguments import check_function, check_kind, check_path, check_text
from fluxforge._machine import environment
from fluxforge.data._model import model_of
from fluxforge.distil._ablation import ablate
from fluxforge.distil._engines import engine
from fluxforge.errors import InputError
from fluxforge.gnn._network import Network
from fluxforge.graph._pad import device_memory
from fluxforge.pde._equation import HEAT
from fluxforge.pipeline._certification import Certified, certify_formula, name_outputs
from fluxforge.pipeline._distillation import TrainedMember, distil_network, judge_formula, train_network
from fluxforge.pipeline._experiment import check_experiment, discover_experiment, rewrite_experiment
from fluxforge.pipeline._flux_form import discover_carry, rewrite_carry
from fluxforge.pipeline._folder import check_outputs, description, finite, recipe_of, record_outputs, run_folder
from fluxforge.pipeline._generalisation import compare_arms, rewrite_generalisation
from fluxforge.pipeline._limiter import discover_limiter, rewrite_limiter
from fluxforge.pipeline._problems import needs_small_steps
from fluxforge.pipeline._report import describe_certified, rewrite_report, write_report
from fluxforge.pipeline._run import (
    CARRY,
    DISCOVERY,
    EXPERIMENT,
    GENERALISATION,
    LIMITER,
    SKEW,
    Run,
    result_stage,
    run_kind,
)
from fluxforge.pipeline._skew import check_skew, discover_skew, rewrite_skew
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.run._record import Document
from fluxforge.run.result import AblationResults, Discovery, from_document, to_document


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
    KINDS[run_kind(spec)].check(spec)


def resume(output: str | os.PathLike[str], *, tell: Progress = silent, warn: Warn = lambda _: None) -> Run:
    """Continue an interrupted run; of a finished one, read the result and write files that are missing again."""
    with RunFolder.open(Path(output), warn=warn) as folder:
        return finish_run(recipe_of(folder), folder, tell)


def finish_run(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Run:
    """Run what is not finished in a folder, and check the files of what is."""
    kind, stage = KINDS[run_kind(spec)], result_stage(spec)
    document: Document | None = folder.read_stage(stage)
    if document is None:
        document = kind.discover(spec, folder, tell)
        folder.finish(stage, document)
    else:
        check_outputs(folder, spec, lambda into: kind.rewrite(document, folder, into, tell))
    return Run(folder.path, spec, document)


def check_networks(spec: recipe.Recipe) -> None:
    """Refuse a recipe of networks on graphs that is too large, or has nothing to end in; raises InputError."""
    recipe.refuse_too_large(spec, device_memory())
    if not spec.arms and spec.search is None:
        raise InputError(f"recipe {spec.name!r}: has neither 'arms' to compare nor a 'search' for formulas")
    if spec.search is not None and needs_small_steps(spec) and isinstance(spec.data, recipe.TwoCells):
        why = "a residual gives its formula at small steps, and two cells have one Δt; choose data of kind 'pairs'"
        raise InputError(f"recipe {spec.name!r}: fields 'loss.residual' and 'data.kind': {why}")
    if spec.search is not None and spec.search.route == "modules":
        engine(spec.search.engine)


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
    ablations = msgspec.convert(ablate(spec).document(), AblationResults)
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
        seconds={**discovery.seconds, "ablations": ablations.seconds},
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


@dataclass(frozen=True)
class RunKind:
    """How runs of one kind are checked before they begin, run to their document, and their outputs written again.

    `discover` records the outputs; `rewrite` takes the document, the run's folder, and the folder to write into.
    """

    discover: Callable[[recipe.Recipe, RunFolder, Progress], Document]
    rewrite: Callable[[Document, RunFolder, Path, Progress], object]
    check: Callable[[recipe.Recipe], object] = check_networks


KINDS: Mapping[str, RunKind] = {
    CARRY: RunKind(discover_carry, rewrite_carry),
    DISCOVERY: RunKind(discover_formula, rewrite_report),
    EXPERIMENT: RunKind(discover_experiment, rewrite_experiment, check_experiment),
    GENERALISATION: RunKind(compare_arms, rewrite_generalisation),
    LIMITER: RunKind(discover_limiter, lambda document, _, into, __: rewrite_limiter(document, into), lambda _: None),
    SKEW: RunKind(discover_skew, rewrite_skew, check_skew),
}
"""Kinds of runs by the names that `run_kind` gives them."""
