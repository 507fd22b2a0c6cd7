"""Dialects of the printer of expressions: Python, C, plain text and LaTeX, with one order of terms and factors."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import sympy as sp

from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._print import (
    ATOM,
    FUNCTIONS,
    PLAIN_FUNCTIONS,
    POWER,
    PRODUCT,
    SUM,
    AbstractPrinter,
    Piece,
    coefficient,
    is_negative,
    to_text,
)

EXACT_BELOW = 2**24
"""Integers smaller than this are exact in single precision too; larger ones are written as decimals."""

_FIRST = ("dt", "alpha")


class _Quotient(NamedTuple):
    """top·above·sums / (bottom·below) without its sign: the factors in reading order, every exponent positive."""

    top: int | float
    bottom: int
    above: tuple[sp.Expr, ...]
    sums: tuple[sp.Expr, ...]
    below: tuple[sp.Expr, ...]


def _quotient(expr: sp.Expr, is_below: Callable[[sp.Expr], bool]) -> _Quotient:
    """Write an expression as one quotient; `is_below` selects the factors that belong in the denominator."""
    others = [factor for factor in sp.Mul.make_args(expr) if not factor.is_Number]
    top, bottom = _split_number(abs(coefficient(expr)))
    under = [sp.Pow(factor.base, -factor.exp) for factor in others if is_below(factor)]
    over = [factor for factor in others if not is_below(factor)]
    return _Quotient(
        top=top,
        bottom=bottom,
        above=tuple(sorted((factor for factor in over if not factor.is_Add), key=_factor_key)),
        sums=tuple(sorted((factor for factor in over if factor.is_Add), key=_factor_key)),
        below=tuple(sorted(under, key=_factor_key)),
    )


def _split_number(size: sp.Number) -> tuple[int | float, int]:
    if isinstance(size, sp.Rational) and max(size.p, size.q) < EXACT_BELOW:
        return int(size.p), int(size.q)
    value = float(size)
    return (int(value) if value.is_integer() and value < EXACT_BELOW else value), 1


@functools.lru_cache(maxsize=4096)
def _factor_key(factor: sp.Expr) -> tuple[int, str]:
    """The sort key of a factor: constants, Δt, α, symbols, then functions and sums; within a kind the text."""
    base = factor.base if factor.is_Pow else factor
    if not factor.free_symbols:
        return 0, to_text(factor)
    if not base.is_Symbol:
        return len(_FIRST) + 2, to_text(factor)
    return (_FIRST.index(base.name) + 1 if base.name in _FIRST else len(_FIRST) + 1), to_text(factor)


def _order_terms(expr: sp.Add) -> list[sp.Expr]:
    """The terms of a sum, short ones first; a positive term leads if there is one."""
    ordered = sorted(expr.args, key=_term_key)
    lead = next((term for term in ordered if not is_negative(term)), ordered[0])
    return [lead, *(term for term in ordered if term is not lead)]


def _term_key(term: sp.Expr) -> tuple[int, str]:
    size = sum(1 for _ in sp.preorder_traversal(-term if is_negative(term) else term))
    return size, to_text(term)


@dataclass(frozen=True)
class Dialect:
    """The rules in which programming languages differ.

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


def write_infix(expr: sp.Expr, dialect: Dialect, names: Callable[[str], str] = str) -> str:
    """The expression in a language; `names` says how each symbol is written."""
    return _Infix(dialect, names).write(expr)


@dataclass
class _Infix(AbstractPrinter):
    """Code and plain text: `3*a/(2*b)*(c + d)`."""

    dialect: Dialect
    names: Callable[[str], str]
    pieces: dict[sp.Basic, Piece] = field(default_factory=dict)

    @property
    def functions(self) -> Mapping[type, str]:
        return self.dialect.functions

    def symbol(self, name: str) -> str:
        return self.names(name)

    def constant(self, expr: sp.Expr) -> Piece | None:
        """The decimal of a constant expression such as π, √2 or 1 + log(3); None for numbers and for anything else."""
        if expr.free_symbols or expr.is_Number:
            return None
        value = float(evaluate(expr, {}, np))
        return self.dialect.number(value), SUM if value < 0 else ATOM

    def number(self, expr: sp.Number) -> Piece:
        return self.product(expr)

    def signed_terms(self, expr: sp.Add) -> Sequence[tuple[bool, str]]:
        return [self._split_sign(term) for term in _order_terms(expr)]

    def _split_sign(self, term: sp.Expr) -> tuple[bool, str]:
        if (constant := self.constant(term)) is not None:
            return constant[1] == SUM, constant[0].removeprefix("-")
        return is_negative(term), self.print_unsigned(term)[0]

    def print_unsigned(self, expr: sp.Expr) -> Piece:
        if not (expr.is_Mul or expr.is_Number or expr.is_Pow):
            return self.piece(expr)
        write = self.dialect.number
        parts = _quotient(expr, self.is_below)
        above = [write(parts.top)] if parts.top != 1 else []
        above += [self.text(factor, PRODUCT) for factor in parts.above]
        sums = [self.enclose(self.text(factor)) for factor in parts.sums]
        if not above:
            above = [sums.pop(0) if sums else write(1)]
        below = [write(parts.bottom)] if parts.bottom != 1 else []
        below += [self.text(factor, POWER) for factor in parts.below]
        under = "" if not below else f"/{below[0]}" if len(below) == 1 else f"/({'*'.join(below)})"
        text = "*".join(["*".join(above) + under, *sums])
        return text, ATOM if len(above) == 1 and not under and not sums and not parts.above else PRODUCT

    def root(self, text: str) -> str:
        return f"{self.dialect.sqrt}({text})"

    def print_power(self, base: sp.Expr, exponent: sp.Expr) -> Piece:
        whole = exponent.is_Float and float(exponent).is_integer()
        tidy = sp.Integer(int(exponent)) if whole else exponent
        return self.dialect.power(self.piece(base), exponent, self.text(tidy, ATOM))

    def compare(self, left: str, operator: str, right: str) -> str:
        return self.dialect.compare(left, operator, right)

    def select(self, condition: sp.Expr, statement: str | None, a: str, b: str) -> str:
        return self.dialect.select(self.text(condition, PRODUCT), statement, a, b)

    def extreme(self, name: str, texts: list[str]) -> str:
        return functools.reduce(lambda a, b: f"{name}({a}, {b})", texts)


def _star_power(base: Piece, _: sp.Expr, exponent: str) -> Piece:
    return f"{base[0] if base[1] == ATOM else f'({base[0]})'}**{exponent}", POWER


def _c_power(base: Piece, exponent: sp.Expr, text: str) -> Piece:
    """A power in C: x*x or x*x*x of a name, pow otherwise."""
    if base[1] == ATOM and base[0].isidentifier() and exponent in (2, 3):
        return "*".join([base[0]] * int(exponent)), PRODUCT
    return f"pow({base[0]}, {text.removeprefix('(').removesuffix(')')})", ATOM


def _call_compare(left: str, operator: str, right: str) -> str:
    small, large = (left, right) if operator[0] == "<" else (right, left)
    return f"{'_at_most' if operator.endswith('=') else '_below'}({small}, {large})"


def array_dialect(module: str) -> Dialect:
    """Python with the functions of `np` or `jnp`; comparisons and choices call helpers of the emitted module."""
    words = ("exp", "log", "sin", "cos", "tan", "tanh", "abs", "sign", "minimum", "maximum")
    return Dialect(
        {kind: f"{module}.{word}" for kind, word in zip(FUNCTIONS, words, strict=True)},
        f"{module}.sqrt",
        repr,
        _star_power,
        compare=_call_compare,
        select=lambda number, _, a, b: f"_select({number}, {a}, {b})",
    )


def c_dialect(prefix: str) -> Dialect:
    """C99: libm, and three functions of our own where C has none that treats nan as NumPy does."""
    own = (f"{prefix}_sign", f"{prefix}_min", f"{prefix}_max")
    words = ("exp", "log", "sin", "cos", "tan", "tanh", "fabs", *own)
    return Dialect(
        dict(zip(FUNCTIONS, words, strict=True)),
        "sqrt",
        lambda value: repr(float(value)),
        _c_power,
        compare=lambda left, operator, right: f"({left} {operator} {right} ? 1.0 : 0.0)",
        select=lambda number, statement, a, b: f"({statement or f'{number} != 0.0'} ? {a} : {b})",
    )


PLAIN = Dialect(
    PLAIN_FUNCTIONS,
    "sqrt",
    repr,
    _star_power,
    compare=lambda left, operator, right: f"({left} {operator} {right})",
    select=lambda number, statement, a, b: f"where({statement or number}, {a}, {b})",
)
"""Plain text, as formulas are typed."""

_LATEX_FUNCTIONS: Mapping[type, str] = {
    sp.exp: r"\exp",
    sp.log: r"\log",
    sp.sin: r"\sin",
    sp.cos: r"\cos",
    sp.tan: r"\tan",
    sp.cot: r"\cot",
    sp.tanh: r"\tanh",
    sp.Abs: "",
    sp.sign: r"\operatorname{sgn}",
    sp.Min: r"\min",
    sp.Max: r"\max",
}
_RELATIONS = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge"}


class Letter(NamedTuple):
    """A symbol as typeset: its text, whether it has a superscript already, whether it belongs in a coefficient."""

    text: str
    raised: bool = False
    coefficient: bool = False


@dataclass
class Latex(AbstractPrinter):
    r"""LaTeX with the letters that `letters` gives for symbols: \frac{top coefficients}{bottom below} fields (sums)."""

    letters: Callable[[str], Letter]
    pieces: dict[sp.Basic, Piece] = field(default_factory=dict)

    @property
    def functions(self) -> Mapping[type, str]:
        """The names of functions by their types in SymPy."""
        return _LATEX_FUNCTIONS

    def terms(self, expr: sp.Add) -> list[str]:
        """The terms of a sum with their signs, the first one's only if it is a minus."""
        (minus, first), *rest = self.signed_terms(expr)
        return [f"{'-' if minus else ''}{first}", *(f"{'-' if negative else '+'} {term}" for negative, term in rest)]

    def enclose(self, text: str) -> str:
        """The text in brackets of its height."""
        return rf"\left({text}\right)"

    def symbol(self, name: str) -> str:
        """The letter of a symbol."""
        return self.letters(name).text

    def constant(self, expr: sp.Expr) -> Piece | None:
        """π and e."""
        return (r"\pi", ATOM) if expr is sp.pi else ("e", ATOM) if expr is sp.E else None

    def number(self, expr: sp.Number) -> Piece:
        """A fraction or a decimal."""
        return self.product(expr)

    def signed_terms(self, expr: sp.Add) -> Sequence[tuple[bool, str]]:
        """The terms of a sum, each with whether it is negative, short ones first."""
        return [(is_negative(term), self.print_unsigned(term)[0]) for term in _order_terms(expr)]

    def print_unsigned(self, expr: sp.Expr) -> Piece:
        """A fraction with its fields and sums behind it."""
        if not (expr.is_Mul or expr.is_Number or expr.is_Pow):
            return self.piece(expr)
        parts = _quotient(expr, self.is_below)
        number = [_latex_number(parts.top)] if parts.top != 1 else []
        sums = [self.enclose(self.text(factor)) for factor in parts.sums]
        below = ([_latex_number(parts.bottom)] if parts.bottom != 1 else []) + self._factors(parts.below)
        if not below:
            texts = number + self._factors(parts.above) + sums
            return _join_factors(texts) or "1", ATOM if texts == number else PRODUCT
        over = number + self._factors(factor for factor in parts.above if self._is_coefficient(factor))
        behind = self._factors(factor for factor in parts.above if not self._is_coefficient(factor))
        if not over:
            over, behind = behind, []
        if not over and sums:
            over, sums = [self.text(parts.sums[0])], sums[1:]
        if parts.bottom == 1 and len(parts.below) == 1:
            below = [self.text(parts.below[0])]
        fraction = rf"\frac{{{_join_factors(over) or '1'}}}{{{_join_factors(below)}}}"
        return _join_factors([fraction, *behind, *sums]), PRODUCT

    def _factors(self, factors: Iterable[sp.Expr]) -> list[str]:
        return [self.text(factor, PRODUCT) for factor in factors]

    def _is_coefficient(self, factor: sp.Expr) -> bool:
        base = factor.base if factor.is_Pow else factor
        return not factor.free_symbols or bool(base.is_Symbol and self.letters(base.name).coefficient)

    def root(self, text: str) -> str:
        """A square root."""
        return rf"\sqrt{{{text}}}"

    def print_power(self, base: sp.Expr, exponent: sp.Expr) -> Piece:
        """A power; its exponent on one line."""
        plain = (base.is_Symbol and not self.letters(base.name).raised) or base.is_Integer
        below = self.text(base) if plain else self.enclose(self.text(base))
        above = f"{exponent.p}/{exponent.q}" if exponent.is_Rational and exponent.q != 1 else self.text(exponent)
        return f"{below}^{{{above}}}", ATOM

    def relation(self, left: str, operator: str, right: str) -> str:
        """A comparison as a statement."""
        return f"{left} {_RELATIONS[operator]} {right}"

    def compare(self, left: str, operator: str, right: str) -> str:
        """A comparison in Iverson's brackets."""
        return rf"\left[{self.relation(left, operator, right)}\right]"

    def select(self, condition: sp.Expr, statement: str | None, a: str, b: str) -> str:
        """A choice, as a function."""
        statement = statement or rf"{self.text(condition)} \ne 0"
        return r"\operatorname{where}" + self.enclose(f"{statement}, {a}, {b}")

    def call(self, kind: type, name: str, argument: str) -> str:
        """A function of one argument; a modulus between bars."""
        return rf"\left|{argument}\right|" if kind is sp.Abs else name + self.enclose(argument)

    def extreme(self, name: str, texts: list[str]) -> str:
        """The minimum or maximum of all."""
        return name + self.enclose(", ".join(texts))


def latex_value(expr: sp.Expr) -> str:
    """A number as a fraction or a decimal, in LaTeX."""
    return Latex(Letter).write(expr if expr.is_Number else sp.Float(float(evaluate(expr, {}, np))))


def _join_factors(factors: Iterable[str]) -> str:
    """Factors side by side, a thin space between them unless a bracket makes one."""
    return r"\,".join(factors).replace(r"\,\left(", r"\left(")


def _latex_number(number: int | float) -> str:
    mantissa, _, exponent = repr(number).partition("e")
    return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if exponent else mantissa
