"""The files of a finished run: its report with a picture of the scheme, or the figures of a run with arms."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fluxforge import recipe
from fluxforge._files import write_document
from fluxforge.certify import Certificate
from fluxforge.errors import InputError, InstabilityError
from fluxforge.mesh import Dirichlet, draw_field, generate, save_figure
from fluxforge.pipeline._certification import name_outputs, verify_scheme
from fluxforge.pipeline._folder import Progress
from fluxforge.pipeline._records import Document
from fluxforge.report import extrapolation_figure, generalisation_figure, write_discovery
from fluxforge.run import RunFolder
from fluxforge.scheme import Scheme, load
from fluxforge.stepping import simulate

CELLS, STEPS = 600, 100
# Of the reference step.
FRACTION = 0.5
SPOT = "exp(-30*((x - 0.6)**2 + (y - 0.5)**2))"


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
        picture=None if scheme is None else field_figure(scheme, recipe.settings(spec)),
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


def field_figure(scheme: Scheme, parameters: Mapping[str, Any]) -> Figure | None:
    """The unknown after a short run, cells outlined; nothing where the scheme cannot be run so."""
    try:
        return _draw_field(scheme, parameters)
    except (InputError, InstabilityError):  # A picture is no reason to lose a discovery.
        return None


def _draw_field(scheme: Scheme, parameters: Mapping[str, Any]) -> Figure:
    mesh = generate(kind="irregular", cells=CELLS, seed=0, engine="builtin")
    run = simulate(
        scheme,
        mesh,
        parameters=parameters,
        initial=SPOT,
        boundary={"left": Dirichlet(1.0)},
        dt_fraction=FRACTION,
        steps=STEPS,
        save_every=STEPS,
    )
    figure = Figure(figsize=(5, 4.2), layout="constrained")
    axes = figure.add_subplot()
    patches = draw_field(axes, mesh, run.fields[-1], colours="inferno", edges=True)
    patches.set_edgecolor((0.5, 0.5, 0.5, 0.6))
    figure.colorbar(patches, ax=axes, label=scheme.equation.unknown, shrink=0.85)
    unit = "Fourier" if scheme.equation.only_diffuses else "reference"
    axes.set_title(
        f"{run.graph.cells} cells, {run.steps} steps, Δt = {run.dt / run.dt_fourier:g} {unit} steps", fontsize=10
    )
    return figure
