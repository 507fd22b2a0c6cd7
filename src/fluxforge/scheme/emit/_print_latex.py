"""Prints expressions as LaTeX, their symbols set as the caller says."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import COMPARISONS, Select, sides
from fluxforge.scheme.emit._print_infix import is_negative, quotient, terms

SUM, PRODUCT, ATOM = range(3)
_WORDS: dict[type, str] = {
    sp.exp: r"\exp",
    sp.log: r"\log",
    sp.sin: r"\sin",
    sp.cos: r"\cos",
    sp.tan: r"\tan",
    sp.cot: r"\cot",
    sp.tanh: r"\tanh",
    sp.sign: r"\operatorname{sgn}",
    sp.Min: r"\min",
    sp.Max: r"\max",
}
_RELATIONS = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge"}
_BRACKETS = r"\left({}\right)"


class Letter(NamedTuple):
    """How a symbol is set: its text, whether it has a superscript already, whether it belongs in a coefficient."""

    text: str
    raised: bool = False
    coefficient: bool = False


class Latex:
    """Prints expressions whose symbols are set as `letters` says."""

    def __init__(self, letters: Callable[[str], Letter]) -> None:
        self._letters = letters

    def __call__(self, expr: sp.Expr) -> str:
        """The formula as it stands on a line of its own."""
        return self._piece(expr)[0]

    def factor(self, expr: sp.Expr) -> str:
        r"""The formula behind a sign of summation: a sum, and whatever opens with a minus, in brackets."""
        return self._within(PRODUCT, expr)

    def terms(self, expr: sp.Expr) -> list[str]:
        """The terms of a sum with their signs, the first one's only if it is a minus."""
        lead, *rest = terms(expr)
        first = f"{'-' if is_negative(lead) else ''}{self._unsigned(lead)[0]}"
        return [first, *(f"{'-' if is_negative(term) else '+'} {self._unsigned(term)[0]}" for term in rest)]

    def _piece(self, expr: sp.Expr) -> tuple[str, int]:
        if expr.is_Symbol:
            return self._letters(expr.name).text, ATOM
        if expr.is_Add:
            return " ".join(self.terms(expr)), SUM
        if expr.is_Mul or expr.is_Number or (expr.is_Pow and expr.exp < 0):
            text, level = self._unsigned(expr)
            return (f"-{text}", SUM) if is_negative(expr) else (text, level)
        return (self._power(expr) if expr.is_Pow else self._call(expr)), ATOM

    def _within(self, level: int, expr: sp.Expr) -> str:
        text, own = self._piece(expr)
        return text if own >= level else _BRACKETS.format(text)

    def _unsigned(self, expr: sp.Expr) -> tuple[str, int]:
        r"""\frac{top coefficients}{bottom below} fields (sums), the sign left to the caller."""
        if not (expr.is_Mul or expr.is_Number or expr.is_Pow):
            return self._piece(expr)
        parts = quotient(expr)
        number = [_number(parts.top)] if parts.top != 1 else []
        sums = [_BRACKETS.format(self(factor)) for factor in parts.sums]
        below = ([_number(parts.bottom)] if parts.bottom != 1 else []) + self._factors(parts.below)
        if not below:
            texts = number + self._factors(parts.above) + sums
            return join_factors(texts) or "1", ATOM if texts == number else PRODUCT
        over = number + self._factors(factor for factor in parts.above if self._is_coefficient(factor))
        behind = self._factors(factor for factor in parts.above if not self._is_coefficient(factor))
        if not over:
            over, behind = behind, []
        if not over and sums:
            over, sums = [self(parts.sums[0])], sums[1:]
        if parts.bottom == 1 and len(parts.below) == 1:
            below = [self(parts.below[0])]
        fraction = rf"\frac{{{join_factors(over) or '1'}}}{{{join_factors(below)}}}"
        return join_factors([fraction, *behind, *sums]), PRODUCT

    def _factors(self, factors: Iterable[sp.Expr]) -> list[str]:
        return [self._within(PRODUCT, factor) for factor in factors]

    def _is_coefficient(self, factor: sp.Expr) -> bool:
        base = factor.base if factor.is_Pow else factor
        return not factor.free_symbols or bool(base.is_Symbol and self._letters(base.name).coefficient)

    def _power(self, expr: sp.Pow) -> str:
        if expr.exp == 1:
            return self._within(PRODUCT, expr.base)
        if expr.exp == sp.S.Half:
            return rf"\sqrt{{{self(expr.base)}}}"
        plain = (expr.base.is_Symbol and not self._letters(expr.base.name).raised) or expr.base.is_Integer
        base = self(expr.base) if plain else _BRACKETS.format(self(expr.base))
        exponent = f"{expr.exp.p}/{expr.exp.q}" if expr.exp.is_Rational and expr.exp.q != 1 else self(expr.exp)
        return f"{base}^{{{exponent}}}"

    def _call(self, expr: sp.Expr) -> str:
        if expr in (sp.pi, sp.E):
            return r"\pi" if expr == sp.pi else "e"
        if type(expr) in COMPARISONS:
            return rf"\left[{self._comparison(expr)}\right]"
        if isinstance(expr, Select):
            return self._select(expr)
        arguments = sorted(self(argument) for argument in expr.args)
        if isinstance(expr, sp.Abs):
            return rf"\left|{arguments[0]}\right|"
        word = next((word for kind, word in _WORDS.items() if isinstance(expr, kind)), None)
        if word is None:
            raise ExpressionError(f"a formula cannot contain a {type(expr).__name__} node")
        return word + _BRACKETS.format(", ".join(arguments))

    def _comparison(self, expr: sp.Expr) -> str:
        left, operator, right = sides(expr)
        return f"{self(left)} {_RELATIONS[operator]} {self(right)}"

    def _select(self, expr: sp.Expr) -> str:
        condition, a, b = expr.args
        statement = self._comparison(condition) if type(condition) in COMPARISONS else rf"{self(condition)} \ne 0"
        return r"\operatorname{where}" + _BRACKETS.format(f"{statement}, {self(a)}, {self(b)}")


def value(expr: sp.Expr) -> str:
    """A number as a fraction or a decimal."""
    return Latex(Letter)(expr if expr.is_Number else sp.Float(float(evaluate(expr, {}, np))))


def join_factors(factors: Iterable[str]) -> str:
    """Factors side by side, a thin space between them unless a bracket makes one."""
    return r"\,".join(factors).replace(r"\,\left(", r"\left(")


def _number(number: int | float) -> str:
    mantissa, _, exponent = repr(number).partition("e")
    return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if exponent else mantissa
