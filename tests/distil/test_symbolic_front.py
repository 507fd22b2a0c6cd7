import csv
import io

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from symbolic_tables import T_N, T_P, A, delta, flux_table

from fluxforge.distil import Candidate, Front, front_of, knee, measure, merge
from fluxforge.errors import InputError

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


def test_a_front_as_rows_and_as_csv():
    front = front_of([measure(expr, TABLE) for expr in (T_N, 2.0 * A / delta * (T_N - T_P))])
    (first, second) = front.rows()
    assert first == (1, front.candidates[0].error, "T_N")
    assert second[2] == "2*A/delta*(T_N - T_P)"
    header, *lines = csv.reader(io.StringIO(front.to_csv()))
    assert header == ["complexity", "error", "formula"]
    assert [(int(k), float(e), text) for k, e, text in lines] == front.rows()
    assert front.best_error == second[1]
    assert Front(()).best_error == np.inf


def test_the_knee_is_where_longer_formulas_stop_paying():
    steep, flat = [(3, 0.8), (5, 0.6), (7, 0.4), (9, 0.0097)], [(11, 0.0096), (15, 0.0068), (21, 0.0055), (25, 0.0047)]
    assert knee(front_of(candidates(steep + flat))).complexity == 9
    assert knee(front_of(candidates([(3, 0.5), (5, 0.45), (11, 0.03)]))).complexity == 11
    assert knee(front_of(candidates([(3, 0.5), (5, 0.45), (13, 0.12)]))).complexity == 3
    assert knee(front_of(candidates([(4, 0.3)]))).complexity == 4


def test_the_knee_takes_errors_of_rounding_for_equal():
    assert knee(front_of(candidates([(3, 0.4), (9, 2e-7), (11, 3e-12), (13, 1e-16)]))).complexity == 9


def test_there_is_no_knee_without_candidates():
    with pytest.raises(InputError, match="no candidate"):
        knee(Front(()))
