"""The commands verify, schemes, equations and doctor.

Each imports the library when it runs, so that `fluxforge --help` and shell completion do not wait for JAX.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from fluxforge.cli._arguments import (
    EQUATIONS,
    EquationName,
    Json,
    OutputFolder,
    Overwrite,
    SchemeName,
    complete_one,
    refuse_if,
    scheme_argument,
    split_names,
)
from fluxforge.cli._output import show, show_json, show_pairs, show_status
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
            "--mesh certifies on one mesh, without refinement: leave out --families, --levels and --meshes": mesh
            and (refined or meshes),
            "--meshes replaces --families and --levels: give only one of the two": meshes and refined,
            "--exact is used with --meshes only: give --meshes too": exact is not None and not meshes,
            "--overwrite needs a folder to write to: give -o FOLDER": overwrite and output is None,
        }
    )
    if output is not None and (output / CERTIFICATE).exists() and not overwrite:
        raise InputError(
            f"{output}: holds an earlier certificate ({CERTIFICATE}): give another folder, or --overwrite to replace it"
        )
    sequence = split_names(meshes[0]) if meshes else ()
    if meshes and len(sequence) < 2:
        raise InputError("--meshes needs at least two files, from coarse to fine: a.msh,b.msh,c.msh")
    with show_status("loading", quiet=as_json):
        from fluxforge.cli._certificate import certify
    certify(
        scheme,
        equation,
        mesh[0] if mesh else None,
        folder=output,
        as_json=as_json,
        families=None if families is None else split_names(families),
        levels=levels,
        meshes=sequence,
        exact=exact,
        quick=quick,
    )


def schemes(
    name: Annotated[str | None, scheme_argument()] = None,
    as_json: Json = False,
) -> None:
    """List the built-in schemes with their claims, and the parts that other names combine; with a name, its formulas.

    SCHEME is a listed name, or SPACE, TIME or SPACE-TIME of the parts: corrected-implicit is the corrected flux with
    backward Euler.
    """
    from fluxforge.cli._catalogue import list_schemes, print_scheme

    list_schemes(as_json=as_json) if name is None else print_scheme(name, as_json=as_json)


def equations(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="EQUATION",
            help="Name of a built-in equation, or a .toml file.",
            autocompletion=complete_one(EQUATIONS),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in equations and their parameters; with a name, show that one in full."""
    from fluxforge.cli._catalogue import list_equations, print_equation

    list_equations(as_json=as_json) if name is None else print_equation(name, as_json=as_json)


STYLES = {"ok": "green", "optional": "yellow", "missing": "bold red"}


def doctor(as_json: Json = False) -> None:
    """Check the installation, and list what to install for missing features."""
    with show_status("checking the installation", quiet=as_json):
        from fluxforge._doctor import examine

        report = examine()
    if as_json:
        show_json(report.document())
    else:
        show_pairs(
            (check.name, Text(check.status, STYLES[check.status]), "; ".join(filter(None, (check.found, check.advice))))
            for check in report.checks
        )
        show("all required components work" if report.ok else "a required component is missing or broken")
    if not report.ok:
        raise typer.Exit(1)
