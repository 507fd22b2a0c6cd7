"""Figures of the grid studies: residuals, errors and cost over mesh size and time step, and memory."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import Normal, Stroke

from fluxforge.paper.studies._convergence_result import Result as Convergence
from fluxforge.paper.studies._convergence_result import Row
from fluxforge.paper.studies._measures import Limit, MeshFacts
from fluxforge.paper.studies.memory import BytesPerCell
from fluxforge.paper.studies.memory import Result as Memory
from fluxforge.paper.studies.memory import Row as MemoryRow
from fluxforge.report._page import COLOURS, MARKERS, panels

# Range of the colour scale of residuals.
LEAST, MOST = 1e-4, 1e1
COLUMNS = 4
OUTLINE = (Stroke(linewidth=3.2, foreground="white"), Normal())
THETAS = {"residual_half": "½", "residual_one": "1, as printed"}


def residual_map(result: Convergence) -> Figure:
    """Residual at θ = ½, one panel per scheme."""
    return _draw_map(result, "residual_half")


def printed_residual_map(result: Convergence) -> Figure:
    """Residual at θ = 1, as the paper prints it, one panel per scheme."""
    return _draw_map(result, "residual_one")


def _draw_map(result: Convergence, key: str) -> Figure:
    names = result.schemes
    # One panel more than there are schemes, for the legend.
    rows = -(-(len(names) + 1) // COLUMNS)
    figure = Figure(figsize=(3.4 * COLUMNS + 1.0, 3.0 * rows + 0.5), layout="constrained")
    axes = list(figure.subplots(rows, COLUMNS, squeeze=False, sharex=True, sharey=True).flat)
    for panel, name in zip(axes, names, strict=False):
        tiles = _draw_panel(panel, result, name, key)
        zero = name == "crank-nicolson" and key == "residual_half"
        panel.set_title(f"{name} (zero by definition)" if zero else name, fontsize=10)
    for k, panel in enumerate(axes[: len(names)]):
        panel.set_ylabel("Δt" if k % COLUMNS == 0 else "")
        panel.set_xlabel("cells" if k + COLUMNS >= len(names) else "")
        panel.tick_params(labelsize=8, labelbottom=k + COLUMNS >= len(names))
    for panel in axes[len(names) :]:
        panel.set_axis_off()
    axes[len(names)].legend(handles=_make_legend(), loc="center", fontsize=9, frameon=False, handlelength=2.6)
    bar = figure.colorbar(tiles, ax=axes, extend="both", shrink=0.8, pad=0.01)
    bar.set_label(f"mean |residual| of one step (θ = {THETAS[key]}) / mean |L T + S|")
    return figure


def _draw_panel(panel: Axes, result: Convergence, name: str, key: str) -> QuadMesh:
    """Draw one tile per mesh and Δt, coloured by the residual; Δt are multiples of the mesh's Fourier step."""
    meshes = result.meshes
    cells = np.array([mesh.cells for mesh in meshes], float)
    fourier = np.array([mesh.fourier for mesh in meshes])
    fractions = sorted({row.fourier for row in result.rows})
    rows = {(row.cells, row.fourier): row for row in result.rows if row.scheme == name}
    values = np.array([[_get_value(rows.get((int(n), f)), key) for n in cells] for f in fractions])
    across = _find_edges(cells)
    # Δt_Fourier at the edges of the tiles, interpolated between meshes as a power of the number of cells.
    at_edge = np.exp(np.interp(np.log(across), np.log(cells), np.log(fourier)))
    if len(cells) > 1:
        for end, a, b in ((0, 0, 1), (-1, -2, -1)):
            slope = np.log(fourier[b] / fourier[a]) / np.log(cells[b] / cells[a])
            at_edge[end] = fourier[end] * (across[end] / cells[end]) ** slope
    X, Y = (
        np.broadcast_to(across, (len(fractions) + 1, len(across))),
        np.outer(_find_edges(np.array(fractions)), at_edge),
    )
    visible = np.ma.masked_invalid(values)
    tiles = panel.pcolormesh(X, Y, visible, norm=LogNorm(LEAST, MOST), cmap="viridis", rasterized=True)
    _draw_lines(panel, meshes, name, (across, at_edge * _find_edges(np.array(fractions))[-1]))
    blow_ups = [(row.cells, row.dt) for row in rows.values() if row.blew_up]
    if blow_ups:
        panel.plot(*zip(*blow_ups, strict=True), "x", color="black", markersize=5, path_effects=list(OUTLINE))
    panel.set(xscale="log", yscale="log", facecolor="0.9")
    return tiles


def _get_value(row: Row | None, key: str) -> float:
    value = None if row is None else getattr(row, key)
    return np.nan if value is None else max(value, 1e-300)


def _find_edges(centres: np.ndarray) -> np.ndarray:
    """Edges of tiles on a logarithmic scale: half way between centres, and as far beyond the outer centres."""
    logs = np.log(centres)
    if len(logs) == 1:
        return np.exp(logs[0] + np.array([-0.5, 0.5]))
    middle = 0.5 * (logs[1:] + logs[:-1])
    return np.exp(np.concatenate([[2 * logs[0] - middle[0]], middle, [2 * logs[-1] - middle[-1]]]))


def _draw_lines(panel: Axes, meshes: Sequence[MeshFacts], name: str, top: tuple[np.ndarray, np.ndarray]) -> None:
    cells = [mesh.cells for mesh in meshes]
    panel.plot(cells, [mesh.fourier for mesh in meshes], "-", color="black", path_effects=list(OUTLINE))
    limits = [dt for mesh in meshes if (dt := mesh.limits.get(name, Limit()).dt) is not None]
    if len(limits) == len(meshes):
        panel.plot(cells, limits, "--", color="#D55E00", path_effects=list(OUTLINE))
    oscillation = [mesh.oscillation for mesh in meshes if mesh.oscillation is not None]
    if len(oscillation) == len(meshes):
        ceiling = np.exp(np.interp(np.log(cells), np.log(top[0]), np.log(top[1])))
        panel.fill_between(
            cells, oscillation, ceiling, facecolor="none", edgecolor="white", hatch="////", linewidth=0, alpha=0.55
        )


def _make_legend() -> list[Line2D | Patch]:
    return [
        Line2D([], [], color="black", label="Fourier condition"),
        Line2D([], [], color="#D55E00", linestyle="--", label="stability limit of the scheme"),
        Patch(facecolor="0.6", edgecolor="white", hatch="////", label="Δt > 2/λ_max: Crank–Nicolson\nmay oscillate"),
        Line2D([], [], color="black", marker="x", linestyle="", label="blew up by the end of the run"),
    ]


def errors_figure(result: Convergence) -> Figure:
    """Error in time against Δt, error relative to the equation against cells, error in time against seconds."""
    figure, (in_time, in_space, in_seconds) = panels(3)
    largest = max(row.wanted for row in result.rows)
    known = set().union(*(mesh.limits for mesh in result.meshes))
    for k, name in enumerate(result.schemes):
        # Networks may not be measured on the largest mesh; the largest one of each is shown instead.
        own = [row for row in result.rows if row.scheme == name]
        reached = max(row.wanted for row in own)
        last = [row for row in own if row.wanted == reached]
        fine = [row for row in last if row.error is not None and row.error < 10]
        note = "blows up in time" if not fine else "" if reached == largest else f"in time: {reached:,} cells"
        style = _choose_style(name, k, trained=name not in known) | {"label": f"{name} ({note})" if note else name}
        errors = [max(row.error or 0.0, 1e-16) for row in fine]
        in_time.loglog([row.fourier for row in fine], errors, **style)
        in_seconds.loglog([row.seconds for row in fine], errors, **style)
        rows = [row for row in result.space if row.scheme == name and row.error is not None]
        in_space.loglog([row.cells for row in rows], [row.error for row in rows], **style)
    _draw_guides(in_space)
    in_time.axvline(1.0, color="0.4", linewidth=1)
    in_time.set(
        xlabel=r"$\Delta t / \Delta t_{\mathrm{Fourier}}$", title=f"in time, {largest:,} cells (ends where it blows up)"
    )
    in_space.set(xlabel="cells", title=f"against the equation, t = {result.choices.until:g}")
    in_seconds.set(xlabel="seconds for the run", title=f"in time, {largest:,} cells")
    in_time.set_ylabel(f"relative L2 error after {result.choices.end:g} Fourier steps")
    in_space.set_ylabel("relative L2 error")
    for panel in (in_time, in_space, in_seconds):
        panel.title.set_fontsize(10)
    handles, labels = in_time.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 9), fontsize=8.5, frameon=False)
    return figure


def _choose_style(name: str, k: int, *, trained: bool) -> dict[str, Any]:
    """Schemes in colours, networks in black, printed schemes dotted; `two-hop` with open markers, to hide none."""
    if trained:
        return {"color": "black", "marker": "*p"[k % 2], "linestyle": "-.", "markersize": 6, "linewidth": 1}
    return {
        "color": COLOURS[k % len(COLOURS)],
        "marker": MARKERS[k % len(MARKERS)],
        "linestyle": ":" if name.endswith("printed") else "-",
        "markersize": 4 + 3 * (name == "two-hop"),
        "fillstyle": "none" if name == "two-hop" else "full",
    }


def _draw_guides(panel: Axes) -> None:
    """Draw slopes of order 1 and 2 in h, from above the left end of the curve with the least error."""
    x, y = max(
        (np.asarray(line.get_data()) for line in panel.get_lines()), key=lambda data: -data[1].min(initial=np.inf)
    )
    ends = np.array([x[0], x[-1]])
    low, _ = panel.get_ylim()
    for order, style in ((1, ":"), (2, "--")):
        slope = 1.6 * y[0] * (ends / ends[0]) ** (-order / 2)
        panel.plot(ends, slope, style, color="0.5", linewidth=1, scalex=False, scaley=False)
        # The label is at 60 % of the slope's length in the panel, on the logarithmic axes.
        at = ends[0] * min(ends[1] / ends[0], (slope[0] / max(slope[1], low)) ** (2 / order)) ** 0.6
        where = (at, 1.6 * y[0] * (at / ends[0]) ** (-order / 2))
        panel.annotate(
            f"order {order}",
            where,
            fontsize=7.5,
            color="0.3",
            xytext=(4, 2) if order == 1 else (-4, -2),
            textcoords="offset points",
            ha="left" if order == 1 else "right",
            va="bottom" if order == 1 else "top",
        )


MEGABYTE = 1e6
# Megabytes at which a scheme is drawn that needs no more memory than the process without a stepper.
FLOOR = 1e-2


def memory_figure(result: Memory) -> Figure:
    """Measured and counted megabytes against the number of cells, and bytes per cell of each scheme."""
    figure, (measured, counted, bars) = panels(3)
    names = list(result.bytes_per_cell)
    for k, name in enumerate(names):
        for at, fraction in enumerate(result.fractions):
            rows = [row for row in result.rows if row.scheme == name and row.fourier == fraction]
            _draw_curve(measured, rows, "stepping", k=k, label=None if at else name, filled=not at)
            if at == 0:
                _draw_curve(counted, rows, "counted", k=k, label=None, filled=True)
    for panel, title in ((measured, "measured while stepping (compiled code included)"), (counted, "counted")):
        panel.set(xlabel="cells", ylabel="megabytes", xscale="log", yscale="log")
        panel.set_title(title, fontsize=10)
    low = min(panel.get_ylim()[0] for panel in (measured, counted))
    high = max(panel.get_ylim()[1] for panel in (measured, counted))
    for panel in (measured, counted):
        panel.set_ylim(low, high)
    _draw_bars(bars, result.bytes_per_cell)
    handles, labels = measured.get_legend_handles_labels()
    steps = ", open: ".join(f"Δt = {fraction:g} Fourier steps" for fraction in result.fractions[:2])
    figure.suptitle(f"memory in addition to the mesh and JAX (filled: {steps})", fontsize=10)
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8), fontsize=8.5, frameon=False)
    return figure


def _draw_curve(panel: Axes, rows: Sequence[MemoryRow], key: str, *, k: int, label: str | None, filled: bool) -> None:
    values = np.maximum([getattr(row, key) / MEGABYTE for row in rows], FLOOR)
    panel.plot(
        [row.cells for row in rows],
        values,
        color=("#000000", *COLOURS)[k % (len(COLOURS) + 1)],
        marker=MARKERS[k % len(MARKERS)],
        markersize=4 if filled else 7,
        fillstyle="full" if filled else "none",
        linestyle="-" if filled else "none",
        label=label,
    )


def _draw_bars(panel: Axes, fits: Mapping[str, BytesPerCell]) -> None:
    names = list(fits)
    place = np.arange(len(names))
    for shift, key, colour, label in (
        (-0.2, "stepping", "#0072B2", "measured while stepping"),
        (0.2, "counted", "#E69F00", "counted"),
    ):
        values = [max(getattr(fits[name], key) or 0.0, 1.0) for name in names]
        panel.barh(place + shift, values, height=0.38, color=colour, label=label)
        for at, value in zip(place, values, strict=True):
            panel.annotate(f" {value:.0f}", (value, at + shift), va="center", fontsize=7)
    panel.set_yticks(place, names, fontsize=8)
    panel.set(xscale="log", xlabel="bytes per cell (slope over mesh sizes)")
    panel.margins(x=0.15)
    panel.invert_yaxis()
    panel.legend(fontsize=7.5, loc="upper right")
