"""SymPy operations with limits: results of bounded size, finite real constants, and replacements of slow operations."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression._symbols import (
    EXACT_BELOW,
    LARGEST,
    MAX_BITS,
    MAX_DEGREE,
    MAX_EXPONENT,
    MAX_FRACTIONS,
    SMALLEST,
    AtMost,
    Below,
    RefusalError,
    Select,
    leaves_first,
)

OUT_OF_RANGE = "a number outside the range of double precision"
# A sum of constants below this fraction of the sum of their moduli is treated as cancelling: some hundred roundings.
_ROUNDING = 1e-13


ConstantValue: TypeAlias = Callable[[sp.Expr, dict[sp.Basic, Any]], float]
"""The value of an expression without symbols, from the values of its parts; raises ExpressionError if it has none."""


class _Size(NamedTuple):
    """Measures with which SymPy's time grows: the degree, and how deeply sums in denominators are nested."""

    degree: float
    fractions: int


class Gate:
    """Checks each node once against the limits; stores its size, and its value if it is a constant."""

    def __init__(self, constant: ConstantValue) -> None:
        self._constant = constant
        self._sizes: dict[sp.Basic, _Size] = {}
        self._constants: dict[sp.Basic, float] = {}

    def admit(self, expr: sp.Expr) -> sp.Expr:
        """Return the expression; a decimal below EXACT_BELOW with an integer value is returned as that integer.

        Raises RefusalError if a limit is exceeded.
        """
        for node in leaves_first(expr, self._sizes):
            self._sizes[node] = self._check(node)
        if expr.is_Float and abs(expr) < EXACT_BELOW and float(expr).is_integer():
            return self.admit(sp.Integer(int(expr)))
        return expr

    def value(self, expr: sp.Expr) -> float:
        """The value of an admitted constant; nan if the expression contains a symbol."""
        return self._constants.get(expr, math.nan)

    def check_exponent(self, exponent: sp.Expr) -> None:
        """Raise RefusalError unless an admitted exponent is a constant of at most MAX_EXPONENT."""
        value = self.value(exponent)
        if math.isnan(value):
            raise RefusalError("an exponent that is not a constant number")
        if abs(value) > MAX_EXPONENT:
            raise RefusalError(f"an exponent beyond ±{MAX_EXPONENT}")

    def _check(self, expr: sp.Basic) -> _Size:
        _check_number(expr)
        if not expr.is_Symbol and all(argument in self._constants for argument in expr.args):
            self._constants[expr] = self._finite_value(expr)
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

    def _finite_value(self, expr: sp.Basic) -> float:
        try:
            value = self._constant(expr, self._constants)
        except ExpressionError:
            raise RefusalError("a value that is not a finite real number") from None
        if not math.isfinite(value):
            raise RefusalError(OUT_OF_RANGE)
        # Such a sum may be exactly zero, and SymPy can take very long to decide that.
        if expr.is_Add and abs(value) <= _ROUNDING * sum(abs(self._constants[term]) for term in expr.args):
            raise RefusalError("a constant that cancels to zero within rounding")
        return value


def _check_number(expr: sp.Basic) -> None:
    if expr.is_Rational and max(abs(expr.p), expr.q).bit_length() > MAX_BITS:
        raise RefusalError(f"an exact number of more than {MAX_BITS} bits (write a decimal)")
    if expr.is_Float and not expr.is_zero and not SMALLEST <= abs(expr) <= LARGEST:
        raise RefusalError(OUT_OF_RANGE)


# A little below the logarithm of the largest double, 709.8.
_LOG_OF_LARGEST = 700.0


class Algebra:
    """Builds expressions from admitted ones and admits each result, or raises RefusalError.

    `constant` evaluates expressions without symbols.
    """

    def __init__(self, constant: ConstantValue) -> None:
        self._gate = Gate(constant)
        self._functions: Mapping[str, Callable[..., sp.Expr]] = {
            "sqrt": lambda a: self.power(a, sp.S.Half),
            "exp": self._exp,
            "log": self._log,
            "sin": sp.sin,
            "cos": sp.cos,
            "tan": sp.tan,
            "tanh": sp.tanh,
            "abs": self._abs,
            "sign": self._sign,
            "min": lambda *both: self._extreme(sp.Min, both),
            "max": lambda *both: self._extreme(sp.Max, both),
            "where": self._select,
        }

    def number(self, text: str) -> sp.Number:
        """Digits → an exact integer; a decimal → the nearest double (the integer, if that is what it equals)."""
        return self._gate.admit(sp.Integer(text) if text.isdigit() else _decimal(text))

    def pi(self) -> sp.Expr:
        """π, the only constant that has a name."""
        return self._gate.admit(sp.pi)

    def add(self, terms: Sequence[sp.Expr]) -> sp.Expr:
        """Σ terms."""
        return self._gate.admit(sp.Add(*terms))

    def multiply(self, factors: Sequence[sp.Expr]) -> sp.Expr:
        """Π factors, as one product: SymPy distributes a number over a sum only if they are alone."""
        return self._gate.admit(sp.Mul(*factors))

    def invert(self, expr: sp.Expr) -> sp.Expr:
        """1/expr."""
        if self._gate.value(expr) == 0:
            raise RefusalError("division by zero")
        return self._gate.admit(sp.Pow(expr, -1))

    def power(self, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        """base**exponent; the exponent is a constant of at most MAX_EXPONENT."""
        exponent = self._gate.admit(exponent)
        self._gate.check_exponent(exponent)
        if self._gate.value(base) == 0 and self._gate.value(exponent) < 0:
            raise RefusalError("division by zero")
        composite = base.is_Mul or base.is_Pow
        plain = exponent.is_Integer or not composite
        return self._gate.admit(sp.Pow(base, exponent) if plain else self._root(base, exponent))

    def call(self, name: str, arguments: Sequence[sp.Expr]) -> sp.Expr:
        """The function `name` of `ARITY`, applied to its arguments."""
        return self._gate.admit(self._functions[name](*arguments))

    def compare(self, operator: str, left: sp.Expr, right: sp.Expr) -> sp.Expr:
        """1 where `left operator right` holds, 0 elsewhere; `operator` is one of < <= > >=."""
        small, large = (left, right) if operator[0] == "<" else (right, left)
        kind: Callable[..., sp.Expr] = AtMost if operator.endswith("=") else Below
        a, b = self._gate.value(small), self._gate.value(large)
        # Constants such as pi are compared by value: SymPy may take long to decide on them.
        if not (small.is_Number and large.is_Number) and not (math.isnan(a) or math.isnan(b)):
            return self._gate.admit(sp.Integer(a <= b if kind is AtMost else a < b))
        return self._gate.admit(kind(small, large))

    def _select(self, condition: sp.Expr, a: sp.Expr, b: sp.Expr) -> sp.Expr:
        value = self._gate.value(condition)
        return Select(condition, a, b) if math.isnan(value) else (a if value != 0 else b)

    def _root(self, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        """(Π bᵢ)**e with the squares pulled out as moduli: formulas are real, which SymPy does not take for granted."""
        if base.is_Pow:
            return sp.Pow(self._abs(base.base) if base.exp.is_even else base.base, base.exp * exponent)
        factors = sp.Mul.make_args(base)
        squares = [factor for factor in factors if factor.is_Pow and factor.exp.is_even]
        rest = sp.Mul(*(factor for factor in factors if factor not in squares))
        return sp.Mul(*(self._root(square, exponent) for square in squares), sp.Pow(rest, exponent))

    def _exp(self, argument: sp.Expr) -> sp.Expr:
        # SymPy turns exp(n*log(2)) into the integer 2**n, so that n has to be checked before SymPy is called.
        for term in (argument, *sp.Add.make_args(argument)):
            if abs(self._gate.value(term)) > _LOG_OF_LARGEST:
                raise RefusalError(OUT_OF_RANGE)
        return sp.exp(argument)

    def _log(self, argument: sp.Expr) -> sp.Expr:
        if self._gate.value(argument) <= 0:
            raise RefusalError("the logarithm of a number that is not positive")
        return sp.log(argument)

    def _abs(self, argument: sp.Expr) -> sp.Expr:
        """|c·Π bᵢ| = |c|·Π|bᵢ|, with one modulus for all factors of unknown sign.

        SymPy's own simplification takes exponential time on fractions.
        """
        number, rest = argument.as_coeff_Mul()
        if rest.is_Pow and rest.exp.is_Integer:
            return sp.Mul(abs(number), sp.Pow(self._abs(rest.base), rest.exp))
        signs = {factor: self._sign_of(factor) for factor in sp.Mul.make_args(rest)}
        known = [sign * factor for factor, sign in signs.items() if sign]
        inner = sp.Mul(*(factor for factor, sign in signs.items() if not sign))
        outer = sp.Abs(-inner if inner.could_extract_minus_sign() else inner, evaluate=False) if inner != 1 else inner
        return sp.Mul(abs(number), *known, outer)

    def _sign_of(self, expr: sp.Expr) -> int:
        """±1 such that sign·expr ≥ 0 everywhere, or 0 if neither is known."""
        value = self._gate.value(expr)
        if not math.isnan(value):
            return 1 if value >= 0 else -1
        return 1 if expr.is_extended_nonnegative else -1 if expr.is_extended_nonpositive else 0

    def _sign(self, argument: sp.Expr) -> sp.Expr:
        value = self._gate.value(argument)
        return sp.sign(argument) if math.isnan(value) else sp.Integer((value > 0) - (value < 0))

    def _extreme(self, kind: type[sp.Expr], both: Sequence[sp.Expr]) -> sp.Expr:
        """Min or max of a flat set with one constant at most: SymPy's own compares every pair symbolically."""
        flat = {part for argument in both for part in (argument.args if isinstance(argument, kind) else [argument])}
        symbolic = {part for part in flat if math.isnan(self._gate.value(part))}
        constants = sorted(flat - symbolic, key=lambda part: (self._gate.value(part), str(part)))
        kept = symbolic.union(constants[:1] if kind is sp.Min else constants[-1:])
        return kind(*kept, evaluate=False) if len(kept) > 1 else kept.pop()


def _decimal(text: str) -> sp.Float:
    value, mantissa = float(text), text.lower().partition("e")[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("0.")):
        raise RefusalError(OUT_OF_RANGE)
    return sp.Float(value)
