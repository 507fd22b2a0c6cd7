"""A mesh as the text of a gmsh .msh file, version 4.1.

Cells are numbered 1, 2, … in the mesh's order, whatever their kind, so that a reader who sorts by number gets that
order back; the tagged boundary edges follow. Each tag is a curve with a physical name; all cells are one surface.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Int, Num

from fluxforge.mesh._mesh import Mesh

LINE, TRIANGLE, QUADRILATERAL = 1, 2, 3


def msh_text(mesh: Mesh, fields: Mapping[str, Num[np.ndarray, " cells *components"]]) -> str:
    """The whole file. A tag without edges is left out."""
    mesh = replace(mesh, boundary={tag: edges for tag, edges in mesh.boundary.items() if len(edges)})
    lines = ["$MeshFormat", "4.1 0 8", "$EndMeshFormat"]
    for section in (_names(mesh), _entities(mesh), _nodes(mesh), _elements(mesh)):
        lines.extend(section)
    for name, values in fields.items():
        lines.extend(_element_data(name, values))
    return "\n".join(lines) + "\n"


def _names(mesh: Mesh) -> Iterator[str]:
    yield from ("$PhysicalNames", str(1 + len(mesh.boundary)))
    for number, tag in enumerate(mesh.boundary, start=1):
        yield f'1 {number} "{tag}"'
    # Readers that keep one name for all dimensions would confuse this one with a tag of the same name.
    yield f'2 1 "{"domain" if "domain" not in mesh.boundary else "all cells"}"'
    yield "$EndPhysicalNames"


def _entities(mesh: Mesh) -> Iterator[str]:
    """A curve per tag and the surface they bound, each with its box and its physical tag."""
    curves = len(mesh.boundary)
    yield from ("$Entities", f"0 {curves} 1 0")
    for number, edges in enumerate(mesh.boundary.values(), start=1):
        yield f"{number} {_box(mesh, edges)} 1 {number} 0"
    around = "".join(f" {number}" for number in range(1, curves + 1))
    yield f"1 {_box(mesh, mesh.cells[mesh.cells >= 0])} 1 1 {curves}{around}"
    yield "$EndEntities"


def _box(mesh: Mesh, used: Int[np.ndarray, "*n"]) -> str:
    corners = mesh.points[used.ravel()]
    low, high = corners.min(axis=0), corners.max(axis=0)
    return f"{low[0].item()!r} {low[1].item()!r} 0 {high[0].item()!r} {high[1].item()!r} 0"


def _nodes(mesh: Mesh) -> Iterator[str]:
    count = len(mesh.points)
    yield from ("$Nodes", f"1 {count} 1 {count}", f"2 1 0 {count}")
    yield from map(str, range(1, count + 1))
    # repr keeps every digit and no more.
    yield from (f"{x!r} {y!r} 0" for x, y in mesh.points.tolist())
    yield "$EndNodes"


def _elements(mesh: Mesh) -> Iterator[str]:
    number = np.arange(1, len(mesh.cells) + 1)
    triangle = np.full(len(mesh.cells), True) if mesh.cells.shape[1] == 3 else mesh.cells[:, 3] < 0
    surfaces = [(TRIANGLE, triangle, 3), (QUADRILATERAL, ~triangle, 4)]
    blocks = [(2, 1, kind, number[these], mesh.cells[these, :width]) for kind, these, width in surfaces if these.any()]
    following = len(mesh.cells) + 1
    for curve, edges in enumerate(mesh.boundary.values(), start=1):
        blocks.append((1, curve, LINE, np.arange(following, following + len(edges)), edges))
        following += len(edges)
    blocks.sort(key=lambda block: block[:3])
    yield from ("$Elements", f"{len(blocks)} {following - 1} 1 {following - 1}")
    for dimension, entity, kind, numbers, corners in blocks:
        yield f"{dimension} {entity} {kind} {len(numbers)}"
        yield from (" ".join(map(str, row)) for row in np.column_stack([numbers, corners + 1]).tolist())
    yield "$EndElements"


def _element_data(name: str, values: Num[np.ndarray, " cells *components"]) -> Iterator[str]:
    """One view: its name, the time 0, then step 0, the number of components and of cells, and a row per cell."""
    rows = values.reshape(len(values), -1)
    yield from ("$ElementData", "1", f'"{name}"', "1", "0", "3", "0", str(rows.shape[1]), str(len(rows)))
    yield from (f"{k} " + " ".join(map(repr, row)) for k, row in enumerate(rows.tolist(), start=1))
    yield "$EndElementData"
