"""A mesh as it is drawn: points, cells, and named pieces of boundary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int

from fluxforge._arguments import check_kind
from fluxforge._types import Corners, Points


@dataclass(frozen=True)
class Mesh:
    """Points and cells of a planar mesh of triangles and quadrilaterals.

    `cells` lists each cell's corners counter-clockwise; among quadrilaterals a triangle's fourth corner is −1.
    `boundary` maps a tag to the boundary edges that carry it, as pairs of points; boundary edges without a tag
    belong to the tag "boundary". `notes` says what was mended or is worth knowing (reoriented cells, orphans, …).
    `origin` is how errors name this mesh: a path or the words that generated it.
    """

    points: Points
    cells: Corners
    boundary: Mapping[str, Int[np.ndarray, "edges 2"]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    origin: str = "mesh"


def check_mesh(mesh: Any, name: str = "mesh") -> Mesh:
    """The mesh itself; InputError, naming the argument, for anything else."""
    return check_kind(mesh, name, Mesh, "a mesh (such as fluxforge.mesh.square(), or fluxforge.mesh.read(path))")
