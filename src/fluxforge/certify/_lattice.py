"""A linear scheme on an infinite lattice of squares, equilateral triangles or cubes of side h, in exact arithmetic."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import sympy as sp

from fluxforge.errors import InputError, NumericalError
from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Parameter, Rank
from fluxforge.scheme._linear import Affine, LinearStage, linear_stages
from fluxforge.scheme._scheme import NEXT, Hop, Scheme

h = symbol("h", "positive")

Vector = tuple[sp.Expr, ...]


@dataclass(frozen=True)
class Edge:
    """An edge from a cell to its neighbour of type `to`, displaced by d, across a face of size A."""

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
        """The zero displacement."""
        return (sp.Integer(0),) * self.dimension

    def geometry(self, edge: Edge, equation: Equation) -> Mapping[str, sp.Expr]:
        """The values of the symbols of an edge, with constant parameters; d is perpendicular to the face here."""
        delta, n = _length_and_direction(edge.d)
        axes = COORDINATES[: self.dimension]
        vectors = {f"{name}_{axis}": v[i] for name, v in (("n", n), ("d", edge.d)) for i, axis in enumerate(axes)}
        known = {
            "A": edge.A,
            "delta": delta,
            "d_n": delta,
            "d_t": sp.Integer(0),
            **vectors,
            "chi": sp.Integer(1),
        }
        for p in (p for p in equation.parameters if p.rank is not Rank.SCALAR):
            known[p.normal_name] = self._normal_part(p, n, equation)
            if p.rank is Rank.TENSOR:
                known |= zip(p.conormal_names, self._conormal(p, n, equation), strict=False)
        return known

    def components(self, p: Parameter, equation: Equation) -> Sequence[sp.Expr]:
        """The components of a vector, or of a tensor row by row: symbols.

        On a lattice with several types of cells they are the equation's example values: roots of polynomials in that
        many symbols would take hours.
        """
        if len(self.edges) == 1:
            return [symbol(name) for name in p.component_names(self.dimension)]
        return [sp.Rational(repr(float(value))) for value in np.ravel(equation.example(self.dimension)[p.name])]

    def values(self, equation: Equation) -> dict[sp.Symbol, sp.Expr]:
        """The values of the symbols of components of vectors and tensors on this lattice."""
        values: dict[sp.Symbol, sp.Expr] = {}
        for p in equation.parameters:
            if p.rank is not Rank.SCALAR:
                names = p.component_names(self.dimension)
                values |= dict(zip(map(symbol, names), self.components(p, equation), strict=True))
        return values

    def _normal_part(self, p: Parameter, n: Vector, equation: Equation) -> sp.Expr:
        """The part along n: a·n of a vector, n·K n of a tensor."""
        parts = n if p.rank is Rank.VECTOR else [one * other for one in n for other in n]
        values = self.components(p, equation)
        return sp.expand(sp.Add(*(value * along for value, along in zip(values, parts, strict=True))))

    def _conormal(self, p: Parameter, n: Vector, equation: Equation) -> list[sp.Expr]:
        """The components of K n."""
        rows = sp.Matrix(self.dimension, self.dimension, self.components(p, equation))
        return [sp.expand(row) for row in rows * sp.Matrix(n)]


@cache  # there are a dozen different edges, used for every scheme
def _length_and_direction(d: Vector) -> tuple[sp.Expr, Vector]:
    length = sp.sqrt(sp.expand(sp.Add(*(component**2 for component in d))))
    return sp.simplify(length), tuple(sp.simplify(component / length) for component in d)


def end_values(equation: Equation, ends: tuple[str, ...]) -> Mapping[str, sp.Expr]:
    """Scalars given per cell, at each end: the same constant in every cell."""
    cells = (p.name for p in equation.parameters if p.in_cells)
    return {f"{name}_{end}": symbol(name) for name in cells for end in ends}


def _axes(dimension: int) -> tuple[Vector, ...]:
    """Steps of h forth and back along each axis."""
    unit = [tuple(h if i == axis else sp.Integer(0) for i in range(dimension)) for axis in range(dimension)]
    return tuple(tuple(sign * part for part in step) for step in unit for sign in (1, -1))


@cache
def make_lattice(name: str) -> Lattice:
    """The lattice of that name: `squares`, `cubes` or `equilateral` triangles of side h.

    Triangles that point up are of type 0, those that point down of type 1; each has three neighbours of the other type.
    Raises InputError for another name.
    """
    if name == "squares":
        return Lattice(name, h**2, (tuple(Edge(0, d, h) for d in _axes(2)),))
    if name == "cubes":
        return Lattice(name, h**3, (tuple(Edge(0, d, h**2) for d in _axes(3)),))
    if name != "equilateral":
        raise InputError(f"lattice {name!r}: is not known; choose 'squares', 'equilateral' or 'cubes'")
    r = h / sp.sqrt(3)
    half = h / 2
    down_from_up: tuple[Vector, ...] = ((sp.Integer(0), -r), (half, r / 2), (-half, r / 2))
    up = tuple(Edge(1, d, h) for d in down_from_up)
    down = tuple(Edge(0, tuple(-part for part in d), h) for d in down_from_up)
    return Lattice(name, sp.sqrt(3) / 4 * h**2, (up, down))


# A linear combination of T in shifted cells: (cell type, displacement) → coefficient. A field has one per cell type.
Shifts = dict[tuple[int, Vector], sp.Expr]
Field = tuple[Shifts, ...]


def step_on_lattice(scheme: Scheme, lattice: Lattice) -> Field | None:
    """T' on a lattice to first order in Δt, as a combination of T, for constant parameters; None if not linear.

    Raises NumericalError if T' depends on neither T nor S.
    """
    stages = linear_stages(scheme)
    if stages is None:
        return None
    types = range(len(lattice.edges))
    known: dict[str, Field] = {
        "T": tuple({(kind, lattice.origin): sp.Integer(1)} for kind in types),
        "S": tuple({} for _ in types),
    }
    walk = _Walk(lattice, scheme.equation, known, {})
    for stage in stages:
        walk.advance(stage)
    if NEXT not in known:
        raise NumericalError(f"{NEXT} does not depend on T or S, so that there is no equation")
    return known[NEXT]


@dataclass(frozen=True)
class _End:
    """A cell's type, its displacement from P, and its share of the end's value."""

    kind: int
    d: Vector
    share: sp.Expr = sp.S.One


@dataclass(frozen=True)
class _Way:
    """A way from a cell to another: at each end, by letter, the cells and their shares, and the geometric symbols.

    An end is one cell, except N of a ring: there it is the middle cells of all paths to Q, each with an equal share.
    """

    ends: Mapping[str, tuple[_End, ...]]
    values: Mapping[str, sp.Expr]


@dataclass(frozen=True)
class _Walk:
    """Evaluates stages one after the other; outputs by cell type are `known`, or `fixed` if independent of T and S."""

    lattice: Lattice
    equation: Equation
    known: dict[str, Field]
    fixed: dict[str, tuple[sp.Expr, ...]]

    def advance(self, stage: LinearStage) -> None:
        """Evaluate a stage and add its outputs to `known` and `fixed`."""
        node = [
            {symbol("V"): self.lattice.V} | {symbol(name): value[kind] for name, value in self.fixed.items()}
            for kind in range(len(self.lattice.edges))
        ]
        for name, (hop, expression) in stage.fixed_messages.items():
            for kind, values in enumerate(node):
                terms = (self._evaluate_on(expression, way) for way in self._ways(hop, kind))
                values[symbol(name)] = sp.simplify(sp.Add(*terms))
        sums: dict[str, list[Shifts]] = {}
        for name, (hop, affine) in stage.messages.items():
            sums[name] = [self._sum(affine, self._ways(hop, kind)) for kind in range(len(node))]
        done: dict[str, list[Shifts]] = {}
        for name, affine in stage.outputs.items():
            done[name] = [self._combine(affine, values, kind, sums) for kind, values in enumerate(node)]
        for name, expression in stage.fixed_outputs.items():
            self.fixed[name] = tuple(sp.simplify(expression.xreplace(values)) for values in node)
        self.known.update({name: tuple(shifts) for name, shifts in done.items()})

    def _ways(self, hop: Hop, kind: int) -> list[_Way]:
        lattice, equation = self.lattice, self.equation
        here = (_End(kind, lattice.origin),)
        if hop is Hop.EDGE:
            return [
                _Way({"P": here, "N": (_End(e.to, e.d),)}, lattice.geometry(e, equation)) for e in lattice.edges[kind]
            ]
        paths = []
        for first in lattice.edges[kind]:
            for second in lattice.edges[first.to]:
                end = _End(second.to, _add_vectors(first.d, second.d))
                values = {f"{name}_PN": value for name, value in lattice.geometry(first, equation).items()}
                values |= {f"{name}_NQ": value for name, value in lattice.geometry(second, equation).items()}
                paths.append(_Way({"P": here, "N": (_End(first.to, first.d),), "Q": (end,)}, values))
        return paths if hop is Hop.PATH else self._ring(paths, kind)

    def _ring(self, paths: list[_Way], kind: int) -> list[_Way]:
        """One way per distinct cell at distance two, features and N averaged over its paths, as the stepper does."""
        beside = {(e.to, e.d) for e in self.lattice.edges[kind]} | {(kind, self.lattice.origin)}
        together: dict[tuple[int, Vector], list[_Way]] = defaultdict(list)
        for way in paths:
            (end,) = way.ends["Q"]
            if (end.kind, end.d) not in beside:
                together[end.kind, end.d].append(way)
        return [_mean_way(ways) for ways in together.values()]

    def _evaluate_on(self, expression: sp.Expr, way: _Way) -> sp.Expr:
        values = {symbol(name): value for name, value in way.values.items()}
        values |= {symbol(name): value for name, value in end_values(self.equation, tuple(way.ends)).items()}
        for end, cells in way.ends.items():
            values[symbol(f"V_{end}")] = self.lattice.V
            for name, value in self.fixed.items():
                values[symbol(f"{name}_{end}")] = sp.Add(*(cell.share * value[cell.kind] for cell in cells))
        return expression.xreplace(values)

    def _sum(self, affine: Affine, ways: list[_Way]) -> Shifts:
        total: Shifts = defaultdict(lambda: sp.Integer(0))
        for way in ways:
            for variable, coefficient in affine.coefficients.items():
                name, _, end = variable.name.rpartition("_")
                weight = self._evaluate_on(coefficient, way)
                for cell in way.ends[end]:
                    for (other, offset), c in self.known[name][cell.kind].items():
                        total[other, _add_vectors(cell.d, offset)] += weight * cell.share * c
        return _truncate_first_order(total)

    def _combine(
        self, affine: Affine, values: Mapping[sp.Symbol, sp.Expr], kind: int, sums: Mapping[str, list[Shifts]]
    ) -> Shifts:
        total: Shifts = defaultdict(lambda: sp.Integer(0))
        for variable, coefficient in affine.coefficients.items():
            part = sums[variable.name][kind] if variable.name in sums else self.known[variable.name][kind]
            scale = coefficient.xreplace(dict(values))
            for key, c in part.items():
                total[key] += scale * c
        return _truncate_first_order(total)


def _add_vectors(d: Vector, shift: Vector) -> Vector:
    return tuple(sp.expand(one + other) for one, other in zip(d, shift, strict=True))


def _mean_way(ways: list[_Way]) -> _Way:
    share = sp.Rational(1, len(ways))
    (end,) = ways[0].ends["Q"]
    middle = tuple(_End(one.kind, one.d, share) for way in ways for one in way.ends["N"])
    values = {name: sp.Add(*(way.values[name] for way in ways)) * share for name in ways[0].values}
    apart = {f"d_PQ_{axis}": part for axis, part in zip(COORDINATES, end.d, strict=False)}
    apart["delta_PQ"] = sp.sqrt(sp.expand(sp.Add(*(part**2 for part in end.d))))
    return _Way({"P": ways[0].ends["P"], "N": middle, "Q": (end,)}, {**values, **apart})


def _truncate_first_order(shifts: Shifts) -> Shifts:
    """Drop terms beyond first order in Δt, which the generator does not need, so that the stencil stays small."""
    dt = symbol("dt")
    kept = {}
    for key, c in shifts.items():
        expanded = sp.expand(c)
        value = expanded.coeff(dt, 0) + dt * expanded.coeff(dt, 1)
        if (value := sp.expand(sp.radsimp(value))) != 0:
            kept[key] = value
    return kept
