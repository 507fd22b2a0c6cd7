"""What parts.toml says agrees with the studies."""

from fluxforge.paper import PARTS
from fluxforge.paper._run import DRAW, MODULES
from fluxforge.paper.studies import rates


def test_every_module_and_every_figure_has_its_text() -> None:
    assert list(PARTS) == list(MODULES)
    assert {title for part in PARTS.values() for title in part.figures} == set(DRAW)


def test_the_recipes_of_rates_are_those_it_runs() -> None:
    assert PARTS["rates"].recipes == rates.RECIPES


def test_a_part_comes_after_those_whose_results_it_uses() -> None:
    names = list(PARTS)
    assert all(names.index(other) < names.index(name) for name, part in PARTS.items() for other in part.after)
