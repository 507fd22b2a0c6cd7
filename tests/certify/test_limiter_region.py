"""The region of Harten and Sweby: limiters of the textbook, and decoys that leave it in a narrow interval."""

import pytest
import sympy as sp

from fluxforge.certify import Verdict
from fluxforge.certify.limiter import C, R, is_clipped, limiter_line, limiter_region
from fluxforge.expression import parse
from fluxforge.scheme import LIMITERS

MINMOD = "max(0, min(r, 1))"
CLIPPED = "max(0, min(min(2*r/c, 2/(1 - c)), {}))"


def phi(text: str) -> sp.Expr:
    return parse(text, ("r", "c"))


@pytest.mark.parametrize("name", ["minmod", "van-leer", "superbee", "arora-roe"])
def test_limiters_of_the_textbook_are_inside_and_of_second_order(name: str) -> None:
    region = limiter_region(LIMITERS[name].phi)
    assert region.holds
    assert region.second_order


@pytest.mark.parametrize(
    ("text", "bound", "r"),
    [
        ("r", "φ = 0 for r ≤ 0", None),  # Beam and Warming
        ("1", "φ = 0 for r ≤ 0", None),  # Lax and Wendroff
        pytest.param("max(0, min(2*r, 3))", "φ ≤ 2/(1 − c)", None, marks=pytest.mark.slow),
        ("max(0, min(3*r, 1))", "φ ≤ 2r/c", None),
        ("-max(0, min(r, 1))", "φ ≥ 0", None),
        # Minmod, and a bump 0.002 wide at r = 0.3137, four times as high as the bound there.
        (f"{MINMOD} + 2*max(0, 1 - abs(r - 0.3137)*1000)", "φ ≤ 2r/c", 0.3137),
        (f"{MINMOD} + 2*max(0, 1 - abs(r - 37.31)*1000)", "φ ≤ 2/(1 − c)", 37.31),
        (f"{MINMOD} + max(0, 1 - abs(r + 0.7771)*1000)", "φ = 0 for r ≤ 0", -0.7771),
        # Beyond a bound by a fifth of a percent of it.
        pytest.param("max(0, min(min(2.004*r/c, 2/(1 - c)), 1))", "φ ≤ 2r/c", None, marks=pytest.mark.slow),
        (f"{MINMOD} + 0.002*max(0, 1 - abs(r + 0.5))", "φ = 0 for r ≤ 0", None),
    ],
)
def test_a_limiter_outside_is_told_with_the_place(text: str, bound: str, r: float | None) -> None:
    region = limiter_region(phi(text))
    assert region.holds is False
    assert region.violated == bound
    if r is not None:
        assert region.margins[bound].at[0] == pytest.approx(r, abs=2e-3)
    line = limiter_line(region)
    assert line.verdict is Verdict.FAILS
    assert bound in line.evidence


def test_a_limiter_is_of_first_order_where_it_is_not_one_at_one() -> None:
    region = limiter_region(phi("max(0, min(r, 1))/2"))
    assert region.holds
    assert not region.second_order
    assert "first order only" in limiter_line(region).evidence
    assert {C, R} == set(phi("r*c").free_symbols)


@pytest.mark.parametrize(
    ("inner", "why"),
    [
        ("1.0001 + (1 + c)*(r - 1)/3", "φ(1) = 1.0001"),
        # 1 at r = 1 and 0.9 beside it, for all Courant numbers and for some.
        ("where((0.99999 < r)*(r < 1.00001), 1, 0.9*r)", "jumps"),
        pytest.param("where((1 - 0.1*abs(c - 0.6) < r)*(r < 1.5), 1, 0.9*r)", "jumps", marks=pytest.mark.slow),
        ("where((0.5 < q)*(q < 1.0005), 1, 0.9*r)", "jumps"),
    ],
)
def test_second_order_needs_one_at_one_and_about_it(inner: str, why: str) -> None:
    region = limiter_region(parse(CLIPPED.format(inner), ("r", "q", "c")))
    assert region.holds
    assert not region.second_order
    assert why in limiter_line(region).evidence


@pytest.mark.parametrize("inner", ["1 + (1 + c)*(r - 1)/3", "1 + 5*(q - 1) - 7*(r - 1)", "where(r < q, 40, -3)"])
def test_a_formula_that_is_clipped_to_the_bounds_is_within_them_whatever_it_contains(inner: str) -> None:
    formula = parse(CLIPPED.format(inner), ("r", "q", "c"))
    assert is_clipped(formula)
    region = limiter_region(formula)
    assert region.holds
    assert "max(0, min(2r/c, 2/(1 − c), …))" in limiter_line(region).method


@pytest.mark.parametrize(
    "text",
    [
        "max(0, min(min(2*r/c, 2/(1 - c)), 1)) + 0*r + 1",
        "max(0, min(min(2.1*r/c, 2/(1 - c)), 1 + q))",
        "max(0, min(2/(1 - c), 1 + q))",
        "max(0.1, min(min(2*r/c, 2/(1 - c)), 1))",
        "max(max(0, 3*r), min(min(2*r/c, 2/(1 - c)), 1))",
        "min(min(2*r/c, 2/(1 - c)), 1)",
    ],
)
def test_a_formula_that_is_nearly_clipped_is_not_within_the_bounds_by_its_form(text: str) -> None:
    assert not is_clipped(parse(text, ("r", "q", "c")))


@pytest.mark.slow
def test_a_formula_that_is_clipped_to_a_tenth_instead_of_zero_is_refused() -> None:
    assert limiter_region(phi("max(0.1, min(min(2*r/c, 2/(1 - c)), 1))")).holds is False


@pytest.mark.slow
def test_a_bound_that_is_broken_for_one_downwind_difference_only_is_found() -> None:
    region = limiter_region(parse("max(0, min(r, 1))*(1 + 2*max(0, 1 - 100*abs(q - 3)))", ("r", "q", "c")))
    assert region.holds is False
    assert "q = 3" in limiter_line(region).evidence
