"""Tables of samples: which are refused, and with which message."""

import numpy as np
import pytest
from symbolic_tables import flux_table

from fluxforge.distil import Search, Table, engine, search_front, tabulate
from fluxforge.errors import InputError
from fluxforge.scheme import symbol

X = np.random.default_rng(0).uniform(size=(20, 2))
y = X[:, 0] - X[:, 1]


def test_tabulate_makes_double_precision_and_flattens_a_column():
    table = tabulate(["a", "b"], X.astype(np.float32), y.astype(np.float32)[:, None])
    assert table.X.dtype == table.y.dtype == np.float64
    assert table.y.shape == (20,)
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.values[symbol("b")], X[:, 1].astype(np.float32))


@pytest.mark.parametrize(
    ("names", "inputs", "output", "message"),
    [
        (["a"], X, y, "1 names for 2 columns"),
        (["a", "a"], X, y, "more than one column is named a"),
        (["a", "2b"], X, y, "'2b' cannot name a column"),
        (["a", "exp"], X, y, "'exp' cannot name a column"),
        (["a", "δ"], X, y, "'δ' cannot name a column"),
        (["a", "b"], X, y[:-1], "20 rows of inputs and 19 of output"),
        (["a", "b"], X[:9], y[:9], "9 rows; a formula needs at least 10"),
        (["a", "b"], np.tile(X[0], (20, 1)), y, "all 20 rows have the same inputs"),
        (["a", "b"], X, np.column_stack((y, y)), "the output should be an array of rank 1, got the shape (20, 2)"),
        (["a", "b"], [["x", 1]] * 20, y, "the inputs cannot be read as numbers"),
    ],
)
def test_what_cannot_be_fitted_is_refused_by_name(names, inputs, output, message):
    with pytest.raises(InputError) as refusal:
        tabulate(names, inputs, output)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_rows_that_are_not_finite_are_counted_and_the_first_is_named():
    broken = X.copy()
    broken[7, 1], broken[7, 0], broken[12, 0] = np.nan, np.inf, np.nan
    with pytest.raises(InputError, match=r"2 of 20 rows are not finite, the first is row 7 \(a is inf\)"):
        tabulate(["a", "b"], broken, y)
    with pytest.raises(InputError, match=r"1 of 20 rows .* row 3 \(the output is nan\)"):
        tabulate(["a", "b"], X, np.where(np.arange(20) == 3, np.nan, y))


def test_a_constant_output_is_a_table_but_not_a_search():
    table = tabulate(["a", "b"], X, np.full(20, 0.25) + 1e-9 * y)
    assert table.is_constant
    assert not tabulate(["a", "b"], X, 0.25 + 1e-3 * y).is_constant
    with pytest.raises(InputError, match=r"the output is 0\.25 in every row"):
        search_front(engine("operon"), table, Search(), seed=0)


def test_an_output_of_zeros_is_constant():
    assert tabulate(["a", "b"], X, np.zeros(20)).is_constant


def test_thinning_draws_rows_of_the_table_without_repeating_any():
    table = flux_table(rows=200)
    few = table.draw_rows(50, seed=3)
    rows = [int(np.flatnonzero((row == table.X).all(1))[0]) for row in few.X]
    assert len(set(rows)) == 50
    np.testing.assert_array_equal(few.y, table.y[rows])
    np.testing.assert_array_equal(few.X, table.draw_rows(50, seed=3).X)
    assert not np.array_equal(few.X, table.draw_rows(50, seed=4).X)
    assert table.draw_rows(200, seed=0) is table


def test_thinning_keeps_all_rows_where_few_of_them_say_anything():
    spike = np.zeros(2000)
    spike[1234] = 1.0
    table = Table(("a", "b"), np.random.default_rng(0).uniform(size=(2000, 2)), spike)
    assert table.draw_rows(10, seed=0) is table
