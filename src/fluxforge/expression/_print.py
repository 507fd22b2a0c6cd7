"""SymPy → text. One printer; its dialects are formulas that `parse` reads, programming languages, and LaTeX.

The dialect of formulas is here, the others are in `fluxforge.scheme.emit`.
"""

import abc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import sympy as sp

from fluxforge._files import escape_unprintable
from fluxforge.errors import ExpressionError
from fluxforge.expression._symbols import (
    COMPARISONS,
    EXACT_BELOW,
    NAME,
    Select,
    leaves_first,
    order_sides,
)

# Precedence, from the loosest to the tightest.
SUM, PRODUCT, POWER, ATOM = range(4)

Piece: TypeAlias = tuple[str, int]
"""A text and its precedence."""

_Power = tuple[sp.Expr, sp.Expr]
FUNCTIONS: tuple[type, ...] = (sp.exp, sp.log, sp.sin, sp.cos, sp.tan, sp.tanh, sp.Abs, sp.sign, sp.Min, sp.Max)
"""The functions of formulas, in the order in which dialects name them."""

PLAIN_FUNCTIONS: Mapping[type, str] = dict(
    zip(FUNCTIONS, ("exp", "log", "sin", "cos", "tan", "tanh", "abs", "sign", "min", "max"), strict=True)
)


def coefficient(expr: sp.Expr) -> sp.Number:
    """The product of the numbers among the factors of an expression."""
    return sp.Mul(*(factor for factor in sp.Mul.make_args(expr) if factor.is_Number))


def is_negative(term: sp.Expr) -> bool:
    """Whether a term is written with a minus sign."""
    return bool(coefficient(term) < 0)


class AbstractPrinter(abc.ABC):
    """Writes expressions, leaves first: Python's recursion limit does not bound their depth.

    A dialect defines how symbols, numbers, products, powers and functions are written, and the order of terms.
    `pieces` holds the text and precedence of every node written so far.
    """

    pieces: dict[sp.Basic, Piece]

    def write(self, expr: sp.Expr) -> str:
        """The text of an expression, without brackets around it.

        Raises ExpressionError for a node that formulas cannot have.
        """
        for node in leaves_first(expr, self.pieces):
            self.pieces[node] = self._node(node)
        return self.text(expr)

    def text(self, expr: sp.Basic, level: int = SUM) -> str:
        """The text of an expression, in brackets if its precedence is below `level`."""
        text, own = self.piece(expr)
        return text if own >= level else self.enclose(text)

    def piece(self, expr: sp.Basic) -> Piece:
        """The text and the precedence of an expression."""
        if expr not in self.pieces:
            self.pieces[expr] = self._node(expr)
        return self.pieces[expr]

    def enclose(self, text: str) -> str:
        """The text in brackets."""
        return f"({text})"

    def is_below(self, factor: sp.Expr) -> bool:
        """Whether a factor b**e is written in the denominator."""
        return bool(factor.is_Pow and factor.exp.is_number and factor.exp < 0)

    @property
    @abc.abstractmethod
    def functions(self) -> Mapping[type, str]:
        """The names of functions by their types in SymPy."""

    @abc.abstractmethod
    def symbol(self, name: str) -> str:
        """The text of a symbol."""

    @abc.abstractmethod
    def constant(self, expr: sp.Expr) -> Piece | None:
        """The text of a number that has a name, such as π; None for anything else."""

    @abc.abstractmethod
    def number(self, expr: sp.Number) -> Piece:
        """The text of an integer, a fraction or a decimal."""

    @abc.abstractmethod
    def signed_terms(self, expr: sp.Add) -> Sequence[tuple[bool, str]]:
        """The terms of a sum in order: whether each has a minus sign, and its text without it."""

    @abc.abstractmethod
    def print_unsigned(self, expr: sp.Expr) -> Piece:
        """The text of a product, power or number as one quotient, without its sign."""

    @abc.abstractmethod
    def root(self, text: str) -> str:
        """The text of the square root of the expression whose text is given."""

    @abc.abstractmethod
    def print_power(self, base: sp.Expr, exponent: sp.Expr) -> Piece:
        """base**exponent, the exponent being positive and neither 1 nor 1/2."""

    @abc.abstractmethod
    def compare(self, left: str, operator: str, right: str) -> str:
        """The text of a comparison that is used as a number, 1 or 0."""

    @abc.abstractmethod
    def select(self, condition: sp.Expr, statement: str | None, a: str, b: str) -> str:
        """The text of where(condition, a, b); `statement` is the condition as a relation if it is a comparison."""

    @abc.abstractmethod
    def extreme(self, name: str, texts: list[str]) -> str:
        """The text of the minimum or maximum, called `name`, of two or more sorted texts."""

    def relation(self, left: str, operator: str, right: str) -> str:
        """The text of a comparison that is used as a condition."""
        return f"{left} {operator} {right}"

    def call(self, kind: type, name: str, argument: str) -> str:
        """The text of a function of one argument."""
        return f"{name}({argument})"

    def _node(self, expr: sp.Basic) -> Piece:
        if expr.is_Symbol:
            return self.symbol(expr.name), ATOM
        if (constant := self.constant(expr)) is not None:
            return constant
        if expr.is_Add:
            (minus, first), *rest = self.signed_terms(expr)
            others = (f" {'-' if negative else '+'} {term}" for negative, term in rest)
            return "".join(["-" if minus else "", first, *others]), SUM
        if expr.is_Number:
            return self.number(expr)
        if expr.is_Mul or self.is_below(expr):
            return self.product(expr)
        if expr.is_Pow:
            return self.power(expr.base, expr.exp)
        return self._function(expr)

    def product(self, expr: sp.Expr) -> Piece:
        """A product with its sign."""
        text, level = self.print_unsigned(expr)
        return (f"-{text}", SUM) if is_negative(expr) else (text, level)

    def power(self, base: sp.Expr, exponent: sp.Expr) -> Piece:
        """base**exponent, the exponent being positive."""
        if exponent == 1:
            return self.piece(base)
        if exponent == sp.S.Half:
            return self.root(self.text(base)), ATOM
        return self.print_power(base, exponent)

    def _print_sides(self, expr: sp.Expr) -> tuple[str, str, str]:
        left, operator, right = order_sides(expr)
        return self.text(left), operator, self.text(right)

    def _function(self, expr: sp.Expr) -> Piece:
        if type(expr) in COMPARISONS:
            return self.compare(*self._print_sides(expr)), ATOM
        if isinstance(expr, Select):
            condition, a, b = expr.args
            statement = self.relation(*self._print_sides(condition)) if type(condition) in COMPARISONS else None
            return self.select(condition, statement, self.text(a), self.text(b)), ATOM
        texts = sorted(self.text(part) for part in expr.args)
        for kind, name in self.functions.items():
            if isinstance(expr, kind):
                return (
                    self.extreme(name, texts) if kind in (sp.Min, sp.Max) else self.call(kind, name, texts[0])
                ), ATOM
        if isinstance(expr, sp.cot):
            # SymPy turns tan(x + pi/2) into −cot(x), which is not in the grammar.
            return f"{self.text(sp.S.One)}/{self.functions[sp.tan]}({texts[0]})", PRODUCT
        raise ExpressionError(f"a formula cannot contain a {type(expr).__name__} node")


def to_text(expr: sp.Expr) -> str:
    """The formula as text, for instance `A*alpha/delta*(T_N - T_P)`; deterministic, and `parse` reads it back.

    Decimals have enough digits to be read back as the same double; those with an integer value are printed as integers.
    Raises ExpressionError for a node that formulas cannot have.
    """
    return _Formula().write(expr)


@dataclass
class _Formula(AbstractPrinter):
    """The dialect that `parse` reads, in which a quotient and all factors after it are one product."""

    pieces: dict[sp.Basic, Piece] = field(default_factory=dict)

    @property
    def functions(self) -> Mapping[type, str]:
        return PLAIN_FUNCTIONS

    def is_below(self, factor: sp.Expr) -> bool:
        return bool(factor.is_Pow and factor.exp.is_Number and factor.exp.is_negative)

    def symbol(self, name: str) -> str:
        if not NAME.match(name):
            raise ExpressionError(f"a formula cannot contain the symbol '{escape_unprintable(name)}': not a plain name")
        return name

    def constant(self, expr: sp.Expr) -> Piece | None:
        return ("pi", ATOM) if expr is sp.pi else ("exp(1)", ATOM) if expr is sp.E else None

    def number(self, expr: sp.Number) -> Piece:
        if expr.is_Rational:
            return str(expr), SUM if expr < 0 else ATOM if expr.q == 1 else PRODUCT
        if expr.is_Float:
            return _decimal(expr), SUM if expr < 0 else ATOM
        raise ExpressionError(f"a formula cannot contain a {type(expr).__name__} node")

    def signed_terms(self, expr: sp.Add) -> Sequence[tuple[bool, str]]:
        """Terms in the order of their texts, plain numbers last; a positive one leads if there is any."""
        terms = sorted((term.is_Number, self._unsigned_term(term), is_negative(term)) for term in expr.args)
        lead = next((k for k, (_, _, negative) in enumerate(terms) if not negative), 0)
        ordered = [terms.pop(lead), *terms]
        return [(negative, text) for _, text, negative in ordered]

    def _unsigned_term(self, term: sp.Expr) -> str:
        if term.is_Number:
            return self.text(term).removeprefix("-")
        return self.print_unsigned(term)[0] if term.is_Mul else self.text(term, PRODUCT)

    def print_unsigned(self, expr: sp.Expr) -> Piece:
        """`3*a*sqrt(b)/(2*c)*(d + e)`."""
        factors = sp.Mul.make_args(expr)
        size = abs(coefficient(expr))
        top, bottom = (str(size.p), str(size.q)) if size.is_Rational else (_decimal(size), "1")
        others = [factor for factor in factors if not (factor.is_Number or self.is_below(factor))]
        above = [top] if top != "1" else []
        above += self._sort_texts((factor, sp.S.One) for factor in others if not factor.is_Add)
        sums = self._sort_texts((factor, sp.S.One) for factor in others if factor.is_Add)
        if above in ([], [top]) and sums:
            above.append(sums.pop(0))
        below = self._print_denominator(
            bottom, [(factor.base, -factor.exp) for factor in factors if self.is_below(factor)]
        )
        return "*".join(["*".join(above or ["1"]) + below, *sums]), PRODUCT

    def _print_denominator(self, number: str, powers: Sequence[_Power]) -> str:
        """`/(2*a*b**2)/(c + d)`: SymPy would multiply out a number and a sum in one bracket."""
        plain = [number] if number != "1" else []
        plain += self._sort_texts((base, e) for base, e in powers if not (base.is_Add and e == 1))
        first = [f"({'*'.join(plain)})"] if len(plain) > 1 else plain
        return "".join(f"/{t}" for t in first + self._sort_texts((b, e) for b, e in powers if b.is_Add and e == 1))

    def _sort_texts(self, powers: Iterable[_Power]) -> list[str]:
        """Constants, symbols, then the rest; each kind in the order of its text."""
        keyed = []
        for base, exponent in powers:
            text, level = self.power(base, exponent)
            rank = 0 if base.is_Atom and not base.is_Symbol else 1 if base.is_Symbol and exponent == 1 else 2
            keyed.append((rank, text if level >= POWER else f"({text})"))
        return [text for _, text in sorted(keyed)]

    def root(self, text: str) -> str:
        return f"sqrt({text})"

    def print_power(self, base: sp.Expr, exponent: sp.Expr) -> Piece:
        return f"{self.text(base, ATOM)}**{self.text(exponent, ATOM)}", POWER

    def compare(self, left: str, operator: str, right: str) -> str:
        return f"({left} {operator} {right})"

    def select(self, condition: sp.Expr, statement: str | None, a: str, b: str) -> str:
        return f"where({statement or self.text(condition)}, {a}, {b})"

    def extreme(self, name: str, texts: list[str]) -> str:
        """A balanced tree of pairs, which keeps the nesting low."""
        while len(texts) > 1:
            pairs = [f"{name}({a}, {b})" for a, b in zip(texts[::2], texts[1::2], strict=False)]
            texts = pairs + texts[2 * len(pairs) :]
        return texts[0]


def _decimal(expr: sp.Float) -> str:
    value = float(expr)
    return str(int(value)) if value.is_integer() and abs(value) < EXACT_BELOW else repr(value)
