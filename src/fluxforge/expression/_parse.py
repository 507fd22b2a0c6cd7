"""Text → SymPy by a whitelist parser, and formulas as functions of arrays.

Operators are combined by precedence, between brackets that are kept on a stack.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

from fluxforge._files import escape_unprintable
from fluxforge.errors import ExpressionError
from fluxforge.expression._algebra import Algebra
from fluxforge.expression._evaluate import evaluate, evaluate_constant
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import (
    ARITY,
    COORDINATES,
    MAX_DEPTH,
    MAX_DIGITS,
    NAME,
    RefusalError,
    known_names,
    symbols_of,
)
from fluxforge.expression._tokens import Texts, Token, error_at, excerpt, split_components, tokenize

_REPLACEMENTS = {
    "==": "compare with <, <=, > or >=: numbers are seldom equal",
    "!=": "compare with <, <=, > or >=: numbers are seldom equal",
    "and": "multiply comparisons: (a < b)*(c < d)",
    "or": "take the maximum: max(a < b, c < d)",
    "not": "subtract from one: 1 - (a < b)",
}
"""Hints for words and operators of other languages: what to write instead."""

# Rounds of printing and parsing after which a formula that still changes is refused.
_ROUNDS = 5
_FACTORS = "write * between factors"
COMPARISON_SIGNS = ("<", "<=", ">", ">=")


def parse(text: str, symbols: Mapping[str, sp.Symbol] | Iterable[str]) -> sp.Expr:
    """The formula `text` as a SymPy expression of the given symbols.

    Numbers, the names in `symbols`, `pi`, `+ - * / **` (or `^`), brackets, comparisons `< <= > >=`, which are 1 or 0,
    and sqrt exp log sin cos tan tanh abs sign min max where; Python's precedence. Integers and their quotients are
    exact, decimals are doubles. Names become real symbols; those of a mapping are used as they are. The result is a
    fixed point: `parse(to_text(e), …) == e`. Formulas are real, and SymPy simplifies them: sqrt(x**2) is abs(x),
    sqrt(x)**2 is x. Raises ExpressionError, which quotes the text and the column.
    """
    table = _symbol_table(symbols)
    try:
        return _settle(text, _Parser(text, table).whole(), {symbol.name: symbol for symbol in table.values()})
    except RecursionError:
        raise ExpressionError(f"the formula {excerpt(text, 1)} is nested too deeply") from None


def _settle(text: str, expr: sp.Expr, by_name: Mapping[str, sp.Symbol]) -> sp.Expr:
    """Print and parse again until nothing changes, so that what `parse` returns can be written and read back."""
    for _ in range(_ROUNDS):
        try:
            again = _Parser(to_text(expr), by_name).whole()
        except ExpressionError as error:
            raise ExpressionError(f"the formula {excerpt(text, 1)}, once simplified, is refused: {error}") from None
        if again == expr:
            return expr
        expr = again
    raise ExpressionError(f"the formula {excerpt(text, 1)} has no stable simplified form; write it more plainly")


def _symbol_table(symbols: Mapping[str, sp.Symbol] | Iterable[str]) -> dict[str, sp.Symbol]:
    table = dict(symbols) if isinstance(symbols, Mapping) else symbols_of(symbols)
    for name in sorted({*table, *(symbol.name for symbol in table.values())}):
        if not NAME.match(name) or name == "pi" or name in ARITY:
            raise ExpressionError(
                f"'{escape_unprintable(name)}' cannot name a symbol: letters, digits and _, and no function"
            )
    if len({symbol.name for symbol in table.values()}) < len(set(table.values())):
        raise ExpressionError("two different symbols of a formula have the same name")
    return table


_Build = Callable[..., sp.Expr]
"""build(column, operation, *operands) returns the operation's result, or raises an error that shows the column."""


def _refuse(refusal: RefusalError) -> sp.Expr:
    raise refusal


class _Bracket:
    """The operands and operators read since an opening bracket.

    All operands of one precedence are passed to SymPy in one call: `a + b + c` is one sum, not two.
    """

    def __init__(self, opener: Token, algebra: Algebra, build: _Build) -> None:
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
        """Add the operand ± expr."""
        self._powers.append((sign, expr))

    def operator(self, token: Token) -> None:
        """Add an operator, one of + - * / ** < <= > >=, after an operand."""
        if token.text in COMPARISON_SIGNS:
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
        """End an argument, at a comma, a closing bracket or the end of the text."""
        expr = self._end_sum(token)
        if self._comparison is not None:
            operator, left = self._comparison
            expr = self._build(operator.column, self._algebra.compare, operator.text, left, expr)
        self.arguments.append(expr)
        self._start()

    def _compare(self, token: Token) -> None:
        """End the sum before a comparison, which has the lowest precedence of all operators."""
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
        """Combine a ** ±b ** ±c from the right; the sign before it becomes a factor, so that −x**2 = −(x**2)."""
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


class _Parser:
    """One pass over the tokens, with a stack of open brackets: Python's recursion limit does not bound the depth."""

    def __init__(self, text: str, symbols: Mapping[str, sp.Symbol]) -> None:
        self._text, self._symbols, self._algebra = text, symbols, Algebra(evaluate_constant)
        self._tokens, self._next = tokenize(text), 0
        self._stack: list[_Bracket] = []
        self._signs: list[sp.Integer] = []

    def whole(self) -> sp.Expr:
        """The expression of the whole text."""
        self._stack.append(_Bracket(self._peek, self._algebra, self._build))
        while True:
            self._operand()
            while len(self._stack) > 1 and self._peek.text == ")":
                self._close()
            if len(self._stack) == 1 and self._peek.kind == "end":
                self._stack[0].end_argument(self._peek)
                return self._stack[0].arguments[0]
            self._operator()

    @property
    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _operand(self) -> None:
        """Read `{ + | - | ( | function( }`, then a number or a name."""
        while True:
            sign = self._sign()
            token = self._peek
            if token.kind in ("number", "name"):
                self._next += 1
            if token.kind == "name" and self._peek.text == "(":
                self._check_callable(token)
            elif token.text != "(":
                self._stack[-1].operand(sign, self._leaf(token))
                return
            self._open(token, sign)

    def _sign(self) -> sp.Integer:
        sign = sp.S.One
        while self._peek.text in ("+", "-"):
            sign = -sign if self._take().text == "-" else sign
        return sign

    def _operator(self) -> None:
        token = self._peek
        if token.text in ("+", "-", "*", "/", "**", *COMPARISON_SIGNS):
            self._stack[-1].operator(self._take())
        elif token.text == "," and self._stack[-1].opener.kind == "name" and len(self._stack) > 1:
            self._stack[-1].end_argument(self._take())
        else:
            self._check_word(token)
            product = token.kind in ("number", "name") or token.text == "("
            wanted = "an operator or ')'" if len(self._stack) > 1 else "an operator"
            raise self._error_expecting(wanted, _FACTORS if product else "")

    def _open(self, opener: Token, sign: sp.Integer) -> None:
        bracket = self._take()
        if len(self._stack) > MAX_DEPTH:
            raise error_at(self._text, bracket.column, f"nested more than {MAX_DEPTH} deep")
        self._stack.append(_Bracket(opener, self._algebra, self._build))
        self._signs.append(sign)

    def _close(self) -> None:
        bracket = self._stack.pop()
        bracket.end_argument(self._take())
        opener, arguments = bracket.opener, bracket.arguments
        expr = arguments[0]
        if opener.kind == "name":
            self._check_arity(opener, len(arguments))
            expr = self._build(opener.column, self._algebra.call, opener.text, arguments)
        self._stack[-1].operand(self._signs.pop(), expr)

    def _leaf(self, token: Token) -> sp.Expr:
        if token.kind == "number":
            return self._number(token)
        if token.kind == "name":
            return self._name(token)
        raise self._error_expecting("a number, a name or '('")

    def _number(self, token: Token) -> sp.Expr:
        if token.text.isdigit() and len(token.text) > MAX_DIGITS:
            what = f"an integer of more than {MAX_DIGITS} digits"
            raise error_at(self._text, token.column, what, "write it as a decimal such as 1e80")
        return self._build(token.column, self._algebra.number, token.text)

    def _name(self, token: Token) -> sp.Expr:
        if token.text == "pi":
            return self._algebra.pi()
        if token.text in self._symbols:
            return self._symbols[token.text]
        if token.text in ARITY:
            raise error_at(self._text, token.column, f"function '{token.text}' without its argument in brackets")
        self._check_word(token)
        raise self._unknown("symbol", token, self._symbols)

    def _check_word(self, token: Token) -> None:
        if token.text in _REPLACEMENTS:
            raise error_at(self._text, token.column, f"unexpected '{token.text}'", _REPLACEMENTS[token.text])

    def _check_callable(self, name: Token) -> None:
        if name.text in self._symbols or name.text == "pi":
            raise self._error_expecting("an operator", _FACTORS)
        if name.text not in ARITY:
            self._check_word(name)
            raise self._unknown("function", name, ARITY)

    def _check_arity(self, name: Token, count: int) -> None:
        arity = ARITY[name.text]
        if count != arity:
            what = f"{name.text} takes {arity} argument{'s' if arity > 1 else ''}, not {count},"
            raise error_at(self._text, name.column, what)

    def _build(self, column: int, operation: Callable[..., sp.Expr], *operands: object) -> sp.Expr:
        try:
            return operation(*operands)
        except RefusalError as refusal:
            raise error_at(self._text, column, str(refusal)) from None

    def _error_expecting(self, wanted: str, hint: str = "") -> ExpressionError:
        token = self._peek
        text = f"'{token.text}'" if token.kind != "end" else "the end"
        return error_at(self._text, token.column, f"expected {wanted}, found {text}", hint)

    def _unknown(self, kind: str, token: Token, names: Iterable[str]) -> ExpressionError:
        shown = token.text if len(token.text) <= 40 else token.text[:40] + "…"
        return error_at(self._text, token.column, f"unknown {kind} '{shown}'", known_names(token.text, names))


Components: TypeAlias = sp.Expr | tuple[sp.Expr | tuple[sp.Expr, ...], ...]
"""A formula, or a tuple of formulas or of tuples."""


def field(text: str, variables: Sequence[str] = COORDINATES[:2]) -> Callable[..., np.ndarray]:
    """f(x, y) = text: a function of as many arrays (or numbers) as there are variables.

    It returns float64 of the shape its arguments broadcast to, and raises an `ExpressionError` that names a point
    where the formula is not finite.
    """
    symbols = symbols_of(variables)
    expr = parse(text, symbols)

    def function(*coordinates: Any) -> np.ndarray:
        if len(coordinates) != len(symbols):
            raise ExpressionError(
                f"the formula {excerpt(text, 1)} is a function of {', '.join(symbols)}: give one array each"
            )
        arrays = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in coordinates))
        with np.errstate(all="ignore"):
            values = evaluate(expr, dict(zip(symbols.values(), arrays, strict=True)), np)
        result = np.array(np.broadcast_to(values, arrays[0].shape), dtype=np.float64)
        _check_finite(result, text, dict(zip(symbols, arrays, strict=True)))
        return result

    return function


def _check_finite(result: np.ndarray, text: str, coordinates: dict[str, np.ndarray]) -> None:
    bad = np.argwhere(~np.isfinite(result))
    if len(bad):
        point = tuple(bad[0])
        where = ", ".join(f"{name} = {float(values[point])!r}" for name, values in coordinates.items())
        raise ExpressionError(f"the formula {excerpt(text, 1)} is {float(result[point])} at {where}")


def parse_components(text: str, symbols: Mapping[str, sp.Symbol] | Iterable[str]) -> Components:
    """A formula, or a tuple of formulas, each read by `parse`; an error names the component."""
    read: Components = _parse_parts(
        split_components(text), symbols if isinstance(symbols, Mapping) else list(symbols), ()
    )
    return read


def _parse_parts(texts: Texts, symbols: Mapping[str, sp.Symbol] | Iterable[str], at: tuple[int, ...]) -> Any:
    if isinstance(texts, tuple):
        return tuple(_parse_parts(part, symbols, (*at, k)) for k, part in enumerate(texts, start=1))
    try:
        return parse(texts, symbols)
    except ExpressionError as error:
        where = f"component {', '.join(map(str, at))}: " if at else ""
        raise ExpressionError(f"{where}{error}") from error
