"""Figures of fields on a mesh: one field, or several with their differences."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import ScalarFormatter

from fluxforge._types import CellField
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._picture import BAR, draw_field

COLOURS = "inferno"
DIFFERENCES = "RdBu_r"


class _Panel(NamedTuple):
    """A field to draw: its title, values, the label of its colour bar, its colours and their limits."""

    title: str
    values: CellField
    label: str
    colours: str
    low: float
    high: float

    def draw(self, axes: Axes, mesh: Mesh) -> None:
        """Draw the field with its colour bar and title."""
        draw_with_bar(axes, mesh, self.values, label=self.label, colours=self.colours, vmin=self.low, vmax=self.high)
        axes.set_title(self.title, fontsize=10, parse_math=False)


def field_figure(mesh: Mesh, values: CellField, *, unknown: str, title: str) -> Figure:
    """One field with its colour bar; `unknown` is what the bar measures."""
    figure = Figure(figsize=(6, 5.2), layout="constrained")
    axes = figure.add_subplot()
    draw_with_bar(axes, mesh, values, label=unknown)
    axes.set_title(title, fontsize=11)
    return figure


def comparison_figure(
    mesh: Mesh,
    fields: Mapping[str, CellField],
    differences: Sequence[tuple[str, str]],
    *,
    unknown: str = "T",
    titles: Sequence[str] = (),
) -> Figure:
    """Fields on one colour scale, then differences of pairs of them by name, each on its own scale around zero.

    Two fields and their difference share a row; with more fields, the differences have a second row. `titles` are the
    titles of all panels, by default the names.
    """
    figure, axes = _grid(len(fields), len(differences))
    for panel, drawn in zip(axes, _comparison_panels(fields, differences, unknown, titles), strict=True):
        drawn.draw(panel, mesh)
        place = panel.get_subplotspec()
        if place is not None and place.colspan.start >= 2:
            panel.set_ylabel("")  # it would overlap the label of the colour bar on the left
    return figure


def comparison_figures(
    mesh: Mesh, fields: Mapping[str, CellField], differences: Sequence[tuple[str, str]], *, unknown: str = "T"
) -> dict[str, Figure]:
    """The panels of `comparison_figure`, each a figure of its own, by title: a page arranges them by its width."""
    figures = {}
    for drawn in _comparison_panels(fields, differences, unknown, ()):
        figures[drawn.title] = figure = Figure(figsize=(4.4, 3.8))
        # Fixed, so that plots are of one size whatever their labels are.
        drawn.draw(figure.add_axes((0.13, 0.12, 0.66, 0.78)), mesh)
    return figures


def _comparison_panels(
    fields: Mapping[str, CellField], differences: Sequence[tuple[str, str]], unknown: str, titles: Sequence[str]
) -> list[_Panel]:
    names = iter(titles or [*fields, *(f"{one} − {other}" for one, other in differences)])
    finite = np.concatenate([values[np.isfinite(values)] for values in fields.values()])
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    panels = [_Panel(next(names), values, unknown, COLOURS, low, high) for values in fields.values()]
    for one, other in differences:
        with np.errstate(all="ignore"):
            apart = fields[one] - fields[other]
        sizes = np.abs(apart[np.isfinite(apart)])
        largest = float(sizes.max()) if len(sizes) and sizes.max() > 0 else 1.0
        panels.append(_Panel(next(names), apart, "", DIFFERENCES, -largest, largest))
    return panels


def _grid(above: int, below: int) -> tuple[Figure, list[Axes]]:
    """Panels in one row if there are at most three, otherwise in two rows, the shorter one centred."""
    rows = [above + below] if above + below <= 3 else [above, below]
    rows = [count for count in rows if count]
    columns = max(rows)
    # Room for the labels of colour bars, which constrained layout leaves out of account.
    figure = Figure(figsize=(4.4 * columns, 3.9 * len(rows)), layout=ConstrainedLayoutEngine(w_pad=0.15))
    grid = figure.add_gridspec(len(rows), 2 * columns)
    places = [(row, 2 * k + columns - count) for row, count in enumerate(rows) for k in range(count)]
    return figure, [figure.add_subplot(grid[row, at : at + 2]) for row, at in places]


def draw_with_bar(
    axes: Axes, mesh: Mesh, values: CellField, *, label: str, colours: str = COLOURS, **limits: Any
) -> PolyCollection:
    """A field with a colour bar as high as the plot, whose numbers have a common power of ten if they are small."""
    patches = draw_field(axes, mesh, values, colours=colours, edges=False, **limits)
    numbers = ScalarFormatter(useMathText=True)
    numbers.set_powerlimits((-3, 4))
    bar = axes.figure.colorbar(patches, cax=axes.inset_axes(BAR), label=label, format=numbers)
    if len(label) == 1:
        # A turned u looks like an n.
        bar.ax.yaxis.label.set(rotation=0, va="center")
    return patches
