"""A linear scheme on an infinite lattice: each output as Σ c · T(x + o) over types of cells and offsets o."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from fluxforge.certify._lattice import Lattice, Vector, end_values
from fluxforge.errors import NumericalError
from fluxforge.expression import COORDINATES
from fluxforge.pde import Equation
from fluxforge.scheme import NEXT, Affine, Hop, LinearStage, Scheme, linear_stages, symbol

Shifts = dict[tuple[int, Vector], sp.Expr]
Field = tuple[Shifts, ...]


def step_on_lattice(scheme: Scheme, lattice: Lattice) -> Field | None:
    """T' on a lattice to first order in Δt, the parameters constant symbols; None where the scheme is not linear.

    Raises NumericalError where T' depends on neither T nor S.
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
    """Stage after stage: `known` outputs by cell type, `fixed` those that do not depend on T or S."""

    lattice: Lattice
    equation: Equation
    known: dict[str, Field]
    fixed: dict[str, tuple[sp.Expr, ...]]

    def advance(self, stage: LinearStage) -> None:
        """Add the outputs of a stage."""
        node = [
            {symbol("V"): self.lattice.V} | {symbol(name): value[kind] for name, value in self.fixed.items()}
            for kind in range(len(self.lattice.edges))
        ]
        for name, (hop, expression) in stage.fixed_messages.items():
            for kind, values in enumerate(node):
                terms = (self._at(expression, way) for way in self._ways(hop, kind))
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
                end = _End(second.to, _moved(first.d, second.d))
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

    def _at(self, expression: sp.Expr, way: _Way) -> sp.Expr:
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
                weight = self._at(coefficient, way)
                for cell in way.ends[end]:
                    for (other, offset), c in self.known[name][cell.kind].items():
                        total[other, _moved(cell.d, offset)] += weight * cell.share * c
        return _first_order(total)

    def _combine(
        self, affine: Affine, values: Mapping[sp.Symbol, sp.Expr], kind: int, sums: Mapping[str, list[Shifts]]
    ) -> Shifts:
        total: Shifts = defaultdict(lambda: sp.Integer(0))
        for variable, coefficient in affine.coefficients.items():
            part = sums[variable.name][kind] if variable.name in sums else self.known[variable.name][kind]
            scale = coefficient.xreplace(dict(values))
            for key, c in part.items():
                total[key] += scale * c
        return _first_order(total)


def _moved(d: Vector, by: Vector) -> Vector:
    return tuple(sp.expand(one + other) for one, other in zip(d, by, strict=True))


def _mean_way(ways: list[_Way]) -> _Way:
    share = sp.Rational(1, len(ways))
    (end,) = ways[0].ends["Q"]
    middle = tuple(_End(one.kind, one.d, share) for way in ways for one in way.ends["N"])
    values = {name: sp.Add(*(way.values[name] for way in ways)) * share for name in ways[0].values}
    apart = {f"d_PQ_{axis}": part for axis, part in zip(COORDINATES, end.d, strict=False)}
    apart["delta_PQ"] = sp.sqrt(sp.expand(sp.Add(*(part**2 for part in end.d))))
    return _Way({"P": ways[0].ends["P"], "N": middle, "Q": (end,)}, {**values, **apart})


def _first_order(shifts: Shifts) -> Shifts:
    """Keep what is constant or linear in Δt: the generator needs no more, and the stencil stays as small as it is."""
    dt = symbol("dt")
    kept = {}
    for key, c in shifts.items():
        expanded = sp.expand(c)
        value = expanded.coeff(dt, 0) + dt * expanded.coeff(dt, 1)
        if (value := sp.expand(sp.radsimp(value))) != 0:
            kept[key] = value
    return kept
