"""`FIELD=VALUE` from a command line, and the text of a recipe that was changed by it."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from fluxforge.errors import RecipeError
from fluxforge.recipe import assignments, from_dict, list_recipes, load, override, text


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ("training.steps=500", "training.steps", 500),
        ("training.steps = 1_000 ", "training.steps", 1000),
        ("diffusivity=0.3", "diffusivity", 0.3),
        ("network.standardise=true", "network.standardise", True),
        ("data.time_step=[0.1,0.5]", "data.time_step", [0.1, 0.5]),
        ('network.update="direct"', "network.update", "direct"),
        ("network.update=direct", "network.update", "direct"),
        ("data.law=A/delta*(T_N - T_P)", "data.law", "A/delta*(T_N - T_P)"),
        ("loss.sparsity={weight = 1e-6}", "loss.sparsity", {"weight": 1e-6}),
        ("summary=a=b", "summary", "a=b"),
        ("data.faces=none", "data.faces", "none"),
    ],
)
def test_values_are_toml_and_other_words_are_strings(given: str, field: str, value: Any) -> None:
    assert assignments([given]) == {field: value}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["training.steps"], "command line: expected FIELD=VALUE, such as training.steps=500, got 'training.steps'"),
        (["=3"], "command line: expected FIELD=VALUE, such as training.steps=500, got '=3'"),
        (["training.steps="], "field 'training.steps': the value is empty"),
        (["data.time_step=[0.1,"], "field 'data.time_step': the value is not TOML (Invalid value"),
        (["data.law='A/delta"], "field 'data.law': the value is not TOML ("),
        (["seed=1", "training.steps=5", "seed=2"], "field 'seed': is given twice"),
        (["seed=1\nname = 'x'"], "field 'seed': the value has more than one line"),
    ],
)
def test_what_is_no_assignment_is_refused_in_one_line(given: list[str], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        assignments(given)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


CHANGES: list[dict[str, Any]] = [
    {"training.steps": 500},
    {"seed": 3, "diffusivity": 0.3},
    {"training.precision": "float64", "evaluation.cells": 50},
    {"training.polish": {"method": "lbfgs", "steps": 7}},
    {"evaluation": {"cells": 50}},
    {"summary": 'with a # and a " in it'},
    {"evaluation.meshes": 0, "training": {"steps": 10}},
]


@pytest.mark.parametrize("name", sorted(list_recipes()))
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_the_changed_text_is_the_changed_recipe_with_its_comments(name: str, changes: dict[str, Any]) -> None:
    recipe = load(name)
    if name == "skew":  # its fluxes are those of heat with α = 1
        changes = {field: value for field, value in changes.items() if field != "diffusivity"}
    changed = text(name, changes=changes)
    assert from_dict(tomllib.loads(changed), "changed") == override(recipe, changes)
    assert changed.startswith(text(name).split("\n")[0])
    (seed,) = (line for line in text(name).splitlines() if line.startswith("seed = "))
    assert seed[seed.index("#") :] in changed


def test_a_changed_value_keeps_the_comment_of_its_line() -> None:
    changed = text("first-order", changes={"network.update": "direct", "training.steps": 500})
    assert '\nupdate = "direct"  # ' in changed
    assert "\nsteps = 500  # the paper does not say\n" in changed


def test_a_new_field_stands_in_its_section() -> None:
    changed = text("first-order", changes={"network.gain": 2.0})
    section = changed[changed.index("[network]") : changed.index("[loss.supervised]")]
    assert section.endswith("\ngain = 2.0\n\n")


def test_a_text_that_is_laid_out_otherwise_is_written_in_full(tmp_path: Path) -> None:
    """Inline tables are not followed line by line: the recipe is the right one, the comments are lost."""
    path = tmp_path / "inline.toml"
    path.write_text("name = 'x'\nloss = {supervised = {}}  # inline\ntraining = {steps = 5}\narms = {one = 0.5}\n")
    changed = text(path, changes={"training.steps": 7, "loss.supervised.norm": "l2"})
    assert from_dict(tomllib.loads(changed), "changed") == override(
        load(path), {"training.steps": 7, "loss.supervised.norm": "l2"}
    )
    assert "inline" not in changed


def test_the_text_of_a_file_is_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text("midpoint"), encoding="utf-8")
    assert text(path) == text("midpoint")
    assert load(path) == load("midpoint")
