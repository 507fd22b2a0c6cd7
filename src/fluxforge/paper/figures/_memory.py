"""The paper's memory figure: measured and counted, over mesh size, for two time steps."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluxforge.report import COLOURS, MARKERS, panels

MEGABYTE = 1e6
# What is not above the process without a stepper is drawn at the foot.
FLOOR = 1e-2


def memory_figure(result: Mapping[str, Any]) -> Figure:
    """Measured beside counted megabytes over cells, and the bytes per cell of each scheme."""
    figure, (measured, counted, each) = panels(3)
    names = list(result["bytes_per_cell"])
    for k, name in enumerate(names):
        for at, fraction in enumerate(result["fractions"]):
            rows = [row for row in result["rows"] if row["scheme"] == name and row["fourier"] == fraction]
            _curve(measured, rows, "stepping", k=k, label=None if at else name, filled=not at)
            if at == 0:
                _curve(counted, rows, "counted", k=k, label=None, filled=True)
    for panel, title in ((measured, "measured while stepping (compiled code included)"), (counted, "counted")):
        panel.set(xlabel="cells", ylabel="megabytes", xscale="log", yscale="log")
        panel.set_title(title, fontsize=10)
    low = min(panel.get_ylim()[0] for panel in (measured, counted))
    high = max(panel.get_ylim()[1] for panel in (measured, counted))
    for panel in (measured, counted):
        panel.set_ylim(low, high)
    _bars(each, result["bytes_per_cell"])
    handles, labels = measured.get_legend_handles_labels()
    steps = ", open: ".join(f"Δt = {fraction:g} Fourier steps" for fraction in result["fractions"][:2])
    figure.suptitle(f"memory beside the mesh and JAX (filled: {steps})", fontsize=10)
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8), fontsize=8.5, frameon=False)
    return figure


def _curve(panel: Axes, rows: Any, key: str, *, k: int, label: str | None, filled: bool) -> None:
    values = np.maximum([row[key] / MEGABYTE for row in rows], FLOOR)
    panel.plot(
        [row["cells"] for row in rows],
        values,
        color=("#000000", *COLOURS)[k % (len(COLOURS) + 1)],
        marker=MARKERS[k % len(MARKERS)],
        markersize=4 if filled else 7,
        fillstyle="full" if filled else "none",
        linestyle="-" if filled else "none",
        label=label,
    )


def _bars(panel: Axes, found: Mapping[str, Any]) -> None:
    names = list(found)
    place = np.arange(len(names))
    for shift, key, colour, label in (
        (-0.2, "stepping", "#0072B2", "measured while stepping"),
        (0.2, "counted", "#E69F00", "counted"),
    ):
        values = [max(found[name][key] or 0.0, 1.0) for name in names]
        panel.barh(place + shift, values, height=0.38, color=colour, label=label)
        for at, value in zip(place, values, strict=True):
            panel.annotate(f" {value:.0f}", (value, at + shift), va="center", fontsize=7)
    panel.set_yticks(place, names, fontsize=8)
    panel.set(xscale="log", xlabel="bytes per cell (slope over mesh sizes)")
    panel.margins(x=0.15)
    panel.invert_yaxis()
    panel.legend(fontsize=7.5, loc="upper right")
