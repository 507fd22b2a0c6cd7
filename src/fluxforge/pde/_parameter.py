"""Parameters of an equation (name, rank, place), units of formulas, and the checks of an equation.

Units are products of powers of a length, a time and the unknown. The checks concern names, the symbols of formulas,
units, and a two-point flux that is given in full: that flux is tested with numbers, since SymPy may not decide whether
it belongs to its equation. Each check raises EquationError, naming the equation and the field.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sympy as sp

from fluxforge.errors import EquationError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import COMPARISONS, COORDINATES, TIME, WORDS, Select, symbol


class Unit(NamedTuple):
    """length**a · time**b · unknown**c."""

    length: Fraction = Fraction(0)
    time: Fraction = Fraction(0)
    unknown: Fraction = Fraction(0)

    def __str__(self) -> str:
        powers = [
            letter if power == 1 else f"{letter}^{power}" for letter, power in zip("LtΘ", self, strict=True) if power
        ]
        return " ".join(powers) or "1"


def unit(length: int = 0, time: int = 0, unknown: int = 0) -> Unit:
    """A unit with whole exponents."""
    return Unit(Fraction(length), Fraction(time), Fraction(unknown))


NUMBER = unit()


def multiply_units(*parts: Unit) -> Unit:
    """The unit of a product."""
    return Unit(*(sum(column, Fraction(0)) for column in zip(*parts, strict=True)))


@dataclass(frozen=True)
class Clash:
    """A sum of terms in different units, or a function of something that has one."""

    where: str
    units: tuple[Unit, ...]

    def __str__(self) -> str:
        return f"{self.where} mixes the units {' and '.join(map(str, self.units))}"


Verdict = Unit | Clash | None
"""The unit, the place where units clash, or None: a fitted constant may have any unit."""


def dimensions(expr: sp.Expr, units: Mapping[str, Unit]) -> Verdict:
    """The unit of a formula whose symbols have the given units.

    Decimals were fitted, so a product with one has any unit, and so has a symbol that is not in `units`; exact numbers
    have none. Terms of a sum must agree, except those of any unit, and so must the sides of a comparison, which is a
    number, and the branches of where; arguments of exp, log, sin and cos have no unit.
    """
    if expr.is_Symbol:
        return units.get(expr.name)
    if expr.is_Float:
        return None
    if not expr.args:
        return NUMBER
    if expr.is_Pow:
        return _power(dimensions(expr.base, units), expr.exp)
    arguments = expr.args
    if isinstance(expr, Select):
        # Of a condition it is only asked whether it is 0: its unit need not be that of the branches.
        condition, *arguments = expr.args
        if isinstance(clash := dimensions(condition, units), Clash):
            return clash
    # 0 has any unit, as in max(a, 0).
    parts = [dimensions(argument, units) for argument in arguments if argument != 0]
    if clash := next((part for part in parts if isinstance(part, Clash)), None):
        return clash
    known = [part for part in parts if isinstance(part, Unit)]
    if expr.is_Mul:
        return multiply_units(*known) if len(known) == len(parts) else None
    return _common_unit(expr, known)


def _power(base: Verdict, exponent: sp.Expr) -> Verdict:
    if not isinstance(base, Unit):
        return base
    if not exponent.is_Rational:
        return NUMBER if base == NUMBER else None
    power = Fraction(int(exponent.p), int(exponent.q))
    return Unit(*(power * part for part in base))


def _common_unit(expr: sp.Expr, known: list[Unit]) -> Verdict:
    """The unit of a sum, modulus, extreme or comparison of like parts, of a sign, or of a function of a number."""
    if isinstance(expr, sp.Add | sp.Abs | sp.Min | sp.Max | Select) or type(expr) in COMPARISONS:
        different = tuple(dict.fromkeys(known))
        if len(different) > 1:
            return Clash(to_text(expr), different)
        return NUMBER if type(expr) in COMPARISONS else known[0] if known else None
    if isinstance(expr, sp.sign):
        return NUMBER
    return NUMBER if all(part == NUMBER for part in known) else Clash(to_text(expr), (known[0], NUMBER))


class Rank(StrEnum):
    """A number, a vector (one number per coordinate) or a symmetric tensor."""

    SCALAR = "scalar"
    VECTOR = "vector"
    TENSOR = "tensor"


class Where(StrEnum):
    """Whether a parameter is one value for the whole domain, one per cell, or one per face."""

    CONSTANT = "constant"
    CELL = "cell"
    FACE = "face"


# Scalars and tensors may vary from cell to cell or from face to face; fluxes need a velocity on faces only.
PLACES = {
    Rank.SCALAR: frozenset(Where),
    Rank.VECTOR: frozenset({Where.CONSTANT, Where.FACE}),
    Rank.TENSOR: frozenset(Where),
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of an equation.

    `unit` is None where it is not stated; `default` is the value of a scalar or vector that is not set.
    In a flux a scalar is its name (`k_P` and `k_N`, if it is given per cell), a vector a its component along the
    face's normal, `a_n` = a·n, and a tensor K `K_nn` = n·K n: the same in every dimension, however the mesh is turned.
    Of a tensor given per cell, `K_nn` is the harmonic mean of n·K n in the two cells.
    """

    name: str
    meaning: str = ""
    rank: Rank = Rank.SCALAR
    where: Where = Where.CONSTANT
    unit: Unit | None = None
    default: float | tuple[float, ...] | None = None

    def default_in(self, dimension: int) -> float | tuple[float, ...] | None:
        """The default in so many dimensions: a vector has further components 0."""
        if not isinstance(self.default, tuple):
            return self.default
        return (*self.default, *[0.0] * dimension)[:dimension]

    @property
    def in_cells(self) -> bool:
        """Whether it is a number of each cell: of a tensor given per cell, fluxes read what faces have of it."""
        return self.rank is Rank.SCALAR and self.where is Where.CELL

    def edge_names(self, ends: tuple[str, ...] = ("P", "N"), leg: str = "") -> tuple[str, ...]:
        """Its symbols in a message over an edge; `leg` is the suffix of that edge on a path of two."""
        if self.in_cells:
            return tuple(f"{self.name}_{end}" for end in ends)
        if self.rank is Rank.SCALAR:
            return (self.name,) if self.where is Where.CONSTANT else (f"{self.name}{leg}",)
        return (f"{self.normal_name}{leg}",)

    @property
    def cell_names(self) -> tuple[str, ...]:
        """Its symbol in the output of a cell, which has scalars only."""
        return (self.name,) if self.rank is Rank.SCALAR and self.where is not Where.FACE else ()

    @property
    def normal_name(self) -> str:
        """`a_n` = a·n of a vector, `K_nn` = n·K n of a tensor."""
        return f"{self.name}_{'n' if self.rank is Rank.VECTOR else 'nn'}"

    @property
    def tangential_names(self) -> tuple[str, ...]:
        """`a_t` = |a − (a·n) n| of a vector, `K_nt` = |K n − (n·K n) n| of a tensor; a scalar has none."""
        return {Rank.SCALAR: (), Rank.VECTOR: (f"{self.name}_t",), Rank.TENSOR: (f"{self.name}_nt",)}[self.rank]

    @property
    def conormal_names(self) -> tuple[str, ...]:
        """`K_n_x`, `K_n_y`, `K_n_z`: the components of K n of a tensor, as many as the mesh has."""
        return tuple(f"{self.name}_n_{axis}" for axis in COORDINATES) if self.rank is Rank.TENSOR else ()

    def component_names(self, dimension: int) -> tuple[str, ...]:
        """`a_x`, `a_y` of a vector; `K_xx`, `K_xy`, `K_yx`, `K_yy` of a tensor, row by row, symmetric."""
        axes = COORDINATES[:dimension]
        if self.rank is Rank.VECTOR:
            return tuple(f"{self.name}_{axis}" for axis in axes)
        return tuple(f"{self.name}_{''.join(sorted((row, column)))}" for row in axes for column in axes)


if TYPE_CHECKING:
    from fluxforge.pde._equation import Equation

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_TAKEN = frozenset((*WORDS, *COORDINATES, TIME, "A", "V", "S", "T", "delta", "chi", "dt", "n", "d", "theta", "f"))


def check_names(equation: "Equation") -> None:
    """Names are usable and distinct, ranks and places of parameters fit, and a velocity has something to carry."""
    where = f"equation {equation.name!r:.60}"
    names = [equation.unknown, *(p.name for p in equation.parameters)]
    for name in names:
        if not _NAME.fullmatch(name) or len(name) > 40:
            raise EquationError(f"{where}: {name!r:.60} is not a usable name (letters and digits, at most 40)")
        if (name in _TAKEN and name != "T") or names.count(name) > 1 or name == "T" != equation.unknown:
            raise EquationError(f"{where}: the name {name!r} is taken")
    for each in equation.parameters:
        if each.where not in PLACES[each.rank]:
            places = " or ".join(sorted(PLACES[each.rank]))
            raise EquationError(
                f"{where}: parameter {each.name!r}, a {each.rank}, should be {places}, not {each.where}"
            )
    if equation.velocity is not None and equation.parameter(equation.velocity).rank is not Rank.VECTOR:
        raise EquationError(f"{where}: the velocity {equation.velocity!r} should be a vector parameter")
    if (equation.velocity is None) != (equation.transported == 0):
        raise EquationError(f"{where}: 'transported' and 'velocity' belong together; one of them is missing")


def check_formulas(equation: "Equation") -> None:
    """Every formula contains only symbols it may; c > 0 and K ≥ 0 where they are numbers."""
    scalars = [p for p in equation.parameters if p.rank is Rank.SCALAR]
    in_cells = {symbol(p.name) for p in scalars if p.where is not Where.FACE}
    constant = {symbol(p.name) for p in scalars if p.where is Where.CONSTANT}
    tensor = set() if equation.diffusion_tensor is None else {equation.diffusion}
    allowed = {
        "capacity": in_cells,
        "transported": {*constant, equation.u},
        "diffusion": {*(symbol(p.name) for p in scalars), equation.u, *tensor},
        "reaction": {*in_cells, equation.u},
    }
    if equation.two_point is not None:
        ends = {symbol(f"{equation.unknown}_{end}") for end in ("P", "N")}
        faces = {symbol(name) for p in equation.parameters for name in p.edge_names()}
        allowed["two_point"] = {*ends, *faces, symbol("delta")}
    for field, known in allowed.items():
        if stray := sorted(map(str, getattr(equation, field).free_symbols - known)):
            raise EquationError(f"equation {equation.name!r}: {field!r} contains {stray[0]}, which it may not")
    c, K = equation.capacity, equation.diffusion
    if not c.free_symbols and not c.is_positive:
        raise EquationError(f"equation {equation.name!r}: the capacity should be positive, got {c!s:.40}")
    if not K.free_symbols and not K.is_nonnegative:
        raise EquationError(
            f"equation {equation.name!r}: the diffusion should be positive, or 0 for none, got {K!s:.40}"
        )


def check_units(equation: "Equation") -> None:
    """Where all parameters have units, every term has that of c ∂u/∂t, and a flux has it times a length.

    A reaction of the unknown alone, u - u**3, is one per unit of time: its terms must agree with each other.
    """
    if any(p.unit is None for p in equation.parameters):
        return
    units = {p.name: p.unit for p in equation.parameters if p.unit is not None}
    units[equation.unknown] = equation.unknown_unit
    per_time = _unit_of_term(equation, "capacity", equation.capacity, units, equation.unknown_unit, unit(time=-1))
    terms = {
        "diffusion": _unit_of_term(equation, "diffusion", equation.diffusion, units, equation.unknown_unit, unit(-2)),
        "reaction": _unit_of_term(equation, "reaction", equation.reaction, units),
    }
    if equation.velocity is not None:
        terms["transported"] = _unit_of_term(
            equation, "transported", equation.transported, units, units[equation.velocity], unit(-1)
        )
    for field, term in terms.items():
        alone = field == "reaction" and equation.reaction.free_symbols <= {equation.u}
        if getattr(equation, field) != 0 and not alone and None not in (term, per_time) and term != per_time:
            raise EquationError(
                f"equation {equation.name!r}: the term of {field!r} has the unit {term}, and c ∂u/∂t has {per_time}"
            )
    if equation.two_point is not None and equation.two_point != 0 and per_time is not None:
        _check_flux_unit(equation, units, multiply_units(per_time, unit(1)))


def _check_flux_unit(equation: "Equation", units: Mapping[str, Unit], wanted: Unit) -> None:
    on_edge = {"delta": unit(1)} | {f"{equation.unknown}_{end}": equation.unknown_unit for end in ("P", "N")}
    on_edge |= {name: units[p.name] for p in equation.parameters for name in p.edge_names()}
    assert equation.two_point is not None
    flux = _unit_of_term(equation, "two_point", equation.two_point, on_edge)
    if flux is not None and flux != wanted:
        raise EquationError(f"equation {equation.name!r}: 'two_point' has the unit {flux}, and a flux has {wanted}")


def _unit_of_term(
    equation: "Equation", field: str, formula: sp.Expr, units: Mapping[str, Unit], *others: Unit
) -> Unit | None:
    dimension = dimensions(formula, units)
    if isinstance(dimension, Clash):
        raise EquationError(f"equation {equation.name!r}: {field!r}: {dimension}")
    return None if dimension is None else multiply_units(dimension, *others)


# Points at which a given flux is evaluated; half of them have unknowns in (0, 1).
_POINTS = 12
# The distance over which a gradient is tried: (u_P - u_N)/δ keeps ten digits, and transport differs by about 1e-6.
_SHORT = 1e-6
# Tolerance for what is equal in exact arithmetic: a million times the round-off of numbers near 1.
_ROUND_OFF = 1e-9
# A hundred times the distance, for the terms of order δ that a flux may have beside its limit.
_NEAR = 100 * _SHORT


def check_two_point(equation: "Equation") -> None:
    """Refuse a `two_point` F that is not a flux of the equation; raises EquationError.

    F(u, u) = f(u) a·n; F is −F with the ends changed and the normal turned; and over a short distance δ with the
    slope s, F(u, u + s δ) = f(u) a·n − K s.
    """
    if equation.two_point is None:
        return
    trial = _Trial(equation)
    trial.check_equal_values()
    trial.check_turned()
    trial.check_gradient()


class _Trial:
    """The flux at random points: parameters near 1, velocities and half of the unknowns of either sign."""

    def __init__(self, equation: "Equation") -> None:
        self.equation = equation
        draw = np.random.default_rng(0)
        # Formulas such as log(u) and sqrt(1 - u) are real in (0, 1) only.
        inside, outside = draw.uniform(0.2, 0.9, (2, _POINTS // 2)), draw.uniform(-2.0, 2.0, (2, _POINTS // 2))
        self.u, self.v = np.concatenate([inside, outside], axis=1)
        self.slope = draw.uniform(0.5, 2.0, _POINTS) * draw.choice([-1.0, 1.0], _POINTS)
        self.delta = draw.uniform(0.3, 2.0, _POINTS)
        self.here, self.there, self.turned = {}, {}, {}
        for p in equation.parameters:
            one, other = draw.uniform(0.5, 2.0, (2, _POINTS))
            if p.rank is Rank.VECTOR:
                one = one * draw.choice([-1.0, 1.0], _POINTS)
            self.here[p.name], self.there[p.name] = one, other if p.in_cells else one
            self.turned[p.name] = -one if p.rank is Rank.VECTOR else one

    def check_equal_values(self) -> None:
        """F(u, u) = f(u) a·n, whatever the parameters are on either side."""
        u, carried = self.u, self._transport_flux()
        # Round-off is relative to terms like ∂F/∂u · u, which the flux at other values estimates.
        size = np.abs(carried) + np.abs(self._flux(u, self.v)) + np.abs(self._flux(self.v, u))
        self._require(self._flux(u, u), carried, _ROUND_OFF * size, "of equal values should be f(u) a·n")

    def check_turned(self) -> None:
        """F(P, N) = −F(N, P) with the normal reversed: what leaves P enters N."""
        ends = self._flux(self.u, self.v)
        back = -self._flux(self.v, self.u, turned=True)
        size = np.abs(ends) + np.abs(back)
        words = "should change its sign alone when P and N change places and the normal turns"
        self._require(ends, back, _ROUND_OFF * size, words)

    def check_gradient(self) -> None:
        """F(u, u + s δ) → f(u) a·n − K s with the same parameters on both sides."""
        self.there = self.here
        u, s = self.u, self.slope
        wanted = self._transport_flux() - self._diffusion() * s
        size = np.abs(wanted) + np.abs(self._flux(u, self.v, np.ones(_POINTS)))
        flux = self._flux(u, u + s * _SHORT, np.full(_POINTS, _SHORT))
        words = "should tend to f(u) a·n − K ∂u/∂n as delta does to 0"
        self._require(flux, wanted, _NEAR * size, words)

    def _require(self, values: np.ndarray, wanted: np.ndarray, tolerance: np.ndarray, words: str) -> None:
        where = f"equation {self.equation.name!r}: 'two_point'"
        real = np.isfinite(values) & np.isfinite(wanted) & np.isfinite(tolerance)
        if not real.any():
            raise EquationError(f"{where} has no finite value at any of {_POINTS} points that were tried")
        wrong = real & (np.abs(values - wanted) > tolerance)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise EquationError(f"{where} {words}: at a point it is {values[at]:.6g}, not {wanted[at]:.6g}")

    def _flux(self, P: np.ndarray, N: np.ndarray, delta: np.ndarray | None = None, turned: bool = False) -> np.ndarray:
        here, there = (self.there, self.here) if turned else (self.here, self.there)
        name = self.equation.unknown
        values = {f"{name}_P": P, f"{name}_N": N, "delta": self.delta if delta is None else delta}
        for p in self.equation.parameters:
            if p.in_cells:
                values |= {f"{p.name}_P": here[p.name], f"{p.name}_N": there[p.name]}
            else:
                values[p.edge_names()[0]] = (self.turned if turned else self.here)[p.name]
        assert self.equation.two_point is not None
        return _evaluate(self.equation.two_point, values)

    def _transport_flux(self) -> np.ndarray:
        """f(u) a·n."""
        velocity = self.equation.velocity
        along = 0.0 if velocity is None else self.here[velocity]
        return along * _evaluate(self.equation.transported, {**self.here, self.equation.unknown: self.u})

    def _diffusion(self) -> np.ndarray:
        return _evaluate(self.equation.diffusion, {**self.here, self.equation.unknown: self.u})


def _evaluate(formula: sp.Expr, values: dict[str, np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        result = evaluate(formula, {symbol(name): value for name, value in values.items()}, np)
    return np.broadcast_to(np.asarray(result, float), (_POINTS,))
