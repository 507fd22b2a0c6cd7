"""Work–precision diagrams of `fluxforge bench time`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fluxforge.bench._time_rows import TimeRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAMILIES = {
    "midpoint": "midpoint, substeps",
    "rk4": "RK4, substeps",
    "rkl2": "RKL2",
    "rkc2": "RKC2",
    "optimal": "longest interval, order 2",
    "minimax": "nearest polynomial 1 + z + …",
    "fitted": "constants fitted elsewhere",
    "chebyshev": "Chebyshev series",
    "krylov": "Krylov",
    "oracle": "constants, the answer known",
    "crank-nicolson": "Crank–Nicolson, AMG",
    "tr-bdf2": "TR-BDF2, AMG",
}
_LEAST = 1e-10


def work_precision_figure(rows: Sequence[TimeRow], *, fourier: float, against: str = "applications") -> "Figure":
    """Error of one step of `fourier` Fourier steps against applications, or against `seconds`: a panel per mesh, field.

    Steps with local coefficients are filled stars, a line per formula or network.
    """
    from fluxforge.report._page import panels

    rows = [row for row in rows if row.fourier == fourier and row.error is not None]
    keys = list(dict.fromkeys((row.mesh, row.field) for row in rows))
    figure, axes = panels(len(keys), columns=2)
    for panel, key in zip(axes, keys, strict=True):
        _draw(panel, [row for row in rows if (row.mesh, row.field) == key], against)
        panel.set(
            xlabel="operator applications" if against == "applications" else "seconds",
            ylabel="error of one step / its change",
            title=f"{key[0]} mesh, {key[1]}, {fourier:g} Fourier steps",
        )
        panel.set_ylim(bottom=_LEAST)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _draw(panel: "Axes", rows: Sequence[TimeRow], against: str) -> None:
    from matplotlib import colormaps

    colours = colormaps["tab20"].colors  # type: ignore[attr-defined]
    for k, (family, words) in enumerate(FAMILIES.items()):
        if points := [(getattr(row, against), row.error) for row in rows if row.family == family]:
            points.sort()
            panel.loglog(*zip(*points, strict=True), color=colours[k], marker="o", ms=3, lw=0.9, label=words)
    local = [row for row in rows if row.family == "local"]
    shades = colormaps["Dark2"].colors  # type: ignore[attr-defined]
    for k, name in enumerate(dict.fromkeys(row.method for row in local)):
        points = [(getattr(row, against), row.error) for row in local if row.method == name]
        points.sort()
        colour = shades[k % len(shades)]
        panel.loglog(*zip(*points, strict=True), color=colour, marker="*", ms=10, lw=1.4, label=name)
