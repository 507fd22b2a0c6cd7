"""`ff.discover`: a name, a file or a recipe, into a folder that is free."""

from pathlib import Path

import pytest

import fluxforge as ff
from fluxforge import recipe
from fluxforge.errors import RecipeError
from fluxforge.pipeline import Discovery, Run, _discover, free_folder

DONE = Discovery(recipe="toy", seed=0, seconds={}, recovered=False, reasons=())


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """The recipes and folders of the runs that were begun; nothing is trained."""
    monkeypatch.chdir(tmp_path)
    runs = []
    monkeypatch.setattr(
        _discover,
        "finish_run",
        lambda spec, folder, tell: runs.append((spec, folder.path)) or Run(folder.path, spec, DONE),
    )
    return runs


def test_a_shipped_recipe_by_name_goes_to_the_first_free_folder(begun):
    ff.discover("midpoint")
    ff.discover("midpoint", changes={"training.steps": 7})
    assert [path for _, path in begun] == [Path("runs/midpoint"), Path("runs/midpoint-2")]
    assert begun[0][0] == recipe.load("midpoint")
    assert begun[1][0].training.steps == 7


def test_a_recipe_is_taken_as_it_is_and_an_unknown_name_is_refused(begun, tmp_path):
    with pytest.raises(RecipeError, match="downwind"):
        ff.discover("downwind")
    ff.discover(recipe.override(recipe.load("first-order"), {"seed": 5}), tmp_path / "a")
    assert begun[0][0].seed == 5
    assert begun[0][1] == tmp_path / "a"


def test_the_facade_keeps_the_function_though_the_subpackage_has_its_name():
    import fluxforge.pipeline

    assert callable(ff.discover)
    assert fluxforge.discover is ff.discover


def test_a_free_folder_is_one_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    spec = recipe.load("two-hop")
    (tmp_path / "runs" / "two-hop").mkdir(parents=True)
    assert free_folder(spec) == Path("runs/two-hop-2")
