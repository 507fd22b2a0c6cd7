"""Engines by name, and PySR."""

import importlib.machinery
import math
import sys
import types

import numpy as np
import pytest
import sympy as sp
from symbolic_tables import T_N, T_P, A, delta, flux_table, is_flux

from fluxforge.distil import ENGINES, Search, choose_knee, complexity, engine, measure, search_front
from fluxforge.distil._engines import PySR, squares_as_powers
from fluxforge.errors import FluxforgeError
from fluxforge.expression import parse

FLUX_TABLE = flux_table(rows=300)
SEARCH = Search(restarts=2, population=150, evaluations=900, rows=200, max_complexity=15)


@pytest.fixture(scope="module", params=ENGINES)
def fitted(request):
    backend = ENGINES[request.param]
    if hint := backend.available():
        pytest.skip(hint)
    told = []
    return backend, search_front(backend, FLUX_TABLE, SEARCH, seed=3, tell=lambda *news: told.append(news)), told


def test_candidates_are_short_formulas_of_the_table_that_our_parser_reads(fitted):
    _, front, _ = fitted
    for candidate in front:
        assert {s.name for s in candidate.expression.free_symbols} <= set(FLUX_TABLE.names)
        assert parse(candidate.text, FLUX_TABLE.names) == candidate.expression
        assert candidate.complexity == complexity(candidate.expression) <= SEARCH.max_complexity


def test_errors_are_ours_and_fall_along_the_front(fitted):
    _, front, _ = fitted
    errors = [candidate.error for candidate in front]
    assert errors == sorted(errors, reverse=True)
    assert errors == [measure(candidate.expression, FLUX_TABLE).error for candidate in front]
    assert errors[-1] < 0.7


def test_progress_is_told_after_every_restart(fitted):
    _, front, told = fitted
    assert [news[:2] for news in told] == [(1, 2), (2, 2)]
    assert math.inf > told[0][2] >= told[1][2] == front.best_error


def test_the_same_seed_gives_the_same_front(fitted):
    backend, front, _ = fitted
    assert search_front(backend, FLUX_TABLE, SEARCH, seed=3) == front


TABLE = flux_table(rows=200)
HALL_OF_FAME = (
    "0.0021",
    "x2 * -0.31",
    "Inf",
    "x2 - x2 / 0.0",
    "(x3 - x2) * 0.31",
    "((x2 - x3) * (x0 / x1)) * -0.3012",
    "(((x2 - (x3 * 0.99)) * (x0 / x1)) * -0.3012) + 1.3e-5",
)


class FakeRegressor:
    """The part of PySR 1.5's estimator that we use, as strict about its arguments as that is."""

    last = None
    equations = HALL_OF_FAME

    def __init__(
        self, *, binary_operators, unary_operators, maxsize, niterations, populations, population_size,
        timeout_in_seconds, random_state, deterministic, parallelism, precision, batching, progress, verbosity,
        input_stream, output_directory,
    ):  # fmt: skip
        self.settings = {key: value for key, value in locals().items() if key != "self"}
        FakeRegressor.last = self

    def fit(self, X, y, *, variable_names):
        if self.settings["maxsize"] < 7:
            raise ValueError("PySR requires a maxsize of at least 7")
        if self.settings["deterministic"] and self.settings["parallelism"] != "serial":
            raise ValueError("To ensure deterministic searches, you must set `parallelism='serial'`.")
        for name in variable_names:
            if name in sp.__dict__:
                raise ValueError(f"Variable name {name} is already a function name.")
        self.X, self.y = X, y
        self.equations_ = None if self.equations is None else {"equation": list(self.equations)}
        return self


@pytest.fixture
def fake(monkeypatch):
    module = types.ModuleType("pysr")
    module.__spec__ = importlib.machinery.ModuleSpec("pysr", None)
    vars(module)["PySRRegressor"] = FakeRegressor
    monkeypatch.setitem(sys.modules, "pysr", module)
    return module


def test_the_hall_of_fame_becomes_a_front_in_the_tables_own_names(fake):
    front = search_front(engine("pysr"), TABLE, Search(restarts=1), seed=0)
    assert is_flux(choose_knee(front).expression)
    np.testing.assert_array_equal(FakeRegressor.last.X, TABLE.X)
    np.testing.assert_array_equal(FakeRegressor.last.y, TABLE.y)


def test_texts_that_our_parser_refuses_are_left_out(fake):
    formulas = PySR().explore(TABLE, Search(), seed=0, end=math.inf).formulas
    assert len(formulas) == len(HALL_OF_FAME) - 2
    assert formulas[1] == -0.31 * T_N
    assert formulas[3] == -0.3012 * A / delta * (T_N - T_P)


def test_the_search_is_deterministic_serial_silent_and_bounded(fake, monkeypatch):
    search = Search(operators=("+", "*", "square", "exp"), max_complexity=5, evaluations=1_890, population=270)
    monkeypatch.setattr("fluxforge.distil._engines.time.monotonic", lambda: 100.0)
    assert not PySR().explore(TABLE, search, seed=11, end=102.5).ended_by_clock
    settings = FakeRegressor.last.settings
    assert settings["binary_operators"] == ["+", "*"]
    assert settings["unary_operators"] == ["square", "exp"]
    assert (settings["maxsize"], settings["niterations"]) == (7, 7)
    assert settings["populations"] * settings["population_size"] == 270
    assert (settings["random_state"], settings["timeout_in_seconds"]) == (11, 2.5)
    assert (settings["deterministic"], settings["parallelism"], settings["precision"]) == (True, "serial", 64)
    assert (settings["progress"], settings["verbosity"]) == (False, 0)


def test_files_of_a_search_are_written_to_a_temporary_folder_that_is_removed(fake, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert PySR().explore(TABLE, Search(), seed=0, end=0.0).ended_by_clock
    assert FakeRegressor.last.settings["output_directory"].startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_no_equation_at_all_is_one_line(fake, monkeypatch):
    monkeypatch.setattr(FakeRegressor, "equations", None)
    with pytest.raises(FluxforgeError, match="pysr: no formula of at most 25 symbols"):
        search_front(engine("pysr"), TABLE, Search(restarts=1), seed=0)


def test_a_failure_of_julia_is_one_line(fake, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("Couldn't find equation file!\nStacktrace:\n [1] error")

    monkeypatch.setattr(FakeRegressor, "fit", fail)
    with pytest.raises(FluxforgeError) as failure:
        PySR().explore(TABLE, Search(), seed=0, end=math.inf)
    assert str(failure.value) == "pysr: the search failed (Couldn't find equation file!)"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("square(x)", "x**2"),
        ("1 / square(x - y)", "1/(x - y)**2"),
        ("square(square(x) + y)", "(x**2 + y)**2"),
        ("-square(x)*square(y)", "-x**2*y**2"),
        ("exp(square(x))", "exp(x**2)"),
    ],
)
def test_squares_are_written_as_powers(text, same):
    assert parse(squares_as_powers(text), "xy") == parse(same, "xy")


def test_a_square_that_is_never_closed_is_the_parsers_to_refuse():
    with pytest.raises(ValueError, match="expected"):
        parse(squares_as_powers("square(x + (y"), "xy")
