"""Boundary conditions as text, numbers, functions and mappings."""

import json
from pathlib import Path

import jaxtyping
import numpy as np
import pytest

import fluxforge as ff
from fluxforge.errors import InputError
from fluxforge.mesh import (
    Condition,
    Conditions,
    Dirichlet,
    Inflow,
    Neumann,
    Periodic,
    Robin,
    conditions_of_tags,
    read_conditions,
    right_triangles,
)

TAGS = ("left", "right", "top")


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the type checks that tests add to every function, and users do not have."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize(
    ("specs", "conditions"),
    [
        ([], None),
        (["0"], Dirichlet("0")),
        (["insulated"], Neumann(0.0)),
        (["flux: 2*x"], Neumann("2*x")),
        (["left=sin(pi*y)"], {"left": Dirichlet("sin(pi*y)")}),
        (
            [" left = 1 ", "right=insulated", "top=flux:-x"],
            {"left": Dirichlet("1"), "right": Neumann(0.0), "top": Neumann("-x")},
        ),
        (["no such tag=1"], {"no such tag": Dirichlet("1")}),
        (
            ["left=max(x, y), right=robin:2*(1+y):sin(t)"],
            {"left": Dirichlet("max(x, y)"), "right": Robin("2*(1+y)", "sin(t)")},
        ),
        (["left=neumann:-x"], {"left": Neumann("-x")}),
        (["left=periodic:right, top=inflow:1"], {"left": Periodic("right"), "top": Inflow("1")}),
        (["rest=1"], Dirichlet("1")),
        (["rest=inflow"], Inflow(0.0)),
        (["left=inflow"], {"left": Inflow(0.0)}),
        (["left=(x<=0.5)"], {"left": Dirichlet("(x<=0.5)")}),
    ],
)
def test_conditions_are_read(specs: list[str], conditions: Conditions) -> None:
    assert read_conditions(specs) == conditions


@pytest.mark.parametrize("specs", [["insulated", "left=1"], ["left=1", "insulated"], ["left=1, rest=insulated"]])
def test_tags_without_a_condition_of_their_own_follow_the_one_for_all(specs: list[str]) -> None:
    insulated: Condition = Neumann(0.0)
    conditions = conditions_of_tags(read_conditions(specs), TAGS)
    assert conditions == {"left": Dirichlet("1"), "right": insulated, "top": insulated}


def test_the_rest_are_tags_that_are_neither_named_nor_partners_of_periodic_ones() -> None:
    conditions = conditions_of_tags(read_conditions(["left=periodic:right, rest=2"]), TAGS)
    assert conditions == {"left": Periodic("right"), "right": Periodic("left"), "top": Dirichlet("2")}


def rising(x, y):
    return y


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("boundary", "conditions"),
    [
        ("insulated", [Neumann(0.0)] * 3),
        ("left=1, rest=robin:2:0", [Dirichlet("1"), Robin("2", "0"), Robin("2", "0")]),
        ({"left": 3.0, "rest": Neumann()}, [Dirichlet(3.0), Neumann(), Neumann()]),
        ({"left": "y*(1 - y)", "top": "neumann:-x"}, [Dirichlet("y*(1 - y)"), Dirichlet(), Neumann("-x")]),
        ({"left": "periodic:right", "top": "insulated"}, [Periodic("right"), Periodic("left"), Neumann(0.0)]),
        ({"right": rising}, [Dirichlet(), Dirichlet(rising), Dirichlet()]),
        ({"right": np.float32(2.0)}, [Dirichlet(), Dirichlet(2.0), Dirichlet()]),
    ],
)
def test_conditions_are_given_as_on_the_command_line_or_as_objects(
    boundary: Conditions, conditions: list[Condition]
) -> None:
    assert conditions_of_tags(boundary, TAGS) == dict(zip(TAGS, conditions, strict=True))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("boundary", "words"),
    [
        ({"left": "insulatd"}, "the boundary condition of 'left': did you mean insulated"),
        ({"left": "warm:1"}, "the boundary condition of 'left': is not a condition"),
        ({"left": ""}, "the boundary condition of 'left': the formula is missing"),
        ({"left": Neumann}, "the boundary condition of 'left' should be a number, a formula"),
        ({"left": [1.0]}, "got a list of 1"),
        ("left=1, left=2", "boundary 'left=2': left already has a condition"),
        ("inlet=1", "boundary tag 'inlet' is not in the mesh"),
        ({"rest": "periodic:left"}, "a periodic condition belongs to one tag"),
        ("periodic:left", "a periodic condition belongs to one tag"),
        ([3.0], "boundary should be Dirichlet.* or Inflow.*, a number, text"),
        (True, "boundary should be Dirichlet"),
    ],
)
def test_an_argument_that_is_no_condition_is_refused(boundary: Conditions, words: str) -> None:
    with pytest.raises(InputError, match=words):
        conditions_of_tags(boundary, TAGS)


def test_a_number_is_the_value_at_every_wall() -> None:
    for number in (3, 3.0, np.float64(3.0)):
        assert conditions_of_tags(number, TAGS) == dict.fromkeys(TAGS, Dirichlet(3.0))


def test_a_mesh_whose_tag_is_called_rest_needs_a_condition_for_every_other_tag() -> None:
    tags = ("left", "rest", "top")
    with pytest.raises(InputError, match="give a condition for 'top' too"):
        conditions_of_tags({"rest": 1.0, "left": 2.0}, tags)
    named: Conditions = {"left": Periodic("rest"), "top": 2.0}
    assert conditions_of_tags(named, tags) == {
        "left": Periodic("rest"),
        "rest": Periodic("left"),
        "top": Dirichlet(2.0),
    }
    assert conditions_of_tags({"rest": Periodic("left"), "top": 2.0}, tags) == conditions_of_tags(named, tags)
    assert conditions_of_tags({"left": 2.0}, tags) == {"left": Dirichlet(2.0)} | dict.fromkeys(tags[1:], Dirichlet())
    assert conditions_of_tags(Neumann(), tags) == dict.fromkeys(tags, Neumann())


def test_text_numbers_and_objects_give_the_same_fields_and_the_same_file(tmp_path: Path) -> None:
    mesh = right_triangles(4)
    walls: list[Conditions] = [
        "left=1, bottom=x, rest=insulated",
        {"left": 1.0, "bottom": "x", "rest": "insulated"},
        {"left": Dirichlet(1.0), "bottom": Dirichlet(lambda x, y: x), "right": Neumann(), "top": Neumann()},
    ]
    runs = [ff.simulate("euler", mesh, boundary=each, steps=5) for each in walls]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.final, runs[0].final)
    assert np.abs(runs[0].final).max() > 0.1
    runs[0].save(tmp_path / "out")
    saved = json.loads((tmp_path / "out/problem.json").read_text())["boundary"]
    assert saved["tags"]["rest"] == {"kind": "neumann", "normal_gradient": 0.0}
    again = ff.stepping.rerun(tmp_path / "out")
    np.testing.assert_array_equal(again.final, runs[0].final)


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        ([""], "missing"),
        (["left="], "missing"),
        (["left=flux:"], "missing"),
        (["=1"], "TAG=CONDITION"),
        (["left=right=1"], "TAG=CONDITION"),
        (["left=1", "left=2"], "left already has a condition"),
        (["0", "1"], "the whole boundary already has a condition"),
        (["0, rest=1"], "the whole boundary already has a condition"),
        (["left=1, left=2"], "left already has a condition"),
        (["left=robin:1"], "is not a condition; write a value"),
        (["left=robin"], "the formula is missing after robin"),
        (["left=neumann:1:2"], "is not a condition"),
        (["left=1,"], "the formula is missing"),
        (["left=warm:1"], "is not a condition"),
    ],
)
def test_what_is_no_condition_is_refused(specs: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_conditions(specs)


@pytest.mark.parametrize("word", ["insulate", "isulated", "insulatd"])
def test_a_word_that_is_nearly_insulated_is_no_formula(word: str) -> None:
    with pytest.raises(InputError, match="did you mean insulated"):
        read_conditions([f"left={word}"])


def test_an_equation_may_be_given_by_its_name() -> None:
    """Walls that are not named have its default: of what a velocity carries, free outflow."""
    by_name, same = (
        ff.dual(right_triangles(2), {"left": 1.0}, equation=given) for given in ("advection", ff.equation("advection"))
    )
    assert by_name.inflow is not None
    np.testing.assert_array_equal(by_name.inflow, same.inflow)
