"""`fluxforge simulate`: a problem on a mesh."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from fluxforge.cli._arguments import (
    BOUNDARY,
    SCHEMES,
    EquationName,
    Gif,
    Json,
    Output,
    OutputFolder,
    Overwrite,
    Times,
    complete_list,
    count,
    parse_whole,
    refuse_if,
    scheme_argument,
    split_names,
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
    scheme: Annotated[
        str | None, scheme_argument("Name of a built-in scheme, a scheme.json file, or a run folder.")
    ] = None,
    mesh: Annotated[Path | None, typer.Option(metavar="FILE", help="Mesh file.", rich_help_panel=PROBLEM)] = None,
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
        typer.Option(
            metavar="FORMULA",
            help="Source term S: a formula of x, y, t and the unknown, or @file.",
            rich_help_panel=PROBLEM,
        ),
    ] = "0",
    boundary: Annotated[
        list[str] | None, typer.Option(metavar="CONDITION", help=BOUNDARY, rich_help_panel=PROBLEM)
    ] = None,
    dt: Annotated[
        str | None,
        typer.Option(metavar="DT", help="Time step, or auto: 0.9 of the stability limit.", rich_help_panel=TIME),
    ] = None,
    dt_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Time step as a fraction of the reference step, which for heat is the Fourier step (default: 0.5).",
            rich_help_panel=TIME,
        ),
    ] = None,
    steps: Annotated[int | None, count("--steps", text="Number of steps (default: 50).", rich_help_panel=TIME)] = None,
    end_time: Annotated[
        float | None,
        typer.Option(
            metavar="T", help="End of the run, hit exactly by equal steps of at most DT.", rich_help_panel=TIME
        ),
    ] = None,
    start_time: Annotated[
        float | None, typer.Option(metavar="T", help="Time of the initial field (default: 0).", rich_help_panel=TIME)
    ] = None,
    restart: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Go on from the last field that a run has saved, at its time; scheme, mesh and problem are those of "
            "the folder.",
            rich_help_panel=TIME,
        ),
    ] = None,
    steady: Annotated[
        bool,
        typer.Option(
            "--steady", help="Solve for the steady state of a linear scheme instead of stepping.", rich_help_panel=TIME
        ),
    ] = False,
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
            autocompletion=complete_list(SCHEMES),
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    save_every: Annotated[
        str | None,
        typer.Option(
            metavar="N|T",
            help="Save every Nth field, or with a decimal point, as 0.1 or 2.0, once in that time (default: about 20 "
            "fields).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    output: OutputFolder = None,
    overwrite: Overwrite = False,
    gif: Gif = False,
    as_json: Json = False,
) -> None:
    """Solve an initial-value problem on a mesh with a scheme and print a summary; with -o, write the fields.

    The equation is that of the scheme, or heat, unless --equation names another.
    """
    refuse_if(
        {
            "give --dt or --dt-fraction, not both": dt is not None and dt_fraction is not None,
            "--gif needs a folder to write to: give -o FOLDER": gif and output is None,
            "--overwrite is about a folder to write to: give -o FOLDER": overwrite and output is None,
            "give --steps or --end-time, not both": steps is not None and end_time is not None,
            "--steady takes no steps: leave out what is about time (--dt, --end-time, --steps, …)": steady
            and (dt or dt_fraction or steps or end_time or start_time or restart or save_every or force),
        }
    )
    files = Output(output, overwrite, gif, as_json)
    times = Times(_parse_step(dt), steps, end_time, _parse_every(save_every))
    if restart is not None:
        chosen = (scheme, mesh, equation, settings, diffusivity, boundary, dt_fraction, start_time, compare)
        other = any(chosen) or initial != "0" or source != "0"
        refuse_if({"--restart takes scheme, mesh and problem from the folder: leave them out": other})
        from fluxforge.cli._rerun import continue_run

        continue_run(restart, files, times)
        return
    if scheme is None:
        raise typer.BadParameter("give a SCHEME, such as euler (`fluxforge schemes` lists them), or --restart FOLDER")
    if mesh is None:
        raise typer.BadParameter("give a mesh: --mesh FILE")
    from fluxforge.cli._progress import show_status

    with show_status(f"reading {mesh}", quiet=as_json):
        from fluxforge.cli._simulation import Problem, Request, run, run_steady

        others = (name for names in compare or [] for name in split_names(names))
        request = Request(tuple(dict.fromkeys([scheme, *others])), files)
        request.prepare()
        problem = Problem.read(
            mesh, initial=initial, source=source, boundary=boundary or [], equation=equation, settings=settings or []
        )
    if steady:
        run_steady(request, problem, diffusivity=diffusivity, solver=solver.value)
        return
    run(
        request,
        problem,
        times,
        diffusivity=diffusivity,
        dt_fraction=0.5 if dt_fraction is None else dt_fraction,
        start_time=0.0 if start_time is None else start_time,
        force=force,
        solver=solver.value,
        dtype=precision.value,
    )
    if output is None and not as_json:
        show("no files were written: give -o FOLDER to keep the fields and a picture")


def _parse_step(text: str | None) -> float | Literal["auto"] | None:
    """A number, or the word auto."""
    if text is None or text == "auto":
        return text  # type: ignore[return-value]
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"--dt {text!r:.60}: should be a number or auto") from None


def _parse_every(text: str | None) -> float | None:
    """A whole number of steps, or a time: a number with a decimal point."""
    if text is None:
        return None
    if "." not in text:
        try:
            return parse_whole(text)
        except typer.BadParameter:
            pass
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"--save-every {text!r:.60}: should be a whole number of steps, or a time with a decimal point (2.0)"
        ) from None
