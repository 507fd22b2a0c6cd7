"""How a formula is laid out, whatever the language: the order of terms and factors, and what goes below the line."""

from typing import NamedTuple

import sympy as sp

from fluxforge.expression import to_text

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
