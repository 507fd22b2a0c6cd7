"""`fluxforge reproduce gallery`: the fluxes found by experiments, and decoys, over seeds."""

from collections.abc import Sequence
from pathlib import Path

import typer

from fluxforge.cli._output import say, show, show_json, warn
from fluxforge.cli._progress import count_done, question_bar
from fluxforge.errors import DiscoveryError
from fluxforge.recipe._schema import to_dict
from fluxforge.run._progress import Progress
from fluxforge.run.result import to_document
from fluxforge.sweeps._gallery import GalleryRun, format_gallery, make_gallery, plan_gallery
from fluxforge.sweeps._jobs import run_processes
from fluxforge.sweeps._points import parse_seeds
from fluxforge.sweeps._pool import check_workers
from fluxforge.sweeps._worker import Job


def run_gallery(folder: Path, seeds: str, workers: int, *, as_json: bool) -> None:
    """Run or collect the gallery and print its tables; exit code 1 if a decoy was taken for the textbook's flux."""
    check_workers(workers)
    runs = plan_gallery(folder, parse_seeds(seeds))
    command = f"fluxforge reproduce gallery --seeds {seeds} --workers {workers}"
    with question_bar("gallery", quiet=as_json) as bar:
        tell = count_done(bar)
        if workers > 1:
            _run_in_processes([run for run in runs if run.read() is None], workers, folder / "logs", tell)
        gallery = make_gallery(folder, runs, command=command, tell=tell, warn=warn)
    if as_json:
        show_json(to_document(gallery))
    else:
        show(format_gallery(gallery))
        show(f"processor: {gallery.hardware}; data: {folder / 'gallery.json'}, {folder / 'gallery.md'}")
    fooled = [row.exhibit for row in gallery.rows if row.decoy and row.same and row.verdict == "recovered"]
    if fooled:
        say("error", f"decoys were taken for the textbook's flux: {', '.join(fooled)}", style="bold red")
        raise typer.Exit(1)


def _run_in_processes(runs: Sequence[GalleryRun], workers: int, logs: Path, tell: Progress) -> None:
    """Make runs in several processes; raises DiscoveryError, after all have ended, if one failed."""
    jobs = [Job(run.name, str(run.folder.absolute()), to_dict(run.spec), run.command) for run in runs]
    ended: dict[str, str | None] = {}

    def report(name: str, stage: str, done: int, total: int) -> None:
        tell(f"{name}: {stage}", len(ended), len(jobs))

    run_processes(jobs, workers, logs, tell=report, end=ended.__setitem__, warn=warn)
    failed = {name: error for name, error in ended.items() if error is not None}
    if failed:
        name, error = next(iter(failed.items()))
        raise DiscoveryError(f"{len(failed)} of {len(jobs)} runs failed: {name}: {error}")
