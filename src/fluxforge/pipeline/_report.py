"""The files of a finished run: its report with a picture of the scheme, or the figures of a run with arms."""

from pathlib import Path

from fluxforge import recipe
from fluxforge._files import write_document
from fluxforge.certify import Certificate
from fluxforge.mesh import save_figure
from fluxforge.pipeline._certification import name_outputs, verify_scheme
from fluxforge.pipeline._fields import fields_figure
from fluxforge.pipeline._folder import Progress
from fluxforge.pipeline._records import Document
from fluxforge.report import extrapolation_figure, generalisation_figure, write_discovery
from fluxforge.run import RunFolder
from fluxforge.scheme import Scheme, load


def write_generalisation(spec: recipe.Recipe, document: Document, folder: Path) -> list[Path]:
    """The document of a run with arms and its figures; returns their paths."""
    paths = [folder / "generalisation.json"]
    write_document(paths[0], "generalisation", 1, document)
    if {"sparse", "dense"} <= set(spec.arms):
        for name, draw in (("generalisation", generalisation_figure), ("extrapolation", extrapolation_figure)):
            for suffix in ("png", "svg"):
                paths.append(folder / f"{name}.{suffix}")
                save_figure(draw(document), paths[-1])
    return paths


def write_report(
    document: Document,
    spec: recipe.Recipe,
    folder: RunFolder,
    into: Path,
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
) -> list[Path]:
    """Write the report of a run and its figures; returns their paths."""
    return write_discovery(
        document,
        into,
        scheme=scheme,
        certificate=certificate,
        metrics=folder.metrics.read(),
        command=str(folder.description.get("command", "")),
        picture=None if scheme is None else fields_figure(scheme, spec, folder, document.get("member")),
    )


def rewrite_report(document: Document, spec: recipe.Recipe, folder: RunFolder, into: Path, tell: Progress) -> None:
    """The report of a finished run again; its scheme is in `into`, and is verified anew for the certificate."""
    # The first report was written before its own duration was known.
    seconds = {name: value for name, value in document["seconds"].items() if name != "report"}
    scheme = certificate = None
    if (path := into / name_outputs(document["recovered"])[0]).exists():
        scheme = load(path)
        certificate = verify_scheme(scheme, tell)
    write_report({**document, "seconds": seconds}, spec, folder, into, scheme=scheme, certificate=certificate)
