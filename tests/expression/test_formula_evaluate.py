"""Expressions on arrays: NumPy and JAX, every operator and function, under jit."""

import functools
import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

from fluxforge.errors import ExpressionError
from fluxforge.expression import evaluate, parse

x, y = (sp.Symbol(name, real=True) for name in "xy")
X = np.array([0.3, 1.0, 2.5, 0.01])
Y = np.array([-1.5, 0.4, 3.0, 2.0])

CASES = [
    ("x + y", X + Y),
    ("x - y", X - Y),
    ("-x - y", -X - Y),
    ("y - 3*x", Y - 3 * X),
    ("x*y", X * Y),
    ("x/y", X / Y),
    ("1/y", 1 / Y),
    ("2/(3*y)", 2 / (3 * Y)),
    ("x/(y*(x + 1))", X / (Y * (X + 1))),
    ("-x/3", -X / 3),
    ("x**2", X * X),
    ("y**3", Y * Y * Y),
    ("y**-3", 1 / (Y * Y * Y)),
    ("x**0.5", np.sqrt(X)),
    ("x**-0.5", 1 / np.sqrt(X)),
    ("x**(1/2)", np.sqrt(X)),
    ("x**(-1/2)*y", Y / np.sqrt(X)),
    ("x**1.5", X * np.sqrt(X)),
    ("x**(2/3)", np.cbrt(X) ** 2),
    ("x**pi", np.exp(math.pi * np.log(X))),
    ("sqrt(x)", np.sqrt(X)),
    ("exp(y)", np.exp(Y)),
    ("exp(-y/2)", np.exp(-Y / 2)),
    ("log(x)", np.log(X)),
    ("sin(y)", np.sin(Y)),
    ("cos(y)", np.cos(Y)),
    ("tan(y)", np.tan(Y)),
    ("tan(y + pi/2)", -1 / np.tan(Y)),
    ("tanh(y)", np.tanh(Y)),
    ("abs(y)", np.abs(Y)),
    ("sign(y)", np.sign(Y)),
    ("min(x, y)", np.minimum(X, Y)),
    ("max(x, y)", np.maximum(X, Y)),
    ("max(y, 0)", np.maximum(Y, 0)),
    ("min(min(x, y), 0.2)", np.minimum(np.minimum(X, Y), 0.2)),
    ("pi*x", math.pi * X),
    ("exp(1)*x", math.e * X),
    ("0.1*x + 1/3", 0.1 * X + 1 / 3),
    ("sqrt(2)*x/sqrt(3)", math.sqrt(2 / 3) * X),
    ("2.5*(x + y)*(x - y)/(1 + x**2)", 2.5 * (X**2 - Y**2) / (1 + X**2)),
]


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_formulas_are_evaluated_by_jax(text, expected, jit):
    expr = parse(text, "xy")

    def function(a, b):
        return evaluate(expr, {x: a, y: b}, jnp)

    with jax.enable_x64(True):
        result = (jax.jit(function) if jit else function)(jnp.asarray(X), jnp.asarray(Y))
        assert result.dtype == jnp.float64
        np.testing.assert_allclose(result, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_formulas_are_evaluated_by_numpy(text, expected):
    result = evaluate(parse(text, "xy"), {x: X, y: Y}, np)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_formulas_are_evaluated_for_python_floats(text, expected):
    result = evaluate(parse(text, "xy"), {x: float(X[1]), y: float(Y[1])}, np)
    assert type(result) is float
    assert math.isclose(result, expected[1], rel_tol=1e-14, abs_tol=1e-15)


def test_float32_arrays_stay_float32():
    expr = parse("sqrt(2)*x/3 + pi*x**2 + max(x, 0.1) + exp(1)", "x")
    assert evaluate(expr, {x: X.astype(np.float32)}, np).dtype == np.float32
    with jax.enable_x64(True):
        assert evaluate(expr, {x: jnp.asarray(X, dtype=jnp.float32)}, jnp).dtype == jnp.float32


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2.0),
        ("1/3", 1 / 3),
        ("pi/2", math.pi / 2),
        ("exp(1)", math.e),
        ("sqrt(2)", math.sqrt(2)),
        ("0.1", 0.1),
        ("log(3) - sin(2)", math.log(3) - math.sin(2)),
        ("tanh(1) + tan(1)", math.tanh(1) + math.tan(1)),
        ("x - x", 0.0),
        ("2**pi", 2**math.pi),
        ("max(sqrt(3), pi/2)", math.sqrt(3)),
        ("min(sqrt(3), pi/2)", math.pi / 2),
    ],
)
def test_a_constant_is_a_python_float(text, value):
    result = evaluate(parse(text, "x"), {}, jnp)
    assert type(result) is float
    assert math.isclose(result, value, rel_tol=1e-15)


def test_integers_are_accepted_as_values():
    assert evaluate(parse("sqrt(x)/y", "xy"), {x: 9, y: 2}, np) == 1.5


def test_shapes_broadcast():
    result = evaluate(parse("x + y", "xy"), {x: X[:, None], y: Y[None, :]}, np)
    np.testing.assert_array_equal(result, X[:, None] + Y[None, :])


class Counted:
    """A number that counts the operations it goes through."""

    def __init__(self, counts):
        self.counts = counts

    def _count(self, name, *_):
        self.counts[name] = self.counts.get(name, 0) + 1
        return Counted(self.counts)

    __add__ = __radd__ = functools.partialmethod(_count, "add")
    __sub__ = __rsub__ = functools.partialmethod(_count, "sub")
    __mul__ = __rmul__ = functools.partialmethod(_count, "mul")
    __truediv__ = __rtruediv__ = functools.partialmethod(_count, "div")
    __pow__ = functools.partialmethod(_count, "pow")
    __neg__ = functools.partialmethod(_count, "neg")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("x*y/(z*w)", {"mul": 2, "div": 1}),
        ("x/y/z/w", {"mul": 2, "div": 1}),
        ("x - y", {"sub": 1}),
        ("-x - y", {"add": 1, "neg": 1}),
        ("-x*y", {"mul": 1, "neg": 1}),
        ("1/x", {"div": 1}),
        ("x/3", {"div": 1}),
        ("2/3*pi*x", {"mul": 1}),
        ("(x + y)**2/(x + y + z)*(x + y)**3", {"add": 3, "pow": 1, "div": 1}),
        ("(z + x*y)/(w + x*y)", {"mul": 1, "add": 2, "div": 1}),
        ("x + 1 + pi + y", {"add": 2}),
    ],
)
def test_no_operation_is_wasted(text, counts):
    counted = {}
    names = {name: sp.Symbol(name, real=True) for name in "xyzw"}
    evaluate(parse(text, names), {symbol: Counted(counted) for symbol in names.values()}, np)
    assert counted == counts


def test_an_integer_power_is_given_a_python_int():
    seen = []

    class Base:
        def __pow__(self, exponent):
            seen.append(exponent)
            return 1.0

    evaluate(parse("x**3 + x**2.5", "x"), {x: Base()}, np)
    assert sorted(seen) == [2.5, 3]
    assert {type(exponent) for exponent in seen} == {int, float}


def test_a_square_root_is_the_function_of_that_name():
    xp = SimpleNamespace(sqrt=lambda a: ("root", *a))
    for text in ("sqrt(x)", "x**(1/2)", "x**0.5"):
        assert evaluate(parse(text, "x"), {x: ("x",)}, xp) == ("root", "x")


def test_the_cotangent_that_sympy_makes_is_evaluated():
    np.testing.assert_allclose(evaluate(sp.tan(y + sp.pi / 2), {y: Y}, np), -1 / np.tan(Y), rtol=1e-14)


def test_derivatives_flow_through():
    expr = parse("x**3*sin(x) + sqrt(x)", "x")
    with jax.enable_x64(True):
        slope = jax.grad(lambda a: evaluate(expr, {x: a}, jnp))(0.7)
        assert math.isclose(float(slope), float(expr.diff(x).subs(x, 0.7)), rel_tol=1e-13)


def test_a_missing_value_names_the_symbol():
    with pytest.raises(ExpressionError, match=r"no value for the symbol 'y'; known: x"):
        evaluate(parse("x + y", "xy"), {x: X}, np)


def test_a_symbol_with_other_assumptions_is_missing():
    with pytest.raises(ExpressionError, match="no value for the symbol 'x'"):
        evaluate(parse("x", "x"), {sp.Symbol("x"): X}, np)


@pytest.mark.parametrize("expr", [sp.sinh(x), sp.I * x, sp.Piecewise((x, x > 0), (0, True)), sp.zoo, sp.gamma(x) + 1])
def test_a_node_outside_the_whitelist_is_refused(expr):
    with pytest.raises(ExpressionError, match="a formula cannot contain a"):
        evaluate(expr, {x: X}, np)


def test_a_power_with_an_array_exponent_is_refused():
    with pytest.raises(ExpressionError, match="exponent is not a number"):
        evaluate(sp.Pow(x, y), {x: X, y: Y}, np)


@pytest.mark.parametrize("text", ["1/x", "log(x)", "sqrt(x - 1)", "x**-2", "(x - 1)**1.5", "exp(1/(x + 0.0001))"])
def test_python_floats_without_a_finite_result_are_refused(text):
    with pytest.raises(ExpressionError):
        evaluate(parse(text, "x"), {x: 0.0}, np)


def test_a_deep_tree_needs_no_deep_stack():
    expr = x
    for k in range(2_000):
        expr = sp.Mul(y, sp.Add(expr, k + 1, evaluate=False), evaluate=False)
    assert evaluate(expr, {x: 1.0, y: 0.0}, np) == 0.0
