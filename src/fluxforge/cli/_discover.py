"""`fluxforge discover`: the main job."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fluxforge.cli._arguments import Json, folder

# A copy of names the library holds, because a shell that completes a word cannot wait for it; a test compares.
RECIPES = ("first-order", "first-order-direct", "first-order-pinn", "generalisation", "midpoint", "two-hop")


def _recipes(incomplete: str) -> list[str]:
    return [name for name in RECIPES if name.startswith(incomplete)]


def discover(
    recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="RECIPE",
            help=f"{', '.join(RECIPES)}, or a TOML file (first-order unless given).",
            autocompletion=_recipes,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="RUN", help="Run folder (runs/RECIPE unless given).", callback=folder),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Go on with a run; nothing finished is repeated.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of data and networks.")] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Networks trained side by side.")] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Training steps.")] = None,
    diffusivity: Annotated[float | None, typer.Option(metavar="α", help="The α the data are made with.")] = None,
    time_step: Annotated[
        tuple[float, float] | None,
        typer.Option("--dt", metavar="LOW HIGH", help="Range Δt is drawn from, in units of a mean cell volume."),
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Symbolic regression: operon or pysr.")] = None,
    theta: Annotated[float | None, typer.Option(metavar="θ", help="θ of a residual loss, 0 to 1.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Any field of the recipe, its value as in TOML: training.steps=500. May be repeated.",
        ),
    ] = None,
    preset: Annotated[str | None, typer.Option(help="quick (the default) or paper (the paper's sizes).")] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the recipe as a file to start one's own from.")] = False,
    as_json: Json = False,
) -> None:
    """Train networks on what a recipe describes, and find out what they have learned.

    A formula gets a verdict: recovered, approximation or refused. The exit code is 1 if the recipe expects another
    verdict, or a higher order in time.

    Leaves a run folder with metrics, checkpoints, results and figures. A run that is interrupted, even killed, goes on
    with --resume; on the same kind of processor it then gives the same result as an uninterrupted run.
    """
    if resume is not None and (recipe or output or preset):
        raise typer.BadParameter("--resume goes on with a run as it was begun: give no recipe, -o or --preset with it")
    options: dict[str, Any] = {
        "seed": seed,
        "seeds": seeds,
        "training.steps": steps,
        "diffusivity": diffusivity,
        "loss.residual.theta": theta,
        "data.time_step": list(time_step) if time_step else None,
        "search.engine": engine,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if resume is not None and (given or settings):
        raise typer.BadParameter("--resume goes on with a run as it was begun: give no other option that changes it")
    changes = _changes(given, settings or [])
    if show:
        _show(recipe or RECIPES[0], preset, changes)
        return
    from fluxforge.cli._progress import doing

    with doing("loading", quiet=as_json):
        from fluxforge.cli._discovery import begin, go_on
    if resume is not None:
        go_on(resume, as_json)
    else:
        begin(recipe or RECIPES[0], output, preset, changes, as_json)


def _changes(given: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """Fields set by options of their own, then those set by --set; no field by both."""
    if not settings:
        return given
    from fluxforge import recipe

    more = recipe.assignments(settings)
    if twice := sorted(given.keys() & more.keys()):
        raise typer.BadParameter(f"field '{twice[0]}' is given twice: by --set and by an option of its own")
    return given | more


def _show(name: str, preset: str | None, changes: dict[str, Any]) -> None:
    from fluxforge import recipe

    sys.stdout.write(recipe.text(name, preset=preset, changes=changes))
