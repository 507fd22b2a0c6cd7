"""A formula is a scheme of its equation if it does what the scheme does, at other values of the parameters too."""

from functools import cache
from pathlib import Path

import pytest

from fluxforge import recipe
from fluxforge.distil import Fitted, Free
from fluxforge.expression import parse
from fluxforge.pipeline import Formula
from fluxforge.pipeline._judgement import describe_match, matching_scheme
from fluxforge.scheme import Message, Output, Stage, find, symbol
from own_equations import FISHER, written

NAMES = ("A", "delta", "T_N", "T_P", "T", "S", "V", "dt", "z", "D", "r")
FLUX = "D*A/delta*(T_N - T_P)"


@cache
def spec(folder: Path) -> recipe.Recipe:
    base = recipe.override(recipe.load("first-order"), {"diffusivity": None, "order": None})
    changes = {"equation": str(written(FISHER, folder)), "parameters": {"D": 1.0, "r": 1.5}}
    return recipe.override(base, changes)


def fitted_formula(message: str, output: str) -> Formula:
    known = {name: symbol(name) for name in NAMES}
    stage = Stage({"z": Message(parse(message, known))}, {"T_new": Output(parse(output, known))})
    return Formula(Free((stage,), {}), Fitted({}, {}, 0.0, {}, 0.0))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> recipe.Recipe:
    return spec(tmp_path_factory.mktemp("own"))


@pytest.mark.parametrize(
    ("message", "output"),
    [
        (FLUX, "T + dt*z/V + dt*(S + r*T*(1 - T))"),
        # A gauge, and the same reaction multiplied out.
        ("-3*A/delta*(T_N - T_P)*D", "T - dt*z/V/3 + dt*S + dt*r*T - dt*r*T**2"),
    ],
)
def test_euler_is_recognised_however_it_is_written(own: recipe.Recipe, message: str, output: str) -> None:
    assert matching_scheme(fitted_formula(message, output), own) == "euler"


@pytest.mark.parametrize(
    ("message", "output"),
    [
        (FLUX, "T + dt*z/V + dt*(S - r*T*(1 - T))"),  # the sign of the reaction
        (FLUX, "T + dt*z/V + dt*(S + r*T*(1 - T)/2)"),  # a factor
        (FLUX, "T + dt*z/V/2 + dt*(S + r*T*(1 - T))"),
        (FLUX, "T + dt*z/V + dt*(S + D*T*(1 - T)*1.5)"),  # another parameter, which has the value at training
        (FLUX, "T + dt*z/V + dt*(S + 1.5*T*(1 - T))"),  # a number in its place
        (FLUX, "T + dt*z/V + dt*(S + r*T*(1 - T**2))"),  # another exponent
        (FLUX, "T + dt*z/V + dt*S"),  # heat
        (FLUX, "T + dt*z/V + dt*(S + r*T*(1 - T))*1.0000001"),
        (FLUX, "T + dt*z/V + dt*(S + r*T*(1 - T)) + 1e-30*log(T)"),  # no number where T < 0
    ],
)
def test_what_is_not_the_scheme_is_none(own: recipe.Recipe, message: str, output: str) -> None:
    assert matching_scheme(fitted_formula(message, output), own) is None


def test_other_integrators_are_recognised_by_what_they_do(own: recipe.Recipe) -> None:
    for name in ("midpoint", "rk4"):
        stages = find(name, recipe.equation_of(own)).stages
        assert matching_scheme(Formula(Free(stages, {}), Fitted({}, {}, 0.0, {}, 0.0)), own) == name


def test_the_words_name_the_scheme_and_its_equation(own: recipe.Recipe) -> None:
    assert describe_match("euler", own) == "the printed formula is the scheme 'euler' of the equation 'fisher'"
    assert describe_match(None, own) == "the printed formula is not a built-in scheme of the equation 'fisher'"
