"""Single fields of a recipe overridden."""

from pathlib import Path
from typing import Any

import pytest
from recipe_files import ON_MESHES, PLAIN

from fluxforge.errors import RecipeError
from fluxforge.recipe import Meshes, Residual, load, override, to_dict


def refused(assignments: dict[str, Any], recipe: Any = PLAIN) -> str:
    with pytest.raises(RecipeError) as caught:
        override(recipe, assignments)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_fields_are_set_and_the_rest_stays() -> None:
    recipe = load("first-order-pinn")
    changed = override(recipe, {"seed": 3, "diffusivity": 0.3, "training.steps": 100, "loss.residual.theta": 1})
    assert (changed.seed, changed.diffusivity, changed.training.steps) == (3, 0.3, 100)
    assert changed.loss.residual == Residual(theta=1.0)
    undone = {
        "seed": 0,
        "diffusivity": 1.0,
        "training.steps": recipe.training.steps,
        "loss.residual.theta": recipe.loss.residual.theta,
    }
    assert override(changed, undone) == recipe


def test_nothing_set_is_the_same_recipe() -> None:
    assert override(PLAIN, {}) == PLAIN


def test_a_whole_section_and_then_a_field_of_it() -> None:
    section: dict[str, Any] = {"kind": "theta"}
    changed = override(PLAIN, {"loss.residual": section, "loss.residual.theta": 0.25})
    assert changed.loss.residual == Residual(theta=0.25)
    assert section == {"kind": "theta"}


def test_an_arm_can_be_added_and_a_section_removed() -> None:
    assert override(PLAIN, {"arms.new": 0.5}).arms == {"new": 0.5}
    assert override(override(PLAIN, {"search": {}}), {"search": None}).search is None


def test_a_list_may_be_a_tuple() -> None:
    assert to_dict(override(PLAIN, {"data.time_step": (0.1, 0.2)}))["data"]["time_step"] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ({"training.steps": 0}, "field 'training.steps': expected a whole number from 1 to 100000000, got 0"),
        ({"trainin.steps": 3}, "unknown field 'trainin' (did you mean 'training'?)"),
        ({"training.step": 3}, "unknown field 'training.step' (did you mean 'training.steps'?)"),
        ({"steps": 3}, "unknown field 'steps' (did you mean 'training.steps'?)"),
        ({"": 3}, "unknown field ''"),
        ({"training.": 3}, "unknown field 'training.'"),
        ({"training..steps": 3}, "unknown field 'training.'"),
        ({"a\nb": 3}, "unknown field 'a\\nb'"),
        (
            {"loss.residual.theta": 1.0},
            "field 'loss.residual.theta': the recipe has no section [loss.residual]; set all of it as a table, "
            "or write a recipe file; first-order-pinn, midpoint and two-hop have one",
        ),
        (
            {"search.seconds": 1.0},
            "field 'search.seconds': the recipe has no section [search]; set all of it as a table, or write a recipe "
            "file",
        ),
        ({"training.polish.steps": 1}, "field 'training.polish.steps': the recipe has no section [training.polish]"),
        ({"training.steps.x": 1}, "field 'training.steps.x': 'training.steps' has no fields"),
        ({"data.time_step.0": 1}, "field 'data.time_step.0': 'data.time_step' has no fields"),
        (
            {"data.kind": "meshes"},
            "field 'data.kind': cannot be changed from 'pairs', since other kinds of data have other fields",
        ),
        ({"network.hops": 2}, "fields 'network.hops' and 'data.kind': graphs of two cells"),
        ({"name": "A"}, "field 'name': expected text that matches the pattern"),
    ],
)
def test_what_cannot_be_set_is_named_as_the_command_line_s(assignments: dict[str, Any], message: str) -> None:
    assert refused(assignments).startswith(f"command line: {message}")


def test_the_kind_of_data_may_be_repeated_or_replaced_with_all_its_fields() -> None:
    assert override(PLAIN, {"data.kind": "pairs"}) == PLAIN
    assert override(PLAIN, {"data": {"kind": "meshes"}}) == ON_MESHES


def test_mesh_files_are_found_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.msh").write_text("")
    monkeypatch.chdir(tmp_path)
    changed = override(ON_MESHES, {"data.files": ["a.msh"]})
    assert changed.data == Meshes(files=(str(tmp_path / "a.msh"),))
    (tmp_path / "a.msh").unlink()
    assert override(changed, {"seed": 1}).seed == 1
    message = refused({"data.files": ["a.msh", "b.msh"]}, ON_MESHES)
    assert message == f"command line: field 'data.files': there is no mesh file '{tmp_path / 'a.msh'}'"


def test_another_place_can_be_named() -> None:
    with pytest.raises(RecipeError, match=r"^discover: field 'seed'"):
        override(PLAIN, {"seed": -1}, "discover")
