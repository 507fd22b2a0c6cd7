"""What the parser refuses, and what it says."""

import pytest
import sympy as sp

from fluxforge.errors import ExpressionError, InputError
from fluxforge.expression import parse, to_text

NAMES = ("x", "y", "T_N", "T_P")


def refusal(text, names=NAMES):
    with pytest.raises(ExpressionError) as caught:
        parse(text, names)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 500
    return message


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x')",
        "().__class__",
        "().__class__.__bases__[0].__subclasses__()",
        "x.__class__",
        "x.subs",
        "(lambda: 1)()",
        "lambda x: x",
        "f'{x}'",
        "'x'",
        '"x"',
        "`x`",
        "x; y",
        "x\ny",
        "x\r\n",
        "exec(x)",
        "eval(x)",
        "open(x)",
        "getattr(x, y)",
        "exec",
        "os",
        "__builtins__",
        "__name__",
        "x[0]",
        "[x]",
        "{x}",
        "x < y < 1",
        "x <> y",
        "x != y",
        "x =< y",
        "< y",
        "x <",
        "where(x < y, 1)",
        "where",
        "x or y",
        "not (x < y)",
        "x == y",
        "x = 1",
        "x := 1",
        "x if y else 1",
        "x and y",
        "not x",
        "x @ y",
        "x // y",
        "x % y",
        "x & y",
        "~x",
        "x!",
        "x, y",
        "#x",
        "x # y",
        "x\\y",
        "$x",
        "x?",
        "\x00",
        "x\x00",
        "x\u202ey",
        "1j",
        "1_000",
        "0x10",
        "1.2.3",
        "1e",
        "1e+",
        ".",
        "1..2",
        "I",
        "E",
        "e",
        "oo",
        "zoo",
        "nan",
        "inf",
        "S",
        "Symbol(x)",
        "Integer(1)",
        "sinh(x)",
        "asin(x)",
        "Pow(x, y)",
        "ｘ",
        "х",
        "π",
        "x²",
        "１",
        "٣",
        "x×y",
        "x−y",
        "x÷y",
        "x\xa0+ y",
        "½",
        "√x",
        "x ⁄ y",
    ],
)
def test_what_is_not_in_the_grammar_is_refused(text):
    refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "x +",
        "* x",
        "x * * y",
        "(x",
        "x)",
        "()",
        "x y",
        "2x",
        "2(x)",
        "(x)(y)",
        "x(y)",
        "pi(x)",
        "sin",
        "sin()",
        "sin x",
        "sin(x",
        "sin(x, y)",
        "min(x)",
        "min(x, y, x)",
        "min(x,)",
        "(x, y)",
        "x ** ",
        "* *",
    ],
)
def test_broken_syntax_is_refused(text):
    refusal(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2*x+foo", "unknown symbol 'foo' at column 5 of \"2*x+foo\"; known: T_N, T_P, x, y"),
        ("T_p", "unknown symbol 'T_p' at column 1 of \"T_p\"; known: T_P, T_N, x, y"),
        (
            "1 + sine(x)",
            "unknown function 'sine' at column 5 of \"1 + sine(x)\"; "
            "known: sin, sign, abs, cos, exp, log, max, min, sqrt, tan, tanh, where",
        ),
        (
            "x < y < 1",
            'a chain of comparisons (write (a < b)*(b < c)) at column 7 of "x < y < 1"',
        ),
        ("x == y", "unexpected '==' at column 3 of \"x == y\"; compare with <, <=, > or >=: numbers are seldom equal"),
        ("x and y", "unexpected 'and' at column 3 of \"x and y\"; multiply comparisons: (a < b)*(c < d)"),
        ("not (x > y)", "unexpected 'not' at column 1 of \"not (x > y)\"; subtract from one: 1 - (a < b)"),
        ("where(x > 0, 1)", 'where takes 3 arguments, not 2, at column 1 of "where(x > 0, 1)"'),
        ("1/(x-x)", 'division by zero at column 2 of "1/(x-x)"'),
        ("x + 0**-1", 'division by zero at column 6 of "x + 0**-1"'),
        ("2 x", "expected an operator, found 'x' at column 3 of \"2 x\"; write * between factors"),
        ("x(2)", "expected an operator, found '(' at column 2 of \"x(2)\"; write * between factors"),
        ("(x + 2", "expected an operator or ')', found the end at column 7 of \"(x + 2\""),
        ("x + ", "expected a number, a name or '(', found the end at column 5 of \"x + \""),
        ("2*min(x)", 'min takes 2 arguments, not 1, at column 3 of "2*min(x)"'),
        ("sin(x, y)", 'sin takes 1 argument, not 2, at column 1 of "sin(x, y)"'),
        ("x + sin", "function 'sin' without its argument in brackets at column 5 of \"x + sin\""),
        ("x**y", 'an exponent that is not a constant number at column 2 of "x**y"'),
        ("x**17", 'an exponent beyond ±16 at column 2 of "x**17"'),
        ("x**16*x*y", 'an exponent beyond ±16 at column 6 of "x**16*x*y"'),
        ("1e308 + 1e308 - 2", 'a number outside the range of double precision at column 7 of "1e308 + 1e308 - 2"'),
        ("y - 1e308*10*x", 'a number outside the range of double precision at column 10 of "y - 1e308*10*x"'),
        ("9**9**9", 'an exponent beyond ±16 at column 2 of "9**9**9"'),
        ("y*sqrt(-1)", 'a value that is not a finite real number at column 3 of "y*sqrt(-1)"'),
        ("log(-2)", 'the logarithm of a number that is not positive at column 1 of "log(-2)"'),
        ("  ", 'the formula "  " is empty'),
    ],
)
def test_message_shows_what_and_where(text, message):
    assert refusal(text) == message


def test_control_characters_are_escaped_and_the_column_counts_the_originals():
    message = refusal("x\t+ \n\x1b[31m y")
    assert message.startswith("unexpected character '\\n' at column 5 of \"x\\t+ \\n\\x1b[31m y\"")


def test_lookalikes_are_shown():
    assert refusal("2*х").startswith("unexpected character 'х' at column 3 of")


def test_a_long_text_is_cut_around_the_place():
    message = refusal("x + " * 500 + "foo" + " + x" * 500)
    assert "'foo' at column 2001 of" in message
    assert '"…' in message
    assert '…"' in message
    assert message.count("x + ") < 20


def test_a_long_name_is_cut():
    assert "'" + "a" * 40 + "…'" in refusal("a" * 5000)


def test_many_symbols_are_not_all_listed():
    message = refusal("s7_", [f"s{k}" for k in range(100)])
    assert "known: s7, " in message
    assert message.endswith(", …")


def test_no_symbols():
    assert refusal("x", ()).endswith("known: none")


def test_the_error_is_bad_input():
    assert issubclass(ExpressionError, InputError)


@pytest.mark.parametrize("name", ["sin", "pi", "max", "2x", "a b", "", "α", "x\n", "x.y", "ｘ"])
def test_a_symbol_needs_a_plain_name(name):
    message = refusal("1", [name])
    assert "cannot name a symbol" in message
    assert "cannot name a symbol" in refusal("1", {"ok": sp.Symbol(name or "()")})


def test_two_symbols_of_one_name_are_refused():
    assert "same name" in refusal("a + b", {"a": sp.Symbol("x"), "b": sp.Symbol("x", real=True)})


@pytest.mark.parametrize(
    "expr", [sp.besselj(0, sp.Symbol("x")), sp.I, sp.oo, sp.Symbol("a b"), sp.sinh(sp.Symbol("x")) + 1]
)
def test_printing_something_else_is_refused(expr):
    with pytest.raises(ExpressionError, match="a formula cannot contain"):
        to_text(expr)
