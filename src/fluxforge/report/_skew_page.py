"""The report of a flux for skewed meshes: consistency, the free coefficient, the trade-off, errors against cells."""

from pathlib import Path

from matplotlib.figure import Figure

from fluxforge._files import write_text
from fluxforge.report._mathml import typeset
from fluxforge.report._page import COLOURS, MARKERS, embed_figure, page, panels, save_figures
from fluxforge.run.skew import SkewResult
from fluxforge.scheme import Scheme


def angle_figure(result: SkewResult) -> Figure:
    """The coefficients between triangles against cos θ: what the network found, and the laws."""
    figure, (left, right) = panels(2)
    cosine = [row.cosine for row in result.angles]
    for k, name in enumerate(("ψ₁", "ψ₂", "ψ₃")):
        left.plot(cosine, [row.network[k] for row in result.angles], COLOURS[k], marker=MARKERS[k], ms=3, label=name)
    sums = [row.network[0] + row.network[2] for row in result.angles]
    left.plot(cosine, sums, COLOURS[3], ls="--", label="ψ₁ + ψ₃")
    left.set(xlabel="cos θ", ylabel="coefficient", title="network, between triangles")
    for k, name in enumerate(result.angles[0].laws):
        right.plot(cosine, [row.laws[name] for row in result.angles], COLOURS[k], marker=MARKERS[k], ms=3, label=name)
    right.set(xlabel="cos θ", ylabel="ψ₁", title="chosen, between triangles")
    for panel in (left, right):
        panel.legend(fontsize=8)
    return figure


def trade_off_figure(result: SkewResult) -> Figure:
    """Mean error against mean stable step of everything that was tried, the coercive ones filled, and the choices."""
    figure, (left, right) = panels(2)
    usable = [row for row in result.trials if row.error and row.step and row.coercivity is not None]
    for panel, field, label in ((left, "step", "stable step / corrected's"), (right, "coercivity", "least coercivity")):
        for coercive, colour in ((True, COLOURS[5]), (False, "#bbbbbb")):
            chosen = [row for row in usable if ((row.coercivity or 0.0) > 0) is coercive]
            points = [(getattr(row, field), row.error) for row in chosen]
            words = "coercive" if coercive else "not coercive"
            if points:
                panel.plot(*zip(*points, strict=True), ls="", marker=".", color=colour, label=words)
        for k, law in enumerate(result.laws):
            step = _mean([row.step_ratio for row in law.families])
            error = _mean([row.error_ratio for row in law.families])
            at = step if field == "step" else law.coercivity
            panel.plot([at], [error], color=COLOURS[k], marker=MARKERS[k], ms=8, ls="", mec="k", label=law.name)
        panel.set(xlabel=label, ylabel="error / corrected's")
    right.set_xlim(left=-0.5)
    left.legend(fontsize=8)
    return figure


def _mean(values: list[float]) -> float:
    product = 1.0
    for value in values:
        product *= value
    return product ** (1.0 / len(values))


def cells_figure(result: SkewResult) -> Figure:
    """L2 error against cells on held-out problems, a panel per family."""
    families = [row.family for row in result.laws[0].families]
    figure, axes = panels(len(families), columns=3)
    for number, (panel, family) in enumerate(zip(axes, families, strict=False)):
        for k, law in enumerate(result.laws):
            row = law.families[number]
            panel.loglog(row.cells, row.errors, color=COLOURS[k], marker=MARKERS[k], ms=4, label=law.name)
        panel.set(xlabel="cells", ylabel="L2 error", title=family)
    axes[0].legend(fontsize=8)
    return figure


def write_skew(result: SkewResult, scheme: Scheme | None, folder: Path, *, command: str = "") -> list[Path]:
    """Write `report.html` and the figures; return their paths."""
    figures = {"angles": angle_figure(result)}
    captions = {"angles": "Coefficients of the flux between triangles of equal size against the angle of d and n."}
    if result.laws:
        figures |= {"trade-off": trade_off_figure(result), "cells": cells_figure(result)}
        captions["trade-off"] = (
            "Error, stable step and coercivity of every choice that the search tried (dots, on its own meshes) and of "
            "the chosen ones (on held-out meshes), relative to the corrected flux."
        )
        captions["cells"] = "Error of steady problems that the search did not see, on meshes that it did not see."
    text = page(
        "skew.html",
        result=result,
        typeset=None if scheme is None else typeset(scheme),
        figures=[embed_figure(figure, name, captions[name]) for name, figure in figures.items()],
        command=command,
        own="scheme.json" if result.verdict == "recovered" else "candidate.json",
    )
    write_text(folder / "report.html", text)
    return [folder / "report.html", *save_figures(figures, folder)]
