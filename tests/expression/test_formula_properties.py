"""Random formulas have the value Python gives them and survive printing; random text does no harm."""

import math
import operator

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from fluxforge.errors import ExpressionError
from fluxforge.expression import AtMost, Below, Select, evaluate, parse, to_text

POINT = {"x": 0.7, "y": -1.3, "z": 2.1}
SYMBOLS = {name: sp.Symbol(name, real=True) for name in POINT}
OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b}
PAIRS = {"min": min, "max": max}
COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
FUNCTIONS = {
    **{name: getattr(math, name) for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh")},
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
}
EXPONENTS = ["2", "3", "-1", "-2", "0.5", "(1/2)", "(-1/3)", "1.5", "(2/3)", "-0.5", "2**2", "1.0"]

leaves = (
    st.sampled_from(["x", "y", "z", "pi", "0.5", "1.0", "0.1", "1e-3"])
    | st.integers(0, 12).map(str)
    | st.floats(0.01, 99.0).map(repr)
)


def branches(inner):
    return (
        st.tuples(inner, st.sampled_from([*OPERATORS]), inner)
        | st.tuples(st.just("-"), inner)
        | st.tuples(inner, st.just("**"), st.sampled_from(EXPONENTS))
        | st.tuples(st.sampled_from([*FUNCTIONS]), inner)
        | st.tuples(st.sampled_from([*PAIRS]), inner, inner)
        | st.tuples(inner, st.sampled_from([*COMPARISONS]), inner)
        | st.tuples(st.just("where"), inner, inner, inner)
    )


trees = st.recursive(leaves, branches, max_leaves=12)
ours = settings(deadline=None, derandomize=True, max_examples=100)


def write(tree):
    match tree:
        case str():
            return tree
        case (name, a) if name in FUNCTIONS:
            return f"{name}({write(a)})"
        case (name, a, b) if name in PAIRS:
            return f"{name}({write(a)}, {write(b)})"
        case ("where", a, b, c):
            return f"where({write(a)}, {write(b)}, {write(c)})"
        case ("-", a):
            return f"-({write(a)})"
        case (a, symbol, b):
            return f"({write(a)}){symbol}({write(b)})"


def number(text):
    return {**POINT, "pi": math.pi}[text] if text in POINT or text == "pi" else float(text)


def exponent(text):
    return {"(1/2)": 0.5, "(-1/3)": -1 / 3, "(2/3)": 2 / 3, "2**2": 4.0}.get(text) or float(text)


def compute(tree):
    """Plain Python's value; a ValueError where a step is not real, or so large or small that round-off shows."""
    match tree:
        case str():
            value = number(tree)
        case (name, a) if name in FUNCTIONS:
            value = FUNCTIONS[name](compute(a))
        case (name, a, b) if name in PAIRS:
            value = PAIRS[name](compute(a), compute(b))
        case ("where", a, b, c):
            value = compute(b) if compute(a) != 0 else compute(c)
        case (a, symbol, b) if symbol in COMPARISONS:
            left, right = compute(a), compute(b)
            if abs(left - right) < 1e-9 * abs(left):
                raise ValueError("equal but for round-off, which the order of operations decides")
            value = float(COMPARISONS[symbol](left, right))
        case ("-", a):
            value = -compute(a)
        case (a, "**", power):
            value = math.pow(compute(a), exponent(power))
        case (a, symbol, b):
            value = OPERATORS[symbol](compute(a), compute(b))
    if not (value == 0 or 1e-4 < abs(value) < 1e4):
        raise ValueError(value)
    return value


def read(text):
    """The expression, or a discarded example if the formula has no real value (sqrt(-1), 1/0, 0.3**-9 …)."""
    try:
        return parse(text, SYMBOLS)
    except ExpressionError:
        assume(False)


def at_point(expr, xp):
    # The branch of where(…) that is not taken may not be real.
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(evaluate(expr, {symbol: xp.asarray(POINT[name]) for name, symbol in SYMBOLS.items()}, xp))


@ours
@given(trees)
@example(("-", ("x", "**", "2")))
@example((("2", "*", ("x", "+", "1")), "/", "y"))
@example(("1", "+", ("100", "*", ("x", ">", "0.5"))))
@example(("where", ("x", "<=", "y"), ("log", "y"), ("-", "z")))
@example(("where", ("y", "<", "0"), ("-", "z"), ("log", "y")))
def test_the_value_is_that_of_python_on_every_back_end(tree):
    try:
        value = compute(tree)
    except (ValueError, ArithmeticError):
        assume(False)
    expr = read(write(tree))
    assert math.isclose(at_point(expr, np), value, rel_tol=1e-8, abs_tol=1e-8)
    with jax.enable_x64(True):
        assert math.isclose(at_point(expr, jnp), value, rel_tol=1e-8, abs_tol=1e-8)
    exact = expr.evalf(30, subs={symbol: sp.Float(POINT[name], 30) for name, symbol in SYMBOLS.items()})
    assert math.isclose(float(exact), value, rel_tol=1e-8, abs_tol=1e-8)


@ours
@given(trees)
def test_what_is_printed_reads_back_equal(tree):
    expr = read(write(tree))
    text = to_text(expr)
    assert parse(text, SYMBOLS) == expr
    assert text == to_text(parse(text, SYMBOLS))
    assert text.isascii()


sympy_trees = st.recursive(
    st.sampled_from([*SYMBOLS.values(), sp.pi, sp.Integer(1), sp.Integer(-3), sp.Rational(2, 7), sp.Float(0.3)]),
    lambda inner: (
        st.builds(lambda a, b: a + b, inner, inner)
        | st.builds(lambda a, b: a - b, inner, inner)
        | st.builds(lambda a, b: a * b, inner, inner)
        | st.builds(lambda a, n: a**n, inner, st.sampled_from([2, 3, -1, sp.Rational(1, 2), sp.Rational(-3, 2)]))
        | st.builds(Below, inner, inner)
        | st.builds(AtMost, inner, inner)
        | st.builds(Select, inner, inner, inner)
        | st.builds(lambda f, a: f(a), st.sampled_from([sp.exp, sp.sin, sp.cos, sp.tanh, sp.log]), inner)
    ),
    max_leaves=8,
)


@ours
@given(sympy_trees)
def test_what_sympy_builds_is_read_from_its_text(expr):
    # The parser decides comparisons of constants such as pi, which SymPy leaves as they are.
    conditions = [*expr.atoms(Below, AtMost), *(node.args[0] for node in expr.atoms(Select))]
    assume(all(condition.free_symbols for condition in conditions))
    # A decimal with an integer value prints as the integer.
    assume(not any(float(number).is_integer() for number in expr.atoms(sp.Float)))
    try:
        again = parse(to_text(expr), SYMBOLS)
    except ExpressionError:
        assume(False)
    assert again == expr


PIECES = [
    "x",
    "y",
    "foo",
    "pi",
    "sin",
    "min",
    "sqrt",
    "where",
    "<",
    ">=",
    "log",
    "exp",
    "abs",
    "1",
    "0",
    "2.5",
    "1e3",
    "99",
    ".",
    "e",
    "_",
    "+",
    "-",
    "*",
    "/",
    "**",
    "^",
    "(",
    ")",
    "(",
    ")",
    ",",
    "=",
    "'",
    "[",
    "__class__",
    "lambda",
    "²",
]
soup = st.lists(st.sampled_from([*PIECES, " ", "\n"]), max_size=30).map("".join)


def attempt(text):
    try:
        return parse(text, SYMBOLS)
    except ExpressionError as error:
        return str(error)


def survive(text):
    result = attempt(text)
    if isinstance(result, str):
        assert result.isprintable()
        assert len(result) < 800
    else:
        assert isinstance(result, sp.Expr)
        assert result.free_symbols <= set(SYMBOLS.values())
        assert parse(to_text(result), SYMBOLS) == result


@settings(ours, max_examples=150)
@given(soup)
def test_token_soup_is_read_or_refused(text):
    survive(text)


@settings(ours, max_examples=150)
@given(st.binary(max_size=60))
def test_bytes_are_read_or_refused(data):
    survive(data.decode("latin-1"))
    survive(data.decode("utf-8", "surrogateescape"))


@settings(ours, max_examples=60)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    survive(text)


@settings(ours, max_examples=200)
@given(st.text(alphabet="xyz0123456789.e+-*/^(),<>= ", max_size=40))
def test_text_of_the_right_letters_is_read_or_refused(text):
    survive(text)
