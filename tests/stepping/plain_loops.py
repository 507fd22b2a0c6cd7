"""The paper's formulas as a reader would type them in: dictionaries, loops, and nothing of the package but `Mesh`."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from fluxforge.mesh import Mesh

Point = tuple[float, float]


class Wall(NamedTuple):
    """A boundary face of length A: T = value at distance delta, or ∂T/∂n = value."""

    A: float
    delta: float
    neumann: bool
    value: float


class Plain(NamedTuple):
    """Per cell: the volume, the (neighbour, A, δ) of every inner face, and the walls."""

    V: list[float]
    faces: list[list[tuple[int, float, float]]]
    walls: list[list[Wall]]


def plain(mesh: Mesh, walls: Mapping[str, tuple[bool, float]]) -> Plain:
    """The graph of a mesh; `walls` says per tag whether it is a Neumann wall, and the constant there."""
    corners = [[tuple(mesh.points[k].tolist()) for k in row if k >= 0] for row in mesh.cells.tolist()]
    names = [[k for k in row if k >= 0] for row in mesh.cells.tolist()]
    tag = {frozenset(edge): name for name, edges in mesh.boundary.items() for edge in edges.tolist()}
    cells_of: dict[frozenset[int], list[int]] = {}
    for cell, ring in enumerate(names):
        for a, b in zip(ring, [*ring[1:], ring[0]], strict=True):
            cells_of.setdefault(frozenset((a, b)), []).append(cell)
    graph = Plain([area(ring) for ring in corners], [[] for _ in corners], [[] for _ in corners])
    for edge, cells in cells_of.items():
        a, b = (tuple(mesh.points[k].tolist()) for k in edge)
        A = math.dist(a, b)
        if len(cells) == 2:
            delta = math.dist(*(centroid(corners[cell]) for cell in cells))
            for P, N in (cells, cells[::-1]):
                graph.faces[P].append((N, A, delta))
        else:
            middle = (0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]))
            neumann, value = walls.get(tag[edge], (False, 0.0))
            graph.walls[cells[0]].append(Wall(A, math.dist(middle, centroid(corners[cells[0]])), neumann, value))
    return graph


def triangles(ring: list[Point]) -> list[tuple[float, Point]]:
    """Signed areas and centroids of the fan of triangles from the first corner."""
    (ax, ay), pieces = ring[0], []
    for (bx, by), (cx, cy) in pairwise(ring[1:]):
        signed = 0.5 * ((bx - ax) * (cy - ay) - (cx - ax) * (by - ay))
        pieces.append((signed, ((ax + bx + cx) / 3, (ay + by + cy) / 3)))
    return pieces


def area(ring: list[Point]) -> float:
    """V of a polygon."""
    return sum(signed for signed, _ in triangles(ring))


def centroid(ring: list[Point]) -> Point:
    """The centre of gravity of a polygon."""
    V = area(ring)
    return sum(s * x for s, (x, _) in triangles(ring)) / V, sum(s * y for s, (_, y) in triangles(ring)) / V


def heat_flow(graph: Plain, T: list[float], alpha: float) -> list[float]:
    """Σ_N α A/δ (T_N − T_P), with α A/δ (g − T_P) at Dirichlet walls and α A q at Neumann walls."""
    flow = []
    for P, value in enumerate(T):
        total = sum(alpha * A / delta * (T[N] - value) for N, A, delta in graph.faces[P])
        for wall in graph.walls[P]:
            total += alpha * wall.A * (wall.value if wall.neumann else (wall.value - value) / wall.delta)
        flow.append(total)
    return flow


def euler(graph: Plain, T: list[float], S: list[float], *, dt: float, alpha: float) -> list[float]:
    """T + Δt/V Σ α A/δ (T_N − T_P) + Δt S."""
    flow = heat_flow(graph, T, alpha)
    return [t + dt / V * f + dt * s for t, V, f, s in zip(T, graph.V, flow, S, strict=True)]


def midpoint(graph: Plain, T: list[float], S: list[float], *, dt: float, alpha: float) -> list[float]:
    """T½ = T + ½Δt/V Σ(…) + ½Δt S, then T + Δt/V Σ α A/δ (T½_N − T½_P) + Δt S."""
    half = euler(graph, T, S, dt=0.5 * dt, alpha=alpha)
    flow = heat_flow(graph, half, alpha)
    return [t + dt / V * f + dt * s for t, V, f, s in zip(T, graph.V, flow, S, strict=True)]
