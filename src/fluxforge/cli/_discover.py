"""The options of `fluxforge discover` and `fluxforge reproduce`.

Each command imports the library when it runs, so that `fluxforge --help` and shell completion do not wait for JAX.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluxforge.cli._arguments import RECIPES, Json, Preset, RecipeName, check_folder, count
from fluxforge.cli._output import show_status

if TYPE_CHECKING:
    from fluxforge.recipe._recipe import Changes


def discover(
    recipe: RecipeName = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="RUN", help="Run folder (default: runs/RECIPE).", callback=check_folder),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Continue the run in this folder; finished stages are skipped.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed of data and networks.")] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Number of networks trained in parallel.")] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Number of training steps.")] = None,
    equation: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Equation: a built-in one or a TOML file.")
    ] = None,
    diffusivity: Annotated[float | None, typer.Option(metavar="α", help="Diffusivity α of the training data.")] = None,
    time_step: Annotated[
        tuple[float, float] | None,
        typer.Option("--dt", metavar="LOW HIGH", help="Range of the time steps Δt, in units of the mean cell volume."),
    ] = None,
    engine: Annotated[str | None, typer.Option(metavar="operon|pysr", help="Symbolic regression engine.")] = None,
    theta: Annotated[float | None, typer.Option(metavar="θ", help="Implicitness θ of a residual loss, 0 to 1.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Set a field of the recipe to a TOML value: training.steps=500. May be repeated.",
        ),
    ] = None,
    preset: Preset = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the recipe as TOML, as a template for your own, and exit.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train networks as a recipe describes, and search for the formula they have learned.

    The formula gets a verdict: recovered, approximation or refused. The exit code is 1 if the recipe expects another
    verdict, or a higher order in time.

    Writes a run folder with the result, a report and, as the recipe has them, a scheme, its certificate, metrics,
    checkpoints and figures. An interrupted or killed run continues with --resume; on the same kind of processor it
    gives the same result as an uninterrupted run.
    """
    if resume is not None and (recipe or output or preset):
        raise typer.BadParameter("--resume continues a run with its own settings: do not give a recipe, -o or --preset")
    options: dict[str, Any] = {
        "seed": seed,
        "seeds": seeds,
        "training.steps": steps,
        "equation": equation,
        "diffusivity": diffusivity,
        "loss.residual.theta": theta,
        "data.time_step": list(time_step) if time_step else None,
        "search.engine": engine,
    }
    option_changes = {name: value for name, value in options.items() if value is not None}
    if resume is not None and (option_changes or settings):
        raise typer.BadParameter("--resume continues a run with its own settings: do not give options that change them")
    changes = _merge_changes(option_changes, settings or [])
    if show:
        from fluxforge.recipe import text

        sys.stdout.write(text(recipe or RECIPES[0], preset=preset, changes=changes))
        return
    with show_status("loading", quiet=as_json):
        from fluxforge.cli._discovery import resume_run, start_run
    if resume is not None:
        resume_run(resume, as_json)
    else:
        start_run(recipe or RECIPES[0], output, preset, changes, as_json)


def _merge_changes(option_changes: "Changes", settings: list[str]) -> "Changes":
    """The changes by options of their own and by --set; raises BadParameter for a field that is set by both."""
    if not settings:
        return option_changes
    from fluxforge import recipe

    more = recipe.assignments(settings)
    if twice := sorted(option_changes.keys() & more.keys()):
        raise typer.BadParameter(f"field '{twice[0]}' is given twice: by --set and by its own option")
    return {**option_changes, **more}


PARTS = (
    "setup",
    "generalisation",
    "theorems",
    "rates",
    "controls",
    "symbolic",
    "higher-order",
    "convergence",
    "memory",
    "consistency",
)
PRESETS = ("quick", "paper")
# The gallery is not a part of the paper, and runs only if it is named.
GALLERY = "gallery"


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT",
            help=f"Parts to run: {', '.join(PARTS)} (default: all); or {GALLERY}, the fluxes found by experiments.",
        ),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(metavar="quick|paper", help="Problem sizes: quick (minutes on two cores), or those of the paper."),
    ] = "quick",
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="Output folder; finished parts in it are skipped.",
            callback=check_folder,
        ),
    ] = Path("reproduction"),
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Networks per arm or recipe (default: by preset); of the gallery also a range, 10:20."
        ),
    ] = None,
    workers: Annotated[
        int | None, count("--workers", text="Number of runs of the gallery in parallel (default: 1).")
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Training steps (default: by preset).")] = None,
    again: Annotated[bool, typer.Option("--again", help="Run finished parts again.")] = False,
    check: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Compare with the results in this folder, and list what differs."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Repeat the paper's experiments, draw its figures, and check its claims against the results.

    Results are collected on one self-contained page, index.html in the output folder. Finished parts are skipped unless
    their inputs have changed; interrupted parts continue.

    With --check the exit code is 1 if a verdict differs. Numbers are compared at equal presets: deterministic ones to
    round-off, medians and rates over trained seeds within the scatter of the seeds.
    """
    names = tuple(dict.fromkeys(what or PARTS))
    if preset in PRESETS and names == (GALLERY,):
        from fluxforge.cli._reproduction import run_gallery

        seeds = ("10" if preset == "paper" else "2") if seeds is None else seeds
        run_gallery(output / GALLERY, seeds, 1 if workers is None else workers, as_json=as_json)
        return
    if workers is not None:
        raise typer.BadParameter(f"--workers applies to {GALLERY} only: parts of the paper run one after another")
    for name in names:
        if name == GALLERY:
            raise typer.BadParameter(f"{GALLERY} is not a part of the paper: run it by itself")
        if name not in PARTS:
            raise typer.BadParameter(f"there is no part {name!r}; choose from {', '.join(PARTS)}")
    if preset not in PRESETS:
        raise typer.BadParameter(f"there is no preset {preset!r}; choose from {', '.join(PRESETS)}")
    if check is not None and not check.is_dir():
        raise typer.BadParameter(f"{check}: no such folder")
    with show_status("loading", quiet=as_json):
        from fluxforge.cli._reproduction import run
    if seeds is not None and not (seeds.isascii() and seeds.isdigit()):
        raise typer.BadParameter(f"--seeds {seeds!r:.40}: expected a number of networks, such as 10")
    changes = {"seeds": None if seeds is None else int(seeds), "training.steps": steps}
    settings = {name: value for name, value in changes.items() if value is not None}
    run(names, output, check=check, as_json=as_json, preset=preset, changes=settings, again=again)
