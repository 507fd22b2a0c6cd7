"""Boundary conditions as text."""

from collections.abc import Iterable

import pytest

from fluxforge.cli._problem import parse_boundary
from fluxforge.errors import InputError
from fluxforge.mesh import Condition, Conditions, Dirichlet, Inflow, Neumann, Periodic, Robin


def _tags() -> Iterable[str]:
    return ("left", "right", "top")


def _unasked() -> Iterable[str]:
    pytest.fail("the tags were not needed")


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
    assert parse_boundary(specs, _unasked) == conditions


@pytest.mark.parametrize("specs", [["insulated", "left=1"], ["left=1", "insulated"]])
def test_tags_without_a_condition_of_their_own_follow_the_one_for_all(specs: list[str]) -> None:
    insulated: Condition = Neumann(0.0)
    assert parse_boundary(specs, _tags) == {"left": Dirichlet("1"), "right": insulated, "top": insulated}


def test_the_rest_are_tags_that_are_neither_named_nor_partners_of_periodic_ones() -> None:
    assert parse_boundary(["left=periodic:right, rest=2"], _tags) == {"left": Periodic("right"), "top": Dirichlet("2")}


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
        (["left=robin:1"], "is no condition; write a value"),
        (["left=robin"], "the formula is missing after robin"),
        (["left=neumann:1:2"], "is no condition"),
        (["left=1,"], "the formula is missing"),
        (["left=warm:1"], "is no condition"),
    ],
)
def test_what_is_no_condition_is_refused(specs: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_boundary(specs, _tags)


@pytest.mark.parametrize("word", ["insulate", "isulated", "insulatd"])
def test_a_word_that_is_nearly_insulated_is_no_formula(word: str) -> None:
    with pytest.raises(InputError, match="did you mean insulated"):
        parse_boundary([f"left={word}"], lambda: ["left"])
