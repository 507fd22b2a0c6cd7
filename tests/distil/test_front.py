"""Length of formulas, Pareto fronts, units of candidates, and the choice of one."""

import re
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from symbolic_tables import T_N, T_P, A, delta, flux_table

from fluxforge.distil import Candidate, Front, choose_knee, complexity, consistent, front_of, measure, merge, units_of
from fluxforge.errors import InputError
from fluxforge.expression import parse, to_text
from fluxforge.pde import Clash, dimensions, unit
from fluxforge.scheme import Hop, message_symbols, output_symbols

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


TABLE = flux_table(c=2.0, error=0.0)
POINTS = st.lists(st.tuples(st.integers(1, 12), st.floats(1e-6, 1)), min_size=1, max_size=12)


def candidates(points):
    return [Candidate(sp.Symbol(f"s{k}", real=True), length, error) for k, (length, error) in enumerate(points)]


@settings(deadline=None, derandomize=True, max_examples=100)
@given(POINTS)
def test_a_front_holds_exactly_the_pairs_that_nothing_beats(points):
    beaten = {(k, e) for k, e in points for k2, e2 in points if (k2 < k and e2 <= e) or (k2 <= k and e2 < e)}
    front = front_of(candidates(points))
    assert [(c.complexity, c.error) for c in front] == sorted(set(points) - beaten)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(POINTS, POINTS)
def test_merging_fronts_is_the_front_of_all_their_candidates(one, other):
    merged = merge(front_of(candidates(one)), front_of(candidates(other)))
    assert [(c.complexity, c.error) for c in merged] == [
        (c.complexity, c.error) for c in front_of(candidates(one + other))
    ]


def test_the_error_is_relative_to_the_spread_of_the_output():
    exact = measure(2.0 * A / delta * (T_N - T_P), TABLE)
    assert exact.error < 1e-15
    assert exact.complexity == 9
    assert measure(sp.Float(np.mean(TABLE.y)), TABLE).error == pytest.approx(1.0)
    assert measure(3.0 * A / delta * (T_N - T_P), TABLE).error == pytest.approx(
        np.sqrt(np.mean((0.5 * TABLE.y) ** 2)) / np.std(TABLE.y)
    )


@pytest.mark.parametrize(
    "expr", [1 / (A - A), sp.sqrt(T_N), sp.log(T_P), 1 / sp.Float(0), sp.exp(1e4 * A), 1e300 * sp.exp(20 * A), sp.I * A]
)
def test_a_formula_that_is_not_finite_on_the_table_is_no_candidate(expr):
    assert measure(expr, TABLE) is None


def test_a_front_as_rows():
    front = front_of([measure(expr, TABLE) for expr in (T_N, 2.0 * A / delta * (T_N - T_P))])
    (first, second) = front.rows()
    assert first == (1, front.candidates[0].error, "T_N")
    assert second[2] == "2*A/delta*(T_N - T_P)"
    assert front.best_error == second[1]
    assert Front(()).best_error == np.inf


def test_the_knee_is_where_longer_formulas_stop_paying():
    steep, flat = [(3, 0.8), (5, 0.6), (7, 0.4), (9, 0.0097)], [(11, 0.0096), (15, 0.0068), (21, 0.0055), (25, 0.0047)]
    assert choose_knee(front_of(candidates(steep + flat))).complexity == 9
    assert choose_knee(front_of(candidates([(3, 0.5), (5, 0.45), (11, 0.03)]))).complexity == 11
    assert choose_knee(front_of(candidates([(3, 0.5), (5, 0.45), (13, 0.12)]))).complexity == 3
    assert choose_knee(front_of(candidates([(4, 0.3)]))).complexity == 4


def test_the_knee_takes_errors_of_rounding_for_equal():
    assert choose_knee(front_of(candidates([(3, 0.4), (9, 2e-7), (11, 3e-12), (13, 1e-16)]))).complexity == 9


def test_there_is_no_knee_without_candidates():
    with pytest.raises(InputError, match="no candidate"):
        choose_knee(Front(()))


UNIT_NAMES = ("A", "delta", "T_N", "T_P", "T", "S", "dt", "V", "alpha", "z", "d_x")
UNITS = units_of(UNIT_NAMES)
TEMPERATURE = unit(unknown=1)


def verdict(text, units=UNITS):
    return dimensions(parse(text, UNIT_NAMES), units)


def test_units_of_a_scheme_in_two_dimensions():
    assert verdict("alpha*A/delta*(T_N - T_P)") == unit(length=2, time=-1, unknown=1)
    assert verdict("dt*alpha/V") == unit()
    assert verdict("T + dt*S") == TEMPERATURE
    assert verdict("sqrt(V)") == unit(length=1)
    assert verdict("abs(T_N - T_P)") == TEMPERATURE
    assert verdict("V**(1/3)").length == Fraction(2, 3)
    assert str(verdict("S/V")) == "L^-2 t^-1 Θ"


def test_every_symbol_of_a_scheme_but_sums_of_messages_has_a_unit():
    names = {*output_symbols(["z"], []), *(name for hop in Hop for name in message_symbols(hop, []))}
    assert names - set(units_of(tuple(names))) == {"z"}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("T + S", "S + T"),
        ("dt*(T + S*dt + V)", "S*dt + T + V"),
        ("A + 1", "A + 1"),
        ("0.3*A*(T_N - delta)", "T_N - delta"),
        ("2*T - 3*S", "2*T - 3*S"),
        ("exp(T)", "exp(T)"),
        ("1/(A + T)", "A + T"),
    ],
)
def test_a_sum_of_different_units_is_named(text, where):
    clash = verdict(text)
    assert isinstance(clash, Clash)
    assert clash.where == where
    assert len(set(clash.units)) > 1
    assert where in str(clash)


def test_a_fitted_constant_carries_the_unit_that_is_missing():
    assert verdict("0.3*A/delta*(T_N - T_P)") is None
    assert verdict("T + 0.3*S") == TEMPERATURE
    assert verdict("T + 0.3") == TEMPERATURE
    assert verdict("T + dt*(2.1*z/V + S)") == TEMPERATURE
    assert verdict("exp(0.3*T)") == unit()


def test_a_symbol_without_a_unit_may_have_any():
    assert verdict("T + dt/V*z") == TEMPERATURE
    known = {**UNITS, "z": unit(length=2, unknown=1)}
    assert isinstance(verdict("T + dt/V*z", known), Clash)
    known["z"] = unit(length=2, time=-1, unknown=1)
    assert verdict("T + dt/V*z", known) == TEMPERATURE


def test_inconsistent_candidates_are_pruned_from_a_front():
    table = flux_table()
    texts = ("T_N", "T_N - A", "0.3*A/delta*(T_P - T_N)")
    front = front_of(measure(parse(text, table.names), table) for text in texts)
    assert len(front) >= 2
    kept = consistent(front, units_of(table.names))
    assert [c.text for c in kept] == [c.text for c in front if c.text != "T_N - A"]
