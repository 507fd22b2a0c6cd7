"""Empty panels in the look of every figure of ours."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7f7f7f")
MARKERS = "osD^vPX"


def panels(count: int, *, columns: int | None = None) -> tuple[Figure, tuple[Axes, ...]]:
    """So many panels, in rows of so many columns: by default one row."""
    columns = count if columns is None else min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(4.6 * columns + 0.4, 3.7 * rows), layout="constrained")
    axes = tuple(figure.subplots(rows, columns, squeeze=False).flat)
    for panel in axes[count:]:
        panel.remove()
    for panel in axes[:count]:
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
    return figure, axes[:count]
