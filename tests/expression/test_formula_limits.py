"""Formulas that are well written and still refused: no finite real value, or too big."""

import pytest
import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression import parse, to_text

NAMES = ("x", "y", "T_N", "T_P")


def refusal(text):
    with pytest.raises(ExpressionError) as caught:
        parse(text, NAMES)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 500
    return message


def nested(wrap, times, inner="x"):
    for _ in range(times):
        inner = wrap(inner)
    return inner


@pytest.mark.parametrize(
    "text",
    [
        "1/0",
        "1/0.0",
        "x/(2 - 2)",
        "1/(x - x)",
        "1/(x + y - x - y)",
        "0**-1",
        "0**(-1/2)",
        "0.0**-0.5",
        "1/(0*x)",
        "1/sin(0)",
        "1/sin(pi)",
        "1/(0.1*10 - 1)",
        "1/(sqrt(2)**2 - 2)",
        "log(0)",
        "log(x - x)",
        "tan(pi/2)",
        "1/(sqrt(5 + 2*sqrt(6)) - sqrt(2) - sqrt(3))",
        "1/(sin(1)**2 + cos(1)**2 - 1)",
        "1/sign(0)",
        "1/min(0, 1)",
    ],
)
def test_division_by_a_constant_zero_is_refused(text):
    refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "sqrt(-1)",
        "(-1)**0.5",
        "(-8)**(1/3)",
        "(-pi)**0.5",
        "log(-1)",
        "log(-0.5)",
        "sqrt(-x**2)",
        "sqrt(-4)*sqrt(-4)",
        "sqrt(1 - pi)",
        "log(cos(3))",
        "sqrt(-exp(1))",
        "(x - x - 2)**1.5",
        "log(-exp(x)*exp(-x))",
    ],
)
def test_complex_constants_are_refused(text):
    refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "1e309",
        "1e-309",
        "1e-400",
        "1e300*1e300",
        "1e-300*1e-300",
        "(1e200)**2",
        "exp(1000)",
        "exp(-1000)",
        "exp(1e9)",
        "exp(exp(exp(exp(1))))",
        "exp(710.0)",
        "x*1e300/1e-300",
        "1e200*x*1e200",
        "exp(700)*exp(700)",
    ],
)
def test_numbers_beyond_double_precision_are_refused(text):
    refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        *[
            "9**9**9",
            "9**(9**9)",
            "(2**16)**16",
            "((9**9)**9)**9",
            "x**16*x",
            "(x**9)**9",
            "x**-17",
            "x**16.5",
            "x**(33/2)",
            "exp(100*log(x))",
            "exp(1000000000000*log(2))",
            "exp(x + 1000000000000*log(3))",
            "2**1e9",
            "x**x",
            "2**x",
            "2**(2**(2**(2**(2**2))))",
        ],
        "10**16*" * 5 + "1",
        "1" + "0" * 77,
        "*".join(["999999999999999999"] * 5),
        "1" + "/999999999999999999" * 5,
        "+".join(f"x/{10**17 + k}" for k in range(300)),
        "x**1" + "0" * 70,
    ],
)
def test_big_powers_and_numbers_are_refused(text):
    refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "(" * 4_000 + "x" + ")" * 4_000,
        "sin(" * 2_000 + "x" + ")" * 2_000,
        "-(" * 3_000 + "x",
        "min(x," * 1_000,
        "(" * 51 + "x" + ")" * 51,
        "1/(" * 51 + "x" + ")" * 51,
    ],
)
def test_deep_nesting_is_refused(text):
    message = refusal(text)
    assert "deep" in message or "characters" in message


def test_fifty_levels_are_read():
    assert parse(nested("({})".format, 50), NAMES) == sp.Symbol("x", real=True)
    deep = parse(nested("sin({})".format, 50), NAMES)
    assert to_text(deep) == nested("sin({})".format, 50)


def test_powers_do_not_nest():
    assert parse("x**" + "1**" * 1_500 + "2", NAMES) == sp.Symbol("x", real=True)


def test_signs_do_not_nest():
    assert parse("-" * 4_001 + "x", NAMES) == -sp.Symbol("x", real=True)


def test_long_text_is_refused():
    assert "has 10001 characters; at most 10000 are read" in refusal("x" + " " * 10_000)
    assert parse("x" + " " * 9_999, NAMES) == sp.Symbol("x", real=True)


def test_many_nodes_are_refused():
    assert "more than 5000 numbers, names and operators" in refusal("+".join(["x"] * 2_501))
    assert parse("+".join(["x"] * 2_500), NAMES) == 2_500 * sp.Symbol("x", real=True)


def test_what_grows_beyond_the_limits_by_simplification_is_refused():
    message = refusal("+".join(f"y**.{k}/.7" for k in range(1, 600)))
    assert "once simplified, is refused: the formula" in message
    assert "characters; at most 10000 are read" in message


REAL = nested("1/(2 + x**2 + 1/(3 + y**2 + {}))".format, 3)


@pytest.mark.parametrize(
    "text",
    [
        "abs(" + nested("1/(x+1/(y+{}))".format, 3) + ")",
        f"abs(y*(x - {REAL}))",
        f"sqrt((x - {REAL})**2)",
        f"sqrt(y*(x - {REAL})**2)",
        f"x*(y*(x - {REAL})**4)**(1/3)/sqrt(y)",
        f"sqrt((x - {REAL})**3)",
        nested("max(x - y, y*{})".format, 40),
        "abs(x - sqrt(5 + 2*sqrt(6)) + sqrt(2) + sqrt(3))",
    ],
)
def test_sympy_is_not_asked_what_is_hard_for_it(text, monkeypatch):
    def hard(*_):
        raise AssertionError("SymPy was asked")

    for function, method in ((sp.Abs, "eval"), (sp.Max, "_new_args_filter"), (sp.Max, "_collapse_arguments")):
        monkeypatch.setattr(function, method, hard)
    expr = parse(text, NAMES)
    assert parse(to_text(expr), NAMES) == expr


def test_nested_fractions_are_refused_beyond_six():
    assert parse(nested("1/(x + {})".format, 6, "y"), NAMES)
    message = refusal(nested("1/(x + {})".format, 7, "y"))
    assert message.startswith("sums in denominators nested more than 6 deep at column 2 of")
    assert parse(nested("x/(y*{})".format, 16), NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "((x**3 + 1)**3 + 1)**8",
        "(x + 1)**16*(y + 1)**16*(x - y)**16*(x + y)**16*x",
        "*".join(f"(x+{k})" for k in range(65)),
    ],
)
def test_a_high_degree_is_refused(text):
    assert "degree beyond 64" in refusal(text)
    positive = {"x": sp.Symbol("x", positive=True), "y": sp.Symbol("y", positive=True)}
    assert parse("abs((x**3 + 1)**16 - y)", positive)
