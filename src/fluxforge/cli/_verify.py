"""`fluxforge verify`: the certificate of a scheme."""

from pathlib import Path
from typing import Annotated

import typer

from fluxforge.cli._arguments import EquationName, Json, OutputFolder, Overwrite, SchemeName, refuse_if, split_names
from fluxforge.errors import InputError

CERTIFICATE = "certificate.json"


def verify(
    scheme: SchemeName,
    equation: EquationName = None,
    families: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Mesh families to refine, e.g. squares,right,irregular, or cubes in 3D (default: all plane families).",
        ),
    ] = None,
    levels: Annotated[
        int | None, typer.Option(metavar="N", help="Number of meshes per family, coarse to fine (default: 4).")
    ] = None,
    mesh: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Certify on this one mesh, without refinement: stencil, conservation, patch tests, largest stable Δt.",
        ),
    ] = None,
    meshes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILES", help="Measure the order in space on your own meshes, coarse to fine: a.msh,b.msh,c.msh."
        ),
    ] = None,
    exact: Annotated[
        str | None,
        typer.Option(
            metavar="FORMULA",
            help="Exact solution for --meshes, a formula of x and y (default: built-in manufactured solutions).",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use smaller meshes: seconds instead of a minute.")] = False,
    output: OutputFolder = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Certify a scheme: measure consistency, orders, stability and conservation, and compare them with its claims.

    Exit code 1 if a claim is contradicted, or was requested and could not be established.
    """
    refined = families is not None or levels is not None
    refuse_if(
        {
            "--mesh or --meshes is given more than once: a sequence is --meshes a.msh,b.msh,c.msh": len(mesh or []) > 1
            or len(meshes or []) > 1,
            "--mesh is one mesh: --families, --levels and --meshes refine, give one or the other": mesh
            and (refined or meshes),
            "--meshes takes the place of --families and --levels: give one or the other": meshes and refined,
            "--exact is the solution on a sequence of meshes: give --meshes too": exact is not None and not meshes,
            "--overwrite is about a folder to write to: give -o FOLDER": overwrite and output is None,
        }
    )
    if output is not None and (output / CERTIFICATE).exists() and not overwrite:
        raise InputError(
            f"{output}: holds an earlier certificate ({CERTIFICATE}): give another folder, or --overwrite to replace it"
        )
    from fluxforge.cli._progress import show_status

    with show_status("loading", quiet=as_json):
        from fluxforge.cli._certificate import Request, run
    run(
        Request(
            scheme=scheme,
            equation=equation,
            families=None if families is None else split_names(families),
            levels=levels,
            mesh=mesh[0] if mesh else None,
            meshes=split_names(meshes[0]) if meshes else None,
            exact=exact,
            quick=quick,
            folder=output,
            as_json=as_json,
        )
    )
