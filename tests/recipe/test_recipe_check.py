"""Combinations that no run can carry out."""

from typing import Any

import pytest
from recipe_files import ON_MESHES, PLAIN, refused, with_fields

from fluxforge.errors import RecipeError
from fluxforge.recipe import Recipe, TwoCells, check, from_dict

RESIDUAL = {"supervised": None, "residual": {}}


@pytest.mark.parametrize(
    ("recipe", "sections", "fields", "why"),
    [
        (
            PLAIN,
            {"loss": {"supervised": None}},
            "'loss.supervised' and 'loss.residual'",
            "add 'supervised', 'residual' or both",
        ),
        (
            PLAIN,
            {"loss": {"supervised": None, "sparsity": {"weight": 1.0}}},
            "'loss.supervised' and 'loss.residual'",
            "add 'supervised', 'residual' or both",
        ),
        (
            PLAIN,
            {"loss": {"supervised": {"weight": 0}, "residual": {"weight": 0}, "sparsity": {"weight": 1.0}}},
            "'loss.supervised.weight' and 'loss.residual.weight'",
            "no term has a weight above 0",
        ),
        (
            PLAIN,
            {"loss": {"supervised": None, "residual": {"kind": "hermite", "theta": 1.0}}},
            "'loss.residual.kind' and 'loss.residual.theta'",
            "the hermite residual has no theta",
        ),
        (
            PLAIN,
            {"loss": {"supervised": None, "residual": {"kind": "hermite", "theta": 0.0}}},
            "'loss.residual.kind' and 'loss.residual.theta'",
            "choose kind 'theta' for theta = 0.0",
        ),
        (PLAIN, {"network": {"hops": 2}}, "'network.hops' and 'data.kind'", "graphs of two cells have no second hop"),
        (PLAIN, {"network": {"two_hop": "ring"}}, "'network.two_hop' and 'data.kind'", "have no second hop"),
        (
            Recipe(name="mine", data=TwoCells(), loss=PLAIN.loss),
            {"network": {"hops": 2}},
            "'network.hops' and 'data.kind'",
            "choose data of kind 'meshes'",
        ),
        (ON_MESHES, {"network": {"two_hop": "ring"}}, "'network.two_hop' and 'network.hops'", "set hops = 2"),
        (
            ON_MESHES,
            {"network": {"features": "simplified", "hops": 2}},
            "'network.features' and 'network.hops'",
            "defined for one hop only",
        ),
        (
            PLAIN,
            {"data": {"time_step": [0.2, 0.1]}},
            "'data.time_step[0]' and 'data.time_step[1]'",
            "from 0.2 down to 0.1",
        ),
        (PLAIN, {"data": {"size": [2, 1]}}, "'data.size[0]' and 'data.size[1]'", "from 2.0 down to 1.0"),
        (ON_MESHES, {"data": {"cells": [90, 80]}}, "'data.cells[0]' and 'data.cells[1]'", "from 90 down to 80"),
        (ON_MESHES, {"data": {"fourier": [1, 0.5]}}, "'data.fourier[0]' and 'data.fourier[1]'", "from 1.0 down to 0.5"),
        (
            PLAIN,
            {"training": {"warm_up": 0.3, "decay_from": 0.2}},
            "'training.decay_from' and 'training.warm_up'",
            "the decay would begin at 0.2, before the warm-up ends at 0.3",
        ),
        (PLAIN, {"arms": {"sparse": 1.0}, "search": {}}, "'arms' and 'search'", "cannot search for formulas"),
        (
            PLAIN,
            {"network": {"message_width": 2}, "search": {}},
            "'network.message_width' and 'search.route'",
            "needs messages of one component",
        ),
        (
            ON_MESHES,
            {"data": {"files": ["a.msh"], "meshes": 3}},
            "'data.files' and 'data.meshes'",
            "remove 'meshes' or",
        ),
        (
            ON_MESHES,
            {"data": {"files": ["a.msh"], "cells": [9, 9]}},
            "'data.files' and 'data.cells'",
            "applies to generated meshes",
        ),
        (
            ON_MESHES,
            {"data": {"files": ["a.msh"], "kinds": ["regular"]}},
            "'data.files' and 'data.kinds'",
            "applies to generated",
        ),
        (
            ON_MESHES,
            {"data": {"files": ["a.msh"], "engine": "gmsh"}},
            "'data.files' and 'data.engine'",
            "applies to generated",
        ),
    ],
)
def test_fields_that_clash_are_both_named(recipe: Recipe, sections: dict[str, Any], fields: str, why: str) -> None:
    message = refused(with_fields(recipe, **sections))
    assert message.startswith(f"fields {fields}: ")
    assert why in message


@pytest.mark.parametrize("name", ["", "Sparse", "a b", "a_b", "a.b", "é"])
def test_an_arm_of_another_name_is_refused(name: str) -> None:
    message = refused(with_fields(PLAIN, arms={name: 1.0}))
    assert message == f"field 'arms.{name}': the name of an arm should consist of the characters a-z, 0-9 and -"


def test_a_single_term_of_no_weight_is_named_alone() -> None:
    message = refused(with_fields(PLAIN, loss={"supervised": {"weight": 0}}))
    why = "no term has a weight above 0, so that nothing would be learned; give one a positive weight"
    assert message == f"field 'loss.supervised.weight': {why}"


def test_no_mesh_files_are_not_an_ensemble() -> None:
    message = refused(with_fields(ON_MESHES, data={"files": []}))
    assert message == "field 'data.files': is empty; name at least one mesh"


@pytest.mark.parametrize(
    ("recipe", "sections"),
    [
        (PLAIN, {"loss": {"supervised": {"weight": 0}, "residual": {}}}),
        (PLAIN, {"loss": {"supervised": None, "residual": {"kind": "hermite"}}}),
        (PLAIN, {"loss": {"supervised": None, "residual": {"theta": 0}}}),
        (PLAIN, {"data": {"time_step": [0.1, 0.1]}}),
        (PLAIN, {"training": {"chunk": 10**6, "checkpoint_every": 1, "batch": 10**6}}),
        (PLAIN, {"training": {"warm_up": 0.1}}),
        (PLAIN, {"training": {"warm_up": 0.3, "decay_from": 0.3}}),
        (PLAIN, {"training": {"warm_up": 0.3, "decay_from": 0.2, "schedule": "constant"}}),
        (PLAIN, {"training": {"polish": {"graphs": 10**6}}}),
        (PLAIN, {"arms": {"sparse": 1e-3, "no-weight-0": 0.0}}),
        (PLAIN, {"network": {"message_width": 2}}),
        (PLAIN, {"network": {"features": "simplified"}, "search": {}}),
        (PLAIN, {"network": {"update": "direct", "layers": 2}, "loss": RESIDUAL}),
        (PLAIN, {"evaluation": {"meshes": 0}}),
        (ON_MESHES, {"network": {"hops": 2, "two_hop": "ring"}}),
        (ON_MESHES, {"network": {"hops": 2}, "search": {}}),
        (ON_MESHES, {"data": {"files": ["a.msh"]}}),
    ],
)
def test_what_is_only_unusual_is_allowed(recipe: Recipe, sections: dict[str, Any]) -> None:
    check(from_dict(with_fields(recipe, **sections), "my.toml"))


def test_a_recipe_is_named_in_the_message_unless_a_place_is_given() -> None:
    with pytest.raises(RecipeError, match=r"^recipe 'empty': fields 'loss.supervised' and"):
        check(Recipe(name="empty"))
    with pytest.raises(RecipeError, match=r"^here: fields 'loss.supervised' and"):
        check(Recipe(name="empty"), "here")
