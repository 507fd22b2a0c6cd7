"""`fluxforge doctor`: what works here."""

import typer
from rich.text import Text

from fluxforge.cli._arguments import Json

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
