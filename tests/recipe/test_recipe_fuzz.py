"""Any document and any change gives a recipe or a RecipeError of one line."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from recipe_files import BASE, ON_MESHES, PLAIN, leaves

from fluxforge.errors import RecipeError
from fluxforge.recipe import Recipe, check, fingerprint, from_dict, list_recipes, load, override, to_dict
from fluxforge.recipe._schema import from_table
from strategies import few

RECIPES = [PLAIN, ON_MESHES, *(load(name) for name in list_recipes())]
WORDS = ["adam", "meshes", "pairs", "two-cells", "ring", "hermite", "regular", "gmsh", "l2", "constant", "simplified"]


def outcome(function: Callable[..., Recipe], *arguments: Any) -> Recipe | RecipeError:
    """The recipe that a call returns, or the message of its RecipeError, which is one line."""
    try:
        return function(*arguments)
    except RecipeError as error:
        refusal = error
    assert str(refusal).isprintable()
    return refusal


FIELDS = sorted({field for recipe in RECIPES for field, _ in leaves(to_dict(recipe))})
SECTIONS = sorted({field.rpartition(".")[0] for field in FIELDS if "." in field})

tame = st.none() | st.booleans() | st.integers(-5, 3000) | st.floats(-2, 2) | st.sampled_from(WORDS)
wild = st.integers() | st.floats() | st.text(max_size=8) | st.dates() | st.just(10**400) | st.binary(max_size=3)
keys = st.sampled_from([field.rpartition(".")[2] for field in FIELDS]) | st.text(max_size=5)


def nested(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
    )


fields = (
    st.sampled_from(FIELDS + SECTIONS)
    | st.builds("{}.{}".format, st.sampled_from(SECTIONS), keys)
    | st.text(max_size=8)
)
anything = st.tuples(st.sampled_from(RECIPES), st.dictionaries(fields, nested(tame | wild), min_size=1, max_size=3))


def like(value: Any) -> st.SearchStrategy[Any]:
    """Values much like this one, most of which a recipe may hold."""
    match value:
        case bool():
            return st.booleans()
        case int():
            return st.integers(0, 2 * value + 2)
        case float():
            return st.floats(0, 2 * value)
        case str():
            return st.sampled_from(WORDS)
        case list():
            return st.tuples(*map(like, value)).map(list)
    return st.just(value)


def changes(recipe: Recipe) -> st.SearchStrategy[tuple[Recipe, dict[str, Any]]]:
    """One to three fields of this recipe, set to likely values."""
    one = st.one_of([st.tuples(st.just(field), like(value)) for field, value in leaves(to_dict(recipe))])
    return st.tuples(st.just(recipe), st.lists(one, min_size=1, max_size=3).map(dict))


likely = st.one_of([changes(recipe) for recipe in RECIPES])


@few(200)
@given(case=likely | anything)
def test_any_field_set_to_any_value_is_a_recipe_or_a_refusal(case: tuple[Recipe, dict[str, Any]]) -> None:
    changed = outcome(override, *case)
    if isinstance(changed, RecipeError):
        assert str(changed).startswith("command line: ")
        return
    assert from_dict(to_dict(changed), "run.json") == changed
    assert len(fingerprint(changed)) == 16


tame_fields = st.dictionaries(st.sampled_from(FIELDS), nested(tame), min_size=1, max_size=1)


@few(300)
@given(case=likely | st.tuples(st.sampled_from(RECIPES), tame_fields))
def test_what_the_sections_accept_is_what_the_messages_accept(case: tuple[Recipe, dict[str, Any]]) -> None:
    """Tame values only: the sections by themselves let infinities and endless whole numbers pass."""
    recipe, assignments = case
    document = to_dict(recipe)
    for field, value in assignments.items():
        *path, last = field.split(".")
        table = document
        for name in path:
            table = table.get(name) or {}
        table[last] = value
    assert accepted_by_sections(document) == accepted(document)


def accepted_by_sections(document: object) -> bool:
    try:
        msgspec.convert(document, Recipe)
    except msgspec.ValidationError:
        return False
    return True


def accepted(document: object) -> bool:
    try:
        from_table(document, "x")
    except RecipeError:
        return False
    return True


LINES = '''
[loss.residual]
weight = 2
weight = nan
[training]
steps = 0
[data]
kind = "pairs"
[arms]
a = 1
[search]
x = 07:32:00
= 3
a.b.c = {}
a = [[[]]]
é
["
"""
'''
texts = st.lists(st.sampled_from(LINES.splitlines()), max_size=4).map(lambda lines: BASE + "\n".join(lines))


@few(200)
@given(content=texts.map(str.encode) | st.binary(max_size=30))
def test_any_file_is_a_recipe_or_a_refusal(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.toml"
        path.write_bytes(content)
        recipe = outcome(load, path)
        if isinstance(recipe, RecipeError):
            assert str(recipe).startswith(f"{path}: ")
        else:
            check(recipe)


@few(100)
@given(name=st.text(max_size=12).filter(lambda name: "/" not in name))
def test_any_name_is_a_recipe_or_a_refusal(name: str) -> None:
    assert outcome(load, name) is not None
