"""Parameters of an equation (name, rank, place), and units of formulas.

Units are products of powers of a length, a time and the unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

import sympy as sp

from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import COMPARISONS, COORDINATES, Select


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
    """A subexpression whose units contradict: terms of different units, or a function of an argument with a unit."""

    where: str
    units: tuple[Unit, ...]

    def __str__(self) -> str:
        return f"{self.where} mixes the units {' and '.join(map(str, self.units))}"


Verdict = Unit | Clash | None
"""The unit, the place where units clash, or None: a fitted constant may have any unit."""


def dimensions(expr: sp.Expr, units: Mapping[str, Unit]) -> Verdict:
    """The unit of a formula whose symbols have the given units.

    Decimals are taken for fitted constants of any unit, and so are symbols that are not in `units`: the unit of a
    product with one is None. Exact numbers have no unit. Terms of a sum must agree, except those of any unit, and so
    must the sides of a comparison, which is a number, and the branches of where; arguments of exp, log, sin and cos
    must not have a unit. Returns a Clash, with the subexpression, where this is violated.
    """
    if expr.is_Symbol:
        return units.get(expr.name)
    if expr.is_Float:
        return None
    if not expr.args:
        return NUMBER
    if expr.is_Pow:
        return _raise_unit(dimensions(expr.base, units), expr.exp)
    arguments = expr.args
    if isinstance(expr, Select):
        # A condition is only compared with 0, so that its unit need not be that of the branches.
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


def _raise_unit(base: Verdict, exponent: sp.Expr) -> Verdict:
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
    """How many values a parameter has: one for the whole domain, one per cell, or one per face."""

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
    In the formula of a flux, a scalar appears under its name (`k_P` and `k_N` if it is given per cell), a vector a as
    its component along the face's normal, `a_n` = a·n, and a tensor K as `K_nn` = n·K n. These do not depend on the
    dimension, nor change when the mesh is rotated. Of a tensor given per cell, `K_nn` is the harmonic mean of n·K n
    in the two cells.
    """

    name: str
    meaning: str = ""
    rank: Rank = Rank.SCALAR
    where: Where = Where.CONSTANT
    unit: Unit | None = None
    default: float | tuple[float, ...] | None = None

    def default_in(self, dimension: int) -> float | tuple[float, ...] | None:
        """The default value in `dimension` dimensions: vectors are cut, or filled up with zeros."""
        if not isinstance(self.default, tuple):
            return self.default
        return (*self.default, *[0.0] * dimension)[:dimension]

    @property
    def in_cells(self) -> bool:
        """Whether it is a scalar given per cell; a tensor given per cell enters fluxes through values of the faces."""
        return self.rank is Rank.SCALAR and self.where is Where.CELL

    def edge_names(self, ends: tuple[str, ...] = ("P", "N"), leg: str = "") -> tuple[str, ...]:
        """The names of its symbols in a message over an edge; `leg` is the suffix of that edge on a path of two."""
        if self.in_cells:
            return tuple(f"{self.name}_{end}" for end in ends)
        if self.rank is Rank.SCALAR:
            return (self.name,) if self.where is Where.CONSTANT else (f"{self.name}{leg}",)
        return (f"{self.normal_name}{leg}",)

    @property
    def cell_names(self) -> tuple[str, ...]:
        """Its name in the formulas of a cell, which contain scalars only: empty for a vector, a tensor, or per face."""
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
        """`K_n_x`, `K_n_y`, `K_n_z`: the components of K n of a tensor (in the plane the first two); () for others."""
        return tuple(f"{self.name}_n_{axis}" for axis in COORDINATES) if self.rank is Rank.TENSOR else ()

    def component_names(self, dimension: int) -> tuple[str, ...]:
        """`a_x`, `a_y` of a vector; `K_xx`, `K_xy`, `K_xy`, `K_yy` of a symmetric tensor, row by row."""
        axes = COORDINATES[:dimension]
        if self.rank is Rank.VECTOR:
            return tuple(f"{self.name}_{axis}" for axis in axes)
        return tuple(f"{self.name}_{''.join(sorted((row, column)))}" for row in axes for column in axes)
