import re

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxforge.distil import complexity
from fluxforge.expression import parse, to_text

NAMES = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("a", 1),
        ("-a", 1),
        ("2.5", 1),
        ("2/3", 1),
        ("a - b", 3),
        ("a*a", 3),
        ("a**3", 3),
        ("-2.5*a", 3),
        ("a/3", 3),
        ("1/a", 3),
        ("-1/a", 3),
        ("1/(a*b)", 5),
        ("sqrt(a)", 2),
        ("1/sqrt(a)", 4),
        ("exp(a - b)", 4),
        ("c*exp(a)", 4),
        ("abs(a)*2.5", 4),
        ("max(a, b)", 3),
        ("0.3*a/b*(c - d)", 9),
        ("a + 2.5*b*c/d + c*b", 13),
        ("0.3*a - 0.3*b", 5),
        ("0.3*a - 0.4*b", 7),
        ("0.3*a - 0.3*b + 0.3", 7),
        ("(a + b)**2", 5),
    ],
)
def test_operators_variables_and_constants_are_counted_and_signs_are_free(text, length):
    assert complexity(parse(text, NAMES)) == length


LEAVES = st.sampled_from(NAMES) | st.sampled_from(["0.37", "1.9", "5.25"])
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]}){t[1]}({t[2]})")
        | inner.map(lambda text: f"exp({text})")
    ),
    max_leaves=8,
)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(FORMULAS)
def test_the_count_is_that_of_the_printed_words(text):
    try:
        expr = parse(text, NAMES)
    except ValueError:
        return
    if expr.has(sp.E):
        return  # a constant, printed exp(1)
    printed = to_text(expr)
    coefficients = re.findall(r"(?<![\w.])\d[\d.e-]*(?=\*)", printed)
    if len(set(coefficients)) < len(coefficients):
        return  # a coefficient that all terms of a sum share is counted once
    # A sign before a term or after a bracket is not an operator between two operands.
    words = re.findall(r"\d+\.?\d*(?:e[+-]?\d+)?|[A-Za-z_]\w*|\*\*|[-+*/]", re.sub(r"(^|\(|, )-", r"\1", printed))
    assert complexity(expr) == len(words), printed
