"""The fit over restarts: what an engine is given, budgets, clocks and refusals."""

import sys
import time
from dataclasses import replace
from typing import final

import numpy as np
import pytest
import sympy as sp
from symbolic_tables import T_N, T_P, A, delta, flux_table, is_flux

from fluxforge import recipe
from fluxforge.distil import (
    OPERATORS,
    AbstractBackend,
    Explored,
    Front,
    Sampled,
    Search,
    choose_knee,
    engine,
    search_front,
)
from fluxforge.distil._engines import Evolution
from fluxforge.errors import DiscoveryError, FluxforgeError, InputError
from fluxforge.pipeline import _distillation
from fluxforge.pipeline._formula import tabulate_front

FLUX = flux_table()
WRITTEN = 0.299 * A * T_N / delta - 0.3 * A * T_P / delta + 1e-4


@final
class Scripted(AbstractBackend):
    """An engine that returns the given formulas, a list per restart."""

    def __init__(self, *finds, hint=None):
        self.finds, self.hint, self.seeds, self.ends = finds, hint, [], []

    @property
    def name(self):
        return "scripted"

    def available(self):
        return self.hint

    def explore(self, table, search, *, seed, end):
        self.seeds.append(seed)
        self.ends.append(end)
        assert len(table.y) <= search.rows
        return Explored(self.finds[len(self.seeds) - 1])


def test_restarts_have_seeds_of_their_own_and_are_merged_into_one_front():
    backend = Scripted([0.4 * T_N], [WRITTEN], [0.3 * T_N - 0.2 * T_P])
    told = []
    front = search_front(backend, FLUX, Search(restarts=3, rows=100), seed=7, tell=lambda *news: told.append(news))
    assert len(set(backend.seeds)) == 3
    assert is_flux(choose_knee(front).expression)
    assert {3, 5, 9} <= {c.complexity for c in front}
    assert [news[:2] for news in told] == [(1, 3), (2, 3), (3, 3)]
    assert told[0][2] > told[1][2] == told[2][2] == front.best_error

    again, other = Scripted([WRITTEN]), Scripted([WRITTEN])
    search_front(again, FLUX, Search(restarts=1), seed=7)
    search_front(other, FLUX, Search(restarts=1), seed=8)
    assert again.seeds == backend.seeds[:1] != other.seeds


def test_errors_are_measured_on_the_whole_table_in_double_precision():
    table = flux_table(rows=40)
    for candidate in search_front(Scripted([WRITTEN]), table, Search(restarts=1, rows=10), seed=0):
        f = [float(candidate.expression.subs(dict(zip((A, delta, T_N, T_P), row, strict=True)))) for row in table.X]
        assert candidate.error == pytest.approx(np.sqrt(np.mean((table.y - f) ** 2)) / np.std(table.y), rel=1e-9)


def test_what_is_not_finite_is_dropped_and_nothing_left_is_an_error():
    broken = [sp.log(T_N), 1 / (A - A), sp.zoo, sp.nan]
    assert len(search_front(Scripted([*broken, WRITTEN]), FLUX, Search(restarts=1), seed=0)) > 0
    with pytest.raises(
        DiscoveryError,
        match="scripted: no formula of at most 25 symbols in 12000 evaluations per restart; increase this",
    ):
        search_front(Scripted(broken), FLUX, Search(restarts=1), seed=0)


def test_no_restart_begins_after_the_time_is_spent(monkeypatch):
    clock = iter([0.0, 1.0, 8.0, 11.0])
    monkeypatch.setattr("fluxforge.distil._simplify.time.monotonic", lambda: next(clock))
    backend = Scripted([WRITTEN], [WRITTEN], [WRITTEN])
    assert search_front(backend, FLUX, Search(restarts=3, seconds=10.0), seed=0).ended_by_clock
    assert backend.ends == [10.0, 10.0]


def test_without_a_limit_in_seconds_the_clock_ends_nothing(monkeypatch):
    hours = iter(range(0, 10**9, 3600))
    monkeypatch.setattr("fluxforge.distil._simplify.time.monotonic", lambda: float(next(hours)))
    backend = Scripted([WRITTEN], [WRITTEN], [WRITTEN])
    assert not search_front(backend, FLUX, Search(restarts=3), seed=0).ended_by_clock
    assert len(backend.seeds) == 3


def test_an_engine_that_is_not_installed_says_how_to_install_it():
    with pytest.raises(FluxforgeError, match=r"^pip install that$"):
        search_front(Scripted([], hint="pip install that"), FLUX, Search(), seed=0)


def test_engines_are_chosen_by_name():
    assert engine("operon").name == "operon"
    with pytest.raises(InputError, match="is called 'eureqa'; known: operon, pysr"):
        engine("eureqa")


def test_a_missing_engine_is_refused_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysr", None)
    with pytest.raises(FluxforgeError, match=r"pysr is not installed: pip install 'fluxforge\[pysr\]'"):
        engine("pysr")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"operators": ("+", "tan")}, "unknown operator 'tan'; known: "),
        ({"operators": ("sqrt",)}, "at least one of"),
        ({"seconds": 0.0}, "seconds should be positive, got 0.0"),
        ({"seconds": float("nan")}, "seconds should be positive"),
        ({"restarts": 0}, "restarts should be at least 1, got 0"),
        ({"max_complexity": 2}, "max_complexity should be at least 3, got 2"),
        ({"population": 9}, "population should be at least 10"),
        ({"evaluations": 0}, "evaluations should be at least 1"),
        ({"rows": 9}, "rows should be at least 10"),
    ],
)
def test_a_search_out_of_range_is_refused_by_field(wrong, message):
    with pytest.raises(InputError) as refusal:
        Search(**wrong)
    assert str(refusal.value).startswith("search: ")
    assert message in str(refusal.value)


def test_every_operator_can_be_asked_for():
    assert Search(operators=OPERATORS).operators == OPERATORS


TABLE = flux_table(rows=100)
SMALL = {"search.restarts": 2}


def searched(changes: dict[str, object]) -> Front:
    """What the recipe `first-order` finds for a table, at the size of a test."""
    spec = recipe.override(recipe.load("first-order"), {**SMALL, **changes})
    return _distillation.search_module(Sampled("z1", "message", 0, TABLE, ()), spec)


@pytest.fixture
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the formulas per round, and as many rounds."""
    real = Search.of_recipe
    monkeypatch.setattr(Search, "of_recipe", lambda wanted: replace(real(wanted), population=60, evaluations=1_200))


def load(monkeypatch: pytest.MonkeyPatch, pause: float, speed: float) -> None:
    """A pause in every round of the search, and a clock that runs faster by a factor."""
    run, began = Evolution.run, time.monotonic()

    def slow(self: Evolution, stopped: object) -> None:
        run(self, lambda: (time.sleep(pause), stopped())[1])  # type: ignore[operator]

    monkeypatch.setattr(Evolution, "run", slow)
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: began + speed * (clock() - began))


@pytest.mark.usefixtures("smaller")
def test_the_same_seed_gives_the_same_front_under_any_load() -> None:
    quiet = searched({})
    with pytest.MonkeyPatch.context() as patch:
        load(patch, pause=0.005, speed=1e4)  # an hour by that clock is less than a second
        busy = searched({})
    assert busy.rows() == quiet.rows()
    assert not quiet.ended_by_clock
    assert not busy.ended_by_clock


@pytest.mark.usefixtures("smaller")
def test_a_search_that_the_clock_ends_says_so() -> None:
    whole = searched({"search.seconds": 3600.0})
    assert not whole.ended_by_clock
    with pytest.MonkeyPatch.context() as patch:
        load(patch, pause=0.0, speed=1e6)
        cut = searched({"search.seconds": 3600.0})
    assert cut.ended_by_clock
    assert tabulate_front(cut, "message", None).ended_by_clock is True


def test_no_shipped_recipe_has_a_limit_in_seconds() -> None:
    for name in recipe.list_recipes():
        for preset in ("quick", "paper"):
            search = recipe.load(name, preset=preset).search
            assert search is None or search.seconds is None
