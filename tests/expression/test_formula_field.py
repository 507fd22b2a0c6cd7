"""Formulas of the coordinates."""

import math

import numpy as np
import pytest

from fluxforge.errors import ExpressionError
from fluxforge.expression import field

X, Y = np.meshgrid(np.linspace(0.0, 1.0, 5), np.linspace(-1.0, 1.0, 3))


def test_a_field_is_the_formula_at_the_points():
    result = field("sin(pi*x)*exp(-y)")(X, Y)
    np.testing.assert_allclose(result, np.sin(math.pi * X) * np.exp(-Y), rtol=1e-15, atol=1e-16)
    assert result.dtype == np.float64


@pytest.mark.parametrize("text", ["3", "x", "y", "x + y"])
def test_the_shape_is_that_of_the_arguments_together(text):
    result = field(text)(np.zeros((4, 1)), np.ones(3))
    assert result.shape == (4, 3)
    assert result.flags.writeable


def test_a_constant_fills_the_shape():
    np.testing.assert_array_equal(field("2*pi")(X, Y), np.full(X.shape, 2 * math.pi))


def test_numbers_and_integers_are_accepted():
    assert field("x/y")(1, 4) == 0.25
    np.testing.assert_array_equal(field("x/2")(np.arange(3), 0), [0.0, 0.5, 1.0])
    assert field("x**2")(X.astype(np.float32), Y).dtype == np.float64


def test_the_result_does_not_alias_the_argument():
    points = np.zeros(3)
    field("x")(points, points)[0] = 1.0
    assert points[0] == 0.0


def test_other_variables():
    decay = field("exp(-t)*x", ("x", "y", "t"))
    np.testing.assert_allclose(decay(X, Y, 0.5), math.exp(-0.5) * X)
    with pytest.raises(ExpressionError, match="unknown symbol 't' at column 6"):
        field("exp(-t)*x")


def test_no_points_is_fine():
    assert field("1/x")(np.zeros(0), np.zeros(0)).shape == (0,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1/x", 'the formula "1/x" is inf at x = 0.0, y = -1.0'),
        ("log(x - 0.5)", 'the formula "log(x - 0.5)" is nan at x = 0.0, y = -1.0'),
        ("1/(y - 1)", 'the formula "1/(y - 1)" is inf at x = 0.0, y = 1.0'),
        ("sqrt(0.8 - x)", 'the formula "sqrt(0.8 - x)" is nan at x = 1.0, y = -1.0'),
        ("exp(1000*x)", 'the formula "exp(1000*x)" is inf at x = 0.75, y = -1.0'),
    ],
)
def test_a_point_where_it_is_not_finite_is_named(text, message):
    with pytest.raises(ExpressionError) as caught:
        field(text)(X, Y)
    assert str(caught.value).replace("-inf", "inf") == message


def test_a_wrong_number_of_coordinates_is_refused():
    with pytest.raises(ExpressionError, match="is a function of x, y"):
        field("x")(X)
