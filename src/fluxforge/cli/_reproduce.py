"""`fluxforge reproduce`: the paper's figures and tables, with a verdict per claim."""

from pathlib import Path
from typing import Annotated

import typer

from fluxforge.cli._arguments import Json, folder

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
