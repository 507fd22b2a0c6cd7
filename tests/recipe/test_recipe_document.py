"""Recipes as plain values, and the fingerprint of what they train."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from recipe_files import ON_MESHES, PLAIN, leaves

from fluxforge.errors import RecipeError
from fluxforge.recipe import PRESETS, Recipe, TwoCells, fingerprint, from_dict, list_recipes, load, override, to_dict

ALL = [load(name, preset=preset) for name in list_recipes() for preset in PRESETS]
FULL = override(
    load("generalisation"),
    {"arms": {}, "loss.residual": {}, "training.polish": {}, "search": {}, "training.warm_up": 0.1, "summary": "x"},
)


@pytest.mark.parametrize("recipe", [PLAIN, ON_MESHES, FULL, *ALL], ids=lambda recipe: recipe.name)
def test_a_recipe_survives_json(recipe: Recipe) -> None:
    text = json.dumps(to_dict(recipe), allow_nan=False)
    assert from_dict(json.loads(text), "run.json") == recipe
    assert to_dict(from_dict(to_dict(recipe), "run.json")) == to_dict(recipe)
    assert json.loads(text) == to_dict(recipe)


# Another value for each field of a full recipe, in its range.
OTHER: dict[str, Any] = {
    "name": "other",
    "arms": {"a": 1.0},
    "data.time_step": 0.2,
    "data.faces": "random",
    "network.features": "primitive",
    "network.mlp": "gated",
    "network.aggregate": "mean",
    "network.update": "residual",
    "loss.supervised.norm": "l2",
    "network.gain": 1.5,
    "network.invariants": ["d_n"],
    "loss.residual.norm": "l2",
    "loss.residual.theta": 1.0,
    "loss.residual.kind": "hermite",
    "training.optimizer": "lion",
    "training.schedule": "linear",
    "training.precision": "float64",
    "training.polish.method": "lbfgs",
}
FREE = ("summary", "evaluation", "search", "expect", "order", "textbook", "training.checkpoint_every")
# Fields that clash with two cells, with the residual or with the features, at any other value.
FIXED = (
    "equation",
    "parameters",
    "data.kind",
    "network.form",
    "network.integrator",
    "network.order",
    "network.free_last",
    "network.hops",
    "network.two_hop",
    "data.law",
    "data.noise",
)


def other(field: str, value: Any) -> Any:
    if field in OTHER:
        return OTHER[field]
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value / 2 + 0.25


DECIDING = [leaf for leaf in leaves(to_dict(FULL)) if not leaf[0].startswith((*FREE, *FIXED))]


@pytest.mark.parametrize(("field", "value"), DECIDING, ids=[field for field, _ in DECIDING])
def test_every_deciding_field_changes_the_fingerprint(field: str, value: Any) -> None:
    base = override(FULL, {"search": None})
    changed = override(base, {field: other(field, value)})
    assert changed != base
    assert fingerprint(changed) != fingerprint(base)


@pytest.mark.parametrize(
    ("recipe", "assignments"),
    [
        (PLAIN, {"data.stretch": 0.2}),
        (PLAIN, {"data.size": [0.5, 2.5]}),
        (PLAIN, {"data": {"kind": "two-cells"}}),
        (PLAIN, {"loss.sparsity": {}}),
        (ON_MESHES, {"data.kinds": ["irregular", "regular"]}),
        (ON_MESHES, {"data.fourier": [0.05, 0.4]}),
        (ON_MESHES, {"network.hops": 2}),
        (override(ON_MESHES, {"network.hops": 2}), {"network.two_hop": "ring"}),
    ],
)
def test_every_deciding_field_of_other_data_changes_the_fingerprint(
    recipe: Recipe, assignments: dict[str, Any]
) -> None:
    assert fingerprint(override(recipe, assignments)) != fingerprint(recipe)


@pytest.mark.parametrize(
    "assignments",
    [
        {"summary": "words"},
        {"evaluation.meshes": 3},
        {"evaluation": {"fourier": 0.1}},
        {"search": {}},
        {"search": {"seconds": 1.0}},
        {"training.checkpoint_every": 7},
    ],
)
def test_fields_without_effect_on_training_do_not_change_the_fingerprint(assignments: dict[str, Any]) -> None:
    changed = override(PLAIN, assignments)
    assert changed != PLAIN
    assert fingerprint(changed) == fingerprint(PLAIN)


def test_a_fingerprint_is_sixteen_digits_and_stays_the_same() -> None:
    assert len(fingerprint(PLAIN)) == 16
    int(fingerprint(PLAIN), 16)
    assert len({fingerprint(recipe) for recipe in ALL}) == len(ALL) - 9  # nine of them have one version


def test_whole_and_real_numbers_and_the_order_of_arms_do_not_matter() -> None:
    assert fingerprint(replace(PLAIN, diffusivity=1)) == fingerprint(PLAIN)
    arms = {"a": 1.0, "b": 2.0}
    one, two = (replace(PLAIN, arms=dict(items)) for items in (arms.items(), reversed(arms.items())))
    assert fingerprint(one) == fingerprint(two)


def test_a_recipe_that_is_out_of_range_has_no_fingerprint() -> None:
    with pytest.raises(RecipeError, match=r"^recipe 'mine': field 'data.graphs': expected"):
        fingerprint(replace(PLAIN, data=TwoCells(graphs=0)))


def test_mesh_files_count_by_content(tmp_path: Path) -> None:
    (tmp_path / "a.msh").write_text("one")
    (tmp_path / "b.msh").write_text("one")
    (tmp_path / "c.msh").write_text("two")
    a, b, c = (override(ON_MESHES, {"data.files": [str(tmp_path / f"{name}.msh")]}) for name in "abc")
    assert fingerprint(a) == fingerprint(b) != fingerprint(c)
    assert fingerprint(a) != fingerprint(ON_MESHES)
    (tmp_path / "a.msh").unlink()
    assert from_dict(to_dict(a), "run.json") == a
    with pytest.raises(
        RecipeError, match=r"^recipe 'mine': field 'data.files': '.*a\.msh' cannot be read \(No such file"
    ):
        fingerprint(a)
