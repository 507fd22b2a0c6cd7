"""Tokens → SymPy: one method per level of precedence, loosest first. Nothing is looked up outside two tables."""

from collections.abc import Callable, Iterable, Mapping

import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression._algebra import ARITY, Algebra
from fluxforge.expression._errors import RefusalError, error_at, excerpt, known_names, visible
from fluxforge.expression._limits import MAX_DEPTH, MAX_DIGITS
from fluxforge.expression._print import to_text
from fluxforge.expression._tokens import NAME, Token, tokenize

_ROUNDS = 5


def parse(text: str, symbols: Mapping[str, sp.Symbol] | Iterable[str]) -> sp.Expr:
    """The formula `text` as a SymPy expression of the given symbols, or an `ExpressionError` that shows where.

    Numbers, the names in `symbols`, `pi`, `+ - * / **` (or `^`), brackets, and sqrt exp log sin cos tan tanh abs sign
    min max; Python's precedence. Integers and their quotients are exact, decimals are doubles. Names become real
    symbols; those of a mapping are used as they are. The result is a fixed point: `parse(to_text(e), …) == e`.
    """
    table = _symbol_table(symbols)
    try:
        return _settle(text, _Parser(text, table).whole(), {symbol.name: symbol for symbol in table.values()})
    except RecursionError:
        raise ExpressionError(f"the formula {excerpt(text, 1)} is nested too deeply") from None


def _settle(text: str, expr: sp.Expr, by_name: Mapping[str, sp.Symbol]) -> sp.Expr:
    """Prints and reads again until nothing changes: what `parse` returns can always be written down and read back."""
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
    table = dict(symbols) if isinstance(symbols, Mapping) else {name: sp.Symbol(name, real=True) for name in symbols}
    for name in sorted({*table, *(symbol.name for symbol in table.values())}):
        if not NAME.match(name) or name == "pi" or name in ARITY:
            raise ExpressionError(
                f"'{visible(name)}' cannot name a symbol: letters, digits and _ only, and no function"
            )
    if len({symbol.name for symbol in table.values()}) < len(set(table.values())):
        raise ExpressionError("two different symbols of a formula have the same name")
    return table


class _Parser:
    """Reads one text once. `_depth` counts brackets, signs and exponents that are open."""

    def __init__(self, text: str, symbols: Mapping[str, sp.Symbol]) -> None:
        self._text, self._symbols, self._algebra = text, symbols, Algebra()
        self._tokens, self._next, self._depth = tokenize(text), 0, 0

    def whole(self) -> sp.Expr:
        """The expression of the whole text."""
        expr = self._sum()
        if self._peek.kind != "end":
            raise self._unexpected("an operator", "write * between factors")
        return expr

    @property
    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _sum(self) -> sp.Expr:
        """Product { (+|-) product }."""
        terms, column = [self._product(sp.S.One)], self._peek.column
        while self._peek.text in ("+", "-"):
            terms.append(self._product(sp.S.NegativeOne if self._take().text == "-" else sp.S.One))
        return self._build(column, self._algebra.add, terms)

    def _product(self, sign: sp.Integer) -> sp.Expr:
        """Signed { (*|/) signed }, the sign of the term being one more factor."""
        factors, column = [sign, *self._signed()], self._peek.column
        while self._peek.text in ("*", "/"):
            token = self._take()
            minus, expr = self._signed()
            factors += [minus, expr if token.text == "*" else self._build(token.column, self._algebra.invert, expr)]
        return self._build(column, self._algebra.multiply, [factor for factor in factors if factor != 1] or [sp.S.One])

    def _signed(self) -> tuple[sp.Integer, sp.Expr]:
        """{ +|- } power, the signs apart."""
        sign = sp.S.One
        while self._peek.text in ("+", "-"):
            sign = -sign if self._take().text == "-" else sign
        return sign, self._power()

    def _power(self) -> sp.Expr:
        """Atom [ ** signed ], which makes ** right-associative and −x**2 = −(x**2)."""
        base = self._atom()
        if self._peek.text != "**":
            return base
        column = self._take().column
        self._open(column)
        exponent = self._build(column, self._algebra.multiply, self._signed())
        self._depth -= 1
        return self._build(column, self._algebra.power, base, exponent)

    def _atom(self) -> sp.Expr:
        token = self._peek
        if token.kind == "number":
            return self._number()
        if token.kind == "name":
            return self._name()
        if token.text == "(":
            return self._arguments()[0]
        raise self._unexpected("a number, a name or '('")

    def _number(self) -> sp.Expr:
        token = self._take()
        if token.text.isdigit() and len(token.text) > MAX_DIGITS:
            what = f"an integer of more than {MAX_DIGITS} digits"
            raise error_at(self._text, token.column, what, "write it as a decimal such as 1e80")
        return self._build(token.column, self._algebra.number, token.text)

    def _name(self) -> sp.Expr:
        token = self._take()
        if self._peek.text == "(":
            return self._call(token)
        if token.text == "pi":
            return self._algebra.pi()
        if token.text in self._symbols:
            return self._symbols[token.text]
        if token.text in ARITY:
            raise error_at(self._text, token.column, f"function '{token.text}' without its argument in brackets")
        raise self._unknown("symbol", token, self._symbols)

    def _call(self, name: Token) -> sp.Expr:
        if name.text in self._symbols or name.text == "pi":
            raise self._unexpected("an operator", "write * between factors")
        if name.text not in ARITY:
            raise self._unknown("function", name, ARITY)
        arity, arguments = ARITY[name.text], self._arguments(many=True)
        if len(arguments) != arity:
            what = f"{name.text} takes {arity} argument{'s' if arity > 1 else ''}, not {len(arguments)},"
            raise error_at(self._text, name.column, what)
        return self._build(name.column, self._algebra.call, name.text, arguments)

    def _arguments(self, many: bool = False) -> list[sp.Expr]:
        """( sum { , sum } )."""
        self._open(self._take().column)
        arguments = [self._sum()]
        while many and self._peek.text == ",":
            self._take()
            arguments.append(self._sum())
        if self._peek.text != ")":
            raise self._unexpected("an operator or ')'")
        self._take()
        self._depth -= 1
        return arguments

    def _open(self, column: int) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise error_at(self._text, column, f"nested more than {MAX_DEPTH} deep")

    def _build(self, column: int, operation: Callable[..., sp.Expr], *operands: object) -> sp.Expr:
        try:
            return operation(*operands)
        except RefusalError as refusal:
            raise error_at(self._text, column, str(refusal)) from None

    def _unexpected(self, wanted: str, hint: str = "") -> ExpressionError:
        token = self._peek
        found = f"'{token.text}'" if token.kind != "end" else "the end"
        return error_at(self._text, token.column, f"expected {wanted}, found {found}", hint)

    def _unknown(self, kind: str, token: Token, names: Iterable[str]) -> ExpressionError:
        shown = token.text if len(token.text) <= 40 else token.text[:40] + "…"
        return error_at(self._text, token.column, f"unknown {kind} '{shown}'", known_names(token.text, names))
