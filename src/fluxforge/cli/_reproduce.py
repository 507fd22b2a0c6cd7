"""`fluxforge reproduce`: the paper's figures and tables, with a verdict per claim."""

from pathlib import Path
from typing import Annotated

import typer

from fluxforge.cli._arguments import Json, folder

EXPERIMENTS = ("generalisation", "theorems", "symbolic", "higher-order", "convergence", "memory")
PRESETS = ("quick", "paper")


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WHAT]...", help=f"Parts: {', '.join(EXPERIMENTS)} (all unless given)."),
    ] = None,
    preset: Annotated[str, typer.Option(help="quick (minutes, two cores) or paper (the paper's sizes).")] = "quick",
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="Folder to write to, or to go on in.", callback=folder),
    ] = Path("reproduction"),
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Networks per arm, instead of the preset's.")] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Training steps, instead of the preset's.")] = None,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments again, draw its figures, and say which of its claims the numbers bear out.

    What is finished in the folder is not repeated.
    """
    names = tuple(dict.fromkeys(what or EXPERIMENTS))
    for name in names:
        if name not in EXPERIMENTS:
            raise typer.BadParameter(f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}")
    if preset not in PRESETS:
        raise typer.BadParameter(f"there is no preset {preset!r}; choose from {', '.join(PRESETS)}")
    from fluxforge.cli._progress import doing

    with doing("loading", quiet=as_json):
        from fluxforge.cli._reproduction import run
    changes = {"seeds": seeds, "training.steps": steps}
    run(names, preset, {name: value for name, value in changes.items() if value is not None}, output, as_json)
