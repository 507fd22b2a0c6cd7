"""Pictures of a run: the last field, several fields with their differences, and the whole run as an animation."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import ScalarFormatter

from fluxforge._files import atomic_path
from fluxforge._types import CellField
from fluxforge.mesh import Mesh, draw_field, save_figure
from fluxforge.stepping._compare import Comparison
from fluxforge.stepping._run import Simulation

COLOURS = "inferno"
DIFFERENCES = "RdBu_r"
# The colour bar beside a plot, in shares of the plot: its left edge, bottom, width and height.
BAR = (1.04, 0.0, 0.05, 1.0)


def field_picture(simulation: Simulation, path: str | os.PathLike[str]) -> None:
    """Draw the last saved field to a file."""
    figure = Figure(figsize=(6, 5.2), layout="constrained")
    axes = figure.add_subplot()
    _draw(axes, simulation.mesh, simulation.fields[-1], label=simulation.words.unknown)
    axes.set_title(_caption(simulation, -1), fontsize=11)
    save_figure(figure, path)


def side_by_side(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Draw the last field of each scheme, and of all but the first its difference from the first, to a file."""
    first, *others = runs = comparison.simulations
    titles = [_caption(run, -1) for run in runs]
    figure = comparison_figure(
        first.mesh,
        {f"{k}": run.fields[-1] for k, run in enumerate(runs)},
        [(f"{k}", "0") for k in range(1, len(runs))],
        titles=titles + [f"{run.scheme} − {first.scheme}" for run in others],
        unknown=first.words.unknown,
    )
    save_figure(figure, path, dpi=120)


def comparison_figure(
    mesh: Mesh,
    fields: Mapping[str, CellField],
    differences: Sequence[tuple[str, str]],
    *,
    unknown: str = "T",
    titles: Sequence[str] = (),
) -> Figure:
    """Fields on one colour scale, then differences of pairs of them by name, each on its own scale around zero.

    Two fields and their difference share a row; of more, the differences have a second row. `titles` are those of all
    panels, the names unless given.
    """
    names = titles or [*fields, *(f"{one} − {other}" for one, other in differences)]
    figure, axes = _grid(len(fields), len(differences))
    finite = np.concatenate([values[np.isfinite(values)] for values in fields.values()])
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    for panel, values in zip(axes, fields.values(), strict=False):
        _draw(panel, mesh, values, label=unknown, vmin=low, vmax=high)
    for panel, (one, other) in zip(axes[len(fields) :], differences, strict=True):
        with np.errstate(all="ignore"):
            apart = fields[one] - fields[other]
        sizes = np.abs(apart[np.isfinite(apart)])
        largest = float(sizes.max()) if len(sizes) and sizes.max() > 0 else 1.0
        _draw(panel, mesh, apart, label="", colours=DIFFERENCES, vmin=-largest, vmax=largest)
    for panel, name in zip(axes, names, strict=True):
        panel.set_title(name, fontsize=10, parse_math=False)
        place = panel.get_subplotspec()
        if place is not None and place.colspan.start >= 2:
            panel.set_ylabel("")  # it would meet the label of the colour bar on the left
    return figure


def animation(simulation: Simulation, path: str | os.PathLike[str]) -> None:
    """Write all saved fields as an animated GIF, on one colour scale."""
    figure = Figure(figsize=(5.4, 4.6), layout="constrained")
    axes = figure.add_subplot()
    fields = simulation.fields
    low, high = float(fields.min()), float(fields.max())
    patches = _draw(axes, simulation.mesh, fields[0], label=simulation.words.unknown, vmin=low, vmax=high)
    title = axes.set_title(_caption(simulation, 0), fontsize=11)

    def show(frame: int) -> list[Artist]:
        patches.set_array(fields[frame])
        title.set_text(_caption(simulation, frame))
        return [patches, title]

    with atomic_path(path) as temporary:
        FuncAnimation(figure, show, frames=len(fields), blit=False).save(temporary, PillowWriter(fps=8), dpi=90)


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


def _draw(
    axes: Axes, mesh: Mesh, values: CellField, *, label: str, colours: str = COLOURS, **limits: Any
) -> PolyCollection:
    """A field with a colour bar as high as the plot, whose numbers have a common power of ten if they are small."""
    patches = draw_field(axes, mesh, values, colours=colours, edges=False, **limits)
    numbers = ScalarFormatter(useMathText=True)
    numbers.set_powerlimits((-3, 4))
    axes.figure.colorbar(patches, cax=axes.inset_axes(BAR), label=label, format=numbers)
    return patches


def _caption(simulation: Simulation, frame: int) -> str:
    return f"{simulation.scheme}, t = {simulation.times[frame]:.4g}"
