"""Riemann problems: exact solutions, schemes that find them, and one that violates the entropy condition."""

import numpy as np
import pytest

from fluxforge.certify import Verdict, verify
from fluxforge.certify.riemann import (
    exact_solution,
    list_riemann_problems,
    riemann_line,
    solve_boundary_layer,
    solve_riemann,
)
from fluxforge.certify.transport import RiemannProblem
from fluxforge.errors import InputError
from fluxforge.pde import find as find_equation
from fluxforge.pde import from_document
from fluxforge.scheme import SchemeBuilder, find

BURGERS, TRAFFIC = find_equation("burgers"), find_equation("traffic")
# Murman and Roe without an entropy fix: consistent, antisymmetric, and blind to a transonic rarefaction.
ROE = "-A*(direction_n*(T_P**2 + T_N**2)/4 - abs(direction_n*(T_P + T_N)/2)*(T_N - T_P)/2)"


def test_the_exact_solution_is_a_shock_or_a_fan() -> None:
    x = np.array([-0.9, -0.3, 0.2, 0.45, 0.55, 0.9])
    shock = RiemannProblem("shock", 1.0, 0.0, 0.5)
    assert exact_solution(BURGERS, shock, x).tolist() == [1, 1, 1, 1, 0, 0]
    fan = RiemannProblem("transonic rarefaction", -1.0, 1.0, None)
    # u = x/t inside the fan, to half of the distance 2/4000 of the states tried.
    assert exact_solution(BURGERS, fan, x) == pytest.approx(x, abs=3e-4)
    red_light = RiemannProblem("transonic rarefaction", 1.0, 0.0, None)
    assert exact_solution(TRAFFIC, red_light, x) == pytest.approx((1 - x) / 2, abs=2e-4)


def test_problems_are_named_after_what_follows_from_them() -> None:
    kinds = {(one.left, one.right): (one.kind, one.speed) for one in list_riemann_problems(BURGERS, (-1.0, 1.0))}
    assert kinds == {
        (1.0, -1.0): ("shock", 0.0),
        (-1.0, 1.0): ("transonic rarefaction", None),
        (1.0, 0.0): ("shock", 0.5),
        (0.0, 1.0): ("rarefaction", None),
    }
    assert list_riemann_problems(TRAFFIC, (0.0, 1.0))[0].kind == "transonic rarefaction"
    wavy = from_document(
        {"name": "wavy", "transported": "u**3", "velocity": "a", "parameters": {"a": {"rank": "vector"}}}
    )
    with pytest.raises(InputError, match="convex or a concave"):
        list_riemann_problems(wavy, (-1.0, 1.0))


def test_godunov_finds_shocks_and_fans() -> None:
    studies = solve_riemann(find("godunov", BURGERS), (-1.0, 1.0), sizes=(30, 60))
    line = riemann_line(studies)
    assert line.verdict is Verdict.HOLDS
    moving = next(study for study in studies if study.problem.speed == 0.5)
    # The front is known to a fraction of a cell of 1/60 after the time 0.4.
    assert moving.speed == pytest.approx(0.5, abs=0.02)
    assert all(study.overshoot <= 1e-12 for study in studies)


def test_an_entropy_violation_is_seen() -> None:
    roe = SchemeBuilder(BURGERS).stage({"z": ROE}, {"T_new": "T + dt/V*z + dt*S"}).build("roe")
    studies = solve_riemann(roe, (-1.0, 1.0), sizes=(30, 60))
    wrong = [study for study in studies if not study.falls]
    assert [study.problem.kind for study in wrong] == ["transonic rarefaction"]
    # The jump from −1 to 1 stays where it is: the error is that of the whole fan, ∫|x/t ∓ 1| = 0.4 over the row.
    assert wrong[0].errors == pytest.approx((0.4, 0.4), abs=1e-2)
    line = riemann_line(studies)
    assert line.verdict is Verdict.FAILS
    assert "entropy violation" in line.evidence


def test_central_oscillates_beyond_a_cell_peclet_number_of_two_and_upwind_does_not() -> None:
    """A known failure: the roots of the three-point difference are 1 and (2 + Pe)/(2 − Pe), negative beyond 2."""
    central = solve_boundary_layer(find("central", "advection-diffusion"))
    over = dict(zip(central.peclet, central.overshoot, strict=True))
    # Round-off of a solve of 24 equations.
    assert max(over[1.0], over[1.9]) <= 1e-12
    assert min(over[2.5], over[10.0], over[100.0]) > 0.01
    for name in ("upwind", "scharfetter-gummel"):
        assert max(solve_boundary_layer(find(name, "advection-diffusion")).overshoot) <= 1e-12


def test_parameters_of_f_have_their_defaults() -> None:
    """With f = u²/4 every wave is half as fast as Burgers'."""
    document = {"name": "slow", "transported": "m*u**2/2", "velocity": "a"}
    slow = from_document({**document, "parameters": {"a": {"rank": "vector"}, "m": {"default": 0.5}}})
    speeds = [one.speed for one in list_riemann_problems(slow, (-1.0, 1.0))]
    assert speeds == [0.0, None, 0.25, None]
    studies = solve_riemann(find("godunov", slow), (-1.0, 1.0))
    assert all(study.falls for study in studies)
    certificate = verify(find("godunov", slow), quick=True, families=())
    evidence = {line.property: line.evidence for line in certificate.lines}
    assert evidence["monotone flux"].endswith("; for m = 0.5")
    assert evidence["Riemann problems tend to the entropy solution"].endswith("; for m = 0.5")
