"""What the grammar means: precedence, numbers, functions, symbols, and how formulas print."""

import math

import pytest
import sympy as sp

from fluxforge.expression import evaluate, parse, to_text

NAMES = ("x", "y", "z", "T_N", "T_P", "alpha", "A", "delta", "V", "dt")
x, y, z = (sp.Symbol(name, real=True) for name in "xyz")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2*3", 7),
        ("(1 + 2)*3", 9),
        ("2 - 3 - 4", -5),
        ("2 - (3 - 4)", 3),
        ("8/4/2", 1),
        ("8/(4/2)", 4),
        ("8/4*2", 4),
        ("2**3**2", 512),
        ("(2**3)**2", 64),
        ("2^3^2", 512),
        ("-3**2", -9),
        ("(-3)**2", 9),
        ("-3^2*2", -18),
        ("2**-1", sp.Rational(1, 2)),
        ("2**-2**2", sp.Rational(1, 16)),
        ("2*-3", -6),
        ("2 - -3", 5),
        ("2--+-3", -1),
        ("+5", 5),
        ("-(2 + 3)*(4 - 1)", -15),
        ("0**0", 1),
        ("1/3 + 1/6", sp.Rational(1, 2)),
        ("4**(1/2)", 2),
        ("8**(-1/3)", sp.Rational(1, 2)),
        ("sqrt(9/4)", sp.Rational(3, 2)),
        ("abs(-7/2)", sp.Rational(7, 2)),
        ("min(3, -2) + max(3, -2)", 1),
        ("sign(-3) + sign(0) + 5*sign(2)", 4),
        ("cos(pi)", -1),
        ("007", 7),
        ("2.0", 2),
        ("3.", 3),
        ("1e3", 1000),
        ("0.0", 0),
    ],
)
def test_exact_value(text, value):
    expr = parse(text, NAMES)
    assert expr == value
    assert isinstance(expr, sp.Rational)


@pytest.mark.parametrize("text", ["0.1", ".5", "1.5e-3", "2.5E-7", "0.30000000000000004", "1e300", "6.02e23"])
def test_a_decimal_is_the_double_that_python_reads(text):
    expr = parse(text, ())
    assert isinstance(expr, sp.Float)
    assert float(expr) == float(text)
    assert expr == sp.Float(float(text))
    assert float(to_text(expr)) == float(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x*y", x * y),
        ("-x**2", -(x**2)),
        ("x**-2", x**-2),
        ("2*(x + y)/z", sp.Mul(2, x + y, 1 / z)),
        ("x - (y - z)", x - y + z),
        ("x/2", x / 2),
        ("sqrt(x)", sp.sqrt(x)),
        ("x**(2/3)", x ** sp.Rational(2, 3)),
        ("x**1.5", x ** sp.Float(1.5)),
        ("x**2.0", x**2),
        ("0.5*2*x", x),
        ("sqrt(x**2)", sp.Abs(x)),
        ("abs(-2*x)", 2 * sp.Abs(x)),
        ("abs(y - x) - abs(x - y)", sp.S.Zero),
        ("abs(x**3)", x**2 * sp.Abs(x)),
        ("abs(exp(x)*y)", sp.exp(x) * sp.Abs(y)),
        ("sign(-x)", -sp.sign(x)),
        ("min(x, max(y, 2))", sp.Min(x, sp.Max(y, 2))),
        ("max(max(x, 1), max(y, 3))", sp.Max(x, y, 3)),
        ("min(x, x)", x),
        ("max(pi, 3)*x", sp.pi * x),
        ("exp(x) + log(x) + sin(x)", sp.exp(x) + sp.log(x) + sp.sin(x)),
        ("cos(x) + tan(x) + tanh(x)", sp.cos(x) + sp.tan(x) + sp.tanh(x)),
        ("exp(1)", sp.E),
        ("x ** pi", x**sp.pi),
        ("\tx +\t y ", x + y),
        ("tan(x + pi/2)", -1 / sp.tan(x)),
        ("sqrt(x**2*y)", sp.Abs(x) * sp.sqrt(y)),
    ],
)
def test_formulas_are_parsed_to_their_expressions(text, expected):
    assert parse(text, NAMES) == expected


def test_names_become_real_symbols():
    assert parse("T_N", NAMES) == sp.Symbol("T_N", real=True)


def test_symbols_of_a_mapping_are_used_as_they_are():
    positive = sp.Symbol("x", positive=True)
    assert parse("sqrt(x**2)", {"x": positive}) == positive
    plain = sp.Symbol("x")
    assert parse("x + 1", {"x": plain}) == plain + 1


def test_a_mapping_may_name_a_symbol_differently():
    a, b = sp.symbols("a b", real=True)
    assert parse("2*a - b", {"a": b, "b": a}) == 2 * b - a


def test_a_generator_of_names_is_accepted():
    assert parse("x + y", (name for name in "xy")) == x + y


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("alpha*A/delta*(T_N - T_P)", "A*alpha/delta*(T_N - T_P)"),
        ("T_P + dt/V*z", "T_P + dt*z/V"),
        ("(T_N - T_P)/delta", "(T_N - T_P)/delta"),
        ("-x + y", "y - x"),
        ("1 + x", "x + 1"),
        ("-x - 1", "-x - 1"),
        ("3*x/(2*y)", "3*x/(2*y)"),
        ("2*(x + y)/z", "2*(x + y)/z"),
        ("1/(2*x)/(y + 1)", "1/(2*x)/(y + 1)"),
        ("x**(-2)", "1/x**2"),
        ("(x + y)**2", "(x + y)**2"),
        ("(x**2)**0.25", "abs(x)**0.5"),
        ("x**(1/2)", "sqrt(x)"),
        ("x**(2/3)", "x**(2/3)"),
        ("exp(1)*x", "exp(1)*x"),
        ("1.0*x + 0.1", "x + 0.1"),
        ("max(z, max(y, x))", "max(max(x, y), z)"),
        ("1e-5*x", "1e-05*x"),
        ("-1/2", "-1/2"),
    ],
)
def test_formulas_are_printed_in_their_canonical_form(text, printed):
    assert to_text(parse(text, NAMES)) == printed


def test_print_does_not_depend_on_the_order_of_writing():
    assert to_text(parse("z*y*x + y + x", NAMES)) == to_text(parse("x + y + x*y*z", NAMES))


def test_every_computed_exact_number_can_be_written_and_read():
    text = "*".join(["999999999999999989"] * 4)
    expr = parse(f"x/({text})", NAMES)
    assert parse(to_text(expr), NAMES) == expr == x / 999999999999999989**4


def test_pi_is_the_constant():
    assert evaluate(parse("2*pi", ()), {}, math) == 2 * math.pi
