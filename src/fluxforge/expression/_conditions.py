"""Comparisons and choices as functions whose values are numbers: `a < b`, `a <= b` and `where(condition, a, b)`.

SymPy's own relations are not numbers (1 + (x > 0) is an error), and its Piecewise rewrites conditions whenever it is
rebuilt. These stay as they are written; only those that numbers decide are evaluated.
"""

import math
from typing import Any

import sympy as sp


def _is_plain(expr: sp.Expr) -> bool:
    """Whether an expression is a finite number that SymPy compares exactly."""
    return bool(expr.is_Rational or (expr.is_Float and expr.is_finite))


def _raise_latex(text: str, exponent: str | None) -> str:
    """LaTeX of a power, as SymPy's printer asks for it."""
    return text if exponent is None else rf"{text}^{{{exponent}}}"


class _Decision(sp.Function):  # type: ignore[misc]
    """A function that `evalf` evaluates by way of its arguments."""

    def _eval_evalf(self, prec: int) -> sp.Expr:
        # `prec` is in bits, and `evalf` takes decimal digits.
        return self.func(*(argument.evalf(max(1, round(prec * math.log10(2)))) for argument in self.args))


class _Comparison(_Decision):
    """1 where a comparison of a and b holds, 0 elsewhere."""

    nargs = 2
    _relation = ""

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        a, b = map(printer._print, self.args)
        return _raise_latex(rf"\left[{a} {self._relation} {b}\right]", exp)

    def _eval_is_real(self) -> bool:
        return True

    def _eval_is_nonnegative(self) -> bool:
        return True

    def _eval_derivative(self, variable: sp.Symbol) -> sp.Expr:
        # A step, as that of sign: formally δ(b − a), so that nothing takes it for linear; `differentiate` drops it.
        a, b = self.args
        return sp.DiracDelta(b - a) * (b.diff(variable) - a.diff(variable))


class Below(_Comparison):
    """a < b: 1 where it holds, and 0 elsewhere."""

    _relation = "<"

    @classmethod
    def eval(cls, a: sp.Expr, b: sp.Expr) -> sp.Expr | None:
        """The number, where both are numbers."""
        return sp.Integer(bool(a < b)) if _is_plain(a) and _is_plain(b) else None


class AtMost(_Comparison):
    """a ≤ b: 1 where it holds, and 0 elsewhere."""

    _relation = r"\le"

    @classmethod
    def eval(cls, a: sp.Expr, b: sp.Expr) -> sp.Expr | None:
        """The number, where both are numbers."""
        return sp.Integer(bool(a <= b)) if _is_plain(a) and _is_plain(b) else None


class Select(_Decision):
    """where(condition, a, b): a where the condition is not 0, and b elsewhere."""

    nargs = 3

    @classmethod
    def eval(cls, condition: sp.Expr, a: sp.Expr, b: sp.Expr) -> sp.Expr | None:
        """The branch, where the condition is a number or both branches are the same."""
        if a == b:
            return a
        if _is_plain(condition):
            return a if condition != 0 else b
        return None

    def _eval_is_real(self) -> bool | None:
        return self._both("is_real")

    def _eval_is_nonnegative(self) -> bool | None:
        return self._both("is_nonnegative")

    def _eval_is_positive(self) -> bool | None:
        return self._both("is_positive")

    def _both(self, assumption: str) -> bool | None:
        return True if all(getattr(branch, assumption) for branch in self.args[1:]) else None

    def _eval_derivative(self, variable: sp.Symbol) -> sp.Expr:
        # Branch by branch, and not 0 times the other branch: that one may not be finite where it is not taken.
        condition, a, b = self.args
        jump = condition.diff(variable)
        return Select(condition, a.diff(variable), b.diff(variable)) + (jump and jump * (a - b))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        condition, a, b = map(printer._print, self.args)
        cases = rf"\begin{{cases}} {a} & {condition} \\ {b} & \text{{otherwise}} \end{{cases}}"
        return cases if exp is None else _raise_latex(rf"\left({cases}\right)", exp)


Condition = Below | AtMost
COMPARISONS: dict[type, str] = {Below: "<", AtMost: "<="}
"""How each comparison is written between its two sides."""

MIRRORED = {"<": ">", "<=": ">="}
"""The same comparison with its sides exchanged."""


def sides(expr: sp.Expr) -> tuple[sp.Expr, str, sp.Expr]:
    """Left side, operator and right side of a comparison as it is printed: a number stands on the right."""
    (a, b), operator = expr.args, COMPARISONS[type(expr)]
    return (b, MIRRORED[operator], a) if a.is_number and not b.is_number else (a, operator, b)
