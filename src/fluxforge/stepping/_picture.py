"""Pictures of a run: the last field, several side by side, and the whole of it moving."""

import os

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from fluxforge._files import atomic_path
from fluxforge.mesh import draw_field, save_figure
from fluxforge.stepping._compare import Comparison
from fluxforge.stepping._run import Simulation

COLOURS = "inferno"


def field_picture(simulation: Simulation, path: str | os.PathLike[str]) -> None:
    """The last saved field."""
    figure = Figure(figsize=(6, 5.2), layout="constrained")
    axes = figure.add_subplot()
    patches = draw_field(axes, simulation.mesh, simulation.fields[-1], colours=COLOURS)
    figure.colorbar(patches, ax=axes, label="T", shrink=0.85)
    axes.set_title(_caption(simulation, -1), fontsize=11)
    save_figure(figure, path)


def side_by_side(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """The last field of each scheme above, and below its difference from the first scheme."""
    runs = comparison.simulations
    figure = Figure(figsize=(1.2 + 3.6 * len(runs), 7.2), layout="constrained")
    grid = figure.subplots(2, len(runs), squeeze=False)
    shown = [run.fields[-1] for run in runs]
    low, high = min(T.min() for T in shown), max(T.max() for T in shown)
    apart = [T - shown[0] for T in shown]
    largest = max(float(np.abs(d).max()) for d in apart) or 1.0
    for column, run in enumerate(runs):
        above = draw_field(grid[0, column], run.mesh, shown[column], colours=COLOURS, vmin=low, vmax=high)
        below = draw_field(grid[1, column], run.mesh, apart[column], colours="RdBu_r", vmin=-largest, vmax=largest)
        grid[0, column].set_title(_caption(run, -1), fontsize=10)
        grid[1, column].set_title(f"minus {runs[0].scheme}", fontsize=10)
    figure.colorbar(above, ax=grid[0].tolist(), label="T", shrink=0.8)
    figure.colorbar(below, ax=grid[1].tolist(), label="difference", shrink=0.8)
    save_figure(figure, path, dpi=120)


def animation(simulation: Simulation, path: str | os.PathLike[str]) -> None:
    """All saved fields as an animated GIF, on one colour scale."""
    figure = Figure(figsize=(5.4, 4.6), layout="constrained")
    axes = figure.add_subplot()
    fields = simulation.fields
    patches = draw_field(
        axes, simulation.mesh, fields[0], colours=COLOURS, vmin=float(fields.min()), vmax=float(fields.max())
    )
    figure.colorbar(patches, ax=axes, label="T", shrink=0.85)
    title = axes.set_title(_caption(simulation, 0), fontsize=11)

    def show(frame: int) -> list[Artist]:
        patches.set_array(fields[frame])
        title.set_text(_caption(simulation, frame))
        return [patches, title]

    with atomic_path(path) as temporary:
        FuncAnimation(figure, show, frames=len(fields), blit=False).save(temporary, PillowWriter(fps=8), dpi=90)


def _caption(simulation: Simulation, frame: int) -> str:
    return f"{simulation.scheme}, t = {simulation.times[frame]:.4g}"
