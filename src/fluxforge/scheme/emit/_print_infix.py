"""SymPy → an expression of Python or C, or plain text; the order of terms and factors is the same in every language."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import COMPARISONS, Select, sides

EXACT_BELOW = 2**24
"""Integers smaller than this are exact in single precision too; larger ones are written as decimals."""

_FIRST = ("dt", "alpha")


class Quotient(NamedTuple):
    """top·above·sums / (bottom·below) without its sign: the factors in reading order, every exponent positive."""

    top: int | float
    bottom: int
    above: tuple[sp.Expr, ...]
    sums: tuple[sp.Expr, ...]
    below: tuple[sp.Expr, ...]


def quotient(expr: sp.Expr) -> Quotient:
    """A product, a power or anything else as one quotient."""
    factors = sp.Mul.make_args(expr)
    number = sp.Mul(*(factor for factor in factors if factor.is_Number))
    others = [factor for factor in factors if not factor.is_Number]
    top, bottom = _over(abs(number))
    under = [sp.Pow(factor.base, -factor.exp) for factor in others if _is_below(factor)]
    over = [factor for factor in others if not _is_below(factor)]
    return Quotient(
        top=top,
        bottom=bottom,
        above=tuple(sorted((factor for factor in over if not factor.is_Add), key=_factor_key)),
        sums=tuple(sorted((factor for factor in over if factor.is_Add), key=_factor_key)),
        below=tuple(sorted(under, key=_factor_key)),
    )


def terms(expr: sp.Add) -> list[sp.Expr]:
    """Short terms first; a positive one leads if there is any."""
    ordered = sorted(expr.args, key=_term_key)
    lead = next((term for term in ordered if not is_negative(term)), ordered[0])
    return [lead, *(term for term in ordered if term is not lead)]


def is_negative(term: sp.Expr) -> bool:
    """Whether a term is written with a minus sign."""
    return bool(term.as_coeff_Mul()[0] < 0)


def is_constant(expr: sp.Expr) -> bool:
    """Whether an expression is a number that has to be worked out: π, √2, 1 + log(3)."""
    return not (expr.free_symbols or expr.is_Number)


def _is_below(factor: sp.Expr) -> bool:
    return bool(factor.is_Pow and factor.exp.is_number and factor.exp < 0)


def _over(size: sp.Number) -> tuple[int | float, int]:
    if isinstance(size, sp.Rational) and max(size.p, size.q) < EXACT_BELOW:
        return int(size.p), int(size.q)
    value = float(size)
    return (int(value) if value.is_integer() and value < EXACT_BELOW else value), 1


def _factor_key(factor: sp.Expr) -> tuple[int, str]:
    """Constants, Δt, α, symbols, then functions and sums; each kind in the order of its text."""
    base = factor.base if factor.is_Pow else factor
    if not factor.free_symbols:
        return 0, to_text(factor)
    if not base.is_Symbol:
        return len(_FIRST) + 2, to_text(factor)
    return (_FIRST.index(base.name) + 1 if base.name in _FIRST else len(_FIRST) + 1), to_text(factor)


def _term_key(term: sp.Expr) -> tuple[int, str]:
    size = sum(1 for _ in sp.preorder_traversal(-term if is_negative(term) else term))
    return size, to_text(term)


# Precedence, from the loosest to the tightest.
SUM, PRODUCT, POWER, ATOM = range(4)
Piece = tuple[str, int]
"""A text and its precedence."""

FUNCTIONS: tuple[type, ...] = (sp.exp, sp.log, sp.sin, sp.cos, sp.tan, sp.tanh, sp.Abs, sp.sign, sp.Min, sp.Max)


@dataclass(frozen=True)
class Dialect:
    """The rules in which the languages differ.

    `functions` names each function, Min and Max taking two arguments; `number` writes an integer or a double;
    `power` writes base**(p/q) from the base's own piece, p/q positive and neither 1 nor 1/2; `compare` a number, 1 or
    0, from left side, operator and right side; `select` a choice from its condition as a number, its condition as a
    statement (None unless it is a comparison) and the two branches.
    """

    functions: Mapping[type, str]
    sqrt: str
    number: Callable[[int | float], str]
    power: Callable[[Piece, sp.Expr, str], Piece]
    compare: Callable[[str, str, str], str]
    select: Callable[[str, str | None, str, str], str]


def infix(expr: sp.Expr, dialect: Dialect, names: Callable[[str], str]) -> str:
    """The expression in a language; `names` says how each symbol is written."""
    return _Infix(dialect, names).piece(expr)[0]


class _Infix:
    def __init__(self, dialect: Dialect, names: Callable[[str], str]) -> None:
        self._in, self._names = dialect, names

    def piece(self, expr: sp.Expr) -> Piece:
        if is_constant(expr):
            return self._number(float(evaluate(expr, {}, np)))
        if expr.is_Symbol:
            return self._names(expr.name), ATOM
        if expr.is_Add:
            return self._sum(expr)
        if expr.is_Mul or expr.is_Number or (expr.is_Pow and expr.exp < 0):
            return self._product(expr)
        if expr.is_Pow:
            return self._power(expr)
        return self._call(expr)

    def within(self, level: int, expr: sp.Expr) -> str:
        return _in_brackets(level, self.piece(expr))

    def _number(self, value: int | float) -> Piece:
        return self._in.number(value), SUM if value < 0 else ATOM

    def _sum(self, expr: sp.Add) -> Piece:
        text = ""
        for term in terms(expr):
            if is_constant(term):
                value = float(evaluate(term, {}, np))
                negative, body = value < 0, self._in.number(abs(value))
            else:
                negative = is_negative(term)
                body = self._unsigned(term)[0]
            text += f" {'-' if negative else '+'} {body}" if text else f"{'-' if negative else ''}{body}"
        return text, SUM

    def _product(self, expr: sp.Expr) -> Piece:
        text, level = self._unsigned(expr)
        return (f"-{text}", SUM) if is_negative(expr) else (text, level)

    def _unsigned(self, expr: sp.Expr) -> Piece:
        """`3*a/(2*b)*(c + d)`, the sign left to the caller."""
        if not (expr.is_Mul or expr.is_Number or expr.is_Pow):
            return self.piece(expr)
        parts = quotient(expr)
        above = [self._number(parts.top)[0]] if parts.top != 1 else []
        above += [self.within(PRODUCT, factor) for factor in parts.above]
        sums = [f"({self.piece(factor)[0]})" for factor in parts.sums]
        if not above:
            above = [sums.pop(0) if sums else self._number(1)[0]]
        below = [self._number(parts.bottom)[0]] if parts.bottom != 1 else []
        below += [self.within(POWER, factor) for factor in parts.below]
        under = "" if not below else f"/{below[0]}" if len(below) == 1 else f"/({'*'.join(below)})"
        text = "*".join(["*".join(above) + under, *sums])
        return text, ATOM if len(above) == 1 and not under and not sums and not parts.above else PRODUCT

    def _power(self, expr: sp.Pow) -> Piece:
        if expr.exp == 1:
            return self.piece(expr.base)
        if expr.exp == sp.S.Half:
            return f"{self._in.sqrt}({self.piece(expr.base)[0]})", ATOM
        return self._in.power(self.piece(expr.base), expr.exp, self.within(ATOM, _tidy(expr.exp)))

    def _comparison(self, expr: sp.Expr) -> tuple[str, str, str]:
        left, operator, right = sides(expr)
        return self.piece(left)[0], operator, self.piece(right)[0]

    def _select(self, expr: sp.Expr) -> Piece:
        condition, a, b = expr.args
        statement = " ".join(self._comparison(condition)) if type(condition) in COMPARISONS else None
        branches = (self.piece(a)[0], self.piece(b)[0])
        return self._in.select(self.within(PRODUCT, condition), statement, *branches), ATOM

    def _call(self, expr: sp.Expr) -> Piece:
        if type(expr) in COMPARISONS:
            return self._in.compare(*self._comparison(expr)), ATOM
        if isinstance(expr, Select):
            return self._select(expr)
        arguments = [self.piece(argument)[0] for argument in expr.args]
        if isinstance(expr, sp.cot):
            return f"{self._number(1)[0]}/{self._in.functions[sp.tan]}({arguments[0]})", PRODUCT
        name = next((self._in.functions[kind] for kind in FUNCTIONS if isinstance(expr, kind)), None)
        if name is None:
            raise ExpressionError(f"a formula cannot contain a {type(expr).__name__} node")
        if isinstance(expr, sp.Min | sp.Max):
            return functools.reduce(lambda a, b: f"{name}({a}, {b})", sorted(arguments)), ATOM
        return f"{name}({arguments[0]})", ATOM


def _in_brackets(level: int, piece: Piece) -> str:
    return piece[0] if piece[1] >= level else f"({piece[0]})"


def _tidy(exponent: sp.Expr) -> sp.Expr:
    return sp.Integer(int(exponent)) if exponent.is_Float and float(exponent).is_integer() else exponent


def _star_power(base: Piece, _: sp.Expr, exponent: str) -> Piece:
    return f"{_in_brackets(ATOM, base)}**{exponent}", POWER


def _c_power(base: Piece, exponent: sp.Expr, text: str) -> Piece:
    """x*x and x*x*x for a name; pow otherwise."""
    if base[1] == ATOM and base[0].isidentifier() and exponent in (2, 3):
        return "*".join([base[0]] * int(exponent)), PRODUCT
    return f"pow({base[0]}, {text.removeprefix('(').removesuffix(')')})", ATOM


def _called_compare(left: str, operator: str, right: str) -> str:
    small, large = (left, right) if operator[0] == "<" else (right, left)
    return f"{'_at_most' if operator.endswith('=') else '_below'}({small}, {large})"


def _c_select(number: str, statement: str | None, a: str, b: str) -> str:
    return f"({statement or f'{number} != 0.0'} ? {a} : {b})"


def array_dialect(module: str) -> Dialect:
    """Python with the functions of `np` or `jnp`, and functions of the module's own for comparisons and choices."""
    words = ("exp", "log", "sin", "cos", "tan", "tanh", "abs", "sign", "minimum", "maximum")
    functions = {kind: f"{module}.{word}" for kind, word in zip(FUNCTIONS, words, strict=True)}
    return Dialect(
        functions,
        f"{module}.sqrt",
        repr,
        _star_power,
        compare=_called_compare,
        select=lambda number, _, a, b: f"_select({number}, {a}, {b})",
    )


def c_dialect(prefix: str) -> Dialect:
    """C99: libm, and three functions of our own where C has none with the same answer for nan."""
    own = (f"{prefix}_sign", f"{prefix}_min", f"{prefix}_max")
    words = ("exp", "log", "sin", "cos", "tan", "tanh", "fabs", *own)
    return Dialect(
        dict(zip(FUNCTIONS, words, strict=True)),
        "sqrt",
        lambda value: repr(float(value)),
        _c_power,
        compare=lambda left, operator, right: f"({left} {operator} {right} ? 1.0 : 0.0)",
        select=_c_select,
    )


def plain_dialect() -> Dialect:
    """Plain text, as formulas are typed."""
    words = ("exp", "log", "sin", "cos", "tan", "tanh", "abs", "sign", "min", "max")
    return Dialect(
        dict(zip(FUNCTIONS, words, strict=True)),
        "sqrt",
        repr,
        _star_power,
        compare=lambda left, operator, right: f"({left} {operator} {right})",
        select=lambda number, statement, a, b: f"where({statement or number}, {a}, {b})",
    )
