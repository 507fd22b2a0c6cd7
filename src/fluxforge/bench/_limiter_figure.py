"""Fields of `fluxforge bench limiter` on triangles, side by side."""

from typing import TYPE_CHECKING

from fluxforge.bench._limiter_triangles import TriangleBench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = (
    "exact",
    "barth-jespersen-ssp2",
    "venkatakrishnan-ssp2",
    "van-leer",
    "cfl-superbee",
    "discovered-ramp",
)


def triangle_figure(measured: TriangleBench) -> "Figure":
    """The fields at the end: a row per problem, the exact one and a choice of schemes, on one scale per row."""
    from matplotlib.figure import Figure

    from fluxforge.mesh import draw_field

    rows, columns = len(measured.pictures), len(SHOWN)
    figure = Figure(figsize=(2.6 * columns, 2.75 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for line, picture in zip(axes, measured.pictures, strict=True):
        exact = picture.fields["exact"]
        for panel, name in zip(line, SHOWN, strict=True):
            limits = {"vmin": float(exact.min()), "vmax": float(exact.max())}
            patches = draw_field(panel, picture.mesh, picture.fields[name], colours="inferno", edges=False, **limits)
            panel.set(xticks=[], yticks=[], xlabel="", ylabel="")
            panel.set_title(name, fontsize=9)
        line[0].set_ylabel(picture.problem, fontsize=9)
        figure.colorbar(patches, ax=list(line), shrink=0.85, pad=0.01)
    return figure
