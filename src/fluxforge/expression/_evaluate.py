"""A SymPy expression → an array, by walking the tree with NumPy or JAX. No code is generated."""

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, TypeAlias

import sympy as sp

from fluxforge._files import escape_unprintable
from fluxforge.errors import ExpressionError
from fluxforge.expression._symbols import (
    AtMost,
    Below,
    Select,
    arguments,
    known_names,
    leaves_first,
)

Value: TypeAlias = Any
"""A Python float, a NumPy array, or a JAX array (traced or not)."""

_FLOATS = SimpleNamespace(
    sqrt=math.sqrt, exp=math.exp, log=math.log, sin=math.sin, cos=math.cos, tan=math.tan, tanh=math.tanh,
    abs=abs, minimum=min, maximum=max, sign=lambda a: float((a > 0) - (a < 0)),
    less=operator.lt, less_equal=operator.le, where=lambda condition, a, b: a if condition else b,
    result_type=lambda *_: float, asarray=lambda a, kind: kind(a),
)  # fmt: skip
"""The functions of Python floats under the names of `xp`: constants never become arrays (nor float32)."""


def _as_number(xp: Any, holds: Value, *sides: Value) -> Value:
    """True and false as 1 and 0, in the common type of the two sides."""
    return xp.asarray(holds, xp.result_type(*sides))


def _select(xp: Any, condition: Value, a: Value, b: Value) -> Value:
    """`where` in the common type of all three arguments: for two constant branches NumPy alone would return float64."""
    kind = xp.result_type(condition, a, b)
    return xp.where(condition != 0, xp.asarray(a, kind), xp.asarray(b, kind))


_FUNCTIONS: Mapping[type, Callable[..., Value]] = {
    sp.exp: lambda xp, a: xp.exp(a),
    sp.log: lambda xp, a: xp.log(a),
    sp.sin: lambda xp, a: xp.sin(a),
    sp.cos: lambda xp, a: xp.cos(a),
    sp.tan: lambda xp, a: xp.tan(a),
    sp.cot: lambda xp, a: 1.0 / xp.tan(a),
    sp.tanh: lambda xp, a: xp.tanh(a),
    sp.Abs: lambda xp, a: xp.abs(a),
    sp.sign: lambda xp, a: xp.sign(a),
    sp.Min: lambda xp, *a: functools.reduce(xp.minimum, a),
    sp.Max: lambda xp, *a: functools.reduce(xp.maximum, a),
    Below: lambda xp, a, b: _as_number(xp, xp.less(a, b), a, b),
    AtMost: lambda xp, a, b: _as_number(xp, xp.less_equal(a, b), a, b),
    Select: _select,
}


def evaluate(expr: sp.Expr, values: Mapping[sp.Symbol, Value], xp: Any) -> Value:
    """expr(values), with the functions of `xp` (`numpy` or `jax.numpy`); a Python float if nothing is an array.

    Numbers are Python floats, so arrays keep their dtype. Equal subexpressions are computed once, a product is one
    quotient (a·b)/(c·d), and x**(1/2) is a square root. Roots of negative numbers are nan, as in `xp`.
    A comparison is 1 or 0. Both branches of where(…) are evaluated everywhere: the one that is not taken may be nan,
    but then a gradient by JAX is nan, too; `pde.differentiate` differentiates branch by branch.
    Raises ExpressionError for a symbol without a value, a node that formulas cannot have, or a constant that is not a
    finite real number.
    """
    memo = {symbol: float(value) if type(value) is int else value for symbol, value in values.items()}
    return Walk(memo, xp)(expr)


def evaluate_constant(expr: sp.Expr, memo: dict[sp.Basic, Value]) -> float:
    """The value of an expression without symbols; `memo` holds the values of subexpressions, and new ones are added."""
    value: float = Walk(memo, _FLOATS)(expr)
    return value


class Walk:
    """Evaluates every subexpression once, leaves first; `memo` starts as the values of the symbols."""

    def __init__(self, memo: dict[sp.Basic, Value], xp: Any) -> None:
        self._memo, self._xp = memo, xp

    def __call__(self, expr: sp.Basic) -> Value:
        """The value of an expression; raises ExpressionError as `evaluate` does."""
        for node in leaves_first(expr, self._memo, _needs):
            try:
                self._memo[node] = self._node(node)
            except (ZeroDivisionError, OverflowError):
                raise ExpressionError(f"a constant {type(node).__name__} node has no finite value") from None
        return self._memo[expr]

    def _node(self, expr: sp.Basic) -> Value:
        if isinstance(expr, sp.Rational):
            return expr.p / expr.q
        if isinstance(expr, sp.Float) or expr in (sp.pi, sp.E):
            return float(expr)
        if isinstance(expr, sp.Add):
            return self._sum(expr)
        if isinstance(expr, sp.Mul | sp.Pow):
            return self._quotient(expr)
        if type(expr) in _FUNCTIONS:
            return self._call(_FUNCTIONS[type(expr)], *(self._memo[argument] for argument in expr.args))
        if isinstance(expr, sp.Symbol):
            hint = known_names(expr.name, (key.name for key in self._memo if isinstance(key, sp.Symbol)))
            raise ExpressionError(f"no value for the symbol '{escape_unprintable(expr.name)}'; {hint}")
        raise ExpressionError(f"a formula cannot contain a {type(expr).__name__} node")

    def _call(self, function: Callable[..., Value], *arguments: Value) -> Value:
        if not all(type(argument) is float for argument in arguments):
            return function(self._xp, *arguments)
        try:
            return function(_FLOATS, *arguments)
        except ValueError:
            raise ExpressionError(f"a function is not real at the constant {arguments[0]!r}") from None

    def _sum(self, expr: sp.Add) -> Value:
        """The sum of the terms; a negated one is subtracted rather than multiplied by −1."""
        plus = [self._memo[term] for term in expr.args if not _is_negative(term)]
        minus = [self._memo[-term] for term in expr.args if _is_negative(term)]
        if not plus:
            return -_total(minus)
        return _total(plus) - _total(minus) if minus else _total(plus)

    def _quotient(self, expr: sp.Expr) -> Value:
        """(a·b)/(c·d): one division, whatever the number of factors."""
        above: list[Value] = []
        below: list[Value] = []
        for factor in sp.Mul.make_args(expr):
            if isinstance(factor, sp.Rational) and abs(factor.p) == 1 and factor.q != 1:
                above.append(float(factor.p))
                below.append(float(factor.q))
            elif isinstance(factor, sp.Pow):
                exponent = self._exponent(factor.exp)
                power = self._power(self._memo[factor.base], abs(exponent))
                (below if exponent < 0 else above).append(power)
            else:
                above.append(self._memo[factor])
        return _product(above) / _product(below) if below else _product(above)

    def _exponent(self, expr: sp.Expr) -> int | float:
        value = self._memo[expr]
        if type(value) is not float:
            raise ExpressionError("a formula cannot contain a power whose exponent is not a number")
        return int(value) if value.is_integer() else value

    def _power(self, base: Value, exponent: int | float) -> Value:
        if exponent == 1:
            return base
        if exponent == 0.5:
            return self._call(lambda xp, a: xp.sqrt(a), base)
        if type(base) is float:
            return self._call(lambda _, a: math.pow(a, exponent), base)
        return base**exponent


def _needs(expr: sp.Basic) -> Iterable[sp.Basic]:
    """The nodes that are evaluated before this one: 1/x within a product needs x, −x within a sum needs x."""
    if isinstance(expr, sp.Add):
        return [-term if _is_negative(term) else term for term in expr.args]
    if isinstance(expr, sp.Mul | sp.Pow):
        factors = sp.Mul.make_args(expr)
        return [part for factor in factors for part in (factor.args if factor.is_Pow else [factor])]
    return arguments(expr)


def _is_negative(term: sp.Expr) -> bool:
    return bool(term.is_Mul and term.args[0].is_Number and term.args[0].is_negative)


def _total(terms: list[Value]) -> Value:
    """The sum of the terms. Python floats are added first, so that arrays are added to one constant at most."""
    floats = [term for term in terms if type(term) is float]
    arrays = [term for term in terms if type(term) is not float]
    return functools.reduce(operator.add, arrays + ([math.fsum(floats)] if floats else []))


def _product(factors: list[Value]) -> Value:
    """The product of the factors; a constant ±1 takes no multiplication."""
    arrays = [factor for factor in factors if type(factor) is not float]
    coefficient = float(math.prod(factor for factor in factors if type(factor) is float))
    if not arrays:
        return coefficient
    product = functools.reduce(operator.mul, arrays)
    return product if coefficient == 1 else -product if coefficient == -1 else coefficient * product
