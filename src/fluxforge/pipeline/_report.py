"""The files of a finished run: its report with a picture of the scheme, or the figures of a run with arms."""

from pathlib import Path

from msgspec.structs import replace

from fluxforge import recipe
from fluxforge._files import write_document
from fluxforge.certify import Certificate
from fluxforge.mesh import save_figure
from fluxforge.pipeline._certification import name_outputs, verify_scheme
from fluxforge.pipeline._fields import fields_figure
from fluxforge.pipeline._folder import Progress, recipe_of
from fluxforge.report import extrapolation_figure, generalisation_figure, write_carry, write_discovery, write_skew
from fluxforge.run import RunFolder
from fluxforge.run.carry import CarryResult
from fluxforge.run.result import Discovery, Document, Generalisation, from_document, to_document
from fluxforge.run.skew import SkewResult
from fluxforge.scheme import Scheme, load


def write_generalisation(result: Generalisation, folder: Path) -> list[Path]:
    """Write the document of a run with arms and, if they are `sparse` and `dense`, its figures; return the paths."""
    paths = [folder / "generalisation.json"]
    write_document(paths[0], "generalisation", 1, to_document(result))
    measured = result.measured
    if {"sparse", "dense"} <= set(measured.arms):
        for suffix in ("png", "svg"):
            paths += [folder / f"generalisation.{suffix}", folder / f"extrapolation.{suffix}"]
            save_figure(generalisation_figure(measured.arms, result.seeds), paths[-2])
            save_figure(extrapolation_figure(measured.extrapolation), paths[-1])
    return paths


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


def rewrite_generalisation(document: Document, folder: RunFolder, into: Path, _: Progress) -> None:
    """Write the document and the figures of a finished run with arms again."""
    write_generalisation(from_document(document, Generalisation, folder.path), into)


def rewrite_carry(document: Document, folder: RunFolder, into: Path, _: Progress) -> None:
    """Write the report of a finished run with a network in the form of a flux again; its scheme is in `into`."""
    path = into / name_outputs(False)[0]
    write_carry(from_document(document, CarryResult, folder.path), load(path) if path.exists() else None, into)


def rewrite_skew(document: Document, folder: RunFolder, into: Path, _: Progress) -> None:
    """Write the report of a finished run for skewed meshes again; its scheme is in `into`."""
    result = from_document(document, SkewResult, folder.path)
    path = into / name_outputs(result.verdict == "recovered")[0]
    command = str(folder.description.get("command", ""))
    write_skew(result, load(path) if path.exists() else None, into, command=command)


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
