"""Figures of the analysis of schemes: effective diffusivities, steady errors, and the theorems' bounds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from fluxforge.paper.studies._theorems_result import BoundGroup, CounterexampleRow, FourierRow
from fluxforge.paper.studies._theorems_result import Result as Theorems
from fluxforge.paper.studies.consistency import Family, Tensor
from fluxforge.paper.studies.consistency import Result as Consistency
from fluxforge.report._page import COLOURS, MARKERS, panels

COLUMNS = 3
# Principal values that differ by less are written as one number, their mean.
LEAST_DISTANCE = 0.3
# Colour, marker, and whether it is filled. Markers of schemes that may coincide with another are open and larger, so
# that both are visible.
STYLES: Mapping[str, tuple[str, str, bool]] = {
    "euler": (COLOURS[0], MARKERS[0], True),
    "two-hop": ("#000000", MARKERS[1], False),
    "two-hop-printed": (COLOURS[1], MARKERS[3], True),
    "corrected": (COLOURS[2], MARKERS[2], False),
}
NAMES: Mapping[str, str] = {
    "euler": "one hop, A/δ (T_N − T_P)",
    "two-hop": "two-hop (the midpoint rule)",
    "two-hop-printed": "two-hop, as printed",
    "corrected": "corrected for non-orthogonality",
}
TITLES: Mapping[str, str] = {
    "equilateral": "equilateral triangles",
    "right": "right triangles",
    "jittered": "jittered right triangles",
    "irregular": "irregular (built-in)",
}


def diffusivity_figure(result: Consistency) -> Figure:
    """Effective diffusivity K/α against h, one panel per mesh family.

    Principal values of measured tensors are joined by bars, those of infinite lattices are dotted lines, and a dashed
    line marks the heat equation's 1.
    """
    figure, axes = _make_panels(result)
    names = ("two-hop-printed", "euler", "two-hop")
    for panel, (title, family) in zip(axes, result.families.items(), strict=True):
        panel.axhline(1.0, color="0.35", linestyle="--", linewidth=1.3)
        for name in names:
            _draw_diffusivities(panel, family, name)
        panel.set(xlabel="h = 1/√cells, finer to the right", ylabel="K/α", xscale="log", ylim=(0.0, 4.7))
        _label_panel(panel, title, family)
        panel.invert_xaxis()
        if not any(family.diffusivity["euler"]):
            panel.text(0.5, 0.4, "exact, the same for every h", transform=panel.transAxes, ha="center", fontsize=9)
    handles = [Line2D([], [], label=NAMES[name], **_choose_style(name)) for name in names]
    handles += [
        Line2D([], [], color="0.35", linestyle=":", linewidth=2, label="infinite lattice, exact"),
        Line2D([], [], color="0.35", linestyle="--", linewidth=1.3, label="the heat equation: 1"),
        Line2D([], [], color="0.35", marker="|", markersize=12, linestyle="", label="principal values"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9.5, frameon=False)
    return figure


def _draw_diffusivities(panel: Axes, family: Family, name: str) -> None:
    style = _choose_style(name)
    measured = [(h, K) for h, K in zip(family.h, family.diffusivity[name], strict=True) if K is not None]
    panel.plot([h for h, _ in measured], [K.mean for _, K in measured], **style)
    # A scheme with open markers equals one with filled markers, which already has these lines and numbers.
    if style["fillstyle"] == "none":
        return
    for h, K in measured:
        panel.plot([h, h], K.principal, color=style["color"], linewidth=2)
    if family.lattice is not None:
        for value in family.lattice[name].principal:
            panel.axhline(value, color=style["color"], linestyle=":", linewidth=1.8)
    last = measured[-1][1] if family.lattice is None else family.lattice[name]
    _write_numbers(panel, last, style["color"])


def _write_numbers(panel: Axes, K: Tensor, colour: str) -> None:
    """Write the principal values at the right of the panel, or their mean if two numbers would overlap."""
    low, high = K.principal
    place: dict[str, Any] = {"transform": panel.get_yaxis_transform(), "color": colour, "fontsize": 9, "va": "center"}
    for value in (low, high) if high - low > LEAST_DISTANCE else (K.mean,):
        panel.text(1.02, value, f"{value:.2f}", **place)


def plateau_figure(result: Consistency) -> Figure:
    """Relative L2 errors of steady states with the plain and the corrected flux against h, and a slope of order two."""
    figure, axes = _make_panels(result)
    names = ("euler", "corrected")
    for panel, (title, family) in zip(axes, result.families.items(), strict=True):
        for k, name in enumerate(names):
            steady = family.steady[name]
            panel.loglog(family.h, steady.errors, **_choose_style(name))
            order_text = "no order" if steady.order is None else f"order {steady.order:.2f}"
            place: dict[str, Any] = {"transform": panel.transAxes, "ha": "right", "fontsize": 10}
            panel.text(0.97, 0.15 - 0.1 * k, order_text, color=STYLES[name][0], **place)
        _draw_slope(panel, family)
        panel.set(xlabel="h = 1/√cells", ylabel="relative L2 error")
        _label_panel(panel, title, family)
    low, high = min(panel.get_ylim()[0] for panel in axes), max(panel.get_ylim()[1] for panel in axes)
    for panel in axes:
        panel.set_ylim(low, high)
    handles = [Line2D([], [], label=NAMES[name], **_choose_style(name)) for name in names]
    handles.append(Line2D([], [], color="0.5", linestyle="--", linewidth=1.2, label="slope of order 2"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=10, frameon=False)
    return figure


def _draw_slope(panel: Axes, family: Family) -> None:
    """Draw a line of slope two, below the coarsest error of the corrected flux."""
    h, start = family.h, 0.5 * family.steady["corrected"].errors[0]
    panel.plot([h[0], h[-1]], [start, start * (h[-1] / h[0]) ** 2], "--", color="0.5", linewidth=1.2, zorder=1)


def _make_panels(result: Consistency) -> tuple[Figure, tuple[Axes, ...]]:
    """One panel per mesh family, in rows of three, of a size for a page."""
    count = len(result.families)
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    figure, axes = panels(count, columns=columns)
    figure.set_size_inches(3.2 * columns + 0.2, 2.75 * rows + 0.7)
    return figure, axes


def _choose_style(name: str) -> dict[str, Any]:
    colour, marker, filled = STYLES[name]
    return {
        "color": colour,
        "marker": marker,
        "fillstyle": "full" if filled else "none",
        "markersize": 5 if filled else 9,
        "linewidth": 1.4,
    }


def _label_panel(panel: Axes, title: str, family: Family) -> None:
    """Set the title, with the numbers of cells of the coarsest and the finest mesh, and the ticks of h."""
    cells = family.cells
    panel.set_title(f"{TITLES.get(title, title)}\n{cells[0]:,} to {cells[-1]:,} cells", fontsize=10)
    panel.tick_params(labelsize=9)
    panel.set_xlim(0.8 * min(family.h), 1.25 * max(family.h))
    panel.xaxis.set_major_locator(FixedLocator([0.1, 0.05, 0.02, 0.01, 0.005]))
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    panel.xaxis.set_minor_locator(NullLocator())


GROUPS = (
    ("linear", "linear,\ntrained\n(first bound)"),
    ("trained", "deep,\ntrained\n(second bound)"),
    ("near the lemma's network", "the lemma's,\nperturbed\n(second bound)"),
)
FLOOR = 1e-6


def theorems_figure(result: Theorems) -> Figure:
    """Errors over bounds of networks and counterexamples, and largest stable steps over Fourier steps by family."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=(3, 3, 2))
    _draw_ratios(axes[0], {"linear": result.linear, **result.deep})
    _draw_counterexamples(axes[1], result.counterexamples)
    _draw_fourier(axes[2], result.fourier)
    return figure


def _draw_ratios(panel: Axes, groups: Mapping[str, BoundGroup]) -> None:
    rng = np.random.default_rng(0)
    for k, (name, _) in enumerate(GROUPS):
        values = np.maximum(np.asarray(groups[name].ratios, float), FLOOR)
        panel.scatter(k + 0.3 * (rng.random(len(values)) - 0.5), values, s=16, color="#0072B2", alpha=0.7, linewidths=0)
    panel.axhline(1.0, color="0.3", linewidth=1)
    panel.set_xticks(range(len(GROUPS)), [label for _, label in GROUPS], fontsize=8)
    panel.set(yscale="log", ylabel="worst error on unseen meshes / bound", xlim=(-0.5, 2.5))
    panel.grid(axis="y", alpha=0.3)


def _draw_counterexamples(panel: Axes, rows: Sequence[CounterexampleRow]) -> None:
    names = [each.name for each in rows]
    panel.barh(names, [max(each.ratio, FLOOR) for each in rows], color="#D55E00", alpha=0.7)
    for k, each in enumerate(rows):
        panel.annotate(f" {each.ratio:.0e}×", (each.ratio, k), va="center", fontsize=8)
    panel.axvline(1.0, color="0.3", linewidth=1)
    panel.set(xscale="log", xlabel="error / printed bound, at a training error of zero")
    panel.margins(x=0.25)
    panel.invert_yaxis()


def _draw_fourier(panel: Axes, rows: Sequence[FourierRow]) -> None:
    panel.barh([row.family for row in rows], [row.ratio for row in rows], color="#009E73", alpha=0.7)
    panel.axvline(1.0, color="0.3", linewidth=1)
    panel.set(xlabel="largest stable step / Fourier step", xlim=(0, None))
    panel.invert_yaxis()
