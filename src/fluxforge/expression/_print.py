"""SymPy → text that our parser reads back as the same expression."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression._symbols import EXACT_BELOW, NAME, AtMost, Below, Select, leaves_first, sides, visible

# Precedence, from the loosest to the tightest.
_SUM, _PRODUCT, _POWER, _ATOM = range(4)
_Piece = tuple[str, int]
_Power = tuple[sp.Expr, sp.Expr]
_NAMES: Mapping[type, str] = {
    sp.exp: "exp",
    sp.log: "log",
    sp.sin: "sin",
    sp.cos: "cos",
    sp.tan: "tan",
    sp.tanh: "tanh",
    sp.Abs: "abs",
    sp.sign: "sign",
}


def to_text(expr: sp.Expr) -> str:
    """The formula as text, for instance `A*alpha/delta*(T_N - T_P)`; deterministic, and `parse` reads it back.

    Decimals have the digits that give the same double back; a decimal with an integer value prints as the integer.
    """
    printer = _Printer()
    for node in leaves_first(expr, printer.pieces):
        printer.pieces[node] = printer.write(node)
    return printer.text(expr)


class _Printer:
    """The text of every node written so far, and its precedence."""

    def __init__(self) -> None:
        self.pieces: dict[sp.Basic, _Piece] = {}

    def write(self, expr: sp.Basic) -> _Piece:
        """The text of a node whose arguments are written."""
        if type(expr) in _NAMES:
            return f"{_NAMES[type(expr)]}({self.text(expr.args[0])})", _ATOM
        for kind, write in _LEAVES.items():
            if isinstance(expr, kind):
                return write(expr)
        for kind, compose in _COMPOSERS.items():
            if isinstance(expr, kind):
                return compose(self, expr)
        raise ExpressionError(f"a formula cannot contain a {type(expr).__name__} node")

    def text(self, expr: sp.Basic, level: int = _SUM) -> str:
        """The text of a written node, in brackets if its precedence is below `level`."""
        text, own = self.pieces[expr]
        return text if own >= level else f"({text})"

    def sum(self, expr: sp.Add) -> _Piece:
        """Terms in the order of their texts, plain numbers last; a positive one leads if there is any."""
        terms = sorted((term.is_Number, *self._unsigned(term)) for term in expr.args)
        lead = next((k for k, (_, _, negative) in enumerate(terms) if not negative), 0)
        _, text, negative = terms.pop(lead)
        rest = [f" {'-' if minus else '+'} {term}" for _, term, minus in terms]
        return "".join(["-" if negative else "", text, *rest]), _SUM

    def _unsigned(self, term: sp.Expr) -> tuple[str, bool]:
        """The text of |coefficient|·rest, and whether the coefficient is negative."""
        if term.is_Number:
            return self.text(term).removeprefix("-"), bool(term.is_negative)
        return self._quotient(term) if term.is_Mul else (self.text(term, _PRODUCT), False)

    def product(self, expr: sp.Expr) -> _Piece:
        """`-3*a/b`."""
        text, negative = self._quotient(expr)
        return (f"-{text}", _SUM) if negative else (text, _PRODUCT)

    def power(self, expr: sp.Pow) -> _Piece:
        """`sqrt(a)`, `a**3`, `1/a**3`."""
        return self.product(expr) if _is_inverse(expr) else self._power(expr.base, expr.exp)

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> _Piece:
        if exponent == 1:
            return self.pieces[base]
        if exponent == sp.S.Half:
            return f"sqrt({self.text(base)})", _ATOM
        text, level = self.pieces.get(exponent) or self.write(exponent)
        return f"{self.text(base, _ATOM)}**{text if level >= _ATOM else f'({text})'}", _POWER

    def _quotient(self, expr: sp.Expr) -> tuple[str, bool]:
        """`3*a*sqrt(b)/(2*c)*(d + e)`, and whether a minus sign goes before it. For the parser it is one product."""
        factors = sp.Mul.make_args(expr)
        number = sp.Mul(*(factor for factor in factors if factor.is_Number))
        top, bottom = _over(abs(number))
        others = [factor for factor in factors if not (factor.is_Number or _is_inverse(factor))]
        above = [top] if top != "1" else []
        above += self._in_order((factor, sp.S.One) for factor in others if not factor.is_Add)
        sums = self._in_order((factor, sp.S.One) for factor in others if factor.is_Add)
        if above in ([], [top]) and sums:
            above.append(sums.pop(0))
        below = self._below(bottom, [(factor.base, -factor.exp) for factor in factors if _is_inverse(factor)])
        return "*".join(["*".join(above or ["1"]) + below, *sums]), bool(number.is_negative)

    def _below(self, number: str, powers: Sequence[_Power]) -> str:
        """`/(2*a*b**2)/(c + d)`: a number and a sum in one bracket would be multiplied out."""
        plain = [number] if number != "1" else []
        plain += self._in_order(power for power in powers if not _is_sum(*power))
        first = [f"({'*'.join(plain)})"] if len(plain) > 1 else plain
        return "".join(f"/{text}" for text in first + self._in_order(power for power in powers if _is_sum(*power)))

    def _in_order(self, powers: Iterable[_Power]) -> list[str]:
        """Constants, symbols, then the rest; each kind in the order of its text."""
        keyed = []
        for base, exponent in powers:
            text, level = self._power(base, exponent)
            rank = 0 if base.is_Atom and not base.is_Symbol else 1 if base.is_Symbol and exponent == 1 else 2
            keyed.append((rank, text if level >= _POWER else f"({text})"))
        return [text for _, text in sorted(keyed)]

    def extreme(self, expr: sp.Expr) -> _Piece:
        """Min and max of many arguments as a balanced tree of pairs, which keeps the nesting low."""
        name = "min" if isinstance(expr, sp.Min) else "max"
        texts = sorted(self.text(argument) for argument in expr.args)
        while len(texts) > 1:
            pairs = [f"{name}({a}, {b})" for a, b in zip(texts[::2], texts[1::2], strict=False)]
            texts = pairs + texts[2 * len(pairs) :]
        return texts[0], _ATOM

    def comparison(self, expr: sp.Expr) -> _Piece:
        """`(x > 0.5)`, always in brackets."""
        left, operator, right = sides(expr)
        return f"({self.text(left)} {operator} {self.text(right)})", _ATOM

    def select(self, expr: sp.Expr) -> _Piece:
        """`where(x > 0.5, a, b)`."""
        condition, a, b = (self.text(argument) for argument in expr.args)
        if isinstance(expr.args[0], Below | AtMost):
            condition = condition[1:-1]
        return f"where({condition}, {a}, {b})", _ATOM

    def cotangent(self, expr: sp.Expr) -> _Piece:
        """1/tan(x): SymPy turns tan(x + pi/2) into −cot(x), which is not in the grammar."""
        return f"1/tan({self.text(expr.args[0])})", _PRODUCT


def _symbol(expr: sp.Symbol) -> _Piece:
    if not NAME.match(expr.name):
        raise ExpressionError(f"a formula cannot contain the symbol '{visible(expr.name)}': not a plain name")
    return expr.name, _ATOM


def _rational(expr: sp.Rational) -> _Piece:
    return str(expr), _SUM if expr < 0 else _ATOM if expr.q == 1 else _PRODUCT


def _decimal(expr: sp.Float) -> _Piece:
    value = float(expr)
    text = str(int(value)) if value.is_integer() and abs(value) < EXACT_BELOW else repr(value)
    return text, _SUM if value < 0 else _ATOM


def _over(size: sp.Number) -> tuple[str, str]:
    return (str(size.p), str(size.q)) if size.is_Rational else (_decimal(size)[0], "1")


def _is_inverse(factor: sp.Expr) -> bool:
    """Whether a factor b**e belongs below the line."""
    return bool(factor.is_Pow and factor.exp.is_Number and factor.exp.is_negative)


def _is_sum(base: sp.Expr, exponent: sp.Expr) -> bool:
    return bool(base.is_Add and exponent == 1)


_LEAVES: Mapping[type, Callable[[Any], _Piece]] = {
    sp.Symbol: _symbol,
    sp.Rational: _rational,
    sp.Float: _decimal,
    type(sp.pi): lambda _: ("pi", _ATOM),
    type(sp.E): lambda _: ("exp(1)", _ATOM),
}
_COMPOSERS: Mapping[type, Callable[[_Printer, Any], _Piece]] = {
    sp.Add: _Printer.sum,
    sp.Mul: _Printer.product,
    sp.Pow: _Printer.power,
    sp.Min: _Printer.extreme,
    sp.Max: _Printer.extreme,
    sp.cot: _Printer.cotangent,
    Below: _Printer.comparison,
    AtMost: _Printer.comparison,
    Select: _Printer.select,
}
