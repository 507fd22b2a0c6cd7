"""The operands and operators between two brackets, put together by precedence."""

from collections.abc import Callable

import sympy as sp

from fluxforge.expression._algebra import Algebra
from fluxforge.expression._tokens import RefusalError, Token

Build = Callable[..., sp.Expr]
"""build(column, operation, *operands): the operation's result, or an error that shows the column."""


COMPARED = ("<", "<=", ">", ">=")


def _refuse(refusal: RefusalError) -> sp.Expr:
    raise refusal


class Bracket:
    """What stands between a bracket and the place reached. Every chain of one precedence is built in one go."""

    def __init__(self, opener: Token, algebra: Algebra, build: Build) -> None:
        self.opener = opener
        self.arguments: list[sp.Expr] = []
        self._algebra, self._build = algebra, build
        self._start()

    def _start(self) -> None:
        self._terms: list[sp.Expr] = []
        self._factors: list[sp.Expr] = []
        self._powers: list[tuple[sp.Integer, sp.Expr]] = []
        self._signs: list[Token] = []
        self._divisions: list[Token] = []
        self._exponents: list[Token] = []
        self._comparison: tuple[Token, sp.Expr] | None = None

    def operand(self, sign: sp.Integer, expr: sp.Expr) -> None:
        """± expr, where an operand was expected."""
        self._powers.append((sign, expr))

    def operator(self, token: Token) -> None:
        """One of + - * / ** < <= > >=, after an operand."""
        if token.text in COMPARED:
            self._compare(token)
        elif token.text == "**":
            self._exponents.append(token)
        elif token.text in ("*", "/"):
            self._end_power()
            self._divisions.append(token)
        else:
            self._end_product()
            self._signs.append(token)

    def end_argument(self, token: Token) -> None:
        """A comma, a closing bracket or the end of the text."""
        expr = self._end_sum(token)
        if self._comparison is not None:
            operator, left = self._comparison
            expr = self._build(operator.column, self._algebra.compare, operator.text, left, expr)
        self.arguments.append(expr)
        self._start()

    def _compare(self, token: Token) -> None:
        """Comparisons hold together least: what stands before one is a whole sum."""
        if self._comparison is not None:
            refusal = RefusalError("a chain of comparisons (write (a < b)*(b < c))")
            self._build(token.column, _refuse, refusal)
        left = self._end_sum(token)
        self._start()
        self._comparison = token, left

    def _end_sum(self, token: Token) -> sp.Expr:
        self._end_product()
        column = self._signs[0].column if self._signs else token.column
        return self._build(column, self._algebra.add, self._terms)

    def _end_power(self) -> None:
        """A ** ±b ** ±c from the right; the sign before it becomes a factor, so that −x**2 = −(x**2)."""
        sign, expr = self._powers.pop()
        while self._exponents:
            column = self._exponents.pop().column
            exponent = self._build(column, self._algebra.multiply, [sign, expr])
            sign, base = self._powers.pop()
            expr = self._build(column, self._algebra.power, base, exponent)
        if self._divisions and self._divisions[-1].text == "/":
            expr = self._build(self._divisions[-1].column, self._algebra.invert, expr)
        self._factors += [sign, expr]

    def _end_product(self) -> None:
        self._end_power()
        if self._signs and self._signs[-1].text == "-":
            self._factors.append(sp.S.NegativeOne)
        place = self._divisions or self._signs
        column = place[0].column if place else self.opener.column
        self._terms.append(self._build(column, self._algebra.multiply, self._factors))
        self._factors, self._divisions = [], []
