"""Comparisons, choices and tuples: values, types, derivatives, units, and how they print."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression import (
    AtMost,
    Below,
    Select,
    evaluate,
    field,
    parse,
    parse_components,
    split_components,
    symbol,
    to_text,
)
from fluxforge.pde import NUMBER, Clash, differentiate, dimensions, unit

x, y = symbol("x"), symbol("y")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x < y", Below(x, y)),
        ("x > y", Below(y, x)),
        ("x <= y", AtMost(x, y)),
        ("x >= y", AtMost(y, x)),
        ("x + 1 < 2*y", Below(x + 1, 2 * y)),
        ("1 + 100*(x > 0.5)", 1 + 100 * Below(sp.Float(0.5), x)),
        ("-(x < y)**2", -(Below(x, y) ** 2)),
        ("abs(x < y)", Below(x, y)),
        ("3 < pi", sp.S.One),
        ("pi <= 3", sp.S.Zero),
        ("1/2 < 0.5", sp.S.Zero),
        ("1/2 <= 0.5", sp.S.One),
        ("2 >= 2", sp.S.One),
        ("where(x < y, x, y)", Select(Below(x, y), x, y)),
        ("where(x < y, x, x)", x),
        ("where(2 > 1, x, y)", x),
        ("where(log(1), x, y)", y),
        ("max(x < 1, y < 1)", sp.Max(Below(x, 1), Below(y, 1))),
    ],
)
def test_conditions_are_parsed_to_their_expressions(text, expected):
    assert parse(text, ("x", "y")) == expected


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("(x>0.5)*100+1", "100*(x > 0.5) + 1"),
        ("0.5 < x", "(x > 0.5)"),
        ("x<=y", "(x <= y)"),
        ("where(1>=x, -y, x<y)", "where(x <= 1, -y, (x < y))"),
        ("where(x*(x<y), 1, 2)/3", "where(x*(x < y), 1, 2)/3"),
    ],
)
def test_conditions_are_printed_in_their_canonical_form(text, printed):
    assert to_text(parse(text, ("x", "y"))) == printed


def test_the_branch_that_is_not_taken_may_be_infinite_or_not_real():
    values = field("where(x > 0, log(x), 1/(1 - x))")(np.array([-1.0, 0.0, 1.0, np.e]), 0.0)
    np.testing.assert_allclose(values, [0.5, 1.0, 0.0, 1.0], rtol=1e-15)
    with pytest.raises(ExpressionError, match=r"is inf at x = 1\.0"):
        field("where(x > 0, 1/(1 - x), 0)")(np.array([0.5, 1.0]), 0.0)


def test_every_number_but_0_is_a_true_condition():
    chosen = field("where(x, 1, 2)")(np.array([-1.0, 0.0, 0.5]), 0.0)
    np.testing.assert_array_equal(chosen, [1.0, 2.0, 1.0])


@pytest.mark.parametrize("text", ["x < 0.5", "where(x < 0.5, 0.1, 0.2)", "1 + 0.1*(x >= 0.5)", "where(x, x, 0.3)"])
def test_single_precision_stays_single(text):
    expr = parse(text, ("x",))
    assert evaluate(expr, {x: np.array([0.25, 0.75], np.float32)}, np).dtype == np.float32
    with jax.enable_x64(True):
        assert evaluate(expr, {x: jnp.array([0.25, 0.75], jnp.float32)}, jnp).dtype == jnp.float32


def test_constants_stay_floats():
    assert type(evaluate(Below(sp.pi, 4) + Select(sp.pi - 3, 1, 2), {}, np)) is float


@pytest.mark.parametrize(
    ("text", "slope"),
    [
        ("x < y", "0"),
        ("where(x < y, x**2, 3*x)", "where(x < y, 2*x, 3)"),
        ("x*(x < 1)", "(x < 1)"),
        ("where(y > 0, log(x), x)", "where(y > 0, 1/x, 1)"),
        ("abs(where(x < 1, x, y))", "where(x < 1, 1, 0)*sign(where(x < 1, x, y))"),
    ],
)
def test_derivatives_are_those_of_the_branches(text, slope):
    assert differentiate(parse(text, ("x", "y")), x) == parse(slope, ("x", "y"))


def test_a_step_is_not_taken_for_linear():
    """SymPy's derivative of it is not 0, nor is its second one."""
    for text in ("x < y", "x <= 1/2", "where(x < 0, 1, 2)"):
        assert sp.diff(parse(text, ("x", "y")), x, 2) != 0


def test_gradients_of_jax():
    """Those of a branch that is finite everywhere; a branch that is not spoils the gradient, as `evaluate` says."""
    expr = parse("where(x < 1, x**2, 5*x)", ("x",))
    slopes = [float(jax.grad(lambda value: evaluate(expr, {x: value}, jnp))(at)) for at in (0.5, 2.0)]
    np.testing.assert_allclose(slopes, [1.0, 5.0], rtol=1e-6)
    spoiled = parse("where(x > 0, sqrt(x), 0)", ("x",))
    assert np.isnan(jax.grad(lambda value: evaluate(spoiled, {x: value}, jnp))(-1.0))
    safe = evaluate(differentiate(spoiled, x), {x: jnp.array(-1.0)}, jnp)
    assert float(safe) == 0.0


UNITS = {"x": unit(1), "y": unit(1), "t": unit(time=1)}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x < y", NUMBER),
        ("x > 0", NUMBER),
        ("x > 0.5", NUMBER),
        ("where(t > 0, x, y)", unit(1)),
        ("where(t > 0, x, 0)", unit(1)),
        ("where(t, x, y)", unit(1)),
        ("x*(y < x)", unit(1)),
    ],
)
def test_formulas_with_conditions_have_their_units(text, wanted):
    assert dimensions(parse(text, tuple(UNITS)), UNITS) == wanted


@pytest.mark.parametrize("text", ["x < t", "x > 1", "where(x < y, x, t)", "where(x < t, x, y)", "x + (x < y)"])
def test_conditions_that_mix_units_clash(text):
    assert isinstance(dimensions(parse(text, tuple(UNITS)), UNITS), Clash)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(-y, x)", ("-y", "x")),
        (" -y , x ", ("-y", "x")),
        ("(x), (y)", ("(x)", "(y)")),
        ("(x + 1)*(y + 1), 2", ("(x + 1)*(y + 1)", "2")),
        ("max(x, y)", "max(x, y)"),
        ("(x)", "(x)"),
        ("where(x < 1, 1, 2), min(x, y)", ("where(x < 1, 1, 2)", "min(x, y)")),
        ("((2, 1), (1, x))", (("2", "1"), ("1", "x"))),
        ("(2, 1), (1, 3)", (("2", "1"), ("1", "3"))),
    ],
)
def test_components_of_a_tuple_are_split_outside_brackets(text, parts):
    assert split_components(text) == parts
    read = parse_components(text, ("x", "y"))
    assert (isinstance(read, tuple)) == isinstance(parts, tuple)
    if isinstance(read, tuple) and not isinstance(read[0], tuple):
        assert read == tuple(parse(part, ("x", "y")) for part in parts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(1,,2)", 'an empty component at column 2 of "(1,,2)"'),
        ("1,", 'an empty component at column 1 of "1,"'),
        ("x), y", "unexpected ')' at column 2 of \"x), y\""),
        ("(x, q)", "component 2: unknown symbol 'q' at column 1 of \"q\"; known: x, y"),
        ("((1, 2), (3, ))", 'an empty component at column 11 of "((1, 2), (3, ))"'),
        ("(((1, 2), 3), 4)", "component 1, 1: expected an operator or ')', found ',' at column 3 of \"(1, 2)\""),
        ("(x, y", "expected an operator or ')', found ',' at column 3 of \"(x, y\""),
    ],
)
def test_invalid_components_are_refused_with_their_place(text, message):
    with pytest.raises(ExpressionError) as refusal:
        parse_components(text, ("x", "y"))
    assert str(refusal.value) == message
