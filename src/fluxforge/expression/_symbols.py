"""The parts of formulas: symbols, comparisons and choices, limits, and traversal of expression trees without recursion.

Comparisons `a < b`, `a <= b` and choices `where(condition, a, b)` are functions whose values are numbers. SymPy's own
relations are not numbers (1 + (x > 0) is an error), and its Piecewise rewrites conditions whenever it is rebuilt. Ours
are never rewritten, and evaluated only if the arguments that decide are numbers.
"""

import difflib
import math
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal

import sympy as sp

Kind = Literal["real", "positive", "complex"]

# The coordinates of a place, in order, and the time: the names formulas of fields may use.
COORDINATES = ("x", "y", "z")
TIME = "t"
# The most names that a message lists.
_MOST_LISTED = 12
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

ARITY: Mapping[str, int] = {
    **dict.fromkeys(("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "abs", "sign"), 1),
    **dict.fromkeys(("min", "max"), 2),
    "where": 3,
}
"""The functions of formulas, and how many arguments each takes."""

WORDS = frozenset((*ARITY, "pi"))
"""Names that mean something to the parser, so that no symbol may have them."""

# Limits of a formula, which bound the time that parsing and simplifying it take.
MAX_CHARACTERS = 10_000
MAX_DEPTH = 50
MAX_NODES = 5_000
MAX_EXPONENT = 16
MAX_BITS = 256
"""Bits of the numerator and of the denominator of any exact number, written or computed."""

MAX_DIGITS = 77
"""Digits of a literal integer: 10**77 has 256 bits, so that every number which is computed can also be written."""

MAX_DEGREE, MAX_FRACTIONS = 64, 6
"""Total degree, and sums within denominators within denominators: SymPy's time is exponential in both."""

SMALLEST, LARGEST = sys.float_info.min, sys.float_info.max
"""Normal doubles: below the first a decimal loses digits, beyond the second it is infinite."""

EXACT_BELOW = 1e15
"""A decimal with an integer value smaller than this is that integer: 2.0*x is 2*x."""


class RefusalError(ValueError):
    """An operation that is refused. The parser catches it and adds the column."""


@cache
def symbol(name: str, kind: Kind = "real") -> sp.Symbol:
    """The symbol of that name: the same object every time. Symbols of formulas are real."""
    return sp.Symbol(name, **({} if kind == "complex" else {kind: True}))


def symbols_of(names: Iterable[str]) -> dict[str, sp.Symbol]:
    """Names and their real symbols, as the parser takes them."""
    return {name: symbol(name) for name in names}


def known_names(wanted: str, names: Iterable[str]) -> str:
    """`known: …`, the names closest to the wanted one first."""
    ordered = sorted(names)
    close = difflib.get_close_matches(wanted[:40], ordered, n=3)
    listed = [*close, *(name for name in ordered if name not in close)]
    return f"known: {', '.join(listed[:_MOST_LISTED]) or 'none'}" + (", …" if len(listed) > _MOST_LISTED else "")


def arguments(node: sp.Basic) -> Iterable[sp.Basic]:
    """The children of a node, as SymPy has them."""
    children: Iterable[sp.Basic] = node.args
    return children


def leaves_first(
    root: sp.Basic, done: Container[sp.Basic], needs: Callable[[sp.Basic], Iterable[sp.Basic]] = arguments
) -> Iterator[sp.Basic]:
    """Yield every node not in `done` after the nodes it needs; the caller adds each to `done` before the next."""
    stack = [root]
    while stack:
        node = stack[-1]
        waiting = [] if node in done else [child for child in needs(node) if child not in done]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if node not in done:
            yield node


def _is_plain(expr: sp.Expr) -> bool:
    """Whether an expression is a finite number that SymPy compares exactly."""
    return bool(expr.is_Rational or (expr.is_Float and expr.is_finite))


def _raise_latex(text: str, exponent: str | None) -> str:
    """LaTeX of `text` to a power; SymPy's printer passes None where there is no exponent."""
    return text if exponent is None else rf"{text}^{{{exponent}}}"


class _Decision(sp.Function):  # type: ignore[misc]
    """A function that `evalf` evaluates by evaluating its arguments."""

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
        # The derivative of a step is formally δ(b − a), as SymPy has it for sign. With 0 instead, the function would be
        # mistaken for a linear one. `differentiate` drops δ.
        a, b = self.args
        return sp.DiracDelta(b - a) * (b.diff(variable) - a.diff(variable))


class Below(_Comparison):
    """a < b: 1 where it holds, and 0 elsewhere."""

    _relation = "<"

    @classmethod
    def eval(cls, a: sp.Expr, b: sp.Expr) -> sp.Expr | None:
        """1 or 0 if both arguments are numbers; otherwise None, which leaves the function as it is."""
        return sp.Integer(bool(a < b)) if _is_plain(a) and _is_plain(b) else None


class AtMost(_Comparison):
    """a ≤ b: 1 where it holds, and 0 elsewhere."""

    _relation = r"\le"

    @classmethod
    def eval(cls, a: sp.Expr, b: sp.Expr) -> sp.Expr | None:
        """1 or 0 if both arguments are numbers; otherwise None, which leaves the function as it is."""
        return sp.Integer(bool(a <= b)) if _is_plain(a) and _is_plain(b) else None


class Select(_Decision):
    """where(condition, a, b): a where the condition is not 0, and b elsewhere."""

    nargs = 3

    @classmethod
    def eval(cls, condition: sp.Expr, a: sp.Expr, b: sp.Expr) -> sp.Expr | None:
        """One branch if the condition is a number or both branches are equal; otherwise None."""
        if a == b:
            return a
        if _is_plain(condition):
            return a if condition != 0 else b
        return None

    def _eval_is_real(self) -> bool | None:
        return self._both_branches("is_real")

    def _eval_is_nonnegative(self) -> bool | None:
        return self._both_branches("is_nonnegative")

    def _eval_is_positive(self) -> bool | None:
        return self._both_branches("is_positive")

    def _both_branches(self, assumption: str) -> bool | None:
        return True if all(getattr(branch, assumption) for branch in self.args[1:]) else None

    def _eval_derivative(self, variable: sp.Symbol) -> sp.Expr:
        # The derivative is again a choice, and not a sum with 0 times the other branch, which may not be finite there.
        condition, a, b = self.args
        jump = condition.diff(variable)
        return Select(condition, a.diff(variable), b.diff(variable)) + (jump and jump * (a - b))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        condition, a, b = map(printer._print, self.args)
        cases = rf"\begin{{cases}} {a} & {condition} \\ {b} & \text{{otherwise}} \end{{cases}}"
        return cases if exp is None else _raise_latex(rf"\left({cases}\right)", exp)


Condition = Below | AtMost
COMPARISONS: dict[type, str] = {Below: "<", AtMost: "<="}
"""The operator of each comparison as text."""

MIRRORED_SIGNS = {"<": ">", "<=": ">="}
"""The same comparison with its sides exchanged."""


def order_sides(expr: sp.Expr) -> tuple[sp.Expr, str, sp.Expr]:
    """Left side, operator and right side of a comparison as it is printed: a number stands on the right."""
    (a, b), operator = expr.args, COMPARISONS[type(expr)]
    return (b, MIRRORED_SIGNS[operator], a) if a.is_number and not b.is_number else (a, operator, b)
