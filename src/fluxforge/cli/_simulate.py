"""`fluxforge simulate`: a problem on a mesh."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fluxforge.cli._arguments import (
    BOUNDARY,
    EquationName,
    Json,
    OutputFolder,
    Overwrite,
    SchemeName,
    complete_schemes,
    count,
)
from fluxforge.cli._output import show

PROBLEM, TIME, OUTPUT = "Problem", "Time steps", "Output"


class SolverName(StrEnum):
    """Linear solvers of implicit schemes."""

    AUTO = "auto"
    DIRECT = "direct"
    AMG = "amg"
    CG = "cg"
    BICGSTAB = "bicgstab"
    GMRES = "gmres"


class PrecisionName(StrEnum):
    """Floating-point precisions."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"


SOLVER = (
    "Linear solver of implicit schemes: sparse LU (direct), or conjugate gradients preconditioned by algebraic "
    "multigrid (amg) or by the diagonal (cg); bicgstab or gmres with multigrid for systems that are not symmetric."
)
FIELD = "a formula of x and y, or a file: @field.npy, @run.vtu:T."


def simulate(
    scheme: SchemeName,
    mesh: Annotated[Path, typer.Option(metavar="FILE", help="Mesh file.", rich_help_panel=PROBLEM)],
    equation: EquationName = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Parameter of the equation: a number, a formula, (FORMULA, FORMULA) for a vector, curl(FORMULA) for a "
            "stream function, REGION: VALUE, … per region of the mesh, or @file; reaction=FORMULA replaces r(u). "
            "May be repeated.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    diffusivity: Annotated[
        float | None,
        typer.Option(
            metavar="ALPHA",
            help="Diffusivity α of the heat equation, dT/dt = α ∇²T + S (default: 1).",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    initial: Annotated[
        str, typer.Option(metavar="FORMULA", help=f"Initial field: {FIELD}", rich_help_panel=PROBLEM)
    ] = "0",
    source: Annotated[
        str,
        typer.Option(metavar="FORMULA", help="Source term S: a formula of x and y, or @file.", rich_help_panel=PROBLEM),
    ] = "0",
    boundary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help=BOUNDARY,
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    dt: Annotated[float | None, typer.Option(metavar="DT", help="Time step.", rich_help_panel=TIME)] = None,
    dt_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Time step as a fraction of the reference step, which for heat is the Fourier step (default: 0.5).",
            rich_help_panel=TIME,
        ),
    ] = None,
    steps: Annotated[int, count("--steps", text="Number of steps.", rich_help_panel=TIME)] = 50,
    force: Annotated[
        bool, typer.Option("--force", help="Allow a step above the stability limit.", rich_help_panel=TIME)
    ] = False,
    solver: Annotated[SolverName, typer.Option(help=SOLVER, rich_help_panel=TIME)] = SolverName.AUTO,
    precision: Annotated[
        PrecisionName, typer.Option(help="Floating-point precision (float32 or float64).", rich_help_panel=TIME)
    ] = PrecisionName.FLOAT64,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCHEMES",
            help="Further schemes to run and compare with SCHEME: euler,rk4.",
            autocompletion=complete_schemes,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    save_every: Annotated[
        int | None,
        count("--save-every", text="Save every Nth field (default: about 20 fields).", rich_help_panel=OUTPUT),
    ] = None,
    output: OutputFolder = None,
    overwrite: Overwrite = False,
    gif: Annotated[bool, typer.Option("--gif", help="Also write an animation.", rich_help_panel=OUTPUT)] = False,
    as_json: Json = False,
) -> None:
    """Solve an initial-value problem on a mesh with a scheme and print a summary; with -o, write the fields.

    The equation is that of the scheme, or heat, unless --equation names another.
    """
    if dt is not None and dt_fraction is not None:
        raise typer.BadParameter("give --dt or --dt-fraction, not both")
    if gif and output is None:
        raise typer.BadParameter("--gif needs a folder to write to: give -o FOLDER")
    if overwrite and output is None:
        raise typer.BadParameter("--overwrite is about a folder to write to: give -o FOLDER")
    from fluxforge.cli._progress import doing

    with doing(f"reading {mesh}", quiet=as_json):
        from fluxforge.cli._simulation import Problem, Request, run

        request = Request(
            schemes=tuple(dict.fromkeys([scheme, *(name for names in compare or [] for name in _names(names))])),
            folder=output,
            gif=gif,
            overwrite=overwrite,
            as_json=as_json,
        )
        request.prepare()
        problem = Problem.read(
            mesh, initial=initial, source=source, boundary=boundary or [], equation=equation, settings=settings or []
        )
    run(
        request,
        problem,
        diffusivity=diffusivity,
        dt=dt,
        dt_fraction=0.5 if dt_fraction is None else dt_fraction,
        steps=steps,
        save_every=save_every,
        force=force,
        solver=solver.value,
        dtype=precision.value,
    )
    if output is None and not as_json:
        show("no files were written: give -o FOLDER to keep the fields and a picture")


def _names(text: str) -> list[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]
