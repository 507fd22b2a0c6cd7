"""Figures of the paper's set-up: the training graph, sample meshes, message passing and the two-hop neighbourhood."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.patheffects import Normal, Stroke

from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._picture import draw_field
from fluxforge.paper.studies._setup_meshes import Patch
from fluxforge.paper.studies.setup import Result, TwoCells

# The paper's colours by distance in hops: purple for the cell itself, pink for 1, green for 2, grey beyond.
CENTRE, ONE, TWO, REST = "#5B2A9D", "#CC79A7", "#009E73", "#B0B0B0"
HOPS = (CENTRE, ONE, TWO, REST)
ORANGE = "#D55E00"
OUTLINE = (Stroke(linewidth=3, foreground="white"), Normal())


def training_data_figure(result: Result) -> Figure:
    """Three panels: the two-cell mesh with its geometry, its dual graph before a step, and after it."""
    pair = result.two_cells
    example = pair.example
    figure = Figure(figsize=(9.8, 3.4), layout="constrained")
    mesh, before, after = figure.subplots(1, 3)
    shades = ScalarMappable(Normalize(-1.0, 1.0), "viridis")
    _draw_two_triangles(mesh, pair)
    edge = f"A = {pair.A:.4g}\nδ = {pair.delta:.4g}"
    nodes = [f"T = {T:.3f}\nS = {S:.3f}" for T, S in zip(example.T, example.S, strict=True)]
    _draw_two_nodes(before, example.T, nodes, edge=edge, shades=shades)
    before.set_title("its dual graph: the input", fontsize=10)
    _draw_two_nodes(after, example.after, [f"T′ = {T:.3f}" for T in example.after], edge="", shades=shades)
    after.set_title(f"after one step, Δt = {example.dt:g}: the target", fontsize=10)
    after.text(0, -1.3, r"$T' = T + \alpha\,\Delta t\,(T_N - T) + \Delta t\,S$", ha="center", fontsize=10)
    before.text(0, -1.3, f"V = {pair.V[0]:.4g} at both nodes", ha="center", fontsize=10)
    figure.colorbar(shades, ax=[mesh, before, after], label="T", shrink=0.6, pad=0.01)
    return figure


def _draw_two_triangles(panel: Axes, pair: TwoCells) -> None:
    """Draw the two-cell mesh with V, the area A of the shared face, and δ between the centroids."""
    points, x = np.array(pair.points), np.array(pair.centroids)
    _clear_axes(panel)
    panel.add_collection(PolyCollection(points[np.array(pair.cells)], facecolors="#E8EEF4", edgecolors="black"))
    shared = points[np.intersect1d(np.array(pair.cells[0]), np.array(pair.cells[1]))]
    panel.plot(*shared.T, color=ORANGE, linewidth=3)
    panel.plot(*x.T, "o-", color=CENTRE, linewidth=1.5, markersize=6)
    for place, V in zip(x, pair.V, strict=True):
        panel.text(1.12 * place[0], 0.14, f"V = {V:.4g}", ha="center", fontsize=9.5)
    panel.text(shared[0, 0], shared[:, 1].max() + 0.1, f"A = {pair.A:.4g}", ha="center", fontsize=10, color=ORANGE)
    below: dict[str, Any] = {"ha": "center", "fontsize": 10, "color": CENTRE, "path_effects": list(OUTLINE)}
    panel.text(x[:, 0].mean(), -0.32, f"δ = {pair.delta:.4g}", **below)
    panel.text(0, -1.3, f"A/(δ V) = {pair.ratio[0]:.4g}", ha="center", fontsize=10)
    panel.set(xlim=(-2.05, 2.05), ylim=(-1.5, 1.5))
    panel.set_title("two cells, sides of length 2", fontsize=10)


def _draw_two_nodes(
    panel: Axes, values: Sequence[float], words: list[str], *, edge: str, shades: ScalarMappable
) -> None:
    """Draw two nodes coloured by temperature, with their features and those of the edge between them."""
    _clear_axes(panel)
    panel.plot([-1.3, 1.3], [0, 0], color="black", linewidth=1.8, zorder=1)
    for x, colour, text in zip((-1.3, 1.3), shades.to_rgba(np.array(values)), words, strict=True):
        panel.add_patch(Circle((x, 0), 0.68, facecolor=colour, edgecolor="black", zorder=2))
        light = float(np.dot(colour[:3], (0.299, 0.587, 0.114))) > 0.5
        panel.text(x, 0, text, ha="center", va="center", fontsize=9.5, color="black" if light else "white")
    panel.text(0, 0.1, edge, ha="center", va="bottom", fontsize=9.5)
    panel.set(xlim=(-2.05, 2.05), ylim=(-1.5, 1.5))


def sample_meshes_figure(result: Result) -> Figure:
    """A regular and an irregular mesh, coloured by the size of their cells on one scale."""
    figure = Figure(figsize=(9.2, 5.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for panel, kind in zip(axes, ("regular", "irregular"), strict=True):
        one = result.samples[kind]
        mesh = Mesh(np.array(one.points), np.array(one.cells))
        patches = draw_field(panel, mesh, np.array(one.size), edges=True, vmin=0.0, vmax=1.0)
        spread = one.spread
        panel.set_title(
            f"{kind}: {len(one.cells)} cells\nσ/mean of V {spread.V:.2f}, A {spread.A:.2f}, δ {spread.delta:.2f}",
            fontsize=11,
        )
    bar = figure.colorbar(patches, ax=list(axes), orientation="horizontal", shrink=0.5, aspect=40, ticks=[0, 0.5, 1])
    bar.set_label("determinant of a cell (2 V) / largest on the irregular mesh", fontsize=10)
    return figure


def message_passing_figure(result: Result) -> Figure:
    """Left: the update of an edge and that of a node; right: the cells on which a cell depends after one step."""
    patch = result.patches["triangles"]
    figure = Figure(figsize=(9.6, 5.9))
    figure.set_layout_engine("constrained", h_pad=0.12)
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.5))
    edge, node = (figure.add_subplot(grid[k, 0]) for k in range(2))
    flow = figure.add_subplot(grid[:, 1])
    x = np.array(patch.centroids)
    near = [k for k, hop in enumerate(patch.hop) if hop == 1]
    _draw_edge_update(edge, patch, x, near[0])
    _draw_node_update(node, patch, x, near)
    _draw_cells(flow, patch, reach=1)
    for a, b in patch.edges:
        flow.plot(*x[[a, b]].T, color="0.6", linewidth=0.8, zorder=2)
    for k in near:
        _draw_arrow(flow, x[k], x[0], colour=ONE)
    _draw_nodes(flow, patch, names={0: "P"} | dict.fromkeys(near, "N"), reach=1)
    _set_frame(flow, x[np.array(patch.hop) <= 2], 0.22)
    flow.set_title("after one step: P depends on its neighbours N only", fontsize=10.5)
    return figure


def _draw_edge_update(panel: Axes, patch: Patch, x: np.ndarray, sender: int) -> None:
    _draw_cells(panel, patch, shown=(0, sender))
    middle = 0.5 * (x[0] + x[sender])
    panel.plot(*x[[0, sender]].T, color="black", linewidth=2.5, zorder=2)
    for end in (0, sender):
        _draw_arrow(panel, x[end], middle, colour=ORANGE, bend=0.6, short=(10, 3))
    _write_beside(panel, middle, x[sender] - x[0], "$e_k'$")
    _draw_nodes(panel, patch, names={0: "$v_r$", sender: "$v_s$"}, shown=(0, sender))
    _set_frame(panel, np.array(patch.points)[np.ravel([patch.cells[k] for k in (0, sender)])], 0.1)
    panel.set_title("1. each edge from itself and its two nodes", fontsize=10.5)
    panel.set_xlabel(r"$e_k' = f^{\,\mathrm{agg}}(e_k,\ v_r,\ v_s)$", fontsize=11.5)


def _draw_node_update(panel: Axes, patch: Patch, x: np.ndarray, near: list[int]) -> None:
    _draw_cells(panel, patch, shown=(0, *near))
    for number, k in enumerate(near):
        _draw_arrow(panel, x[k], x[0], colour=ORANGE)
        _write_beside(panel, 0.5 * (x[0] + x[k]), x[k] - x[0], f"$e_{number + 1}'$")
    _draw_nodes(panel, patch, names={0: "$v_r$"}, shown=(0, *near))
    _set_frame(panel, np.array(patch.points)[np.ravel([patch.cells[k] for k in (0, *near)])], 0.1)
    panel.set_title("2. each node from itself and its incoming edges", fontsize=10.5)
    panel.set_xlabel(r"$v_r' = f^{\,\mathrm{up}}(v_r,\ \sum_k e_k')$", fontsize=11.5)


def _write_beside(panel: Axes, place: np.ndarray, along: np.ndarray, text: str) -> None:
    """Write a label beside a place, on the right-hand side of a line in the direction `along`."""
    across = np.array([along[1], -along[0]]) / np.hypot(*along)
    panel.annotate(
        text,
        tuple(place),
        xytext=tuple(15 * across),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=12,
        path_effects=list(OUTLINE),
        zorder=6,
    )


def two_hop_figure(result: Result) -> Figure:
    """The cells within two hops of a cell and the paths to them: one panel for triangles, one for squares."""
    figure = Figure(figsize=(9.4, 5.6), layout="constrained")
    axes = figure.subplots(1, 2)
    for panel, (kind, patch) in zip(axes, result.patches.items(), strict=True):
        _draw_two_hops(panel, patch)
        panel.set_title(
            f"{kind}: {len(patch.paths)} paths P → N → Q, {patch.returning} of them return to P;\n"
            f"{patch.two_hop} cells two hops away, {patch.reached_twice} reached by more than one path",
            fontsize=10,
        )
    marks = [
        Line2D([], [], marker="o", linestyle="", color=CENTRE, markersize=10, label="P, the cell itself"),
        Line2D([], [], marker="o", linestyle="", color=ONE, markersize=10, label="N, one hop away"),
        Line2D([], [], marker="o", linestyle="", color=TWO, markersize=10, label="Q, two hops away (×2: two paths)"),
        Line2D([], [], linestyle="--", color=CENTRE, linewidth=1.8, label="a path that returns to P"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=4, fontsize=9.5, frameon=False)
    return figure


def _draw_two_hops(panel: Axes, patch: Patch) -> None:
    x, hop = np.array(patch.centroids), patch.hop
    _draw_cells(panel, patch)
    for middle, end in patch.paths:
        if end != 0:
            _draw_arrow(panel, x[end], x[middle], colour=TWO)
    for k in [k for k, far in enumerate(hop) if far == 1]:
        _draw_arrow(panel, x[k], x[0], colour=ONE)
    returned = next(middle for middle, end in patch.paths if end == 0)
    for start, end in ((0, returned), (returned, 0)):
        _draw_arrow(panel, x[start], x[end], colour=CENTRE, bend=0.55, dashed=True)
    ends = [end for _, end in patch.paths]
    names = {0: "P"} | {k: "N" for k, far in enumerate(hop) if far == 1}
    names |= {k: "Q" if ends.count(k) == 1 else f"×{ends.count(k)}" for k, far in enumerate(hop) if far == 2}
    _draw_nodes(panel, patch, names=names)
    _set_frame(panel, x[np.array(hop) <= 2], 0.18)


def _clear_axes(panel: Axes) -> None:
    panel.set_aspect("equal")
    panel.set_xticks([])
    panel.set_yticks([])
    for side in panel.spines.values():
        side.set_visible(False)


def _draw_cells(panel: Axes, patch: Patch, *, shown: Sequence[int] | None = None, reach: int = 2) -> None:
    """Draw cells (all, or those `shown`), coloured by their distance in hops, white beyond `reach` hops."""
    _clear_axes(panel)
    points = np.array(patch.points)
    chosen = range(len(patch.cells)) if shown is None else shown
    tints = [_mix_with_white(HOPS[patch.hop[k]], 0.22 if patch.hop[k] <= reach else 0.0) for k in chosen]
    corners = [points[patch.cells[k]] for k in chosen]
    panel.add_collection(PolyCollection(corners, facecolors=tints, edgecolors="0.55", linewidths=0.8, zorder=1))


def _mix_with_white(colour: str, share: float) -> tuple[float, float, float]:
    red, green, blue = (1 - share * (1 - int(colour[k : k + 2], 16) / 255) for k in (1, 3, 5))
    return red, green, blue


def _draw_nodes(
    panel: Axes,
    patch: Patch,
    *,
    names: Mapping[int, str],
    shown: Sequence[int] | None = None,
    reach: int = 2,
) -> None:
    """Draw centroids, coloured by distance in hops, grey beyond `reach`; those in `names` are larger and labelled."""
    for k in range(len(patch.cells)) if shown is None else shown:
        near = patch.hop[k] <= reach
        place, colour = patch.centroids[k], HOPS[patch.hop[k]] if near else REST
        size = 17 if k in names else 10 if near else 5
        panel.plot(*place, "o", color=colour, markersize=size, markeredgecolor="white", zorder=4)
        words: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "fontsize": 9, "weight": "bold"}
        panel.text(place[0], place[1], names.get(k, ""), zorder=5, clip_on=True, **words)


def _draw_arrow(
    panel: Axes,
    start: np.ndarray,
    end: np.ndarray,
    *,
    colour: str,
    bend: float = 0.0,
    dashed: bool = False,
    short: tuple[float, float] = (10, 10),
) -> None:
    panel.add_patch(
        FancyArrowPatch(
            tuple(start),
            tuple(end),
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            mutation_scale=13,
            linestyle="--" if dashed else "-",
            linewidth=1.8,
            color=colour,
            shrinkA=short[0],
            shrinkB=short[1],
            zorder=3,
        )
    )


def _set_frame(panel: Axes, x: np.ndarray, margin: float) -> None:
    """Set the limits of the axes to a square around the points x, with a margin relative to their larger extent."""
    low, high = x.min(axis=0), x.max(axis=0)
    middle, around = 0.5 * (low + high), (0.5 + margin) * (high - low).max()
    panel.set(xlim=(middle[0] - around, middle[0] + around), ylim=(middle[1] - around, middle[1] + around))
