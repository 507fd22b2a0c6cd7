"""Pictures of a mesh and of a field on it."""

import os
from collections.abc import Mapping
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from fluxforge._arguments import check_path
from fluxforge._files import atomic_path
from fluxforge._types import CellField
from fluxforge.mesh._cells import cell_areas, corner_positions
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._read import as_mesh

# Cells up to which edges are drawn; beyond, they would cover the colours.
EDGES_UP_TO = 20_000
# The colour bar beside a plot, in shares of the plot: its left edge, bottom, width and height.
BAR = (1.04, 0.0, 0.05, 1.0)
# The metadata key of the date in each format; PNG has none.
DATES: Mapping[str, dict[str, str | None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def draw_field(
    axes: Axes, mesh: Mesh, values: CellField, *, colours: str = "viridis", edges: bool = False, **limits: Any
) -> PolyCollection:
    """Colour each cell by its value; `limits` may be `vmin` and `vmax`."""
    patches = PolyCollection(
        list(corner_positions(mesh.points, mesh.cells)),
        array=values,
        cmap=colours,
        edgecolors="black" if edges else "face",
        linewidths=0.3 if edges else 0.2,
    )
    patches.set_clim(limits.get("vmin"), limits.get("vmax"))
    axes.add_collection(patches)
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    margin = 0.02 * (high - low).max()
    axes.set(
        xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin), aspect="equal", xlabel="x"
    )
    axes.set_ylabel("y", rotation=0, ha="right")
    axes.spines[["top", "right"]].set_visible(False)
    return patches


def mesh_picture(mesh: Mesh | str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Draw a mesh (or the mesh file at a path) to a file, each cell coloured by its size relative to the largest."""
    mesh, _ = as_mesh(mesh), check_path(path, "path")
    V = cell_areas(mesh.points, mesh.cells)
    figure = Figure(figsize=(6, 5.2), layout="constrained")
    axes = figure.add_subplot()
    patches = draw_field(axes, mesh, V / V.max(), edges=len(V) <= EDGES_UP_TO, vmin=0.0, vmax=1.0)
    figure.colorbar(patches, cax=axes.inset_axes(BAR), label="cell size / largest")
    axes.set_title(f"{len(V):,} cells", fontsize=11)
    save_figure(figure, path)


def save_figure(figure: Figure, path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Save a figure atomically in the format of the suffix; equal figures give equal bytes.

    The file has no date, and its identifiers are derived from its content.
    """
    metadata = DATES.get(os.path.splitext(path)[1].lower())
    with atomic_path(path) as temporary, rc_context({"svg.hashsalt": "fluxforge"}):
        figure.savefig(temporary, dpi=dpi, bbox_inches="tight", pad_inches=0.1, metadata=metadata)
