"""The report of a flux for skewed meshes: consistency, the free coefficient, the trade-off, errors against cells."""

import math
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fluxforge.certify._certificate import Certificate
from fluxforge.report._next import describe_scheme
from fluxforge.report._page import (
    COLOURS,
    MARKERS,
    draw_legend_below,
    embed_figure,
    page,
    panels,
    typeset,
    write_report,
)
from fluxforge.run.skew import SkewResult
from fluxforge.scheme._scheme import Scheme

FIGURES = {
    "angles": "coefficients against the angle",
    "trade-off": "error against stable step and coercivity",
    "cells": "errors against cells",
}


def angle_figure(result: SkewResult) -> Figure:
    """The coefficients between equal triangles against cos θ: those of the network, and ψ₁ of every law."""
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
    # The legend is between the curves: ψ₂ is near 1, the others are near 0.
    left.legend(fontsize=8, loc="center", bbox_to_anchor=(0.5, 0.75), ncols=4)
    right.legend(fontsize=8)
    return figure


def trade_off_figure(result: SkewResult) -> Figure:
    """Mean error against mean stable step, and against least coercivity, of all trials and of the chosen fluxes.

    The line is the Pareto front of the trials that meet all conditions.
    """
    figure, axes = panels(2)
    labels = ("mean stable step / corrected's", "least coercivity / corrected's")
    # The first trial is the corrected flux.
    scales = {"step": (1.0, 1.0), "coercivity": (result.trials[0].coercivity or 1.0, result.laws[0].coercivity)}
    for panel, field, label in zip(axes, ("step", "coercivity"), labels, strict=True):
        usable = [row for row in result.trials if row.error and row.step and row.coercivity is not None]
        for allowed, colour, words in ((False, "#cccccc", "misses a condition"), (True, COLOURS[5], "meets them all")):
            chosen = [row for row in usable if row.allowed is allowed]
            points = [(float(getattr(row, field)) / scales[field][0], float(row.error or 0.0)) for row in chosen]
            if points:
                panel.plot(*zip(*points, strict=True), ls="", marker=".", color=colour, label=words)
            if allowed and points:
                front = _find_front(points)
                panel.plot(*zip(*front, strict=True), color=COLOURS[5], lw=1, label="best of these")
        for k, law in enumerate(result.laws):
            value = _geometric_mean([row.step_ratio for row in law.families]) if field == "step" else law.coercivity
            at = value / scales[field][1]
            error = _geometric_mean([each.error_ratio for row in law.families for each in row.kinds or (row,)])
            # Choices may coincide: the later ones are smaller.
            style: dict[str, Any] = {
                "color": COLOURS[k],
                "marker": MARKERS[k],
                "ms": 11 - 1.5 * k,
                "ls": "",
                "mec": "k",
            }
            panel.plot([at], [error], **style, label=law.name)
        panel.set(xlabel=f"{label} (more is better)", ylabel="mean error / corrected's (less is better)")
        panel.set_ylim(0.8, 1.2)
    axes[0].set_xlim(0.85, 1.15)
    axes[1].set_xlim(0.2, 1.3)
    draw_legend_below(figure, axes[0])
    return figure


def _find_front(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The Pareto front of points (x, y), where larger x and smaller y are better, in descending order of x."""
    front: list[tuple[float, float]] = []
    for x, y in sorted(points, reverse=True):
        if not front or y < front[-1][1]:
            front.append((x, y))
    return front


def _geometric_mean(values: list[float]) -> float:
    return math.prod(values) ** (1.0 / len(values))


def cells_figure(result: SkewResult) -> Figure:
    """L2 error times number of cells on held-out problems, one panel per family; constant where the order is 2.

    The errors themselves fall by a factor of a hundred, so that those of different fluxes would look equal.
    """
    families = [row.family for row in result.laws[0].families]
    figure, axes = panels(len(families), columns=3)
    for number, (panel, family) in enumerate(zip(axes, families, strict=False)):
        for k, law in enumerate(result.laws):
            row = law.families[number]
            scaled = [cells * error for cells, error in zip(row.cells, row.errors, strict=True)]
            panel.semilogx(row.cells, scaled, color=COLOURS[k], marker=MARKERS[k], ms=4, label=law.name)
        panel.set(xlabel="cells", ylabel="L2 error × cells", title=family)
        panel.set_ylim(bottom=0.0)
    draw_legend_below(figure, axes[0])
    return figure


def write_skew(
    result: SkewResult,
    folder: Path,
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
    command: str = "",
) -> list[Path]:
    """Write `report.html` and the figures; return their paths."""
    figures = {"angles": angle_figure(result)}
    captions = {"angles": "Coefficients of the flux between triangles of equal size against the angle of d and n."}
    if result.laws:
        figures |= {"trade-off": trade_off_figure(result), "cells": cells_figure(result)}
        captions["trade-off"] = (
            "Error, stable step and coercivity of every choice that the search tried (dots, on its own meshes) and of "
            "the chosen ones (large marks, on held-out meshes), over those of the corrected flux on the same meshes."
        )
        captions["cells"] = (
            "Error of steady problems on meshes that the search did not see, times the number of cells: level "
            "where the order is 2."
        )
    text = page(
        "skew.html",
        result=result,
        typeset=None if scheme is None else typeset(scheme),
        figures=[embed_figure(figure, name, captions[name]) for name, figure in figures.items()],
        **describe_scheme(result, scheme, certificate, [(name, FIGURES[name]) for name in figures], command=command),
    )
    return write_report(folder, text, figures)
