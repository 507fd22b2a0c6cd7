"""The theorems against measurements: error over bound, counterexamples, and the stable step over Fourier's."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

GROUPS = (
    ("linear", "linear,\ntrained\n(first bound)"),
    ("trained", "deep,\ntrained\n(second bound)"),
    ("near the lemma's network", "the lemma's,\nshaken\n(second bound)"),
)
FLOOR = 1e-6


def theorems_figure(result: Mapping[str, Any]) -> Figure:
    """Dots are networks; above the line a bound is broken."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=(3, 3, 2))
    _ratios(axes[0], {"linear": result["linear"], **result["deep"]})
    _counterexamples(axes[1], result["counterexamples"])
    _fourier(axes[2], result["fourier"])
    return figure


def _ratios(panel: Axes, groups: Mapping[str, Any]) -> None:
    rng = np.random.default_rng(0)
    for k, (name, _) in enumerate(GROUPS):
        values = np.maximum(np.asarray(groups[name]["ratios"], float), FLOOR)
        panel.scatter(k + 0.3 * (rng.random(len(values)) - 0.5), values, s=16, color="#0072B2", alpha=0.7, linewidths=0)
    panel.axhline(1.0, color="0.3", linewidth=1)
    panel.set_xticks(range(len(GROUPS)), [label for _, label in GROUPS], fontsize=8)
    panel.set(yscale="log", ylabel="worst error on unseen meshes / bound", xlim=(-0.5, 2.5))
    panel.grid(axis="y", alpha=0.3)


def _counterexamples(panel: Axes, found: Any) -> None:
    names = [each["name"] for each in found]
    panel.barh(names, [max(each["ratio"], FLOOR) for each in found], color="#D55E00", alpha=0.7)
    for k, each in enumerate(found):
        panel.annotate(f" {each['ratio']:.0e}×", (each["ratio"], k), va="center", fontsize=8)
    panel.axvline(1.0, color="0.3", linewidth=1)
    panel.set(xscale="log", xlabel="error / printed bound, at a training error of zero")
    panel.margins(x=0.25)
    panel.invert_yaxis()


def _fourier(panel: Axes, rows: Any) -> None:
    panel.barh([row["family"] for row in rows], [row["ratio"] for row in rows], color="#009E73", alpha=0.7)
    panel.axvline(1.0, color="0.3", linewidth=1)
    panel.set(xlabel="largest stable step / Fourier step", xlim=(0, None))
    panel.invert_yaxis()
