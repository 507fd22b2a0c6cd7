"""The verdict on a limiter, and what is claimed of the limiters that are built in."""

from functools import cache

import jax
import numpy as np
import pytest
import sympy as sp

from fluxforge.certify.limiter import limiter_region
from fluxforge.expression import parse
from fluxforge.limiter import FAMILIES, ClosedForm, Fit, jiang_shu_errors
from fluxforge.pipeline._limiter import Judged, explain_verdict, formula_phi
from fluxforge.run.limiter import LimiterRow
from fluxforge.scheme.limiters import LIMITERS

BETTER = {"128": 0.7, "512": 0.9, "2048": 0.97}
VAN_LEER = "(r + abs(r))/(1 + abs(r))"
region = cache(limiter_region)  # a proof by intervals, of a second or more; several tests are about one formula


def judge(phi: str | sp.Expr, fresh: dict[str, float]) -> Judged:
    formula = parse(phi, ("r", "c")) if isinstance(phi, str) else phi
    row = LimiterRow(
        name="mine",
        fresh=dict(fresh),
        fresh_error=dict.fromkeys(fresh, 0.01),
        worst=max(fresh.values()),
        jiang_shu={},
    )
    form = ClosedForm(Fit(FAMILIES[0], np.zeros(8), 0.0), 0.0, None)
    return Judged(form, formula, region(formula), row)


def test_a_limiter_within_its_bounds_that_is_better_at_every_horizon_is_accepted() -> None:
    found = judge(VAN_LEER, BETTER)
    verdict, reasons = explain_verdict([found], found)
    assert verdict == "approximation"
    assert all(reason.startswith("yes") for reason in reasons)


@pytest.mark.parametrize(
    ("phi", "fresh", "why"),
    [
        # What a training on one profile leads to: better where it was trained, worse on fresh profiles.
        (VAN_LEER, BETTER | {"2048": 1.001}, "2048 steps"),
        (VAN_LEER, BETTER | {"128": 1.5}, "128 steps"),
        # Beyond the bound, as good as its errors may be.
        ("max(0, 1 + (1 + c)*(r - 1)/3)", BETTER, "by intervals"),
        # Within the bound, and of first order only.
        (f"0.9*{VAN_LEER}", BETTER, "φ(1) = 1"),
    ],
)
def test_a_limiter_that_fails_in_one_thing_is_refused_for_it(phi: str, fresh: dict[str, float], why: str) -> None:
    found = judge(phi, fresh)
    verdict, reasons = explain_verdict([found], found)
    assert verdict == "refused"
    assert [reason for reason in reasons if reason.startswith("NO") and why in reason]


@pytest.mark.parametrize("name", ["discovered-jump", "discovered-ramp"])
def test_the_bounds_of_a_built_in_limiter_are_proved(name: str) -> None:
    found = limiter_region(LIMITERS[name].phi)
    assert found.holds is True
    assert found.second_order


def test_the_limiter_that_jumps_errs_less_than_the_textbooks_on_the_wave_of_jiang_and_shu() -> None:
    with jax.enable_x64(True):
        found, textbook = (
            jiang_shu_errors(formula_phi(LIMITERS[name].phi)) for name in ("discovered-jump", "cfl-superbee")
        )
    # CFL-superbee's errors are those of others' programs, to three digits.
    assert [round(value, 4) for value in textbook.values()] == pytest.approx([0.0290, 0.0243, 0.0203, 0.0171], abs=2e-4)
    assert max(found.values()) < 0.013
