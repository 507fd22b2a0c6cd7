"""Figure of the fields of `fluxforge bench limiter` on triangles."""

from typing import TYPE_CHECKING

import numpy as np

from fluxforge.bench._limiter_triangles import Picture, TriangleBench
from fluxforge.mesh import draw_field

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Corner = tuple[float, ...]
SHOWN_LIMITERS = (
    "exact",
    "barth-jespersen-ssp2",
    "venkatakrishnan-ssp2",
    "cfl-superbee",
    "discovered-jump",
    "discovered-downwind",
)

# Margin of the panels around the tracer, in units of the side of the unit square.
_MARGIN = 0.06


def triangle_figure(measured: TriangleBench) -> "Figure":
    """The last fields, one row per problem: the exact one and those of several schemes, on one colour scale per row."""
    from matplotlib.figure import Figure

    rows, columns = len(measured.pictures), len(SHOWN_LIMITERS)
    figure = Figure(figsize=(2.5 * columns, 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for line, picture in zip(axes, measured.pictures, strict=True):
        low, high = _frame(picture)
        exact = picture.fields["exact"]
        limits = {"vmin": float(exact.min()), "vmax": float(exact.max())}
        for panel, name in zip(line, SHOWN_LIMITERS, strict=True):
            patches = draw_field(panel, picture.mesh, picture.fields[name], colours="inferno", edges=False, **limits)
            panel.set(xticks=[], yticks=[], xlabel="", ylabel="", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
            panel.spines[:].set_visible(False)
            panel.set_title(name, fontsize=9)
        line[0].set_ylabel(picture.problem, fontsize=9, rotation="vertical", labelpad=6)
        figure.colorbar(patches, ax=list(line), shrink=0.85, pad=0.01)
    return figure


def _frame(picture: Picture) -> tuple[Corner, Corner]:
    """The lower left and the upper right corner of a square around the tracer."""
    exact = picture.fields["exact"]
    points = picture.mesh.points[picture.mesh.cells[exact > exact.min() + 1e-3]].reshape(-1, 2)
    middle, reach = (points.max(axis=0) + points.min(axis=0)) / 2, np.ptp(points, axis=0).max() / 2 + _MARGIN
    return tuple(middle - reach), tuple(middle + reach)
