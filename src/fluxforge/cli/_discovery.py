"""What `fluxforge discover` runs: a new run or an interrupted one, with progress, its result and its exit code."""

from collections.abc import Callable
from pathlib import Path

import typer

from fluxforge import recipe
from fluxforge.cli._output import command_line, say, show_json, warn
from fluxforge.cli._progress import count_done, offer_resume, question_bar
from fluxforge.cli._results import explain_failure, show_result
from fluxforge.pipeline._discover import discover, free_folder, resume
from fluxforge.pipeline._run import Run
from fluxforge.run._progress import Progress
from fluxforge.run.result import Discovery


def start_run(name: str, output: Path | None, preset: str | None, changes: recipe.Changes, as_json: bool) -> None:
    """Start a new run and show its result."""
    spec = recipe.load(name, preset=preset)
    spec = recipe.override(spec, changes) if changes else spec
    folder = output or free_folder(spec)
    _run(lambda tell: discover(spec, folder, command=command_line(), tell=tell, warn=warn), spec.name, folder, as_json)


def resume_run(folder: Path, as_json: bool) -> None:
    """Continue a run and show its result."""
    _run(lambda tell: resume(folder, tell=tell, warn=warn), folder.name, folder, as_json)


def _run(work: Callable[[Progress], Run], name: str, folder: Path, as_json: bool) -> None:
    """Run `work` with progress and print its result; exit code 1 if it is not what the recipe expects."""
    with offer_resume("discover", folder, "run.json"), question_bar(name, quiet=as_json) as tell:
        run = work(count_done(tell))
    if isinstance(run.result, Discovery) and run.result.ended_by_clock:
        limit = "the time limit search.seconds stopped the search for"
        warn(f"{limit} {', '.join(run.result.ended_by_clock)}: a faster or slower machine may find other formulas")
    if as_json:
        show_json(run.document)
    else:
        show_result(run, folder)
    if (failure := explain_failure(run)) is not None:
        say("error", f"{failure}; see {folder}", style="bold red")
        raise typer.Exit(1)
