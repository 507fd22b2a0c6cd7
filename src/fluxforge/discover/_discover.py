"""`discover`: a recipe in, a run folder out."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fluxforge import recipe
from fluxforge._files import write_document
from fluxforge.discover._distillation import distilled, explained
from fluxforge.discover._folder import Warn, description, finite, recipe_of, run_folder
from fluxforge.discover._found import Found
from fluxforge.discover._generalisation import generalise, summary
from fluxforge.discover._judge import judge
from fluxforge.discover._picture import field_figure
from fluxforge.discover._progress import Progress, silent
from fluxforge.discover._small_steps import in_the_limit, order_asked, timed
from fluxforge.distil import engine
from fluxforge.errors import InputError
from fluxforge.gnn import Network
from fluxforge.mesh import save_figure
from fluxforge.report import extrapolation_figure, generalisation_figure, write_discovery
from fluxforge.run import RunFolder
from fluxforge.scheme import Scheme, save
from fluxforge.verify import Certificate, verify

FAMILIES = ("squares", "right", "irregular")


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
    spec = source if isinstance(source, recipe.Recipe) else recipe.load(source)
    spec = recipe.override(spec, changes) if changes else spec
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
    found = generalise(spec, folder, tell)
    result = {"recipe": spec.name, "seeds": spec.seeds, **found, "summary": summary(spec, found)}
    write_document(folder.path / "generalisation.json", "generalisation", 1, result)
    if {"sparse", "dense"} <= set(spec.arms):
        for name, draw in (("generalisation", generalisation_figure), ("extrapolation", extrapolation_figure)):
            for suffix in ("png", "svg"):
                save_figure(draw(result), folder.path / f"{name}.{suffix}")
    return result


def _certified(
    document: dict[str, Any], found: Found, spec: recipe.Recipe, folder: RunFolder, tell: Progress
) -> tuple[Scheme, Certificate]:
    """Certificate and verdict, in the document and as files whose names say whether the formula is believed."""
    with timed(document["seconds"], "certify"):
        scheme = found.scheme(spec.name)
        certificate = verify(
            scheme, families=FAMILIES, quick=True, progress=lambda what, k, of: tell(f"certifying: {what}", k - 1, of)
        )
        document["recovered"], document["reasons"] = judge(document, certificate, order=order_asked(spec))
        document["certificate"] = certificate.to_document()
    believed = document["recovered"]
    save(scheme, folder.path / ("scheme.json" if believed else "candidate.json"))
    certificate.save(folder.path / ("certificate.json" if believed else "candidate-certificate.json"))
    return scheme, certificate


def explain(network: Network, spec: recipe.Recipe, output: Path, *, tell: Progress = silent) -> dict[str, Any]:
    """From a network that is trained already to its formula and certificate: the document of a run, and its folder."""
    with run_folder(output, spec, warn=lambda _: None) as folder:
        if (done := folder.finished("discovery")) is not None:
            return done
        document, found = explained(network, spec, folder, document={"recipe": spec.name, "seed": spec.seed}, tell=tell)
        if found is not None:
            _certified(document, found, spec, folder, tell)
        document = finite(document)
        folder.finish("discovery", document)
    return document


def _formula(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> dict[str, Any]:
    """Scheme, certificate and report in the folder, under names that say whether the formula is believed."""
    if (done := folder.finished("discovery")) is not None:
        return done
    document, found = distilled(spec, folder, tell)
    scheme = certificate = None
    if found is not None:
        scheme, certificate = _certified(document, found, spec, folder, tell)
    tell("writing the report", 0, 1)
    began = time.perf_counter()
    write_discovery(
        document,
        folder.path,
        scheme=scheme,
        certificate=certificate,
        metrics=folder.metrics.read(),
        command=str(folder.description.get("command", "")),
        picture=None if scheme is None else field_figure(scheme, spec.diffusivity),
    )
    document["seconds"]["report"] = time.perf_counter() - began
    document = finite(document)
    folder.finish("discovery", document)
    return document
