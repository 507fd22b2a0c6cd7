"""The modified equation on regular lattices, by exact Taylor expansion: T_t = K ∂²T + h² C ∂⁴T + …

A linear scheme is evaluated on the lattice with shifts for fields: each output is Σ c · T(x + o) over cell types and
offsets o. The generator's symbol, c e^{ik·o} summed, is a small matrix; its eigenvalue that vanishes with k, expanded
in k, is the equation that smooth solutions obey.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from fluxforge.errors import NumericalError
from fluxforge.expression import to_text
from fluxforge.scheme import Affine, Hop, LinearStage, Scheme, linear_stages, symbol
from fluxforge.scheme._symbols import NEXT
from fluxforge.verify._lattice import Lattice, Vector, square_lattice, triangle_lattice

Shifts = dict[tuple[int, Vector], sp.Expr]
Field = tuple[Shifts, ...]

KX, KY, EPS = map(symbol, ("k_x", "k_y", "epsilon"))


@dataclass(frozen=True)
class ModifiedEquation:
    """`leading` and `error` are coefficients of derivatives: {(2, 0): c} is c T_xx; α is factored out of neither."""

    lattice: str
    leading: Mapping[tuple[int, int], sp.Expr]
    error: Mapping[tuple[int, int], sp.Expr]

    def __str__(self) -> str:
        terms = [_term(key, c) for part in (self.leading, self.error) for key, c in part.items()]
        return "T_t = " + (" + ".join(terms).replace("+ -", "- ") or "0")

    def diffusivity(self) -> sp.Matrix:
        """K/α, exactly."""
        a, b, c = (self.leading.get(key, sp.Integer(0)) / symbol("alpha") for key in ((2, 0), (1, 1), (0, 2)))
        return sp.Matrix([[a, b / 2], [b / 2, c]]).applyfunc(sp.simplify)


def _term(key: tuple[int, int], coefficient: sp.Expr) -> str:
    simple = sp.factor(sp.simplify(coefficient))
    text = to_text(simple)
    return f"{f'({text})' if simple.is_Add else text}*T_{'x' * key[0]}{'y' * key[1]}"


def modified_equation(scheme: Scheme, lattice: Lattice) -> ModifiedEquation | None:
    """Leading and first error term on the lattice; None where the scheme is not linear or keeps no constants there.

    Raises NumericalError for formulas that are not attempted, or have no expansion in h.
    """
    stages = linear_stages(scheme)
    if stages is None:
        return None
    _refuse_transcendental(scheme)
    types = range(len(lattice.edges))
    known: dict[str, Field] = {
        "T": tuple({(kind, (sp.Integer(0), sp.Integer(0))): sp.Integer(1)} for kind in types),
        "S": tuple({} for _ in types),
    }
    fixed: dict[str, tuple[sp.Expr, ...]] = {}
    for stage in stages:
        _advance(stage, lattice, known, fixed)
    if NEXT not in known:
        raise NumericalError(f"{NEXT} does not depend on T or S, so that there is no equation")
    try:
        return _expanded(lattice, known[NEXT])
    except sp.PolynomialError as error:
        raise NumericalError(f"its coefficients have no expansion in h ({error})") from error


def _expanded(lattice: Lattice, step: Field) -> ModifiedEquation | None:
    dt = symbol("dt")
    slope = tuple({key: sp.simplify(c.coeff(dt, 1)) for key, c in shifts.items()} for shifts in step)
    eigenvalue = _vanishing_eigenvalue(_symbol_matrix(slope))
    return None if eigenvalue is None else _equation(lattice.name, eigenvalue)


def _refuse_transcendental(scheme: Scheme) -> None:
    """Simplifying sines of h and the like may take hours: say so instead."""
    parts = [message.expression for stage in scheme.stages for message in stage.messages.values()]
    parts += [output.expression for stage in scheme.stages for output in stage.outputs.values()]
    for part in parts:
        for function in part.atoms(sp.Function):
            if not isinstance(function, sp.Abs | sp.Min | sp.Max):
                raise NumericalError(f"not attempted: {to_text(function)} is not an algebraic function of the geometry")


def square_equation(scheme: Scheme) -> ModifiedEquation | None:
    """On squares of side h."""
    return modified_equation(scheme, square_lattice())


def triangle_equation(scheme: Scheme) -> ModifiedEquation | None:
    """On equilateral triangles of side h."""
    return modified_equation(scheme, triangle_lattice())


def _advance(
    stage: LinearStage, lattice: Lattice, known: dict[str, Field], fixed: dict[str, tuple[sp.Expr, ...]]
) -> None:
    node = [
        {symbol("V"): lattice.V} | {symbol(name): value[kind] for name, value in fixed.items()}
        for kind in range(len(lattice.edges))
    ]
    for name, (hop, expression) in stage.fixed_messages.items():
        for kind, values in enumerate(node):
            ways = _ways(lattice, hop, kind)
            values[symbol(name)] = sp.simplify(sp.Add(*(_at(expression, way, lattice, fixed) for way in ways)))
    sums: dict[str, list[Shifts]] = {}
    for name, (hop, affine) in stage.messages.items():
        sums[name] = [_sum(affine, _ways(lattice, hop, kind), lattice, known, fixed) for kind in range(len(node))]
    done: dict[str, list[Shifts]] = {}
    for name, affine in stage.outputs.items():
        done[name] = [_combine(affine, values, kind, known, sums) for kind, values in enumerate(node)]
    for name, expression in stage.fixed_outputs.items():
        fixed[name] = tuple(sp.simplify(expression.xreplace(values)) for values in node)
    known |= {name: tuple(shifts) for name, shifts in done.items()}


@dataclass(frozen=True)
class _Way:
    """A way from a cell to another: at each end, by letter, the cells and their shares, and the geometric symbols.

    An end is one cell, except N of a ring: there it is the middle cells of all paths to Q, each with an equal share.
    """

    ends: Mapping[str, tuple["_End", ...]]
    values: Mapping[str, sp.Expr]


@dataclass(frozen=True)
class _End:
    """A cell's type, its displacement from P, and its share of the end's value."""

    kind: int
    d: Vector
    share: sp.Expr = sp.S.One


def _ways(lattice: Lattice, hop: Hop, kind: int) -> list[_Way]:
    zero = (sp.Integer(0), sp.Integer(0))
    if hop is Hop.EDGE:
        here = (_End(kind, zero),)
        return [_Way({"P": here, "N": (_End(e.to, e.d),)}, lattice.geometry(e)) for e in lattice.edges[kind]]
    paths = []
    for first in lattice.edges[kind]:
        for second in lattice.edges[first.to]:
            end = tuple(sp.expand(a + b) for a, b in zip(first.d, second.d, strict=True))
            values = {f"{name}_PN": value for name, value in lattice.geometry(first).items()}
            values |= {f"{name}_NQ": value for name, value in lattice.geometry(second).items()}
            ends = {
                "P": (_End(kind, zero),),
                "N": (_End(first.to, first.d),),
                "Q": (_End(second.to, (end[0], end[1])),),
            }
            paths.append(_Way(ends, values))
    return paths if hop is Hop.PATH else _ring(paths, kind, lattice)


def _ring(paths: list[_Way], kind: int, lattice: Lattice) -> list[_Way]:
    """One way per distinct cell at distance two, its features and N averaged over all paths, as the stepper does."""
    beside = {(e.to, e.d) for e in lattice.edges[kind]} | {(kind, (sp.Integer(0), sp.Integer(0)))}
    together: dict[tuple[int, Vector], list[_Way]] = defaultdict(list)
    for way in paths:
        (end,) = way.ends["Q"]
        if (end.kind, end.d) not in beside:
            together[end.kind, end.d].append(way)
    return [_mean_way(ways) for ways in together.values()]


def _mean_way(ways: list[_Way]) -> _Way:
    share = sp.Rational(1, len(ways))
    (end,) = ways[0].ends["Q"]
    middle = tuple(_End(one.kind, one.d, share) for way in ways for one in way.ends["N"])
    values = {name: sp.Add(*(way.values[name] for way in ways)) * share for name in ways[0].values}
    d = end.d
    apart = {"d_PQ_x": d[0], "d_PQ_y": d[1], "delta_PQ": sp.sqrt(sp.expand(d[0] ** 2 + d[1] ** 2))}
    return _Way({"P": ways[0].ends["P"], "N": middle, "Q": (end,)}, {**values, **apart})


def _at(expression: sp.Expr, way: _Way, lattice: Lattice, fixed: Mapping[str, tuple[sp.Expr, ...]]) -> sp.Expr:
    values = {symbol(name): value for name, value in way.values.items()}
    for end, cells in way.ends.items():
        values[symbol(f"V_{end}")] = lattice.V
        for name, value in fixed.items():
            values[symbol(f"{name}_{end}")] = sp.Add(*(cell.share * value[cell.kind] for cell in cells))
    return expression.xreplace(values)


def _sum(
    affine: Affine,
    ways: list[_Way],
    lattice: Lattice,
    known: Mapping[str, Field],
    fixed: Mapping[str, tuple[sp.Expr, ...]],
) -> Shifts:
    total: Shifts = defaultdict(lambda: sp.Integer(0))
    for way in ways:
        for variable, coefficient in affine.coefficients.items():
            name, _, end = variable.name.rpartition("_")
            weight = _at(coefficient, way, lattice, fixed)
            for cell in way.ends[end]:
                for (other, offset), c in known[name][cell.kind].items():
                    key = (other, (sp.expand(cell.d[0] + offset[0]), sp.expand(cell.d[1] + offset[1])))
                    total[key] += weight * cell.share * c
    return _first_order(total)


def _combine(
    affine: Affine,
    values: Mapping[sp.Symbol, sp.Expr],
    kind: int,
    known: Mapping[str, Field],
    sums: Mapping[str, list[Shifts]],
) -> Shifts:
    total: Shifts = defaultdict(lambda: sp.Integer(0))
    for variable, coefficient in affine.coefficients.items():
        part = sums[variable.name][kind] if variable.name in sums else known[variable.name][kind]
        scale = coefficient.xreplace(dict(values))
        for key, c in part.items():
            total[key] += scale * c
    return _first_order(total)


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


def _symbol_matrix(slope: tuple[Shifts, ...]) -> sp.Matrix:
    """Σ c e^{iεk·o}, expanded to fourth order in ε."""
    size = len(slope)
    matrix = sp.zeros(size, size)
    for kind, shifts in enumerate(slope):
        for (other, o), c in shifts.items():
            phase = sp.I * EPS * (KX * o[0] + KY * o[1])
            matrix[kind, other] += c * sp.Add(*(phase**k / sp.factorial(k) for k in range(5)))
    return matrix.applyfunc(sp.expand)


def _vanishing_eigenvalue(matrix: sp.Matrix) -> sp.Expr | None:
    """The eigenvalue that vanishes with k, to fourth order: λ = det/(tr − λ), iterated, for up to two types."""
    if matrix.shape == (1, 1):
        found = matrix[0, 0]
    else:
        trace, determinant = sp.expand(matrix.trace()), sp.expand(matrix.det())
        if trace.subs(EPS, 0) == 0 or sp.simplify(determinant.subs(EPS, 0)) != 0:
            return None
        found = sp.Integer(0)
        for _ in range(3):
            found = _truncated(determinant * _inverse(sp.expand(trace - found)))
    found = _truncated(found)
    return found if sp.simplify(found.subs(EPS, 0)) == 0 else None


def _truncated(expression: sp.Expr) -> sp.Expr:
    polynomial = sp.Poly(sp.expand(expression), EPS)
    return sp.Add(*(c * EPS**k for (k,), c in polynomial.terms() if k <= 4))


def _inverse(expression: sp.Expr) -> sp.Expr:
    """1/expression as a power series in ε to fourth order; its constant term is not zero."""
    base = expression.subs(EPS, 0)
    rest = _truncated(expression / base - 1)
    total, power = sp.Integer(1), sp.Integer(1)
    for _ in range(4):
        power = _truncated(-power * rest)
        total += power
    return _truncated(total / base)


def _equation(name: str, eigenvalue: sp.Expr) -> ModifiedEquation:
    """Ik ↔ ∂: the coefficient of kx^a ky^b becomes (−i)^{a+b} times that of ∂x^a ∂y^b."""
    by_order: dict[int, dict[tuple[int, int], sp.Expr]] = defaultdict(dict)
    polynomial = sp.Poly(sp.expand(eigenvalue.subs(EPS, 1)), KX, KY)
    for (a, b), c in polynomial.terms():
        value = sp.simplify(c * (-sp.I) ** (a + b))
        if value != 0:
            by_order[a + b][(a, b)] = value
    error = by_order.get(1, {}) | by_order.get(3, {}) | by_order.get(4, {})
    return ModifiedEquation(name, by_order.get(2, {}), error)
