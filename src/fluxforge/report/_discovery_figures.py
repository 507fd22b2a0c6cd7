"""The plots of a discovery: Pareto front, training, errors on unseen meshes; and those of a run with two arms."""

import csv
import io
import math
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fluxforge.report._limit_figure import limit_figure, limit_rows
from fluxforge.report._mathml import plot_formula, round_decimals
from fluxforge.report._page import COLOURS, MARKERS, Metric, number, panels, terms
from fluxforge.run._record import Number
from fluxforge.run.result import Arm, Discovery, Extrapolated, FrontRow, FrontTable, StepErrors

LINE, CHOSEN = COLOURS[:2]
# Where an error of zero is drawn on a logarithmic axis.
LOWEST = 1e-16
# Letters of a formula that fit on a line of a panel.
LABEL = 44
MEASURES = {
    "one_step_mse": "one step, mean square",
    "one_step_worst": "one step, worst cell",
    "rollout_mse": "many steps, mean square",
}
FRONT_COLUMNS = ("name", "kind", "complexity", "error", "formula")


def discovery_figures(result: Discovery, metrics: Sequence[Metric]) -> dict[str, Figure]:
    """The figures that this run has data for, by name: `front`, `limit`, `loss`, `errors`."""
    found = {}
    if fronts := shown_fronts(result):
        found["front"] = front_figure(fronts)
    if limit_rows(result):
        found["limit"] = limit_figure(result)
    if terms(metrics):
        found["loss"] = loss_figure(metrics, result.member)
    if errors := step_errors(result):
        found["errors"] = errors_figure(errors)
    return found


def shown_fronts(result: Discovery) -> dict[str, FrontTable]:
    """The fronts that hold a formula; of a pair the message comes first, as in the paper's figure."""
    fronts = [(name, front) for name, front in (result.fronts or {}).items() if front.rows]
    if len(fronts) == 2:
        fronts.sort(key=lambda each: each[1].kind != "message")
    return dict(fronts)


def front_csv(fronts: Mapping[str, FrontTable]) -> str:
    """The fronts as a table, a formula a line, nothing rounded."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(FRONT_COLUMNS)
    for name, front in fronts.items():
        table.writerows([name, front.kind, row.complexity, row.error, row.formula] for row in front.rows)
    return text.getvalue()


def step_errors(result: Discovery) -> dict[str, StepErrors]:
    """Errors of network and formula on unseen meshes; empty if they were not compared there."""
    found = result.evaluation
    if found is None or found.network is None or found.formula is None:
        return {}
    return {"network": found.network, "formula": found.formula}


def front_figure(fronts: Mapping[str, FrontTable]) -> Figure:
    """Error against complexity, a panel per MLP, the chosen formula marked and written out."""
    figure, axes = panels(len(fronts), columns=2)
    for panel, (name, front) in zip(axes, fronts.items(), strict=True):
        x = [row.complexity for row in front.rows]
        y = [_drawn_error(row) for row in front.rows]
        panel.semilogy(x, y, drawstyle="steps-post", color=LINE, linewidth=1.2, alpha=0.5)
        panel.semilogy(x, y, "o", color=LINE, markersize=5)
        lines = _mark_chosen(panel, front.rows[front.chosen]) if isinstance(front.chosen, int) else 0
        panel.set(xlabel="complexity (operators, variables, constants)", ylabel="relative error")
        panel.set_title(f"{front.kind} {name}", fontsize=10, parse_math=False)
        panel.set_ylim(*_axis_limits(min(y), max(y), lines))
        panel.margins(x=0.06)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _axis_limits(low: float, high: float, lines: int) -> tuple[float, float]:
    """An axis from low to high with room above for lines of text, each a sixteenth of its height."""
    low, high = low / 2, high * 1.6
    share = lines / 16
    return low, high * (high / low) ** (share / (1 - share))


def _drawn_error(row: FrontRow) -> float:
    """The error of a candidate on a logarithmic axis; NaN, which is not drawn, if it was not finite."""
    return math.nan if row.error is None else max(row.error, LOWEST)


def _mark_chosen(panel: Axes, row: FrontRow) -> int:
    """Mark a point and write its formula at the top, which a falling curve leaves free; return the lines it took."""
    point = (row.complexity, _drawn_error(row))
    panel.semilogy(*point, "o", color=CHOSEN, markersize=9, zorder=3)
    label = plot_formula(row.formula) if len(round_decimals(row.formula, 4)) <= LABEL else None
    # A fraction is two to three lines high.
    room = (
        [label, "", ""]
        if label
        else textwrap.wrap(round_decimals(row.formula, 4), LABEL, max_lines=4, placeholder=" …")
    )
    last = f"complexity {row.complexity}, error {number(row.error)}"
    lines = [label, last] if label else [*room, last]
    panel.annotate(
        "\n".join(lines),
        xy=point,
        xytext=(0.99, 0.99),
        textcoords="axes fraction",
        ha="right",
        va="top",
        fontsize=8.5,
        color=CHOSEN,
        parse_math=label is not None,
        arrowprops={"arrowstyle": "->", "color": CHOSEN, "shrinkB": 7, "relpos": (0.5, 0)},
    )
    return len(room) + 1


def loss_figure(metrics: Sequence[Metric], member: int | None = None) -> Figure:
    """Each term of the loss against steps, a line per network; the network that was distilled is drawn thick."""
    figure, (panel,) = panels(1)
    steps = np.array([record["step"] for record in metrics], float)
    for k, name in enumerate(terms(metrics)):
        values = np.array([np.atleast_1d(np.asarray(record.get(name), float)) for record in metrics])
        values = np.where(values > 0, values, np.nan)
        chosen = member if member is not None and member < values.shape[1] else 0
        for other in range(values.shape[1]):
            panel.plot(steps, values[:, other], color=COLOURS[k % 7], linewidth=0.8, alpha=0.35)
        panel.plot(
            steps, values[:, chosen], "-", marker=MARKERS[k % 7], color=COLOURS[k % 7], markersize=3.5, label=name
        )
    panel.set(yscale="log", xlabel="training steps", ylabel="loss")
    panel.legend(fontsize=8.5)
    return figure


def errors_figure(errors: Mapping[str, StepErrors]) -> Figure:
    """Distance from the law of the data on unseen meshes: network above, formula below, for each measure."""
    figure, (panel,) = panels(1)
    names = list(MEASURES)
    for k, (who, own) in enumerate(errors.items()):
        values: list[float | None] = [getattr(own, name) for name in names]
        y = np.arange(len(names)) + (k - 0.5) * 0.34
        drawn = [max(v, LOWEST**2) if v is not None and _is_finite(v) else math.nan for v in values]
        panel.plot(drawn, y, MARKERS[k], color=COLOURS[k], markersize=8, label=who)
        for value, place in zip(values, y, strict=True):
            _annotate_value(panel, value, float(place), COLOURS[k])
    panel.set(
        xscale="log",
        xlabel="distance from the reference",
        ylim=(len(names) - 0.4, -0.6),
    )
    panel.set_yticks(range(len(names)), [MEASURES[name].replace(", ", ",\n") for name in names])
    panel.margins(x=0.16)
    panel.legend(fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=2, frameon=False)
    return figure


def _annotate_value(panel: Axes, value: float | None, place: float, colour: str) -> None:
    """The value beside its mark; what is not finite has no mark, and stands at the edge."""
    if _is_finite(value):
        at, where = (max(float(value or 0.0), LOWEST**2), place), "data"
        text, offset = number(value), (0, 7)
    else:
        at, where, text, offset = (0.5, place), "edge", "not finite", (0, 0)
    coordinates = panel.transData if where == "data" else panel.get_yaxis_transform()
    panel.annotate(
        text, at, xycoords=coordinates, xytext=offset, textcoords="offset points", ha="center", fontsize=8, color=colour
    )


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


COLUMNS = (("sparse", "with ℓ¹ (sparse)", "#0072B2"), ("dense", "without ℓ¹ (dense)", "#D55E00"))
METRICS = (
    ("train_mae", "training\nMAE"),
    ("ood_mse", "one step,\nunseen meshes\nMSE"),
    ("rollout_mse", "50 steps,\nunseen meshes\nMSE"),
)
# Errors below float32's square resolution are drawn there.
FLOOR = 1e-15


def generalisation_figure(arms: Mapping[str, Arm], seeds: int) -> Figure:
    """Errors and weights of the arms `sparse` and `dense`, of so many seeds each.

    Every seed is a dot, the bar is the median; histograms are of the last layer of the last update.
    """
    figure = Figure(figsize=(9.6, 7.2), layout="constrained")
    axes = figure.subplots(2, 2, sharey="row", height_ratios=(3, 2))
    for column, (arm, title, colour) in enumerate(COLUMNS):
        _metrics(axes[0, column], arms[arm], colour)
        _histogram(axes[1, column], arms[arm].last_layer, colour)
        axes[0, column].set_title(title)
    axes[0, 0].set_ylabel("error against the first-order scheme")
    axes[1, 0].set_ylabel("share of weights")
    figure.suptitle(f"Trained on two cells, asked about meshes of 300: {seeds} seeds each", fontsize=12)
    return figure


def _metrics(panel: Axes, arm: Arm, colour: str) -> None:
    rng = np.random.default_rng(0)
    for k, (name, _) in enumerate(METRICS):
        values = np.maximum(np.asarray(getattr(arm, name), float), FLOOR)
        median = float(np.median(values))
        panel.bar(k, median, width=0.6, color=colour, alpha=0.3, bottom=None)
        panel.scatter(k + 0.2 * (rng.random(len(values)) - 0.5), values, s=16, color=colour, alpha=0.8, linewidths=0)
        panel.annotate(
            f"{median:.1e}", (k, max(values.max(), median)), xytext=(0, 6), textcoords="offset points", ha="center"
        )
    panel.set_yscale("log")
    panel.set_ylim(FLOOR / 3, 30.0)
    panel.set_xticks(range(len(METRICS)), [label for _, label in METRICS])
    panel.grid(axis="y", alpha=0.3)


def _histogram(panel: Axes, weights: Sequence[Number], colour: str) -> None:
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
        "fourier": "Δt / Δt_Fourier",
        "temperature_range": "temperatures, times those of training",
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
