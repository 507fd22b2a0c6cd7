"""`discover`: a recipe in, a run folder out."""

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fluxforge import recipe
from fluxforge._arguments import check_function, check_kind, check_path, check_text
from fluxforge._files import write_document
from fluxforge.certify import NUMERICAL_FAILURES, Certificate, verify
from fluxforge.certify.time_order import time_order
from fluxforge.distil import ablate, engine
from fluxforge.errors import InputError
from fluxforge.gnn import Network
from fluxforge.graph import device_memory
from fluxforge.mesh import save_figure
from fluxforge.pde import HEAT
from fluxforge.pipeline._distillation import distilled, explained
from fluxforge.pipeline._fields import fields_figure
from fluxforge.pipeline._folder import Warn, description, finite, recipe_of, run_folder
from fluxforge.pipeline._found import Found
from fluxforge.pipeline._generalisation import generalise, summary
from fluxforge.pipeline._judge import is_expected
from fluxforge.pipeline._outputs import check_outputs, record_outputs
from fluxforge.pipeline._own_scheme import describe_match, matching_scheme
from fluxforge.pipeline._progress import Progress, silent
from fluxforge.pipeline._small_steps import in_the_limit, timed
from fluxforge.report import extrapolation_figure, generalisation_figure, write_discovery
from fluxforge.run import RunFolder
from fluxforge.scheme import Scheme, load, save

FAMILIES = ("squares", "right", "irregular")
CANDIDATE = ("candidate.json", "candidate-certificate.json")


def discover(
    source: str | os.PathLike[str] | recipe.Recipe = "first-order",
    output: str | os.PathLike[str] | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    command: str = "",
    tell: Progress = silent,
    warn: Warn = lambda _: None,
) -> dict[str, Any]:
    """Run a recipe in a new folder, and return what `fluxforge discover --json` prints.

    The recipe is a shipped one by name, a TOML file, or a `Recipe`; `changes` are fields of it by their names with
    dots, such as `{"training.steps": 5000}`. The folder is runs/RECIPE, with a number after it if that is taken,
    unless `output` is given.
    """
    if not isinstance(source, recipe.Recipe):
        check_path(source, "source", "a recipe, the name of a shipped one or the path of a .toml file")
    if changes is not None:
        check_kind(changes, "changes", Mapping, "a mapping from fields to values")
        for field in changes:
            check_text(field, "changes: a field")
    if output is not None:
        check_path(output, "output", "the path of a folder")
    check_text(command, "command"), check_function(tell, "tell"), check_function(warn, "warn")
    spec = source if isinstance(source, recipe.Recipe) else recipe.load(source)
    spec = recipe.self_contained(recipe.override(spec, changes) if changes else spec)
    output = free_folder(spec) if output is None else Path(output)
    _refuse_impossible(spec)
    described = {**description(spec), "command": command}
    with RunFolder.create(output, description=described, warn=warn) as folder:
        return _run(spec, folder, tell)


def free_folder(spec: recipe.Recipe) -> Path:
    """runs/RECIPE, or with a number after it if a run is there already."""
    folder = Path("runs") / spec.name
    candidates = (folder, *(folder.with_name(f"{folder.name}-{k}") for k in range(2, 10_000)))
    return next(each for each in candidates if not each.exists())


def _refuse_impossible(spec: recipe.Recipe) -> None:
    """What would be found out after minutes of training is said before."""
    recipe.check(spec)
    recipe.refuse_too_large(spec, device_memory())
    if not spec.arms and spec.search is None:
        raise InputError(f"recipe {spec.name!r}: has neither 'arms' to compare nor a 'search' for formulas")
    if spec.search is not None and in_the_limit(spec) and isinstance(spec.data, recipe.TwoCells):
        why = "a residual gives its formula at small steps, and two cells have one Δt; choose data of kind 'pairs'"
        raise InputError(f"recipe {spec.name!r}: fields 'loss.residual' and 'data.kind': {why}")
    if spec.search is not None and spec.search.route == "modules":
        engine(spec.search.engine)


def resume(output: str | os.PathLike[str], *, tell: Progress = silent, warn: Warn = lambda _: None) -> dict[str, Any]:
    """Go on with a run that was interrupted; what is finished is not repeated."""
    with RunFolder.open(Path(output), warn=warn) as folder:
        return _run(recipe_of(folder), folder, tell)


def _run(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> dict[str, Any]:
    return _generalisation(spec, folder, tell) if spec.arms else _formula(spec, folder, tell)


def _generalisation(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> dict[str, Any]:
    if (done := folder.finished("generalisation")) is not None:
        check_outputs(folder, spec, lambda into: _write_generalisation(spec, done, into))
        return done
    found = generalise(spec, folder, tell)
    result = {"recipe": spec.name, "seeds": spec.seeds, **found, "summary": summary(spec, found)}
    record_outputs(folder, spec, _write_generalisation(spec, result, folder.path))
    folder.finish("generalisation", result)
    return result


def _write_generalisation(spec: recipe.Recipe, result: Mapping[str, Any], folder: Path) -> list[Path]:
    """The document of a run with arms and its figures; returns their paths."""
    paths = [folder / "generalisation.json"]
    write_document(paths[0], "generalisation", 1, result)
    if {"sparse", "dense"} <= set(spec.arms):
        for name, draw in (("generalisation", generalisation_figure), ("extrapolation", extrapolation_figure)):
            for suffix in ("png", "svg"):
                paths.append(folder / f"{name}.{suffix}")
                save_figure(draw(result), paths[-1])
    return paths


def _certified(
    document: dict[str, Any], found: Found, spec: recipe.Recipe, folder: RunFolder, tell: Progress
) -> tuple[Scheme, Certificate]:
    """The certificate, in the document and as files whose names say whether the formula is recovered."""
    with timed(document["seconds"], "certify"):
        scheme = found.scheme(spec.name, recipe.equation_of(spec))
        certificate = _verified(scheme, tell)
        order = None if certificate.time is None else certificate.time.order
        document["scheme"] = matching_scheme(found, spec)
        document["findings"] = [
            *_findings(certificate, scheme, order, _unrounded_order(document, found, spec)),
            describe_match(document["scheme"], spec),
        ]
        document["order_in_time"] = order
        document["as_expected"] = is_expected(spec, document["verdict"], order, document["scheme"])
        document["certificate"] = certificate.to_document()
    own, beside = _named(document, folder)
    save(scheme, own)
    certificate.save(beside)
    return scheme, certificate


def _verified(scheme: Scheme, tell: Progress) -> Certificate:
    return verify(
        scheme, families=FAMILIES, quick=True, progress=lambda what, k, of: tell(f"certifying: {what}", k - 1, of)
    )


def _named(document: Mapping[str, Any], folder: RunFolder) -> tuple[Path, Path]:
    """Where a formula and its certificate lie: the names say whether it is recovered."""
    names = ("scheme.json", "certificate.json") if document["recovered"] else CANDIDATE
    return folder.path / names[0], folder.path / names[1]


def _findings(certificate: Certificate, scheme: Scheme, order: float | None, unrounded: float | None) -> list[str]:
    """What the certificate says of the formula, in a few lines; none of it bears on the verdict."""
    kept = certificate.conservation is not None and certificate.conservation.holds
    told = "not established" if order is None else f"{order:.2f}"
    beside = "" if unrounded is None else f"; {unrounded:.2f} with the network's own constants, unrounded"
    equation = scheme.equation
    total = "the total heat" if equation == HEAT else f"the total of {equation.unknown}"
    # What reacts, or flows through walls, is not conserved: then the certificate asks the fluxes between cells.
    total += "" if equation.only_diffuses else " but for reactions and walls"
    found = [f"the scheme {'conserves' if kept else 'does not conserve'} {total}"]
    found.append(f"its order in time is {told} as printed{beside}")
    if equation.only_diffuses:
        K = certificate.space["squares"].diffusivity if "squares" in certificate.space else None
        own = "α" if equation == HEAT else "that of the equation"
        apart = "was not established" if K is None else f"differs from {own} by {np.abs(K - np.eye(2)).max():.1%}"
        found.append(f"its diffusivity on squares {apart}")
    return found


def _unrounded_order(document: Mapping[str, Any], found: Found, spec: recipe.Recipe) -> float | None:
    """The order in time with the constants that the network itself has."""
    if not all(math.isfinite(value) for value in document["limit"].values()):
        return None
    try:
        scheme = Scheme(
            f"unrounded-{spec.name}", found.free.filled(document["limit"]), equation=recipe.equation_of(spec)
        )
        return time_order(scheme).order
    except NUMERICAL_FAILURES:
        return None


def explain(network: Network, spec: recipe.Recipe, output: Path, *, tell: Progress = silent) -> dict[str, Any]:
    """From a network that is trained already to its formula and certificate: the document of a run, and its folder."""
    with run_folder(output, spec, warn=lambda _: None) as folder:
        if (done := folder.finished("discovery")) is not None:
            check_outputs(folder, spec, lambda into: None)
            return done
        document, found = explained(network, spec, folder, document={"recipe": spec.name, "seed": spec.seed}, tell=tell)
        if found is not None:
            _certified(document, found, spec, folder, tell)
        document = finite(document)
        record_outputs(folder, spec, (), texts=() if found is None else _named(document, folder))
        folder.finish("discovery", document)
    return document


def _formula(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> dict[str, Any]:
    """Scheme, certificate and report in the folder, under names that say whether the formula is believed."""
    if (done := folder.finished("discovery")) is not None:
        check_outputs(folder, spec, lambda into: _remake(done, spec, folder, into, tell))
        return done
    document, found = distilled(spec, folder, tell)
    document["expected"] = spec.expect
    document["as_expected"] = False
    scheme = certificate = None
    if found is not None:
        scheme, certificate = _certified(document, found, spec, folder, tell)
    tell("searching without a network", 0, 1)
    document["ablations"] = ablate(spec).document()
    document["seconds"]["ablations"] = document["ablations"]["seconds"]
    tell("writing the report", 0, 1)
    began = time.perf_counter()
    paths = _write_report(document, spec, folder, folder.path, scheme=scheme, certificate=certificate)
    document["seconds"]["report"] = time.perf_counter() - began
    document = finite(document)
    record_outputs(folder, spec, paths, texts=() if found is None else _named(document, folder))
    folder.finish("discovery", document)
    return document


def _write_report(
    document: Mapping[str, Any],
    spec: recipe.Recipe,
    folder: RunFolder,
    into: Path,
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
) -> list[Path]:
    return write_discovery(
        document,
        into,
        scheme=scheme,
        certificate=certificate,
        metrics=folder.metrics.read(),
        command=str(folder.description.get("command", "")),
        picture=None if scheme is None else fields_figure(scheme, spec, folder, document.get("member")),
    )


def _remake(done: Mapping[str, Any], spec: recipe.Recipe, folder: RunFolder, into: Path, tell: Progress) -> None:
    """The report of a finished run again; its scheme is in that folder, and is verified anew for the certificate."""
    seconds = {name: value for name, value in done["seconds"].items() if name != "report"}  # not known to the first one
    scheme = certificate = None
    if (path := into / _named(done, folder)[0].name).exists():
        scheme = load(path)
        certificate = _verified(scheme, tell)
    _write_report({**done, "seconds": seconds}, spec, folder, into, scheme=scheme, certificate=certificate)
