"""Figures of the higher-order experiment: constants against the step, and residuals beside those of schemes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluxforge.report import COLOURS, MARKERS, panels

SHOWN = {"c1": "c, first layer's flux", "a1": "a₁, first layer's source", "c2": "d, second layer's flux"}
# Which network shows what training gives for which θ.
TRAINED = {"θ = 0": "two layers, θ = 0", "θ = 0.5": "midpoint", "θ = 1": "two layers, θ = 1"}
SCHEMES = {"euler": "Euler", "midpoint": "midpoint", "rk4": "RK4"}


def constants_figure(result: Mapping[str, Any]) -> Figure:
    """c, a₁ and d against Fo for every θ, from direct minimisation (lines) and from training (hollow marks)."""
    figure, axes = panels(len(SHOWN))
    for panel, (name, title) in zip(axes, SHOWN.items(), strict=True):
        for k, (theta, found) in enumerate(result["direct"].items()):
            _line(panel, found["rows"], name, label=f"{theta}, least residual", k=k)
            trained = result["networks"].get(TRAINED.get(theta, ""))
            if trained is not None:
                _marks(panel, trained["by_step"], name, label=f"{theta}, trained", k=k)
        panel.axhline(1.0 if name == "c2" else 0.5, color="black", linewidth=0.8, linestyle=":")
        panel.set_xscale("log")
        panel.set_xlabel("Δt / Fourier step")
        panel.set_ylabel("constant")
        panel.set_title(title, fontsize=10)
    # All lines of the last panel end at 1 on its left: there is room below.
    axes[-1].legend(fontsize=7, loc="lower left")
    return figure


def _line(panel: Axes, rows: list[Any], name: str, *, label: str, k: int) -> None:
    xy = sorted((row["step"], row["constants"][name]) for row in rows)
    panel.plot(*zip(*xy, strict=True), color=COLOURS[k], label=label, linewidth=1.4)


def _marks(panel: Axes, rows: list[Any], name: str, *, label: str, k: int) -> None:
    xy = [(row["fourier"], row["constants"][name]) for row in rows if name in row["constants"]]
    if xy:
        x, y = zip(*xy, strict=True)
        panel.plot(x, y, MARKERS[k], color=COLOURS[k], fillstyle="none", label=label, markersize=5)


def four_layers_figure(result: Mapping[str, Any]) -> Figure:
    """The constants of four layers against Fo, for the θ-residual and for the one of fourth order."""
    figure, axes = panels(len(result["direct_four"]))
    for panel, (name, found) in zip(axes, result["direct_four"].items(), strict=True):
        for k in range(1, 5):
            _line(panel, found["rows"], f"c{k}", label=f"layer {k}", k=k - 1)
            panel.axhline(1.0 / (5 - k), color=COLOURS[k - 1], linewidth=0.8, linestyle=":")
            trained = result["networks"].get(f"four layers, {name}")
            if trained is not None:
                _marks(panel, trained["by_step"], f"c{k}", label="", k=k - 1)
        panel.set_xscale("log")
        panel.set_ylim(0.0, 1.1)
        panel.set_xlabel("Δt / Fourier step")
        panel.set_ylabel("flux constant of a layer")
        panel.set_title(f"{name} residual (dotted: RK4; marks: trained)", fontsize=10)
        _say_outside(panel)
    axes[0].legend(fontsize=7, loc="lower left")
    return figure


def _say_outside(panel: Axes) -> None:
    """Marks that the frame leaves out are counted: what a network does not determine can be anywhere."""
    low, high = panel.get_ylim()
    marks = np.concatenate([line.get_ydata() for line in panel.get_lines() if line.get_linestyle() == "None"] or [[]])
    outside = int(((marks < low) | (marks > high)).sum())
    if outside:
        said = f"{outside} of {len(marks)} marks lie outside"
        panel.text(0.98, 0.02, said, transform=panel.transAxes, ha="right", va="bottom", fontsize=7.5, color="0.3")


def residuals_figure(result: Mapping[str, Any]) -> Figure:
    """Mean |residual| on unseen meshes against Fo, of both networks and of the explicit schemes."""
    names = [name for name in ("midpoint", "two-hop") if name in result["networks"]]
    figure, axes = panels(len(names))
    for panel, name in zip(axes, names, strict=True):
        rows = result["networks"][name]["by_step"]
        x = [row["fourier"] for row in rows]
        for k, (key, label) in enumerate({"network": "network", **SCHEMES}.items()):
            y = [row[key] for row in rows]
            panel.plot(x, y, f"{MARKERS[k]}-", color=COLOURS[k], label=label, markersize=4)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xticks(x, [f"{step:g}" for step in x])
        panel.set_xticks([], minor=True)
        panel.set_xlabel("Δt / Fourier step")
        panel.set_ylabel("mean |residual|, θ = ½")
        panel.set_title(f"{name} network", fontsize=10)
    axes[0].legend(fontsize=8)
    return figure
