"""The plots of a run with the arms `sparse` and `dense`: errors and weights, and extrapolation."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluxforge.run._record import Number
from fluxforge.run.result import Arm, Extrapolated

COLUMNS = (("sparse", "with ℓ¹ (sparse)", "#0072B2"), ("dense", "without ℓ¹ (dense)", "#D55E00"))
# Errors below this, about the square of float32's resolution, are drawn here.
FLOOR = 1e-15


def generalisation_figure(arms: Mapping[str, Arm], seeds: int, *, cells: int = 300, rollout: int = 50) -> Figure:
    """Errors and weights of the arms `sparse` and `dense`, of `seeds` networks each.

    Every network is a dot, bars are medians; the histograms show the weights of the last layer of the last update.
    """
    figure = Figure(figsize=(9.6, 7.2), layout="constrained")
    axes = figure.subplots(2, 2, sharey="row", height_ratios=(3, 2))
    for column, (arm, title, colour) in enumerate(COLUMNS):
        _draw_metrics(axes[0, column], arms[arm], colour, rollout)
        _draw_histogram(axes[1, column], arms[arm].last_layer, colour)
        axes[0, column].set_title(title)
    axes[0, 0].set_ylabel("error against the first-order scheme")
    axes[1, 0].set_ylabel("share of weights")
    figure.suptitle(f"Trained on two cells, tested on meshes of about {cells} cells: {seeds} seeds each", fontsize=12)
    return figure


def _draw_metrics(panel: Axes, arm: Arm, colour: str, rollout: int) -> None:
    metrics = {
        "training\nMAE": arm.train_mae,
        "one step,\nunseen meshes\nMSE": arm.ood_mse,
        f"{rollout} steps,\nunseen meshes\nMSE": arm.rollout_mse,
    }
    rng = np.random.default_rng(0)
    for k, numbers in enumerate(metrics.values()):
        values = np.maximum(np.asarray(numbers, float), FLOOR)
        median = float(np.median(values))
        panel.bar(k, median, width=0.6, color=colour, alpha=0.3, bottom=None)
        panel.scatter(k + 0.2 * (rng.random(len(values)) - 0.5), values, s=16, color=colour, alpha=0.8, linewidths=0)
        panel.annotate(
            f"{median:.1e}", (k, max(values.max(), median)), xytext=(0, 6), textcoords="offset points", ha="center"
        )
    panel.set_yscale("log")
    panel.set_ylim(FLOOR / 3, 30.0)
    panel.set_xticks(range(len(metrics)), list(metrics))
    panel.grid(axis="y", alpha=0.3)


def _draw_histogram(panel: Axes, weights: Sequence[Number], colour: str) -> None:
    values = np.asarray(weights, float)
    reach = max(0.3, float(np.abs(values).max()))
    bins = np.linspace(-reach, reach, 61)
    panel.hist(values, bins=list(bins), color=colour, weights=np.full(len(values), 1.0 / len(values)))
    panel.set_yscale("log")
    panel.set(xlabel="weight of the last update layer")
    panel.grid(alpha=0.3)


def extrapolation_figure(extrapolation: Extrapolated) -> Figure:
    """One-step errors for longer steps, larger temperatures and other boundaries than in training."""
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    titles = {
        "fourier": r"$\Delta t / \Delta t_{\mathrm{Fourier}}$",
        "temperature_range": "temperatures / those of training",
        "boundary": "boundary",
    }
    for panel, (name, title) in zip(axes, titles.items(), strict=True):
        errors = getattr(extrapolation, name)
        labels = list(errors)
        for arm, label, colour in COLUMNS:
            quartiles = np.maximum(
                [np.percentile(np.array(errors[each][arm], float), (25, 50, 75)) for each in labels], FLOOR
            )
            x = np.arange(len(labels))
            panel.plot(x, quartiles[:, 1], "o-" if name != "boundary" else "o", color=colour, label=label)
            panel.vlines(x, quartiles[:, 0], quartiles[:, 2], color=colour, alpha=0.5, linewidth=4)
        panel.set_xticks(range(len(labels)), [each.replace(" ", "\n") for each in labels])
        panel.set(yscale="log", xlabel=title)
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("one-step MSE / size², median and quartiles")
    axes[0].legend()
    return figure
