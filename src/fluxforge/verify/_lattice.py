"""Infinite lattices of cells in exact arithmetic: squares and equilateral triangles of side h."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import sympy as sp

from fluxforge.expression import symbol

h = symbol("h", "positive")

Vector = tuple[sp.Expr, sp.Expr]


@dataclass(frozen=True)
class Edge:
    """From a cell to the neighbour of that type, displaced by d."""

    to: int
    d: Vector
    A: sp.Expr


@dataclass(frozen=True)
class Lattice:
    """Cells of a few types; those of one type are translates of each other."""

    name: str
    V: sp.Expr
    edges: tuple[tuple[Edge, ...], ...]

    def geometry(self, edge: Edge) -> Mapping[str, sp.Expr]:
        """The symbols of an edge; on these lattices d is perpendicular to the face."""
        delta = sp.sqrt(sp.expand(edge.d[0] ** 2 + edge.d[1] ** 2))
        n = tuple(sp.simplify(component / delta) for component in edge.d)
        return {
            "A": edge.A,
            "delta": sp.simplify(delta),
            "n_x": n[0],
            "n_y": n[1],
            "d_x": edge.d[0],
            "d_y": edge.d[1],
            "d_n": sp.simplify(delta),
            "d_t": sp.Integer(0),
            "chi": sp.Integer(1),
        }


@cache
def square_lattice() -> Lattice:
    """One type of cell, four neighbours at distance h."""
    edges = tuple(Edge(0, (x * h, y * h), h) for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)))
    return Lattice("squares", h**2, (tuple(Edge(e.to, (sp.S(e.d[0]), sp.S(e.d[1])), e.A) for e in edges),))


@cache
def triangle_lattice() -> Lattice:
    """Triangles that point up (type 0) and down (type 1), each with three neighbours of the other type."""
    r = h / sp.sqrt(3)
    half = h / 2
    down_from_up: tuple[Vector, ...] = ((sp.Integer(0), -r), (half, r / 2), (-half, r / 2))
    up = tuple(Edge(1, d, h) for d in down_from_up)
    down = tuple(Edge(0, (-d[0], -d[1]), h) for d in down_from_up)
    return Lattice("equilateral", sp.sqrt(3) / 4 * h**2, (up, down))
