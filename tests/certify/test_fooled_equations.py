"""Schemes of other equations than heat that are wrong in one place, each with claims that must be contradicted."""

import jax
import numpy as np
import pytest

from fluxforge.certify import Verdict, verify
from fluxforge.certify._claims import generator_holds
from fluxforge.certify._equations import SmoothEquation
from fluxforge.certify._families import Levels, study_graph
from fluxforge.certify.conservation import measure_conservation
from fluxforge.certify.effective import own_equation
from fluxforge.certify.modified import is_own_symbolically, modified_equation
from fluxforge.certify.order import measure_time_order, study_family
from fluxforge.certify.patch import choose_worse, run_patch_tests
from fluxforge.certify.semidiscrete import compare_system, falls_with_size
from fluxforge.mesh import jittered
from fluxforge.pde import Equation, from_document
from fluxforge.scheme import Claims, Scheme, SchemeBuilder

SPEED, DIFFUSIVITY, RATE = {"length": 1, "time": -1}, {"length": 2, "time": -1}, {"time": -1}
CARRIED = from_document(
    {
        "name": "carried",
        "transported": "u",
        "velocity": "a",
        "diffusion": "D",
        "capacity": "c",
        "reaction": "-r*u",
        "parameters": {
            "a": {"rank": "vector", "units": SPEED},
            "D": {"default": 0.2, "units": DIFFUSIVITY},
            "c": {"default": 3.0, "units": {}},
            "r": {"default": 2.0, "units": RATE},
        },
    }
)
LAYERED = from_document(
    {
        "name": "layered",
        "diffusion": "k",
        "parameters": {"k": {"where": "cell", "default": 1.0, "units": DIFFUSIVITY}},
    }
)
UPWIND = "(a_n + abs(a_n))/2*T_P + (a_n - abs(a_n))/2*T_N"
SMALL = jittered(3, 0.2, 1)
CLAIMS = Claims(conservative=True, generator=True, time_order=1, space={"squares": 1.0})


def one_stage(flux: str, output: str = "T + dt/(c*V)*z + dt/c*(S - r*T)", equation: Equation = CARRIED) -> Scheme:
    """Euler's method with the message −A·flux."""
    return SchemeBuilder(equation).stage({"z": f"-A*({flux})"}, {"T_new": output}).build("decoy", claims=CLAIMS)


def midpoint(reaction: str) -> Scheme:
    """The midpoint rule, its second stage with the reaction of another state."""
    half = f"{UPWIND} + D/delta*(T_P - T_N)"
    full = half.replace("T_", "half_")
    builder = SchemeBuilder(CARRIED)
    builder.stage({"z1": f"-A*({half})"}, {"half": "T + dt/(2*c*V)*z1 + dt/(2*c)*(S - r*T)"})
    builder.stage({"z2": f"-A*({full})"}, {"T_new": f"T + dt/(c*V)*z2 + dt/c*(S - r*{reaction})"})
    return builder.build("midpoint")


GOOD = f"{UPWIND} + D/delta*(T_P - T_N)"
# Decoy, and the claims that must be contradicted.
DECOYS = {
    "against the wind": (one_stage(GOOD.replace("a_n", "(-a_n)")), {"generator", "space order on squares"}),
    "downwind": (one_stage(GOOD.replace("abs(a_n)", "(-abs(a_n))")), {"generator"}),
    "capacity ignored": (one_stage(GOOD, "T + dt/V*z + dt*(S - r*T)"), {"generator"}),
    "capacity of the source ignored": (one_stage(GOOD, "T + dt/(c*V)*z + dt*(S - r*T/c)"), {"generator"}),
    "twice the diffusion": (one_stage(GOOD.replace("D/", "2*D/")), {"generator"}),
    "reaction of the wrong sign": (one_stage(GOOD, "T + dt/(c*V)*z + dt/c*(S + r*T)"), {"generator"}),
}


@pytest.mark.parametrize("name", DECOYS)
def test_a_decoy_is_contradicted(name: str) -> None:
    scheme, wanted = DECOYS[name]
    if wanted == {"generator"}:
        # The measurement that this claim is held against; whole certificates take ten times as long.
        parameters = CARRIED.example(2)
        with jax.enable_x64(True):
            system = compare_system(
                scheme, study_graph(), choose_worse(*run_patch_tests(scheme, SMALL)), parameters=parameters
            )
        assert generator_holds(system, None) is False
        return
    certificate = verify(scheme, quick=True, families=("squares",))
    assert certificate.verdict == "contradicted"
    assert {check.property for check in certificate.contradicted} >= wanted


def test_a_factor_that_is_1_at_the_parameters_tried_is_seen_in_the_formula() -> None:
    """Numbers can only try some parameters, and without units nothing else tells: the modified equation does."""
    equation = from_document({"name": "unitless", "diffusion": "D", "parameters": {"D": {"default": 0.2}}})
    tuned = "*".join(f"(D - {0.2 * scale!r})" for scale in (1.0, 0.7, 2.5, 0.37, 2.9, 1.3))
    for factor, known in (("1", None), (f"(1 + 9*{tuned})", False)):
        scheme = one_stage(f"D*{factor}/delta*(T_P - T_N)", "T + dt/V*z + dt*S", equation)
        with jax.enable_x64(True):
            patch = choose_worse(*run_patch_tests(scheme, SMALL))
            system = compare_system(scheme, study_graph(), patch, parameters=equation.example(2))
        assert system.holds
        modified = {"squares": modified_equation(scheme, "squares")}
        assert generator_holds(system, None, is_own_symbolically(scheme, modified)) is known


def test_the_advective_form_is_seen_where_the_flow_diverges() -> None:
    """The flux of a·∇u instead of ∇·(a u): the same with a constant velocity."""
    equation = from_document(
        {
            "name": "flow",
            "transported": "u",
            "velocity": "a",
            "parameters": {"a": {"rank": "vector", "where": "face", "units": SPEED}},
        }
    )
    for flux, right in ((UPWIND, True), ("(a_n - abs(a_n))/2*(T_N - T_P)", False)):
        scheme = one_stage(flux, "T + dt/V*z + dt*S", equation)
        assert falls_with_size(scheme, "squares") == right


def test_the_original_is_as_claimed() -> None:
    certificate = verify(one_stage(GOOD), quick=True, families=())
    assert certificate.semidiscrete is not None
    assert generator_holds(certificate.semidiscrete, certificate.units) is True
    assert certificate.verdict == "as claimed"
    line = next(line for line in certificate.lines if line.property == "modified equation, squares")
    assert line.verdict is Verdict.HOLDS


@pytest.mark.parametrize(("reaction", "order"), [("half", 2), ("T", 1)])
def test_a_reaction_at_the_wrong_stage_costs_an_order(reaction: str, order: int) -> None:
    study = measure_time_order(midpoint(reaction), parameters=CARRIED.example(2))
    assert study.exact_order == order
    assert study.order == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize(
    ("mean", "conserves", "consistent"),
    [
        pytest.param("2*k_P*k_N/(k_P + k_N)", True, True, marks=pytest.mark.slow),
        ("(k_P + k_N)/2", True, True),
        ("k_P", False, False),
        ("k_N", False, False),
    ],
)
def test_a_coefficient_of_one_side_is_neither_conservative_nor_consistent(
    mean: str, conserves: bool, consistent: bool
) -> None:
    """With constants all of them are the same scheme."""
    scheme = one_stage(f"{mean}/delta*(T_P - T_N)", "T + dt/V*z + dt*S", LAYERED)
    conservation = measure_conservation(scheme, parameters=LAYERED.example(2))
    assert conservation.holds == conserves
    assert (conservation.defect or 0.0) < 1e-12 or not conserves
    assert falls_with_size(scheme, "squares") == consistent
    if mean == "k_N":
        return
    # The arithmetic mean is another flux than the equation's own, as good at smooth coefficients.
    names = {check.property for check in verify(scheme, mesh=SMALL).contradicted}
    assert names == (set() if conserves else {"conservative", "generator"})
    studies = study_family(scheme, Levels("squares", (4, 8, 16, 32)))
    assert all(study.l2.convergent for study in studies) == conserves
    assert any(study.l2.stalled for study in studies) == (not conserves)


def test_a_factor_of_two_off_the_diagonal_is_seen() -> None:
    equation = from_document({"name": "turned", "diffusion": "K", "parameters": {"K": {"rank": "tensor"}}})
    own = own_equation(equation, 2, {"K": ((1.3, 0.2), (0.2, 0.9))})
    twice = SmoothEquation(0.0, np.zeros(2), np.array([[1.3, 0.4], [0.4, 0.9]]))
    assert twice.distance_from(own) == pytest.approx(0.2 / 1.3)
    assert own.distance_from(own) == 0
