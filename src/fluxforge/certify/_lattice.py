"""Infinite lattices of cells in exact arithmetic: squares, equilateral triangles and cubes of side h."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import sympy as sp

from fluxforge.expression import COORDINATES, symbol
from fluxforge.pde import Equation, Parameter, Rank, Where

h = symbol("h", "positive")

Vector = tuple[sp.Expr, ...]


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

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.edges[0][0].d)

    @property
    def origin(self) -> Vector:
        """No displacement."""
        return (sp.Integer(0),) * self.dimension

    def geometry(self, edge: Edge, equation: Equation) -> Mapping[str, sp.Expr]:
        """The symbols of an edge: on these lattices d is perpendicular to the face. Parameters are constants."""
        delta = sp.sqrt(sp.expand(sp.Add(*(component**2 for component in edge.d))))
        n = tuple(sp.simplify(component / delta) for component in edge.d)
        axes = COORDINATES[: self.dimension]
        vectors = {f"{name}_{axis}": v[i] for name, v in (("n", n), ("d", edge.d)) for i, axis in enumerate(axes)}
        known = {
            "A": edge.A,
            "delta": sp.simplify(delta),
            "d_n": sp.simplify(delta),
            "d_t": sp.Integer(0),
            **vectors,
            "chi": sp.Integer(1),
        }
        directed = (p for p in equation.parameters if p.rank is not Rank.SCALAR)
        return known | {p.normal_name: self._along(p, n, equation) for p in directed}

    def components(self, p: Parameter, equation: Equation) -> Sequence[sp.Expr]:
        """The components of a vector, or of a tensor row by row: symbols.

        On a lattice of several types of cells they are the equation's example values: roots of polynomials in so many
        symbols would take hours.
        """
        if len(self.edges) == 1:
            return [symbol(name) for name in p.component_names(self.dimension)]
        return [sp.Rational(repr(float(value))) for value in np.ravel(equation.example(self.dimension)[p.name])]

    def values(self, equation: Equation) -> dict[sp.Symbol, sp.Expr]:
        """What the symbols of the components of vectors and tensors stand for here."""
        found: dict[sp.Symbol, sp.Expr] = {}
        for p in equation.parameters:
            if p.rank is not Rank.SCALAR:
                names = p.component_names(self.dimension)
                found |= dict(zip(map(symbol, names), self.components(p, equation), strict=True))
        return found

    def _along(self, p: Parameter, n: Vector, equation: Equation) -> sp.Expr:
        """A·n of a vector, n·K n of a tensor."""
        parts = n if p.rank is Rank.VECTOR else [one * other for one in n for other in n]
        values = self.components(p, equation)
        return sp.expand(sp.Add(*(value * along for value, along in zip(values, parts, strict=True))))


def end_values(equation: Equation, ends: tuple[str, ...]) -> Mapping[str, sp.Expr]:
    """Scalars given per cell, at each end: the same constant in every cell."""
    cells = (p.name for p in equation.parameters if p.where is Where.CELL)
    return {f"{name}_{end}": symbol(name) for name in cells for end in ends}


def _axes(dimension: int) -> tuple[Vector, ...]:
    """Steps of h forth and back along each axis."""
    unit = [tuple(h if i == axis else sp.Integer(0) for i in range(dimension)) for axis in range(dimension)]
    return tuple(tuple(sign * part for part in step) for step in unit for sign in (1, -1))


@cache
def square_lattice() -> Lattice:
    """One type of cell, four neighbours at distance h."""
    return Lattice("squares", h**2, (tuple(Edge(0, d, h) for d in _axes(2)),))


@cache
def cube_lattice() -> Lattice:
    """One type of cell, six neighbours at distance h."""
    return Lattice("cubes", h**3, (tuple(Edge(0, d, h**2) for d in _axes(3)),))


@cache
def triangle_lattice() -> Lattice:
    """Triangles that point up (type 0) and down (type 1), each with three neighbours of the other type."""
    r = h / sp.sqrt(3)
    half = h / 2
    down_from_up: tuple[Vector, ...] = ((sp.Integer(0), -r), (half, r / 2), (-half, r / 2))
    up = tuple(Edge(1, d, h) for d in down_from_up)
    down = tuple(Edge(0, tuple(-part for part in d), h) for d in down_from_up)
    return Lattice("equilateral", sp.sqrt(3) / 4 * h**2, (up, down))
