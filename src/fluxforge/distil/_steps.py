"""One step of simplification: every formula that has a term or a constant less."""

from collections.abc import Iterator

import sympy as sp

NEAR = 0.25
"""Constants that differ by less than this part may become one constant, or the number 1."""


def steps(expr: sp.Expr) -> Iterator[sp.Expr]:
    """The formula with one term dropped, one constant made 1, or all constants of a sum made equal; anywhere in it."""
    if expr.is_Float:
        yield from (sp.Integer(unit) for unit in (1, -1) if abs(expr - unit) < NEAR)
    if expr.is_Add:
        yield from (sp.Add(*expr.args[:k], *expr.args[k + 1 :]) for k in range(len(expr.args)))
        yield from _tied(expr)
    if expr.is_Mul:
        yield from _inwards(expr)
    for k, argument in enumerate(expr.args):
        yield from (expr.func(*expr.args[:k], step, *expr.args[k + 1 :]) for step in steps(argument))


def _tied(expr: sp.Add) -> Iterator[sp.Expr]:
    """A sum whose coefficients are nearly of one size gets one coefficient."""
    terms = [term.as_coeff_Mul() for term in expr.args]
    sizes = [abs(number) for number, _ in terms]
    if all(size.is_Float for size in sizes) and 0 < max(sizes) - min(sizes) < NEAR * max(sizes):
        yield sp.Add(*(sp.sign(number) * sizes[0] * rest for number, rest in terms))


def _inwards(expr: sp.Mul) -> Iterator[sp.Expr]:
    """2·a·(b + 0.51·c) → a·(2·b + c): the number goes into a bracket if it makes 1 of a constant there."""
    number, rest = expr.as_coeff_Mul()
    brackets = [factor for factor in sp.Mul.make_args(rest) if factor.is_Add] if number.is_Float else []
    for bracket in brackets:
        terms = [(number * k, part) for k, part in (term.as_coeff_Mul() for term in bracket.args)]
        for place, (k, part) in enumerate(terms):
            if abs(abs(k) - 1) < NEAR:
                others = [c * m for c, m in terms[:place] + terms[place + 1 :]]
                yield sp.Add(sp.sign(k) * part, *others) * (rest / bracket)
