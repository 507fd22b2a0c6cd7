"""The recipes that come with the package."""

import pytest
from msgspec.structs import replace

from fluxforge.recipe import PRESETS, Meshes, Pairs, Recipe, Search, TwoCells, check, list_recipes, load

NAMES = ["first-order", "first-order-direct", "first-order-pinn", "generalisation", "midpoint", "two-hop"]
FLUX_FORM = ["carry", "stages"]
OTHERS = ["limiter", "limiter-downwind", "skew"]
EXPERIMENTS = ["conductance", "exponential", "godunov", "upwind"]


def test_the_listing_names_them_all_with_a_summary_each() -> None:
    assert list(list_recipes()) == sorted([*NAMES, *EXPERIMENTS, *FLUX_FORM, *OTHERS])
    assert all(20 < len(summary) < 100 for summary in list_recipes().values())


@pytest.mark.parametrize("preset", [*PRESETS, None])
@pytest.mark.parametrize("name", [*NAMES, *EXPERIMENTS, *OTHERS])
def test_every_shipped_recipe_loads_and_passes_its_checks(name: str, preset: str | None) -> None:
    recipe = load(name, preset=preset)
    check(recipe)
    assert recipe.name == name
    assert recipe.summary == list_recipes()[name]


@pytest.mark.parametrize("name", NAMES)
def test_quick_is_the_default(name: str) -> None:
    assert load(name) == load(name, preset="quick")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("generalisation", "first-order-direct")])
def test_the_paper_s_networks_are_wider_and_trained_for_longer(name: str) -> None:
    quick, paper = load(name), load(name, preset="paper")
    assert quick.network.width < paper.network.width == 128
    assert paper.training.steps * paper.training.batch >= 2 * quick.training.steps * quick.training.batch
    if isinstance(paper.data, Meshes):
        assert paper.data.cells == (100, 600)
        assert replace(paper.data, cells=quick.data.cells, fourier=quick.data.fourier) == quick.data
        # Small networks learn the shortest steps too badly to be read there.
        assert paper.data.fourier[0] <= quick.data.fourier[0] < quick.data.fourier[1] == paper.data.fourier[1]
    else:
        assert paper.data == quick.data
    assert paper.loss == quick.loss


def test_generalisation_is_the_paper_s_at_any_preset() -> None:
    recipe = load("generalisation")
    assert recipe == load("generalisation", preset="paper")
    assert isinstance(recipe.data, TwoCells)
    assert recipe.arms == {"sparse": 1e-3, "dense": 0.0}
    assert (recipe.training.steps, recipe.training.batch) == (90_000, 4)
    assert recipe.search is None


def test_every_shipped_recipe_has_the_settings_of_its_purpose() -> None:
    recipes = {name: load(name) for name in NAMES}
    assert recipes["first-order"].loss.supervised is not None
    assert recipes["first-order"].loss.residual is None
    assert recipes["first-order"].search == Search()
    direct, plain = recipes["first-order-direct"], recipes["first-order"]
    assert replace(direct.network, update="residual") == plain.network
    assert replace(direct.data, time_step=plain.data.time_step) == plain.data
    assert (direct.loss, direct.search) == (plain.loss, plain.search)
    assert theta(recipes["first-order-pinn"]) == 1.0
    assert theta(recipes["midpoint"]) == theta(recipes["two-hop"]) == 0.5
    assert (recipes["midpoint"].network.layers, recipes["midpoint"].network.hops) == (2, 1)
    assert (recipes["two-hop"].network.layers, recipes["two-hop"].network.hops) == (1, 2)
    assert all(isinstance(recipes[name].data, Pairs) for name in ("first-order", "first-order-pinn"))
    assert all(isinstance(recipes[name].data, Meshes) for name in ("midpoint", "two-hop"))


def theta(recipe: Recipe) -> float:
    assert recipe.loss.supervised is None
    assert recipe.loss.residual is not None
    return recipe.loss.residual.theta
