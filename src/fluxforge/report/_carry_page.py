"""The report of a network in the form of a flux: errors on unseen meshes, and its coefficients with their formulas."""

from pathlib import Path

from matplotlib.figure import Figure

from fluxforge._files import write_text
from fluxforge.report._page import COLOURS, MARKERS, embed_figure, page, panels, save_figures, typeset
from fluxforge.run.carry import CarryResult
from fluxforge.scheme._scheme import Scheme

METHODS = {
    "midpoint": "the integrator itself",
    "constants": "best fixed coefficients",
    "network": "network",
    "formula": "formula",
}


def carry_figure(result: CarryResult) -> Figure:
    """Error of one step against the number of cells, a panel per kind of field."""
    fields = list(dict.fromkeys(row.field for row in result.carry))
    figure, axes = panels(len(fields))
    for panel, field in zip(axes, fields, strict=True):
        rows = [row for row in result.carry if row.field == field]
        for (name, words), colour, marker in zip(METHODS.items(), COLOURS, MARKERS, strict=False):
            points = [(row.cells, getattr(row, name)) for row in rows if getattr(row, name) is not None]
            if points:
                panel.loglog(*zip(*points, strict=True), color=colour, marker=marker, ms=4, label=words)
        panel.set(
            xlabel="cells",
            ylabel="error of one step / its change",
            title="smooth field" if field == "smooth" else "white noise",
        )
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    return figure


def coefficients_figure(result: CarryResult) -> Figure | None:
    """Each coefficient against Fo_P + Fo_N, the formula through it; None of a result without points."""
    if not result.points:
        return None
    figure, axes = panels(len(result.points), columns=3)
    for panel, (name, points) in zip(axes, result.points.items(), strict=True):
        panel.semilogx(points.total, points.network, ".", color=COLOURS[0], ms=4, label="network, face by face")
        if points.formula:
            drawn = sorted(zip(points.total, points.formula, strict=True))
            panel.semilogx(*zip(*drawn, strict=True), "x", color=COLOURS[1], ms=3, label="formula")
        panel.set(xlabel="Fo_P + Fo_N", ylabel=name)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    return figure


def write_carry(result: CarryResult, scheme: Scheme | None, folder: Path, *, command: str = "") -> list[Path]:
    """Write `report.html` and the figures; return their paths."""
    figures = {"carry": carry_figure(result)}
    learned = coefficients_figure(result)
    if learned is not None:
        figures["coefficients"] = learned
    caption = (
        f"Error of one step at {result.carry[0].fourier:g} Fourier steps on meshes that training did not see, relative "
        "to the change of the step, against the same mesh resolved in time."
    )
    text = page(
        "carry.html",
        result=result,
        methods=METHODS,
        typeset=None if scheme is None else typeset(scheme),
        figure=embed_figure(figures["carry"], "carry", caption),
        learned=None
        if learned is None
        else embed_figure(learned, "coefficients", "Coefficients of faces of an unseen mesh over the trained steps."),
        command=command,
    )
    write_text(folder / "report.html", text)
    return [folder / "report.html", *save_figures(figures, folder)]
