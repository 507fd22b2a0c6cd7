"""SymPy → text that our parser reads back as the same expression."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression._errors import visible
from fluxforge.expression._limits import EXACT_BELOW
from fluxforge.expression._tokens import NAME

_SUM, _PRODUCT, _POWER, _ATOM = range(4)
_Piece = tuple[str, int]
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
    return _piece(expr)[0]


def _piece(expr: sp.Basic) -> _Piece:
    """The text of a node, and how tightly it holds together."""
    if type(expr) in _NAMES:
        return f"{_NAMES[type(expr)]}({to_text(expr.args[0])})", _ATOM
    for kind, write in _WRITERS.items():
        if isinstance(expr, kind):
            return write(expr)
    raise ExpressionError(f"a formula cannot contain a {type(expr).__name__} node")


def _within(level: int, expr: sp.Basic) -> str:
    text, own = _piece(expr)
    return text if own >= level else f"({text})"


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


def _sum(expr: sp.Add) -> _Piece:
    """Terms in the order of their texts, plain numbers last; a positive one leads if there is any."""
    terms = sorted((term.is_Number, *_unsigned(term)) for term in expr.args)
    lead = next((k for k, (_, _, negative) in enumerate(terms) if not negative), 0)
    _, text, negative = terms.pop(lead)
    rest = [f" {'-' if minus else '+'} {term}" for _, term, minus in terms]
    return "".join(["-" if negative else "", text, *rest]), _SUM


def _unsigned(term: sp.Expr) -> tuple[str, bool]:
    """The text of |coefficient|·rest, and whether the coefficient is negative."""
    if term.is_Number:
        return to_text(abs(term)), bool(term.is_negative)
    return _quotient(term) if term.is_Mul else (_within(_PRODUCT, term), False)


def _product(expr: sp.Expr) -> _Piece:
    text, negative = _quotient(expr)
    return (f"-{text}", _SUM) if negative else (text, _PRODUCT)


def _power(expr: sp.Pow) -> _Piece:
    if _is_inverse(expr):
        return _product(expr)
    if expr.exp == sp.S.Half:
        return f"sqrt({to_text(expr.base)})", _ATOM
    return f"{_within(_ATOM, expr.base)}**{_within(_ATOM, expr.exp)}", _POWER


def _is_inverse(factor: sp.Expr) -> bool:
    """Whether a factor b**e belongs below the line."""
    return bool(factor.is_Pow and factor.exp.is_Number and factor.exp.is_negative)


def _quotient(expr: sp.Expr) -> tuple[str, bool]:
    """`3*a*sqrt(b)/(2*c)*(d + e)`, and whether a minus sign goes before it. For the parser it is one product."""
    factors = sp.Mul.make_args(expr)
    number = sp.Mul(*(factor for factor in factors if factor.is_Number))
    others = [factor for factor in factors if not factor.is_Number]
    top, bottom = _over(abs(number))
    above = [top] if top != "1" else []
    above += _in_order(factor for factor in others if not (factor.is_Add or _is_inverse(factor)))
    sums = _in_order(factor for factor in others if factor.is_Add)
    if above in ([], [top]):
        above += [sums.pop(0)] if sums else []
    below = _below(bottom, [sp.Pow(factor.base, -factor.exp) for factor in others if _is_inverse(factor)])
    return "*".join(["*".join(above or ["1"]) + below, *sums]), bool(number.is_negative)


def _over(size: sp.Number) -> tuple[str, str]:
    return (str(size.p), str(size.q)) if size.is_Rational else (to_text(size), "1")


def _in_order(factors: Iterable[sp.Expr]) -> list[str]:
    """Constants, symbols, then the rest; each kind in the order of its text."""
    return [text for *_, text in sorted((not f.is_number, not f.is_Symbol, _within(_POWER, f)) for f in factors)]


def _below(number: str, factors: Sequence[sp.Expr]) -> str:
    """`/(2*a*b**2)/(c + d)`: a number and a sum in one bracket would be multiplied out."""
    plain = [number] if number != "1" else []
    plain += _in_order(factor for factor in factors if not factor.has(sp.Add))
    sums = _in_order(factor for factor in factors if factor.has(sp.Add))
    first = [f"({'*'.join(plain)})"] if len(plain) > 1 else plain
    return "".join(f"/{text}" for text in first + sums)


def _extreme(expr: sp.Expr) -> _Piece:
    """Min and max of many as a balanced tree of pairs."""
    name = "min" if isinstance(expr, sp.Min) else "max"
    texts = sorted(to_text(argument) for argument in expr.args)
    while len(texts) > 1:
        pairs = [f"{name}({a}, {b})" for a, b in zip(texts[::2], texts[1::2], strict=False)]
        texts = pairs + texts[2 * len(pairs) :]
    return texts[0], _ATOM


_WRITERS: Mapping[type, Callable[..., _Piece]] = {
    sp.Symbol: _symbol,
    sp.Rational: _rational,
    sp.Float: _decimal,
    sp.Add: _sum,
    sp.Mul: _product,
    sp.Pow: _power,
    sp.Min: _extreme,
    sp.Max: _extreme,
    type(sp.pi): lambda _: ("pi", _ATOM),
    type(sp.E): lambda _: ("exp(1)", _ATOM),
    sp.cot: lambda expr: (f"1/tan({to_text(expr.args[0])})", _PRODUCT),
}
