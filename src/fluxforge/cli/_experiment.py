"""How `fluxforge discover` shows a flux that was found by experiments."""

from pathlib import Path

from fluxforge.cli._output import show, show_pairs, show_table
from fluxforge.pipeline import Discovery


def show_experiment(result: Discovery, folder: Path) -> None:
    """Print the flux, the reasons of the verdict, the properties tested on the network, and the seconds."""
    found = result.experiment or {}
    error = found.get("error")
    headline = str(result.verdict) + ("" if error is None else f"; error {error:.1e} on held-out fluxes")
    show(f"{result.recipe}: {headline}\n")
    if found.get("flux"):
        show(f"F = {found['flux']}\n")
    show_pairs(text.split(": ", 1) for text in result.reasons)
    show_pairs(("finding", text) for text in result.findings or ())
    show()
    rows = [
        (row["name"], f"{row['defect']:.1e}", f"{row['limit']:.1e}", _verdict(row), row["statement"])
        for row in found.get("checks", ())
    ]
    show_table(("property", "violation", "limit", "", "meaning"), rows)
    show(f"\nsearched g in F = {found.get('form')}")
    for row in (result.ablations or {}).get("found", ()):
        shown = "none found" if row["error"] is None else f"error {row['error']:.1e}"
        show(f"{row['method']}: {shown}")
    total = sum(value or 0.0 for value in result.seconds.values())
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in result.seconds.items())
    show(f"\n{total:.0f} s ({parts}); report: {folder / 'report.html'}")


def _verdict(row: dict[str, object]) -> str:
    return "used" if row["used"] else "holds" if row["holds"] else "fails"
