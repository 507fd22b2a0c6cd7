"""Figures and tables of trained networks: constants, residuals, formulas, rates of recovery, and controls."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluxforge.paper.studies._higher_order_result import NetworkStep
from fluxforge.paper.studies._higher_order_result import Result as HigherOrder
from fluxforge.paper.studies._networks import ConstantsRow
from fluxforge.paper.studies._records import OUTCOMES, Tally
from fluxforge.paper.studies.controls import Result as Controls
from fluxforge.paper.studies.controls import Row as ControlRow
from fluxforge.paper.studies.rates import Result as Rates
from fluxforge.paper.studies.symbolic import Result as Symbolic
from fluxforge.report._page import COLOURS, MARKERS, panels, round_decimals
from fluxforge.report._tables import Table

WEIGHT_LABELS = {"c1": "c, first layer's flux", "a1": "a₁, first layer's source", "c2": "d, second layer's flux"}
# The trained network that is drawn with the direct minimisation for each θ.
TRAINED_NETWORKS = {"θ = 0": "two layers, θ = 0", "θ = 0.5": "midpoint", "θ = 1": "two layers, θ = 1"}
SCHEMES = {"euler": "Euler", "midpoint": "midpoint", "rk4": "RK4"}


def constants_figure(result: HigherOrder) -> Figure:
    """Constants c, a₁ and d against Fo for every θ, by direct minimisation (lines) and by training (open marks)."""
    figure, axes = panels(len(WEIGHT_LABELS))
    for panel, (name, title) in zip(axes, WEIGHT_LABELS.items(), strict=True):
        for k, (theta, direct) in enumerate(result.direct.items()):
            _draw_line(panel, direct.rows, name, label=f"{theta}, least residual", k=k)
            trained = result.networks.get(TRAINED_NETWORKS.get(theta, ""))
            if trained is not None:
                _draw_marks(panel, trained.by_step, name, label=f"{theta}, trained", k=k)
        panel.axhline(1.0 if name == "c2" else 0.5, color="black", linewidth=0.8, linestyle=":")
        _label(panel, title, xscale="log", xlabel="Δt / Fourier step", ylabel="constant")
    # In the last panel all lines tend to 1 at the left, so that there is room for the legend below.
    axes[-1].legend(fontsize=7, loc="lower left")
    return figure


def _label(panel: Axes, title: str, **axes: str) -> None:
    """Set the scales and labels of the axes, and the title."""
    panel.set(**axes)
    panel.set_title(title, fontsize=10)


def _draw_line(panel: Axes, rows: Sequence[ConstantsRow], name: str, *, label: str, k: int) -> None:
    xy = sorted((row.step, row.constants[name]) for row in rows)
    panel.plot(*zip(*xy, strict=True), color=COLOURS[k], label=label, linewidth=1.4)


def _draw_marks(panel: Axes, rows: Sequence[NetworkStep], name: str, *, label: str, k: int) -> None:
    xy = [(row.fourier, row.constants[name]) for row in rows if name in row.constants]
    if xy:
        x, y = zip(*xy, strict=True)
        panel.plot(x, y, MARKERS[k], color=COLOURS[k], fillstyle="none", label=label, markersize=5)


def four_layers_figure(result: HigherOrder) -> Figure:
    """Constants of four layers against Fo, one panel for the θ-residual and one for the residual of order four."""
    figure, axes = panels(len(result.direct_four))
    for panel, (name, direct) in zip(axes, result.direct_four.items(), strict=True):
        for k in range(1, 5):
            _draw_line(panel, direct.rows, f"c{k}", label=f"layer {k}", k=k - 1)
            panel.axhline(1.0 / (5 - k), color=COLOURS[k - 1], linewidth=0.8, linestyle=":")
            trained = result.networks.get(f"four layers, {name}")
            if trained is not None:
                _draw_marks(panel, trained.by_step, f"c{k}", label="", k=k - 1)
        panel.set_ylim(0.0, 1.1)
        title = f"{name} residual (dotted: RK4; marks: trained)"
        _label(panel, title, xscale="log", xlabel="Δt / Fourier step", ylabel="flux constant of a layer")
        _count_outside(panel)
    axes[0].legend(fontsize=7, loc="lower left")
    return figure


def _count_outside(panel: Axes) -> None:
    """Write the number of marks outside the axes: constants that a network does not determine can have any value."""
    low, high = panel.get_ylim()
    marks = np.concatenate([line.get_ydata() for line in panel.get_lines() if line.get_linestyle() == "None"] or [[]])
    outside = int(((marks < low) | (marks > high)).sum())
    if outside:
        note = f"{outside} of {len(marks)} marks lie outside"
        panel.text(0.98, 0.02, note, transform=panel.transAxes, ha="right", va="bottom", fontsize=7.5, color="0.3")


def residuals_figure(result: HigherOrder) -> Figure:
    """Mean |residual| on unseen meshes against Fo, one panel per network, with the explicit schemes."""
    names = [name for name in ("midpoint", "two-hop") if name in result.networks]
    figure, axes = panels(len(names))
    for panel, name in zip(axes, names, strict=True):
        rows = result.networks[name].by_step
        x = [row.fourier for row in rows]
        for k, (key, label) in enumerate({"network": "network", **SCHEMES}.items()):
            y = [getattr(row, key) for row in rows]
            panel.plot(x, y, f"{MARKERS[k]}-", color=COLOURS[k], label=label, markersize=4)
        _label(
            panel,
            f"{name} network",
            xscale="log",
            yscale="log",
            xlabel="Δt / Fourier step",
            ylabel="mean |residual|, θ = ½",
        )
        panel.set_xticks(x, [f"{step:g}" for step in x])
        panel.set_xticks([], minor=True)
    axes[0].legend(fontsize=8)
    return figure


def symbolic_figure(result: Symbolic) -> Figure:
    """Error against complexity of f_agg and f_up, as in the paper's figure, and losses of networks and formulas."""
    fronts = sorted(result.fronts.items(), key=lambda each: each[1].kind != "message")
    figure, axes = panels(len(fronts) + 1)
    for panel, (name, front) in zip(axes, fronts, strict=False):
        x, y = ([getattr(row, key) for row in front.rows] for key in ("complexity", "error"))
        panel.step(x, y, where="post", color=COLOURS[0], linewidth=1)
        panel.plot(x, y, "o", color=COLOURS[0], markersize=4)
        if isinstance(front.chosen, int):
            panel.plot(x[front.chosen], y[front.chosen], "o", color=COLOURS[1], markersize=9, label="chosen")
            panel.legend(fontsize=8)
        title = f"{'f_agg' if front.kind == 'message' else 'f_up'} ({name})"
        _label(panel, title, yscale="log", xlabel="complexity", ylabel="relative error")
    panel = axes[-1]
    for k, engine in enumerate(result.engines):
        numbered = enumerate(row for row in result.rows if row.engine == engine)
        # Networks without a formula leave a gap on the axis, so that places are the same for all engines.
        rows = [(place + 0.25 * k, row) for place, row in numbered if row.network_loss is not None]
        if not rows:
            continue
        for marker, key, label in ((MARKERS[0], "network_loss", "network"), (MARKERS[1], "formula_loss", "formula")):
            x, y = [place for place, _ in rows], [max(getattr(row, key) or 0.0, 1e-17) for _, row in rows]
            panel.plot(x, y, marker, color=COLOURS[2 * k + (key != "network_loss")], label=f"{label}, {engine}")
    title = f"{sum(row.recovered for row in result.rows)} of {len(result.rows)} recovered"
    _label(panel, title, yscale="log", xlabel="network (seeds, then other α)", ylabel="loss on fresh problems")
    if panel.lines:
        panel.legend(fontsize=8)
    return figure


def pinn_figure(result: Symbolic) -> Figure:
    """Flux and source constants against Δt per θ: of least residual, of a trained network, of an isolated pair."""
    names = {"c1": "flux constant c/α", "a1": "source constant"}
    figure, axes = panels(len(names))
    for panel, (name, title) in zip(axes, names.items(), strict=True):
        for k, (theta, study) in enumerate(result.against_step.items()):
            rows = sorted(study.rows, key=lambda row: row.step)
            steps = [row.step for row in rows]
            panel.plot(steps, [row.constants[name] for row in rows], color=COLOURS[k], label=f"{theta}, least residual")
            trained = [(row.step, row.network[name]) for row in rows if row.network]
            if trained:
                panel.plot(
                    *zip(*trained, strict=True),
                    MARKERS[k],
                    color=COLOURS[k],
                    fillstyle="none",
                    label=f"{theta}, trained",
                )
            if name == "c1":
                panel.plot(steps, [row.alone for row in rows], ":", color=COLOURS[k], linewidth=1)
        title += " (dotted: 1/(1 + 2θαΔt))" if name == "c1" else ""
        _label(
            panel, title, xscale="log", xlabel="Δt (mean cell volume 1)", ylabel="relative to the first-order scheme"
        )
    axes[0].legend(fontsize=7)
    return figure


# Colours of the outcomes, from recovered to refused.
OUTCOME_COLOURS = dict(zip(OUTCOMES, (COLOURS[2], COLOURS[4], COLOURS[6]), strict=True))


def rates_figure(result: Rates) -> Figure:
    """A bar per recipe of its seeds by verdict, and the share of the step that each seed's formula explains."""
    figure, (counts, explained) = panels(2)
    names = list(result.recipes)
    for k, name in enumerate(names):
        tally, left = result.recipes[name], 0
        for verdict, colour in OUTCOME_COLOURS.items():
            count = tally.verdicts.get(verdict, 0)
            counts.barh(k, count, left=left, color=colour, label=verdict if k == 0 else None)
            if count:
                counts.text(left + count / 2, k, str(count), ha="center", va="center", fontsize=8)
            left += count
        values = [row.explained for row in tally.rows if row.explained is not None]
        if values:
            explained.plot(values, [k] * len(values), "o", color=COLOURS[0], fillstyle="none", markersize=5)
    for panel in (counts, explained):
        panel.set_yticks(range(len(names)), names)
        panel.set_ylim(len(names) - 0.5, -0.5)
    _label(counts, "verdicts", xlabel="seeds")
    counts.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3, frameon=False)
    title = "a mark per seed" if explained.lines else "not recorded by these runs"
    _label(explained, title, xlabel="least part of the network's step that is explained")
    return figure


def rates_table(result: Rates) -> Table:
    """A table with one row per recipe: the expected verdict, the number of seeds by verdict, and medians over seeds."""
    rows = tuple(_format_tally(name, tally) for name, tally in result.recipes.items())
    columns = ("recipe", "expects", *OUTCOMES, "as expected", "explained, median [quartiles]", "seconds, median")
    return Table("Verdicts over the seeds of every recipe", columns, rows)


def _format_tally(name: str, tally: Tally) -> tuple[str, ...]:
    explained = tally.medians.get("explained")
    explained_text = "—" if explained is None else f"{explained.median:.4f} [{explained.q1:.4f}, {explained.q3:.4f}]"
    counts = (str(tally.verdicts.get(verdict, 0)) for verdict in OUTCOMES)
    seconds = "—" if tally.seconds is None else f"{tally.seconds.median:.0f}"
    return (name, tally.expected, *counts, f"{tally.rate.reached} of {tally.rate.of}", explained_text, seconds)


COLUMNS = ("decoy", "description", "verdict", "explained", "formula", "allowed", "outcome", "seconds")


def controls_table(result: Controls) -> Table:
    """A table with one row per decoy; numbers in formulas have four digits."""
    return Table(
        "Laws and networks that must not be recovered as the scheme", COLUMNS, tuple(map(_format_control, result.rows))
    )


def _format_control(row: ControlRow) -> tuple[str, ...]:
    explained = "—" if row.explained is None else f"{row.explained:.2%}"
    formulas = "; ".join(f"{name} = {text}" for name, text in {**row.messages, **row.outputs}.items())
    allowed, formula = " or ".join(row.allowed), round_decimals(formulas, 4) if formulas else "—"
    return (row.name, row.what, row.verdict, explained, formula, allowed, row.outcome, f"{row.seconds:.0f}")
