"""Meshes as records: points, cells, tagged boundary edges and regions."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

from fluxforge._arguments import check_kind
from fluxforge._types import Corners, Points
from fluxforge.mesh._cells import mark_triangles

# Limits of what a notebook shows of a mesh.
MOST_CELLS_DRAWN, _MOST_TAGS = 3_000, 8


@dataclass(frozen=True, eq=False)
class Mesh:
    """Points and cells of a planar mesh of triangles and quadrilaterals.

    `cells` lists each cell's corners counter-clockwise; among quadrilaterals a triangle's fourth corner is −1.
    `boundary` maps a tag to the boundary edges that carry it, as pairs of points; boundary edges without a tag
    belong to the tag "boundary". `notes` lists repairs and remarks (reoriented cells, unused points, …).
    `origin` is the name of the mesh in error messages: a path, or the call that generated it.
    `regions` maps a name to the cells that carry it, by number: the physical surfaces of a gmsh file.
    """

    points: Points
    cells: Corners
    boundary: Mapping[str, Int[np.ndarray, "edges 2"]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    origin: str = "mesh"
    regions: Mapping[str, Int[np.ndarray, " n"]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_kind(self.points, "points", np.ndarray, "an array")
        check_kind(self.cells, "cells", np.ndarray, "an array")

    def __repr__(self) -> str:
        triangles = int(mark_triangles(self.cells).sum())
        counts = {"triangles": triangles, "quadrilaterals": len(self.cells) - triangles}
        shapes = ", ".join(f"{count:,} {shape}" for shape, count in counts.items() if count)
        tags = ", ".join([*list(self.boundary)[:_MOST_TAGS], *(["…"] if len(self.boundary) > _MOST_TAGS else [])])
        counted = f"{shapes or 'no cells'}, {len(self.points):,} points; boundary: {tags:.200}"
        return " ".join(f"Mesh({self.origin:.80}: {counted})".split())

    def _repr_html_(self) -> str:
        """The counts and, up to MOST_CELLS_DRAWN cells, a drawing of the edges."""
        return f"<p>{html.escape(repr(self))}</p>{_svg(self) if len(self.cells) <= MOST_CELLS_DRAWN else ''}"


def _svg(mesh: Mesh) -> str:
    """The outlines of all cells as one SVG path, 300 pixels along the longer side; "" for a mesh without area."""
    span = np.ptp(mesh.points, axis=0) if len(mesh.cells) else np.zeros(2)
    if not (np.isfinite(span).all() and span.max() > 0):
        return ""
    scale = 300.0 / span.max()
    # SVG's y axis points down.
    x, y = (mesh.points - mesh.points.min(axis=0)).T * scale
    y = scale * span[1] - y
    outlines = (
        "M" + "L".join(f"{x[corner]:.1f} {y[corner]:.1f}" for corner in cell if corner >= 0) + "Z"
        for cell in mesh.cells.tolist()
    )
    box = f"-2 -2 {scale * span[0] + 4:.0f} {scale * span[1] + 4:.0f}"
    style = 'fill="none" stroke="currentColor" stroke-width="0.6"'
    size = 'width="{}" height="{}"'.format(*box.split()[2:])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {size}><path {style} d="{"".join(outlines)}"/></svg>'
    )
