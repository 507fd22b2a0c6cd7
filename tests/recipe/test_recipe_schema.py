"""Fields of the wrong name, type or range, each refused by its dotted name."""

import datetime
import tomllib
from typing import Any

import msgspec
import numpy as np
import pytest
from recipe_files import BASE, ON_MESHES, PLAIN, refused, with_fields

from fluxforge.errors import RecipeError
from fluxforge.recipe import TwoCells, _schema, check, from_dict, override

NAN, INF = float("nan"), float("inf")

SEARCHED = override(PLAIN, {"search": {}})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("training.steps", 0, "expected a whole number from 1 to 100000000, got 0"),
        ("training.steps", -3, "expected a whole number from 1 to 100000000, got -3"),
        ("training.steps", 1.5, "expected a whole number from 1 to 100000000, got 1.5"),
        ("training.steps", 1e4, "expected a whole number from 1 to 100000000, got 10000.0"),
        ("training.steps", True, "expected a whole number from 1 to 100000000, got true"),
        ("training.steps", "many", "expected a whole number from 1 to 100000000, got 'many'"),
        ("training.steps", None, "expected a whole number from 1 to 100000000, got nothing"),
        ("training.steps", [1], "expected a whole number from 1 to 100000000, got a list"),
        (
            "training.steps",
            datetime.date(2020, 1, 1),
            "expected a whole number from 1 to 100000000, got a date or time",
        ),
        ("training.steps", 10**12, "expected a whole number from 1 to 100000000, got 1000000000000"),
        ("seed", 2**31, "expected a whole number >= 0 and < 2147483648, got 2147483648"),
        ("seeds", 2000, "expected a whole number from 1 to 1024, got 2000"),
        ("network.layers", 9, "expected a whole number from 1 to 8, got 9"),
        ("network.hops", 3, "expected 1 or 2, got 3"),
        ("network.hops", True, "expected 1 or 2, got true"),
        ("network.hops", 1.0, "expected 1 or 2, got 1.0"),
        ("training.learning_rate", 0, "expected a number > 0 and <= 100, got 0"),
        ("training.learning_rate", "1e-3", "expected a number > 0 and <= 100, got '1e-3'"),
        ("training.learning_rate", True, "expected a number > 0 and <= 100, got true"),
        ("training.learning_rate", NAN, "expected a finite number > 0 and <= 100, got nan"),
        ("training.learning_rate", INF, "expected a finite number > 0 and <= 100, got inf"),
        ("training.learning_rate", 10**400, f"expected a number > 0 and <= 100, got 1{'0' * 59}…"),
        ("training.clip", NAN, "expected a finite number from 0 to 1000000000.0, got nan"),
        ("training.warm_up", 1.01, "expected a number from 0 to 1, got 1.01"),
        ("loss.supervised.weight", -INF, "expected a finite number from 0 to 1000000000.0, got -inf"),
        (
            "training.optimizer",
            "adm",
            "expected 'adam', 'adamw', 'lion', 'nadam', 'radam', 'rmsprop' or 'sgd', got 'adm'",
        ),
        ("training.optimizer", "adm", "(did you mean 'adam'?)"),
        ("training.optimizer", ["adam"], "got a list"),
        ("training", 3, "expected a table, got 3"),
        ("training", None, "expected a table, got nothing"),
        ("search", True, "expected a table, got true"),
        ("search.operators", [], "is empty; name at least one of 'abs', 'add'"),
        ("search.operators", "add", "expected a list, got 'add'"),
        ("search.samples", 10, "expected a whole number from 50 to 1000000, got 10"),
        ("data.time_step", 0.1, "expected a list, got 0.1"),
        ("data.time_step", [0.1], "expected a list of 2 values, got 1"),
        ("data.time_step", [0.1, 0.2, 0.3], "expected a list of 2 values, got 3"),
        ("name", 3, "expected text, got 3"),
        ("name", "My Recipe", "expected text that matches the pattern ^[a-z0-9][a-z0-9-]{0,39}$, got 'My Recipe'"),
        ("name", "", "expected text that matches the pattern"),
        ("name", "mine\n", "expected text on one line of printable characters, got 'mine\\n'"),
        ("summary", "\x1b[2J", "expected text on one line of printable characters, got '\\x1b[2J'"),
        ("summary", "\ud800", "expected text on one line of printable characters"),
        ("name", "x" * 400, f"got '{'x' * 60}…'"),
        ("arms", [1], "expected a table, got a list"),
        ("arms.sparse", -1, "expected a number from 0 to 1000000000.0, got -1"),
        ("arms.sparse", {}, "expected a number from 0 to 1000000000.0, got a table"),
        ("training.steps", b"3", "expected a whole number from 1 to 100000000, got a bytes"),
    ],
)
def test_a_value_the_schema_refuses_is_named(field: str, value: Any, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        override(SEARCHED, {field: value}, "my.toml")
    assert str(caught.value).startswith(f"my.toml: field '{field}': ")
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("data.cells", [3, 100], "'data.cells[0]': expected a whole number from 8 to 100000, got 3"),
        ("data.cells", [8, 200_000], "'data.cells[1]': expected a whole number from 8 to 100000, got 200000"),
        ("data.kinds", ["regular", "iregular"], "'data.kinds[1]': expected 'irregular' or 'regular', got 'iregular'"),
        ("data.kinds", [], "'data.kinds': is empty; name at least one of 'irregular' or 'regular'"),
        ("data.fields", [], "'data.fields': is empty; name at least one of 'mixed', 'noise' or 'smooth'"),
        ("data.fourier", [0, 1], "'data.fourier[0]': expected a number > 0 and <= 1000000.0, got 0"),
        ("data.files", [3], "'data.files[0]': expected text, got 3"),
        ("data.files", "a.msh", "'data.files': expected a list, got 'a.msh'"),
        (
            "data.engine",
            "gmesh",
            "'data.engine': expected 'auto', 'builtin' or 'gmsh', got 'gmesh' (did you mean 'gmsh'?)",
        ),
    ],
)
def test_an_item_of_a_list_is_named_by_its_place(field: str, value: Any, named: str) -> None:
    with pytest.raises(RecipeError) as caught:
        override(ON_MESHES, {field: value}, "my.toml")
    assert str(caught.value).startswith(f"my.toml: field {named}")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"name": "mine", "trainin": {}}, "unknown field 'trainin' (did you mean 'training'?)"),
        ({"name": "mine", "training": {"step": 3}}, "unknown field 'training.step' (did you mean 'training.steps'?)"),
        ({"name": "mine", "loss": {"residual": {"thta": 1}}}, "(did you mean 'loss.residual.theta'?)"),
        ({"name": "mine", "qqq": 3}, "unknown field 'qqq' (known here: name, summary, seed, "),
        (
            {"name": "mine", "data": {"kind": "pairs", "graphs": 3}},
            "unknown field 'data.graphs' "
            "(known here: faces, presence, time_step, common, stretch, size, law, noise, kind)",
        ),
        ({"name": "mine", "steps": 3}, "unknown field 'steps' (did you mean 'training.steps'?)"),
        ({"name": "mine", "training": {"theta": 1}}, "(did you mean 'loss.residual.theta'?)"),
        ({"name": "mine", "loss": {"seeds": 1}}, "unknown field 'loss.seeds' (did you mean 'seeds'?)"),
        ({"name": "mine", "network": {"graphs": 1}}, "(did you mean 'data.graphs'?)"),
        ({"name": "mine", "a\nb": 3}, "unknown field 'a\\nb'"),
        ({"name": "mine", 3: 3}, "unknown field 'int'"),
        (
            {"name": "mine", "data": {}},
            "field 'data.kind': is missing; choose 'two-cells', 'pairs', 'meshes', 'experiment', 'rows' or 'skew'",
        ),
        (
            {"name": "mine", "data": {"kind": "pair"}},
            "field 'data.kind': expected 'two-cells', 'pairs', 'meshes', 'experiment', 'rows' or 'skew', got",
        ),
        ({"name": "mine", "data": {"kind": "pair"}}, "got 'pair' (did you mean 'pairs'?)"),
        ({"name": "mine", "data": {"kind": ["pairs"]}}, "field 'data.kind': expected"),
        ({"name": "mine", "data": "pairs"}, "field 'data': expected a table, got 'pairs'"),
        ({}, "field 'name': is missing"),
        ({"nam": "mine"}, "unknown field 'nam' (did you mean 'name'?)"),
        ([], "expected a table, got a list"),
        (None, "expected a table, got nothing"),
    ],
)
def test_a_stray_or_missing_field_is_named(document: object, message: str) -> None:
    text = refused(document)
    assert message in text
    assert text.startswith(("unknown field ", "field ", "expected "))


def test_a_number_too_long_to_print_is_refused_in_words() -> None:
    message = refused(with_fields(PLAIN, seeds=10**5000))
    assert message == "field 'seeds': expected a whole number from 1 to 1024, got a number of thousands of digits"


def test_whole_numbers_serve_as_numbers_and_become_floats() -> None:
    recipe = from_dict(with_fields(PLAIN, diffusivity=2, data={"time_step": [1, 2]}), "x")
    assert (recipe.diffusivity, recipe.data.time_step) == (2.0, (1.0, 2.0))
    assert type(recipe.diffusivity) is float
    low, _ = recipe.data.time_step
    assert type(low) is float


def test_a_negative_zero_is_zero() -> None:
    assert str(override(PLAIN, {"training.clip": -0.0}).training.clip) == "0.0"


def test_numbers_of_numpy_are_numbers() -> None:
    recipe = override(PLAIN, {"seed": np.int64(3), "diffusivity": np.float32(0.5), "data.stretch": np.float64(0.25)})
    assert (recipe.seed, recipe.diffusivity, recipe.data.stretch) == (3, 0.5, 0.25)
    assert {type(recipe.seed), type(recipe.diffusivity)} == {int, float}


def test_a_recipe_built_in_python_is_checked_like_a_file() -> None:
    check(PLAIN)
    check(msgspec.structs.replace(PLAIN, seed=np.int64(3), diffusivity=np.float64(2)))
    with pytest.raises(
        RecipeError, match=r"^recipe 'mine': field 'data.graphs': expected a whole number from 1 to 1000000, got 0$"
    ):
        check(msgspec.structs.replace(PLAIN, data=TwoCells(graphs=0)))
    with pytest.raises(RecipeError, match=r"^recipe 'mine': field 'data': expected a table, got nothing$"):
        check(msgspec.structs.replace(PLAIN, data=None))
    with pytest.raises(RecipeError, match=r"^a object cannot be part of a recipe$"):
        check(msgspec.structs.replace(PLAIN, summary=object()))


def test_what_only_the_sections_themselves_refuse_is_one_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_schema, "READERS", {})
    assert refused({"name": "mine", "training": {"steps": 0}}).startswith("Expected `int` >= 1")


def test_names_are_as_long_as_they_may_be() -> None:
    assert from_dict({"name": "a" * 40, "loss": {"supervised": {}}}, "x").name == "a" * 40
    assert "matches" in refused({"name": "a" * 41})


def test_the_shortest_recipe_is_all_defaults() -> None:
    assert from_dict(tomllib.loads(BASE), "x") == PLAIN
