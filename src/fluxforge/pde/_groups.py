"""Dimensionless groups of Δt, a length ℓ and an equation's parameters (Buckingham's theorem).

The exponents of a dimensionless product of Δt, ℓ and parameters are a vector in the null space of the matrix of their
units. A basis of that space has one vector per parameter, less one if the unit of the unknown occurs among those of
the parameters: α Δt/ℓ² for heat, a Δt/ℓ for transport, r Δt for a reaction.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from fluxforge.errors import EquationError
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Unit, unit

STEP, LENGTH = "dt", "length"


@dataclass(frozen=True)
class Group:
    """The dimensionless product Δt^step · ℓ^length · Π p^power; `powers` has the parameters whose power is not 0."""

    step: int
    length: int
    powers: Mapping[str, int]

    def __str__(self) -> str:
        parts = [(STEP, self.step), (LENGTH, self.length), *self.powers.items()]
        return " ".join(name if power == 1 else f"{name}^{power}" for name, power in parts if power)


def dimensionless_groups(equation: Equation) -> tuple[Group, ...]:
    """A basis of the dimensionless groups of an equation; in each, the last parameter has a positive power.

    Raises EquationError for a parameter whose unit is not stated.
    """
    for p in equation.parameters:
        if p.unit is None:
            raise EquationError(
                f"equation {equation.name!r}: parameter {p.name!r} has no unit; a unit is needed to form "
                "dimensionless numbers"
            )
    names = [p.name for p in equation.parameters]
    units = [unit(time=1), unit(length=1), *(p.unit for p in equation.parameters if p.unit is not None)]
    return tuple(
        Group(powers[0], powers[1], {name: power for name, power in zip(names, powers[2:], strict=True) if power})
        for powers in integer_null_space(units)
    )


def integer_null_space(units: Sequence[Unit]) -> tuple[tuple[int, ...], ...]:
    """A basis of the exponents with which quantities of these units form dimensionless products.

    Every vector has one integer per quantity, without a common divisor; its last exponent that is not 0 is positive.
    """
    matrix = sp.Matrix([[sp.Rational(each.numerator, each.denominator) for each in own] for own in units]).T
    return tuple(_to_whole_numbers(vector) for vector in matrix.nullspace())


def _to_whole_numbers(vector: sp.Matrix) -> tuple[int, ...]:
    common = math.lcm(*(int(entry.q) for entry in vector))
    entries = [int(entry * common) for entry in vector]
    divisor = math.gcd(*entries)
    sign = next(1 if entry > 0 else -1 for entry in reversed(entries) if entry)
    return tuple(sign * entry // divisor for entry in entries)
