"""`fluxforge reproduce gallery`: the fluxes found by experiments, and decoys, over seeds."""

from pathlib import Path

import typer

from fluxforge.cli._output import say, show, show_json
from fluxforge.cli._progress import count_done, question_bar
from fluxforge.pipeline import format_gallery, make_gallery, to_document


def run_gallery(folder: Path, seeds: int, *, as_json: bool) -> None:
    """Run or collect the gallery and print its tables; exit code 1 if a decoy was taken for the textbook's flux."""
    with question_bar("gallery", quiet=as_json) as tell:
        gallery = make_gallery(folder, seeds, tell=count_done(tell), warn=lambda text: say("warning", text))
    if as_json:
        show_json(to_document(gallery))
    else:
        show(format_gallery(gallery))
        show(f"processor: {gallery.hardware}; data: {folder / 'gallery.json'}, {folder / 'gallery.md'}")
    fooled = [row.exhibit for row in gallery.rows if row.decoy and row.same and row.verdict == "recovered"]
    if fooled:
        say("error", f"decoys were taken for the textbook's flux: {', '.join(fooled)}", style="bold red")
        raise typer.Exit(1)
