"""How `fluxforge discover` shows a flux for skewed meshes."""

from pathlib import Path

from fluxforge.cli._output import show, show_pairs, show_table
from fluxforge.run.skew import SkewResult


def show_skew(result: SkewResult, folder: Path) -> None:
    """Print the verdict with its reasons, the choices of the free coefficient, and errors beside the corrected flux."""
    show(f"{result.recipe}: {result.verdict}\n")
    show_pairs(text.split(": ", 1) for text in result.reasons)
    errors = f"flux errs by {result.network_error:.2%} on unseen meshes, the two-point flux by {result.plain_error:.0%}"
    show(f"\nthe network's {errors}\n")
    if result.laws:
        show_pairs((law.name, f"ψ₁ = {law.formula}") for law in result.laws)
        show("\nover those of the corrected flux on held-out meshes: error of steady problems, stable step; order\n")
        families = [row.family for row in result.laws[0].families]
        rows = [
            (
                law.name,
                *(f"{row.error_ratio:.2f}, {row.step_ratio:.2f}; {row.order:.2f}" for row in law.families),
                f"{law.coercivity:.2f}",
            )
            for law in result.laws
        ]
        show_table(("chosen for", *families, "coercivity"), rows)
        show()
    show_pairs(("finding", text) for text in result.findings)
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in result.seconds.items())
    show(f"\n{sum(result.seconds.values()):.0f} s ({parts}); report: {folder / 'report.html'}")
