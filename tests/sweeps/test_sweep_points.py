"""The points of a sweep: how values are written, what they are called, and what is refused."""

import pytest

from fluxforge import recipe
from fluxforge.errors import InputError
from fluxforge.sweeps import parse_over
from fluxforge.sweeps._plan import make_points, name_point

BASE = recipe.load("first-order")


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("seed=0:3", "seed", (0, 1, 2)),
        ("seed=7", "seed", (7,)),
        ("seed = 0:2, 5, 8:10", "seed", (0, 1, 5, 8, 9)),
        ("network.width=16,32", "network.width", (16, 32)),
        ("training.learning_rate=1e-3,0.01", "training.learning_rate", (1e-3, 0.01)),
        ("network.update=direct,residual", "network.update", ("direct", "residual")),
        ("data.time_step=[0.1, 0.2],[0.3, 0.4]", "data.time_step", ([0.1, 0.2], [0.3, 0.4])),
        ("loss.sparsity={weight = 1e-3, warm_up = 0.5},{weight = 0.0}", "loss.sparsity",
         ({"weight": 1e-3, "warm_up": 0.5}, {"weight": 0.0})),
        ("data.law='A, b',\"c,d\"", "data.law", ("A, b", "c,d")),
        ("network.standardise=true,false", "network.standardise", (True, False)),
    ],
)  # fmt: skip
def test_values_are_read_as_those_of_set(text, field, values):
    assert parse_over([text]) == {field: values}


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (["seed"], "expected FIELD=VALUES"),
        (["=0:3"], "expected FIELD=VALUES"),
        (["seed="], "expected FIELD=VALUES"),
        (["seed=3:3"], "range 3:3 is empty"),
        (["seed=5:0"], "range 5:0 is empty"),
        (["seed=0:1000000000000"], "more than 10,000"),
        (["seed=1,,2"], "'seed': the value is empty"),
        (["data.time_step=[0.1"], "'data.time_step': the value is not TOML"),
        (["seed=0:2", "seed=4"], "'seed' is given twice"),
    ],
)
def test_bad_values_are_one_line_that_names_the_field(texts, named):
    with pytest.raises(InputError) as caught:
        parse_over(texts)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_points_are_all_combinations_the_last_field_fastest():
    points = make_points(BASE, {"network.width": (16, 32), "seed": (3, 4)})
    assert [point.name for point in points] == [
        "network.width=16,seed=3", "network.width=16,seed=4", "network.width=32,seed=3", "network.width=32,seed=4",
    ]  # fmt: skip
    assert points[2].spec == recipe.override(BASE, {"network.width": 32, "seed": 3})
    assert len({point.sha256 for point in points}) == 4


@pytest.mark.parametrize(
    ("over", "named"),
    [
        ({"sed": (1,)}, "unknown field 'sed'"),
        ({"network.with": (1,)}, "unknown field 'network.with' (did you mean 'network.width'?)"),
        ({"training.steps": (10, 0)}, "field 'training.steps'"),
        ({"seed": (1, "x")}, "field 'seed'"),
        ({"seed": (1, 2, 1)}, "seed=1 and seed=1 are the same recipe"),
        ({"seed": range(101), "network.width": range(1, 101)}, "10,100 points are too many"),
        ({"seed": ()}, "'seed' has no values"),
        ({}, "a sweep needs a field to vary"),
    ],
)
def test_points_that_cannot_be_run_are_refused(over, named):
    with pytest.raises(InputError) as caught:
        make_points(BASE, over)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_are_those_of_files_and_differ():
    awkward = [
        {"data.law": "A/delta"},
        {"data.law": "A|delta"},
        {"data.time_step": [0.1, 0.5]},
        {"data.law": "x" * 300},
    ]
    awkward += [{"data.law": "../up"}, {"data.law": "x" * 300 + "y"}]
    names = [name_point(changes) for changes in awkward]
    assert len(set(names)) == len(names)
    for name in names:
        assert len(name) < 120
        assert not set(name) & set("/\\|\n ")
    assert name_point({"seed": 3, "training.learning_rate": 1e-3}) == "seed=3,training.learning_rate=0.001"


@pytest.mark.parametrize("value", [3, 0.1, 1e-7, True, "direct", 'a "b"', [1, 2.5], {"weight": 1e-3, "warm_up": 0.5}])
def test_values_are_written_as_they_are_read(value):
    assert parse_over([f"field={recipe.to_toml_value(value)}"]) == {"field": (value,)}
