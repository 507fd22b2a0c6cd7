"""The report of a network in the form of a flux: errors on unseen meshes, and its coefficients with their formulas."""

from collections.abc import Sequence
from pathlib import Path

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
    plot_formula,
    typeset,
    write_report,
)
from fluxforge.run.carry import CarryResult
from fluxforge.scheme._scheme import Scheme

FIELDS = {"smooth": "smooth field", "noise": "white noise"}
FIGURES = {"carry": "errors on unseen meshes", "coefficients": "coefficients of faces"}
METHODS = {
    "midpoint": "the integrator itself",
    "constants": "best fixed coefficients",
    "network": "network",
    "formula": "formula",
}


def carry_figure(result: CarryResult, fields: Sequence[str] = ()) -> Figure:
    """Relative error of one step against the number of cells, one panel per kind of field: `fields`, by default all."""
    fields = fields or list(dict.fromkeys(row.field for row in result.carry))
    figure, axes = panels(len(fields))
    for panel, field in zip(axes, fields, strict=True):
        rows = [row for row in result.carry if row.field == field]
        for (name, words), colour, marker in zip(METHODS.items(), COLOURS, MARKERS, strict=False):
            points = [(row.cells, getattr(row, name)) for row in rows if getattr(row, name) is not None]
            if points:
                panel.loglog(*zip(*points, strict=True), color=colour, marker=marker, ms=4, label=words)
        panel.set(xlabel="cells", ylabel="error of one step / its change", title=FIELDS.get(field, field))
    draw_legend_below(figure, axes[0], columns=2 if len(fields) == 1 else 4)
    return figure


def coefficients_figure(result: CarryResult) -> Figure | None:
    """Coefficients of network and formula against Fo_P + Fo_N, one panel each; None for a result without points."""
    if not result.points:
        return None
    figure, axes = panels(len(result.points), columns=3)
    for panel, (name, points) in zip(axes, result.points.items(), strict=True):
        panel.semilogx(points.total, points.network, ".", color=COLOURS[0], ms=4, label="network, one dot per face")
        if points.formula:
            curve = sorted(zip(points.total, points.formula, strict=True))
            panel.semilogx(*zip(*curve, strict=True), "x", color=COLOURS[1], ms=3, label="formula")
        panel.set(xlabel=r"$\mathrm{Fo}_P + \mathrm{Fo}_N$", ylabel=plot_formula(name) or name)
    draw_legend_below(figure, axes[0])
    return figure


def write_carry(
    result: CarryResult,
    folder: Path,
    *,
    scheme: Scheme | None,
    certificate: Certificate | None,
    command: str = "",
) -> list[Path]:
    """Write `report.html` and the figures; return their paths."""
    figures = {"carry": carry_figure(result)}
    learned = coefficients_figure(result)
    if learned is not None:
        figures["coefficients"] = learned
    fields = dict.fromkeys(row.field for row in result.carry)
    text = page(
        "carry.html",
        result=result,
        methods=METHODS,
        typeset=None if scheme is None else typeset(scheme),
        errors=[
            embed_figure(carry_figure(result, [field]), f"carry-{field}", "", alt=f"Error of one step: {field}")
            for field in fields
        ],
        learned=None
        if learned is None
        else embed_figure(
            learned,
            "coefficients",
            "Coefficients of the faces of an unseen mesh, over the trained time steps.",
            look="narrow" if len(learned.axes) == 1 else "",
        ),
        **describe_scheme(
            result, scheme, certificate, [(name, FIGURES[name]) for name in figures], command=command, metrics=True
        ),
    )
    return write_report(folder, text, figures)
