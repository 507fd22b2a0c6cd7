"""The gate every new expression passes: numbers of modest size, constants that are finite and real."""

import math
from typing import NamedTuple

import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression._errors import RefusalError
from fluxforge.expression._evaluate import constant
from fluxforge.expression._limits import (
    EXACT_BELOW,
    LARGEST,
    MAX_BITS,
    MAX_DEGREE,
    MAX_EXPONENT,
    MAX_FRACTIONS,
    SMALLEST,
)
from fluxforge.expression._walk import leaves_first

OUT_OF_RANGE = "a number outside the range of double precision"
_ROUNDING = 1e-13


class _Size(NamedTuple):
    """How hard a node is for SymPy: the degree, and how deeply sums in denominators are nested."""

    degree: float
    fractions: int


class Gate:
    """Checks each node once; keeps its size, and its value if it is a constant."""

    def __init__(self) -> None:
        self._sizes: dict[sp.Basic, _Size] = {}
        self._constants: dict[sp.Basic, float] = {}

    def admit(self, expr: sp.Expr) -> sp.Expr:
        """The expression, or a refusal; a decimal with a small integer value becomes that integer."""
        for node in leaves_first(expr, self._sizes):
            self._sizes[node] = self._check(node)
        if expr.is_Float and abs(expr) < EXACT_BELOW and float(expr).is_integer():
            return self.admit(sp.Integer(int(expr)))
        return expr

    def value(self, expr: sp.Expr) -> float:
        """The value of an admitted constant, nan for whatever has a symbol."""
        return self._constants.get(expr, math.nan)

    def check_exponent(self, exponent: sp.Expr) -> None:
        """An admitted exponent is a constant of modest size."""
        value = self.value(exponent)
        if math.isnan(value):
            raise RefusalError("an exponent that is not a constant number")
        if abs(value) > MAX_EXPONENT:
            raise RefusalError(f"an exponent beyond ±{MAX_EXPONENT}")

    def _check(self, expr: sp.Basic) -> _Size:
        _check_number(expr)
        if not expr.is_Symbol and all(argument in self._constants for argument in expr.args):
            self._constants[expr] = self._finite(expr)
        if expr.is_Pow:
            self.check_exponent(expr.exp)
        size = self._size(expr)
        if size.degree > MAX_DEGREE:
            raise RefusalError(f"a power or product of degree beyond {MAX_DEGREE}")
        if size.fractions > MAX_FRACTIONS:
            raise RefusalError(f"sums in denominators nested more than {MAX_FRACTIONS} deep")
        return size

    def _size(self, expr: sp.Basic) -> _Size:
        parts = [self._sizes[argument] for argument in expr.args] or [_Size(float(expr.is_Symbol), 0)]
        degree, fractions = max(part.degree for part in parts), max(part.fractions for part in parts)
        if expr.is_Mul:
            return _Size(sum(part.degree for part in parts), fractions)
        if expr.is_Pow:
            exponent = self.value(expr.exp)
            return _Size(degree * max(1.0, abs(exponent)), fractions + (exponent < 0 and expr.base.is_Add))
        return _Size(degree, fractions)

    def _finite(self, expr: sp.Basic) -> float:
        try:
            value = constant(expr, self._constants)
        except ExpressionError:
            raise RefusalError("a value that is not a finite real number") from None
        if not math.isfinite(value):
            raise RefusalError(OUT_OF_RANGE)
        # Such a sum may be an exact zero in disguise, and SymPy can take very long to find out.
        if expr.is_Add and abs(value) <= _ROUNDING * sum(abs(self._constants[term]) for term in expr.args):
            raise RefusalError("a constant that cancels to zero within rounding")
        return value


def _check_number(expr: sp.Basic) -> None:
    if expr.is_Rational and max(abs(expr.p), expr.q).bit_length() > MAX_BITS:
        raise RefusalError(f"an exact number of more than {MAX_BITS} bits (write a decimal)")
    if expr.is_Float and not expr.is_zero and not SMALLEST <= abs(expr) <= LARGEST:
        raise RefusalError(OUT_OF_RANGE)
