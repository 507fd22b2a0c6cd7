"""The commands discover, reproduce, schemes and doctor.

Each imports what it runs only when it runs: `fluxforge --help` and shell completion do not wait for JAX.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from fluxforge.cli._arguments import Json, complete_scheme, folder

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


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="WHAT", help=f"Parts: {', '.join(PARTS)} (all unless given)."),
    ] = None,
    preset: Annotated[str, typer.Option(help="quick (minutes, two cores) or paper (the paper's sizes).")] = "quick",
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="Folder to write to, or to go on in.", callback=folder),
    ] = Path("reproduction"),
    seeds: Annotated[
        int | None, typer.Option(metavar="N", help="Networks per arm or recipe, instead of the preset's.")
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Training steps, instead of the preset's.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Repeat parts though their inputs have not changed.")] = False,
    check: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Compare with the results in a folder, and say what moved."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments again, draw its figures, and say which of its claims the numbers bear out.

    Everything lands on one page, index.html in the output folder, which works without a network.
    A part that is finished there is not repeated unless its inputs have changed; one that was interrupted is gone on
    with. With --check the exit code is 1 if a verdict differs from the kept one; numbers are compared at equal presets,
    deterministic ones to round-off, medians and rates over trained seeds within the scatter of the seeds.
    """
    names = tuple(dict.fromkeys(what or PARTS))
    for name in names:
        if name not in PARTS:
            raise typer.BadParameter(f"there is no part {name!r}; choose from {', '.join(PARTS)}")
    if preset not in PRESETS:
        raise typer.BadParameter(f"there is no preset {preset!r}; choose from {', '.join(PRESETS)}")
    if check is not None and not check.is_dir():
        raise typer.BadParameter(f"{check}: there is no such folder to compare with")
    from fluxforge.cli._progress import doing

    with doing("loading", quiet=as_json):
        from fluxforge.cli._reproduction import Asked, run
    changes = {"seeds": seeds, "training.steps": steps}
    given = {name: value for name, value in changes.items() if value is not None}
    run(Asked(names, preset, given, output, again=again, check=check, as_json=as_json))


def schemes(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[SCHEME]", help="Built-in name or scheme.json.", autocompletion=complete_scheme),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in schemes and what each claims; with a name, show its formulas."""
    from fluxforge.cli._scheme_text import record, show_list, show_scheme
    from fluxforge.scheme import find, reference

    chosen = list(reference.BUILT_IN.values()) if name is None else [find(name)]
    if as_json:
        from fluxforge.cli._output import show_json

        show_json(record(chosen[0]) if name is not None else {"schemes": [record(scheme) for scheme in chosen]})
    elif name is None:
        show_list(chosen)
    else:
        show_scheme(chosen[0])


STYLES = {"ok": "green", "optional": "yellow", "missing": "bold red"}


def doctor(as_json: Json = False) -> None:
    """Check what works on this machine, and say what to install for the rest."""
    from fluxforge.cli._output import show, show_json, show_pairs
    from fluxforge.cli._progress import doing

    with doing("looking around", quiet=as_json):
        from fluxforge._doctor import examine

        found = examine()
    if as_json:
        show_json(found.document())
    else:
        show_pairs(
            (check.name, Text(check.status, STYLES[check.status]), "; ".join(filter(None, (check.found, check.advice))))
            for check in found.checks
        )
        show("all that the default path needs is here" if found.ok else "something the default path needs is broken")
    if not found.ok:
        raise typer.Exit(1)
