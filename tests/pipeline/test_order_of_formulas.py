"""Formulas of coefficients that keep the order in time, and stability intervals."""

import numpy as np
import pytest
import sympy as sp

from fluxforge.certify import Certificate
from fluxforge.certify._families import study_graph
from fluxforge.certify.patch import run_patch_test
from fluxforge.certify.semidiscrete import compare_system
from fluxforge.distil import Candidate, Front
from fluxforge.errors import DiscoveryError
from fluxforge.expression import parse, symbol
from fluxforge.mesh import jittered
from fluxforge.pde import HEAT
from fluxforge.pipeline._carry import judge_run
from fluxforge.pipeline._coefficients import (
    impose_order,
    is_bounded,
    is_consistent,
    learned_values,
    stability_interval,
)
from fluxforge.scheme import formula_scheme, nested_tableau, rkl2_tableau

NAMES = ("total", "contrast", "share")


@pytest.mark.parametrize(
    ("text", "bounded"),
    [
        ("0.3 - share", True),
        ("sqrt(total)*2 - 1", True),
        ("exp(-total)/(1 + total)", True),
        ("0.1*log(total)", False),
        ("0.2/total", False),
        ("contrast/(total*share)", False),
        ("1/sqrt(total)", False),
    ],
)
def test_what_grows_as_steps_get_short_is_left_out(text: str, bounded: bool) -> None:
    assert is_bounded(parse(text, NAMES)) is bounded


@pytest.mark.parametrize(
    ("text", "consistent"),
    [
        ("0.3 - share", True),
        ("1.07 - 0.3*sqrt(total)", True),
        ("1.5 + 2.5*exp(-total)*log(total)", True),
        ("0.99 - 0.17*exp(-3.4/total)", True),
        ("0.99 - 0.0004/total - 0.17*exp(-3.3/total)", False),
        ("1 - 0.001/sqrt(total)", False),
        ("contrast/(total*share)", False),
    ],
)
def test_what_changes_the_equation_of_short_steps_is_left_out(text: str, consistent: bool) -> None:
    c = parse(text, NAMES)
    assert is_consistent(c) is consistent
    both = Front((Candidate(sp.S.One, 1, 1.0), Candidate(c, 5, 0.1)))
    assert len(impose_order(both, 1).candidates) == 1 + consistent


@pytest.mark.parametrize(
    ("text", "verdict"), [("exp(-0.26*total)", "approximation"), ("exp(-0.26*total) - 0.0005/total", "refused")]
)
def test_formulas_whose_certificate_contradicts_them_are_refused(text: str, verdict: str) -> None:
    c = parse(text, {name: symbol(name) for name in NAMES})
    scheme = formula_scheme("own", nested_tableau(2), HEAT, {"2": c})
    # The line of a certificate that counts here; the others take half a minute.
    system = compare_system(scheme, study_graph(), run_patch_test(scheme, jittered(5, 0.2, 1)))
    empty = dict.fromkeys(("linearity", "conservation", "time", "stability", "maximum", "cost"))
    certificate = Certificate("own", True, (), (), semidiscrete=system, space={}, modified={}, curves=(), **empty)
    judged, reasons = judge_run({"all is well": True}, certificate, None)
    assert judged == verdict
    said = "yes" if verdict == "approximation" else "NO"
    assert (
        reasons[-1]
        == f"{said}: in the limit of small steps the formulas solve the equation, according to their certificate"
    )
    assert judge_run({"all is well": False}, certificate, None)[0] == "refused"
    assert judge_run({"all is well": True}, None, "none was found")[0] == "refused"


def test_the_coefficient_goes_to_one_with_the_step() -> None:
    candidates = [Candidate(parse(text, NAMES), k, 0.1) for k, text in enumerate(("log(total)", "share - 2"))]
    front = impose_order(Front(tuple(candidates)), 2)
    (only,) = front.candidates
    assert only.expression == parse("1 + total/(1 + total)*(share - 2)", NAMES)
    assert impose_order(Front(tuple(candidates)), 1).candidates == tuple(candidates)
    with pytest.raises(DiscoveryError, match="without bound"):
        impose_order(Front(tuple(candidates[:1])), 2)
    total, g = np.array([0.1, 1.0, 4.0]), np.array([0.5, -1.0, 2.0])
    assert np.abs(learned_values(1 + total / (1 + total) * g, total, 2) - g).max() < 1e-14


def test_intervals_of_constant_coefficients_are_those_of_the_tableau() -> None:
    for tableau in (nested_tableau(3), rkl2_tableau(4)):
        ones = len(tableau.rows) - 1
        interval = stability_interval(tableau, lambda total, ones=ones: [np.ones_like(total)] * ones, 12.0)
        # Steps are tried 0.2 % apart.
        assert tableau.stable_to * 0.997 < interval <= tableau.stable_to


def test_an_interval_ends_where_the_first_step_is_unstable() -> None:
    # The midpoint rule up to Fo = 1/2, Euler's method beyond: stable to β = 2 either way, unstable at once with c = 3.
    jump = stability_interval(nested_tableau(2), lambda total: [np.where(total < 1.0, 1.0, 3.0)], 2.0)
    assert jump == pytest.approx(1.0, rel=3e-3)
    damped = stability_interval(nested_tableau(2), lambda total: [np.exp(-0.26 * total)], 2.0)
    assert damped > 4.0
