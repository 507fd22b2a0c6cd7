"""`fluxforge verify`: the certificate of a scheme."""

from pathlib import Path
from typing import Annotated

import typer

from fluxforge.cli._arguments import Json, OutputFolder, SchemeName


def verify(
    scheme: SchemeName,
    families: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Mesh families to refine: squares,right,irregular (all unless given)."),
    ] = None,
    levels: Annotated[int | None, typer.Option(metavar="N", help="Refinements per family (4 unless given).")] = None,
    mesh: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Certify on this mesh: stencil, conservation, patch tests, Δt limit."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller meshes: seconds instead of a minute.")] = False,
    output: OutputFolder = None,
    as_json: Json = False,
) -> None:
    """Measure what a scheme is (consistent? of which order? stable? conservative?) and hold its claims against it.

    Exit code 1 if a claim is contradicted.
    """
    if mesh is not None and (families or levels):
        raise typer.BadParameter("--mesh is one mesh: --families and --levels refine families, give one or the other")
    from fluxforge.cli._progress import doing

    with doing("loading", quiet=as_json):
        from fluxforge.cli._certificate import Request, run
    run(Request(scheme, _names(families), levels, mesh, quick, output, as_json))


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name for name in (part.strip() for part in text.split(",")) if name)
