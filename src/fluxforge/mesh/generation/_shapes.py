"""Unstructured meshes of common domains, in whole words."""

from collections.abc import Sequence
from typing import TypedDict, Unpack

from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh.generation._domain import Disk, Polygon, unit_square
from fluxforge.mesh.generation._generate import generate


class GenerateOptions(TypedDict, total=False):
    """What `generate` takes besides the domain; each is described there."""

    kind: str
    cells: int | None
    size: float | None
    seed: int
    engine: str


def square(**options: Unpack[GenerateOptions]) -> Mesh:
    """The unit square, meshed with triangles: `square(cells=300, kind="irregular", seed=3)`."""
    return generate(unit_square(), **options)


def disk(radius: float = 1.0, centre: tuple[float, float] = (0.0, 0.0), **options: Unpack[GenerateOptions]) -> Mesh:
    """A disk, as the polygon through points of its circle."""
    return generate(Disk(centre, radius), **options)


def polygon(vertices: Sequence[tuple[float, float]], **options: Unpack[GenerateOptions]) -> Mesh:
    """The polygon with these vertices, meshed with triangles."""
    return generate(Polygon(vertices), **options)
