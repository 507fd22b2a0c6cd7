"""The plots of a discovery: Pareto front, training, errors on unseen meshes, and constants against the step."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from msgspec.structs import asdict

from fluxforge.report._discovery_words import label_fronts
from fluxforge.report._page import (
    COLOURS,
    MARKERS,
    Metric,
    Shown,
    decimals,
    embed_figure,
    list_terms,
    number,
    panels,
    plot_formula,
    round_decimals,
    set_powers,
)
from fluxforge.report._tables import table_csv
from fluxforge.run._record import Numbers
from fluxforge.run.result import Discovery, FrontRow, FrontTable, StepErrors, StepRow

LINE, CHOSEN = COLOURS[:2]
# Smaller errors, also zero, are drawn here on logarithmic axes: those of candidates, and those of fields, whose root
# mean square is far below 1e-16 where most cells are exact.
LOWEST, LOWEST_FIELD = 1e-16, 1e-18
# Number of characters of a formula that fit on a line of a panel.
LABEL = 44
MEASURES = {
    "one_step_mse": "one step, mean square",
    "one_step_worst": "one step, worst cell",
    "rollout_mse": "many steps, mean square",
}
# The same as drawn, all in units of the field: roots of mean squares.
DRAWN_MEASURES = {name: label.replace("mean", "root mean") for name, label in MEASURES.items()}
# Constants of the network are drawn up to this distance from those of least loss, in units of the axis for the latter.
AXIS_MARGIN = 1.5
LEAST_DECIMAL = 1e-3
OPEN_MARKER = {"markerfacecolor": "none", "markersize": 8, "zorder": 4}


def discovery_figures(result: Discovery, metrics: Sequence[Metric]) -> dict[str, Figure]:
    """The figures for which the run has data, by name: `front`, `limit`, `loss`, `errors`."""
    figures = {}
    if fronts := shown_fronts(result):
        figures["front"] = front_figure(fronts, label_fronts(result))
    if limit_rows(result):
        figures["limit"] = limit_figure(result)
    if len(metrics) > 1 and list_terms(metrics):
        figures["loss"] = loss_figure(metrics, result.member)
    if errors := step_errors(result):
        figures["errors"] = errors_figure(errors)
    return figures


def shown_fronts(result: Discovery) -> dict[str, FrontTable]:
    """The fronts that have candidates, by MLP; of two the message comes first, as in the paper's figure."""
    fronts = [(name, front) for name, front in (result.fronts or {}).items() if front.rows]
    if len(fronts) == 2:
        fronts.sort(key=lambda each: each[1].kind != "message")
    return dict(fronts)


def front_csv(fronts: Mapping[str, FrontTable]) -> str:
    """The fronts as CSV text, one row per candidate formula, nothing rounded."""
    rows = ((name, front.kind, row) for name, front in fronts.items() for row in front.rows)
    return table_csv(
        [{"name": name, "kind": kind, **asdict(row)} for name, kind, row in rows],
        ("name", "kind", *FrontRow.__struct_fields__),
    )


def step_errors(result: Discovery) -> dict[str, StepErrors]:
    """Errors of network and formula on unseen meshes; empty if they were not compared there."""
    evaluation = result.evaluation
    if evaluation is None or evaluation.network is None or evaluation.formula is None:
        return {}
    return {"network": evaluation.network, "formula": evaluation.formula}


def drawn_errors(row: StepErrors) -> dict[str, float | None]:
    """The errors of network or formula in units of the field, by the names of `DRAWN_MEASURES`; None if not finite."""
    return {
        "one_step_mse": _root(row.one_step_mse),
        "one_step_worst": row.one_step_worst,
        "rollout_mse": _root(row.rollout_mse),
    }


def _root(square: float | None) -> float | None:
    return None if square is None else math.sqrt(square)


def front_figure(fronts: Mapping[str, FrontTable], labels: Mapping[str, str]) -> Figure:
    """Relative error against complexity, one panel per MLP; the chosen formula is marked and written in the panel.

    `labels` are those of `label_fronts`.
    """
    figure, axes = panels(len(fronts), columns=2)
    for panel, (name, front) in zip(axes, fronts.items(), strict=True):
        x = [row.complexity for row in front.rows]
        y = [_drawn_error(row) for row in front.rows]
        panel.semilogy(x, y, drawstyle="steps-post", color=LINE, linewidth=1.2, alpha=0.5)
        panel.semilogy(x, y, "o", color=LINE, markersize=5)
        lines = _mark_chosen(panel, front.rows[front.chosen]) if isinstance(front.chosen, int) else 0
        panel.set(xlabel="complexity (operators, variables, constants)", ylabel="relative error")
        label = plot_formula(labels[name])
        panel.set_title(f"{front.kind} {label or labels[name]}", fontsize=10, parse_math=label is not None)
        panel.set_ylim(*_axis_limits(min(y), max(y), lines))
        panel.margins(x=0.06)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _axis_limits(low: float, high: float, lines: int) -> tuple[float, float]:
    """Limits of a logarithmic axis from low to high with room at the top for lines of text, each 1/16 of its height."""
    low, high = low / 2, high * 1.6
    share = lines / 16
    return low, high * (high / low) ** (share / (1 - share))


def _drawn_error(row: FrontRow) -> float:
    """The error of a candidate on a logarithmic axis; NaN, which is not drawn, if it was not finite."""
    return math.nan if row.error is None else max(row.error, LOWEST)


def _mark_chosen(panel: Axes, row: FrontRow) -> int:
    """Mark a point, write its formula at the top, where a falling curve leaves room, and return the number of lines."""
    point = (row.complexity, _drawn_error(row))
    panel.semilogy(*point, "o", color=CHOSEN, markersize=9, zorder=3)
    label = plot_formula(row.formula) if len(round_decimals(row.formula, 4)) <= LABEL else None
    # A typeset formula counts as three lines, since fractions are two to three lines high.
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
    """Each term of the loss against steps, one line per network: that of network `member` has marks."""
    figure, (panel,) = panels(1)
    steps = np.array([record["step"] for record in metrics], float)
    for k, name in enumerate(list_terms(metrics)):
        values = np.array([np.atleast_1d(np.asarray(record.get(name), float)) for record in metrics])
        values = np.where(values > 0, values, np.nan)
        if np.isnan(values).all():  # such as a sparsity of weight 0: nothing to draw, and nothing for the legend
            continue
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
    """Errors of network (above) and formula (below) on unseen meshes against the law of the data, for each measure.

    All are in units of the field: the roots of mean squares, and the worst cell.
    """
    figure, (panel,) = panels(1)
    names = list(DRAWN_MEASURES)
    for k, (who, row) in enumerate(errors.items()):
        values = list(drawn_errors(row).values())
        y = np.arange(len(names)) + (k - 0.5) * 0.34
        x = [max(v, LOWEST_FIELD) if v is not None and math.isfinite(v) else math.nan for v in values]
        panel.plot(x, y, MARKERS[k], color=COLOURS[k], markersize=8, label=who)
        for value, place in zip(values, y, strict=True):
            _annotate_value(panel, value, float(place), COLOURS[k])
    panel.set(xscale="log", xlabel="distance from the reference, in units of the field", ylim=(len(names) - 0.4, -0.6))
    panel.set_yticks(range(len(names)), [DRAWN_MEASURES[name].replace(", ", ",\n") for name in names])
    panel.margins(x=0.16)
    panel.legend(fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=2, frameon=False)
    return figure


def _annotate_value(panel: Axes, value: float | None, place: float, colour: str) -> None:
    """Write a value above its mark; one that is not finite has no mark, and is written in the middle of its row."""
    look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 8, "color": colour}
    if value is not None and math.isfinite(value):
        panel.annotate(number(value), (max(value, LOWEST_FIELD), place), xytext=(0, 7), **look)
    else:
        edge = panel.get_yaxis_transform()
        panel.annotate("not finite", (0.5, place), xycoords=edge, xytext=(0, 0), **look)


def limit_rows(result: Discovery) -> list[StepRow]:
    """The rows of Δt > 0 at which constants are known, longest first."""
    rows = [row for row in result.against_step or () if row.step > 0 and row.constants]
    return sorted(rows, key=lambda row: -row.step)


def limit_figure(result: Discovery) -> Figure:
    """Constants against Δt, one panel per fraction that limits are rounded to; the network's own have hollow marks."""
    groups = _group_constants(result)
    figure, axes = panels(len(groups), columns=2)
    for panel, (aim, names) in zip(axes, groups.items(), strict=True):
        _draw_constants(panel, result, names)
        if aim:
            panel.set_title(f"towards {aim}", fontsize=10)
    return figure


def limit_pictures(result: Discovery) -> list[Shown]:
    """The panels of `limit_figure` as separate figures for a page."""
    pictures = []
    for k, names in enumerate(_group_constants(result).values() if limit_rows(result) else ()):
        figure, (panel,) = panels(1)
        outside = _draw_constants(panel, result, names)
        caption = (
            f"{set_powers(', '.join(names))} against the step: full marks are those of least loss, stars their limits"
        )
        caption += ", hollow marks the network's own" if _network_names(result, names) else ""
        caption += f", {outside} of which lie outside" if outside else ""
        ends = (
            f"{name} goes from {row[0]} at the longest step to {row[2]}" for name, *row in limit_table(result, names)
        )
        pictures.append(embed_figure(figure, f"limit{k}", f"{caption}.", alt="; ".join(ends)))
    return pictures


def limit_table(result: Discovery, names: Sequence[str] | None = None) -> list[tuple[str, str, str, str, str]]:
    """Rows of text: constant, value at the longest Δt and at the shortest, limit ± uncertainty, rounded fraction."""
    rows = limit_rows(result)
    if not rows:
        return []
    (values, spread), rational = fitted_constants(result), result.rational or {}
    return [
        (
            name,
            _format_constant(rows[0].constants.get(name)),
            _format_constant(rows[-1].constants.get(name)),
            format_with_uncertainty(values.get(name), spread.get(name)),
            str(rational.get(name) or _format_constant(values.get(name))),
        )
        for name in (rows[0].constants if names is None else names)
    ]


def fitted_constants(result: Discovery) -> tuple[Numbers, Numbers]:
    """The constants of least loss, before rounding if the result has them, and their uncertainties, by name."""
    if result.constants_fitted is not None:
        return result.constants_fitted.values, result.constants_fitted.uncertainty
    return result.constants or {}, result.constants_uncertainty or {}


def limit_steps(result: Discovery) -> str:
    """A text on the range of Δt, such as `Δt, from 0.2 down to 0.0016`; empty without steps."""
    steps = [row.step for row in limit_rows(result)]
    return f"{step_label(result)}, from {number(steps[0])} down to {number(steps[-1])}" if steps else ""


def step_label(result: Discovery) -> str:
    """The label of the axis of Δt: a stencil is computed on meshes, where Δt is in Fourier steps."""
    return "Δt in units of the Fourier step" if result.laws else "Δt"


def format_with_uncertainty(value: float | None, spread: float | None) -> str:
    """A value with the digits that its uncertainty allows, as 0.99999000 ± 2.0 × 10⁻⁸; a dash for None."""
    if value is None:
        return "—"
    if spread is None or not math.isfinite(spread) or not math.isfinite(value):
        return number(value, 10)
    if spread <= 0:
        return f"{number(value, 16)} ± 0"
    decimals = min(max(1 - math.floor(math.log10(spread)), 0), 12)
    return f"{value:.{decimals}f} ± {number(spread, 2)}".replace("-", "−")


def _format_constant(value: float | None) -> str:
    """A constant with five decimals, as 1.00000, since it is not exact; below `LEAST_DECIMAL` with three digits."""
    return decimals(value, 5) if value is None or abs(value) >= LEAST_DECIMAL else number(value)


def _group_constants(result: Discovery) -> dict[str, list[str]]:
    """Names of constants by the fraction they are rounded to; those not rounded are under ""."""
    rational = result.rational or {}
    groups: dict[str, list[str]] = {}
    for name in limit_rows(result)[0].constants:
        groups.setdefault(str(rational.get(name) or ""), []).append(name)
    return groups


def _draw_constants(panel: Axes, result: Discovery, names: Sequence[str]) -> int:
    """Draw these constants; return the number of the network's values that are outside the axis and not shown."""
    rows = limit_rows(result)
    steps, left = [row.step for row in rows], rows[-1].step / 2
    # The network is read between the halvings, where the least loss of other problems is fitted: no part of the line.
    halvings = [row for row in rows if not row.network] or rows
    for k, name in enumerate(names):
        label, style = plot_formula(name) or name, _choose_style(k)
        line = _column([row.constants for row in halvings], name)
        panel.plot([row.step for row in halvings], line, "-", **style, label=label)
        panel.plot(steps, _column([row.constants for row in rows], name), " ", **style)
        _draw_limit(panel, result, name, left=left, look=_choose_style(k))
    low, high = panel.get_ylim()
    reach = AXIS_MARGIN * (high - low)
    outside = 0
    for name, label in _network_names(result, names).items():
        values = _column([row.network for row in rows], name)
        far = (values < low - reach) | (values > high + reach)
        outside += int(far.sum())
        panel.plot(
            steps, np.where(far, np.nan, values), " ", **_choose_style(names.index(name)) | OPEN_MARKER, label=label
        )
    panel.set(xscale="log", xlabel=step_label(result), ylabel="constant")
    # Ticks only at halvings of the longest Δt: labels of the network's readings between them would overlap.
    ticks = [row.step for row in rows if not row.network][::2] or steps[::2]
    panel.set_xticks([*ticks, left], [*(f"{step:.3g}" for step in ticks), "→ 0"])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.axvline(left * math.sqrt(2), color="#999999", linewidth=0.8, linestyle=":")
    panel.ticklabel_format(axis="y", useOffset=False)
    panel.legend(fontsize=8.5)
    return outside


def _draw_limit(panel: Axes, result: Discovery, name: str, *, left: float, look: dict[str, Any]) -> None:
    """Draw the limit of a constant, with its uncertainty, at the left edge."""
    value = (result.constants or {}).get(name)
    if value is None or not math.isfinite(value):
        return
    spread = (result.constants_uncertainty or {}).get(name) or 0.0
    spread = spread if math.isfinite(spread) else 0.0
    panel.errorbar([left], [value], yerr=[spread], capsize=5, zorder=3, **look | {"markersize": 8, "marker": "*"})


def _network_names(result: Discovery, names: Sequence[str]) -> dict[str, str]:
    """Labels of the network's own constants, by name, for those of `names` that it has."""
    present = {name for row in limit_rows(result) for name in row.network or ()}
    return {name: f"{plot_formula(name) or name} of the network" for name in names if name in present}


def _column(rows: Sequence[Numbers | None], name: str) -> Float[np.ndarray, " steps"]:
    return np.array([(row or {}).get(name) for row in rows], float)


def _choose_style(k: int) -> dict[str, Any]:
    return {"color": COLOURS[k % 7], "marker": MARKERS[k % 7], "markersize": 5, "linewidth": 1.2}
