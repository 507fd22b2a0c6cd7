"""The options of `fluxforge simulate` and `fluxforge rerun`; `_simulation` runs them."""

from contextlib import suppress
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

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
    choice,
    complete_list,
    count,
    parse_whole,
    refuse_if,
    scheme_argument,
    split_names,
)
from fluxforge.cli._output import show, show_status


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


_problem: Any = partial(typer.Option, rich_help_panel="Problem")
_time: Any = partial(typer.Option, rich_help_panel="Time steps")
_output: Any = partial(typer.Option, rich_help_panel="Output")

MeshFile = Annotated[Path | None, _problem("--mesh", metavar="FILE", help="Mesh file: .msh, .vtu, .vtk, .xdmf, …")]
Settings = Annotated[
    list[str] | None,
    _problem(
        "--set",
        metavar="NAME=VALUE",
        help="Parameter of the equation: a number, a formula, (FORMULA, FORMULA) for a vector, curl(FORMULA) for a "
        "stream function, REGION: VALUE, … per region of the mesh, or @file; reaction=FORMULA replaces r(u). May be "
        "repeated.",
    ),
]
Diffusivity = Annotated[
    float | None,
    _problem(metavar="ALPHA", help="Diffusivity α of the heat equation, dT/dt = α ∇²T + S (default: 1)."),
]
Initial = Annotated[
    str,
    _problem(metavar="FORMULA", help="Initial field: a formula of x and y, or a file: @field.npy, @run.vtu:T."),
]
Source = Annotated[
    str, _problem(metavar="FORMULA", help="Source term S: a formula of x, y, t and the unknown, or @file.")
]
Boundary = Annotated[list[str] | None, _problem(metavar="CONDITION", help=BOUNDARY)]
TimeStep = Annotated[
    str | None,
    _time(
        "--dt",
        metavar="DT",
        help="Time step, or auto: 0.9 of the stability limit or, where none is known, half of the reference step.",
    ),
]
StepFraction = Annotated[
    float | None,
    _time(
        metavar="SHARE",
        help="Time step as a fraction of the reference step: for heat the Fourier step, the longest at which forward "
        "Euler satisfies the maximum principle; for transport the Courant step (default: 0.5).",
    ),
]
Steps = Annotated[int | None, count("--steps", text="Number of steps (default: 50).", rich_help_panel="Time steps")]
EndTime = Annotated[float | None, _time(metavar="T", help="End time, reached exactly by equal steps of at most DT.")]
StartTime = Annotated[float | None, _time(metavar="T", help="Time of the initial field (default: 0).")]
Restart = Annotated[
    Path | None,
    _time(
        metavar="FOLDER",
        help="Continue from the last saved field of the run in this folder; scheme, mesh and problem are read from it.",
    ),
]
Steady = Annotated[bool, _time("--steady", help="Solve for the steady state of a linear scheme instead of stepping.")]
Force = Annotated[bool, _time("--force", help="Allow a step above the stability limit.")]
Solver = Annotated[
    SolverName,
    _time(
        metavar="SOLVER",
        help="Linear solver of implicit schemes: auto; direct (sparse LU); cg (conjugate gradients, diagonal "
        "preconditioner); amg (the same, preconditioned by algebraic multigrid); bicgstab or gmres (multigrid, for "
        "systems that are not symmetric).",
    ),
]
PrecisionOption = Annotated[
    PrecisionName, choice(PrecisionName, "Floating-point precision.", rich_help_panel="Time steps")
]
Compare = Annotated[
    list[str] | None,
    _output(
        metavar="SCHEMES",
        help="Other schemes to run on the same problem and compare with SCHEME: euler,rk4.",
        autocompletion=complete_list(SCHEMES),
    ),
]
SaveEvery = Annotated[
    str | None,
    _output(
        metavar="N|T",
        help="Save every Nth field; a number with a decimal point (0.1, 2.0) is a time interval instead (default: "
        "about 20 fields).",
    ),
]


def simulate(
    scheme: Annotated[
        str | None,
        scheme_argument(
            "Name of a built-in scheme, a scheme.json file, or a run folder: its network, or the scheme of its flux."
        ),
    ] = None,
    mesh: MeshFile = None,
    equation: EquationName = None,
    settings: Settings = None,
    diffusivity: Diffusivity = None,
    initial: Initial = "0",
    source: Source = "0",
    boundary: Boundary = None,
    dt: TimeStep = None,
    dt_fraction: StepFraction = None,
    steps: Steps = None,
    end_time: EndTime = None,
    start_time: StartTime = None,
    restart: Restart = None,
    steady: Steady = False,
    force: Force = False,
    solver: Solver = SolverName.AUTO,
    precision: PrecisionOption = PrecisionName.FLOAT64,
    compare: Compare = None,
    save_every: SaveEvery = None,
    output: OutputFolder = None,
    overwrite: Overwrite = False,
    gif: Gif = False,
    as_json: Json = False,
) -> None:
    """Solve an initial-value problem on a mesh with a scheme and print a summary; with -o, write the fields.

    The equation is that of the scheme, or heat, unless --equation names another.
    """
    timed = dt or dt_fraction or steps or end_time or start_time or restart or save_every or force
    chosen = (scheme, mesh, equation, settings, diffusivity, boundary, dt_fraction, start_time, compare)
    stated = any(chosen) or initial != "0" or source != "0"
    others = [split_names(names) for names in compare or []]
    refuse_if(
        {
            "give --dt or --dt-fraction, not both": dt is not None and dt_fraction is not None,
            "--gif needs a folder to write to: give -o FOLDER": gif and output is None,
            "--overwrite needs a folder to write to: give -o FOLDER": overwrite and output is None,
            "give --steps or --end-time, not both": steps is not None and end_time is not None,
            "--steady takes no time steps: leave out --dt, --end-time, --steps and the like": steady and timed,
            "--compare names no scheme: give it names, such as --compare euler,rk4": not all(others),
            "--restart takes scheme, mesh and problem from the folder: leave them out": restart and stated,
            "give a SCHEME, such as euler (see `fluxforge schemes`), or --restart FOLDER": not (scheme or restart),
            "give a mesh: --mesh FILE": not mesh and not restart,
        }
    )
    files = Output(output, overwrite, gif, as_json)
    times = Times(_parse_step(dt), steps, end_time, _parse_every(save_every))
    with show_status(f"reading {restart or mesh}", quiet=as_json):
        from fluxforge.cli._simulation import Problem, continue_run, prepare, run, run_steady

    if restart is not None:
        continue_run(restart, files, times)
        return
    assert scheme is not None
    assert mesh is not None
    with show_status(f"reading {mesh}", quiet=as_json):
        schemes = tuple(dict.fromkeys([scheme, *chain(*others)]))
        prepare(schemes, files)
        problem = Problem.read(
            mesh, initial=initial, source=source, boundary=boundary or [], equation=equation, settings=settings or []
        )
    if steady:
        run_steady(schemes, files, problem, diffusivity=diffusivity, solver=solver.value)
        return
    run(
        schemes,
        files,
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
    """The value of --dt: a number, or "auto"; raises BadParameter for anything else."""
    if text is None or text == "auto":
        return text  # type: ignore[return-value]
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"--dt {text!r:.60}: should be a number or auto") from None


def _parse_every(text: str | None) -> float | None:
    """The value of --save-every: an int for steps, or a float for a time, which has a decimal point."""
    if text is None:
        return None
    if "." not in text:
        with suppress(typer.BadParameter):
            return parse_whole(text)
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"--save-every {text!r:.60}: should be a whole number of steps, or a time with a decimal point (2.0)"
        ) from None


def rerun(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a run of `fluxforge simulate -o`.")],
    output: OutputFolder = None,
    overwrite: Overwrite = False,
    gif: Gif = False,
    as_json: Json = False,
) -> None:
    """Repeat a run from its folder: the same scheme, mesh, equation, boundary conditions and steps.

    On the same machine, with the same versions of the libraries, the fields agree bit for bit. Without -o nothing is
    written, and the command prints whether the last field agrees.
    """
    from fluxforge.cli._simulation import run_again

    run_again(folder, Output(output, overwrite, gif, as_json))
