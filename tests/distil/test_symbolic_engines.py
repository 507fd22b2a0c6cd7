"""What every engine promises, asked of those that are installed."""

import math

import pytest
from symbolic_tables import flux_table

from fluxforge.distil import ENGINES, Search, complexity, measure
from fluxforge.expression import parse

TABLE = flux_table(rows=300)
SEARCH = Search(restarts=2, population=150, evaluations=900, rows=200, max_complexity=15)


@pytest.fixture(scope="module", params=ENGINES)
def fitted(request):
    backend = ENGINES[request.param]
    if hint := backend.available():
        pytest.skip(hint)
    told = []
    return backend, backend.fit(TABLE, SEARCH, seed=3, tell=lambda *news: told.append(news)), told


def test_candidates_are_short_formulas_of_the_table_that_our_parser_reads(fitted):
    _, front, _ = fitted
    for candidate in front:
        assert {s.name for s in candidate.expression.free_symbols} <= set(TABLE.names)
        assert parse(candidate.text, TABLE.names) == candidate.expression
        assert candidate.complexity == complexity(candidate.expression) <= SEARCH.max_complexity


def test_errors_are_ours_and_fall_along_the_front(fitted):
    _, front, _ = fitted
    errors = [candidate.error for candidate in front]
    assert errors == sorted(errors, reverse=True)
    assert errors == [measure(candidate.expression, TABLE).error for candidate in front]
    assert errors[-1] < 0.7


def test_progress_is_told_after_every_restart(fitted):
    _, front, told = fitted
    assert [news[:2] for news in told] == [(1, 2), (2, 2)]
    assert math.inf > told[0][2] >= told[1][2] == front.best_error


def test_the_same_seed_gives_the_same_front(fitted):
    backend, front, _ = fitted
    assert backend.fit(TABLE, SEARCH, seed=3) == front
