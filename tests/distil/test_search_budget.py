"""The budget of a search counts evaluations: the machine's load changes nothing, and a limit in seconds is told."""

import time

import pytest
from symbolic_tables import flux_table

from fluxforge import recipe
from fluxforge.distil import Front, Sampled
from fluxforge.distil._operon_run import Evolution
from fluxforge.pipeline import _modules

TABLE = flux_table(rows=100)
SMALL = {"search.restarts": 2}


def searched(changes: dict[str, object]) -> Front:
    """What the recipe `first-order` finds for a table, at the size of a test."""
    spec = recipe.override(recipe.load("first-order"), {**SMALL, **changes})
    return _modules._search_module(Sampled("z1", "message", 0, TABLE, ()), spec)


@pytest.fixture
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the formulas per round, and as many rounds."""
    real = _modules.Search

    def small(**fields: object) -> object:
        return real(**{**fields, "population": 60, "evaluations": 1_200})  # type: ignore[arg-type]

    monkeypatch.setattr(_modules, "Search", small)


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
    assert _modules.front_table(Sampled("z1", "message", 0, TABLE, ()), cut, None).ended_by_clock is True


def test_no_shipped_recipe_has_a_limit_in_seconds() -> None:
    for name in recipe.listing():
        for preset in ("quick", "paper"):
            search = recipe.load(name, preset=preset).search
            assert search is None or search.seconds is None
