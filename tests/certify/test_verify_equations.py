"""Certificates of other equations than heat: manufactured sources, K, units, conservation and stability."""

import math

import numpy as np
import pytest

from fluxforge.certify import Verdict, other_equation, verify
from fluxforge.certify._families import Levels, study_graph
from fluxforge.certify._problems import diffusion_strength, problems_of
from fluxforge.certify.conservation import measure_conservation
from fluxforge.certify.effective import effective_diffusion
from fluxforge.certify.growth import maximum_line, measure_maximum_principle
from fluxforge.certify.order import measure_problem_errors, measure_time_order, study_family
from fluxforge.certify.patch import run_patch_test
from fluxforge.certify.semidiscrete import compare_system
from fluxforge.certify.stability import measure_stability
from fluxforge.certify.units import measure_units, units_line
from fluxforge.errors import EquationError
from fluxforge.mesh import dual, jittered, squares
from fluxforge.pde import HEAT, from_document
from fluxforge.scheme import Message, Output, Scheme, Stage, find, symbol

PER_TIME = {"time": -1}
DECAY = from_document(
    {
        "name": "decay",
        "diffusion": "D",
        "reaction": "-r*u",
        "parameters": {"D": {"units": {"length": 2, "time": -1}}, "r": {"default": 5.0, "units": PER_TIME}},
    }
)
COOLING = from_document(
    {
        "name": "cooling",
        "diffusion": "D",
        "reaction": "k*(w - u)",
        "parameters": {
            "D": {"units": {"length": 2, "time": -1}},
            "k": {"units": PER_TIME},
            "w": {"default": 2.0, "units": {"unknown": 1}},
        },
    }
)
CARRIED = from_document(
    {
        "name": "carried",
        "transported": "u",
        "velocity": "a",
        "diffusion": "D",
        "parameters": {
            "a": {"rank": "vector", "units": {"length": 1, "time": -1}},
            "D": {"default": 0.1, "units": {"length": 2, "time": -1}},
        },
    }
)
STORED = from_document(
    {"name": "stored", "diffusion": "k", "capacity": "c", "parameters": {"k": {}, "c": {"default": 3.0}}}
)
ALONG_AXES = {"K": ((1.3, 0.0), (0.0, 0.9))}
ANISOTROPIC = from_document({"name": "anisotropic", "diffusion": "K", "parameters": {"K": {"rank": "tensor"}}})


@pytest.mark.parametrize(("equation", "order"), [(HEAT, 2.0), (DECAY, 2.0), (STORED, 2.0)], ids=str)
def test_the_two_point_flux_of_every_equation_is_of_second_order_on_squares(equation, order: float) -> None:
    studies = study_family(find("euler", equation), Levels("squares", (8, 16, 32, 64)))
    for study in studies:
        assert study.l2.order == pytest.approx(order, abs=0.1)


def test_upwind_is_of_first_order() -> None:
    scheme = find("euler", CARRIED)
    _, problem = problems_of(CARRIED)
    errors = [measure_problem_errors(scheme, squares(n), problem)[0] for n in (16, 32, 64)]
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert rates == pytest.approx([1.0, 1.0], abs=0.1)


def test_a_wrong_sign_of_the_reaction_is_seen_by_the_manufactured_problems() -> None:
    grows = from_document(
        {"name": "grows", "diffusion": "D", "reaction": "r*u", "parameters": {"D": {}, "r": {"default": 5.0}}}
    )
    right, wrong = find("euler", DECAY), find("euler", grows)
    problem = problems_of(DECAY)[0]
    mesh = squares(32)
    assert measure_problem_errors(right, mesh, problem)[0] < 1e-3
    assert measure_problem_errors(wrong, mesh, problem)[0] > 0.05


def test_linear_fields_are_kept_by_every_equation_on_squares() -> None:
    for equation in (HEAT, DECAY, CARRIED, STORED):
        parameters = equation.example(2)
        patch = run_patch_test(find("euler", equation), squares(5), parameters=parameters)
        # Upwind of a linear field on squares is exact inside and off at the walls, where the ghost is half a cell away.
        assert patch.exact(0)
        assert patch.exact(1) == (equation is not CARRIED)


def test_the_generator_is_compared_with_the_equations_own_flux() -> None:
    for equation in (DECAY, CARRIED, STORED):
        scheme = find("midpoint", equation)
        patch = run_patch_test(scheme, jittered(5, 0.2, 3), parameters=equation.example(2))
        assert compare_system(scheme, study_graph(), patch).holds
    # Twice the decay: the same flux, another equation.
    stage = find("euler", DECAY).stages[0]
    output = stage.outputs["T_new"].expression - symbol("dt") * symbol("r") * symbol("T")
    changed = Stage(stage.messages, {"T_new": Output(output)})
    twice = Scheme("twice", (changed,), equation=DECAY)
    patch = run_patch_test(twice, jittered(5, 0.2, 3), parameters=DECAY.example(2))
    assert not compare_system(twice, study_graph(), patch).holds


def test_the_tensor_of_an_anisotropic_equation_is_told_relative_to_its_own() -> None:
    K = effective_diffusion(find("euler", ANISOTROPIC), Levels("squares", (8,)), parameters=ALONG_AXES)
    assert pytest.approx(np.eye(2), abs=1e-12) == K
    # The two-point flux sees n·K n only: what is off the diagonal is lost.
    skew = {"K": ((1.3, 0.2), (0.2, 0.9))}
    K = effective_diffusion(find("euler", ANISOTROPIC), Levels("squares", (8,)), parameters=skew)
    assert np.abs(K - np.eye(2)).max() > 0.1
    assert diffusion_strength(ANISOTROPIC, skew) == pytest.approx(1.1)


@pytest.mark.parametrize("equation", [DECAY, CARRIED], ids=str)
def test_fluxes_between_cells_are_antisymmetric(equation) -> None:
    conservation = measure_conservation(find("euler", equation))
    assert conservation.holds
    assert conservation.antisymmetric
    one_sided = Message(-symbol("A") * symbol("a_n") * symbol("T_P"))
    stage = Stage({"z": one_sided}, {"T_new": Output(symbol("T") + symbol("dt") / symbol("V") * symbol("z"))})
    assert not measure_conservation(Scheme("one-sided", (stage,), equation=CARRIED)).holds


@pytest.mark.parametrize("equation", [DECAY, CARRIED], ids=str)
def test_units_of_parameters_scale_with_lengths_and_times(equation) -> None:
    assert measure_units(find("midpoint", equation)).holds
    # A number with a unit in it: a rate that does not scale with time.
    scheme = find("euler", equation)
    stage = scheme.stages[0]
    spoilt = Output(stage.outputs["T_new"].expression - symbol("dt") * symbol("T"))
    wrong = Scheme("wrong", (Stage(stage.messages, {"T_new": spoilt}),), equation=equation)
    assert measure_units(wrong).times > 1e-3


def test_units_that_are_not_stated_are_not_judged() -> None:
    with pytest.raises(EquationError, match="does not state the units"):
        measure_units(find("euler", STORED))


@pytest.mark.parametrize("name", ["midpoint", "rk4"])
def test_the_order_in_time_does_not_depend_on_the_equation(name: str) -> None:
    for equation in (DECAY, CARRIED):
        scheme = find(name, equation)
        study = measure_time_order(scheme, parameters=equation.example(2))
        assert study.order == pytest.approx(scheme.claims.time_order, abs=0.1)


def test_the_limit_of_transport_is_stable_in_rollouts() -> None:
    stability = measure_stability(find("rk4", CARRIED), dual(jittered(5, 0.2, 1)), parameters=CARRIED.example(2))
    assert stability.stable_below
    assert stability.diverges_above is None
    # The largest disc in the region of the classical method has the radius 1.3926; here its row is the reference step.
    assert stability.over_fourier == pytest.approx(1.3926, abs=1e-3)
    unlimited = measure_stability(find("crank-nicolson", CARRIED), dual(squares(3)), parameters=CARRIED.example(2))
    assert unlimited.dt_max == math.inf


def test_a_reaction_with_a_constant_is_certified() -> None:
    """k(w − u) is of second degree in its parameters: the generator has to scale with them as the plain flux does."""
    certificate = verify(find("euler", COOLING), quick=True, families=())
    assert certificate.verdict == "as claimed"
    evidence = {line.property: line.evidence for line in certificate.lines}
    assert "proportional" not in evidence["small-step limit is L, source is S"]
    assert certificate.stability is not None
    assert certificate.stability.stable_below
    assert certificate.stability.diverges_above


@pytest.mark.parametrize("reaction", ["-k*u", "k*u", "-k"])
def test_an_equation_without_a_flux_has_no_boundary_data_to_be_wrong(reaction: str) -> None:
    equation = from_document({"name": "alone", "reaction": reaction, "parameters": {"k": {"default": 2.0}}})
    scheme = find("euler", equation)
    graph = study_graph()
    patch = run_patch_test(scheme, jittered(5, 0.2, 3), parameters=equation.example(2))
    assert compare_system(scheme, graph, patch).plain
    stage = Stage(
        {"z": Message(symbol("A") * symbol("T_N"))}, {"T_new": Output(symbol("T") + symbol("dt") * symbol("z"))}
    )
    assert not compare_system(Scheme("leaks", (stage,), equation=equation), graph, patch).plain


def test_the_diffusivity_of_an_equation_with_a_capacity_is_relative_to_its_own() -> None:
    scheme = find("euler", STORED)
    assert other_equation(scheme) is None
    for family in ("squares", "irregular"):
        K = effective_diffusion(scheme, Levels(family, (16,)), parameters=STORED.example(2))
        # Exact on squares; elsewhere the two-point flux and the fit are some percent off, far below the capacity, 3.
        assert pytest.approx(np.eye(2), abs=1e-10 if family == "squares" else 0.2) == K
    T, S, dt, V, z, c = (symbol(name) for name in ("T", "S", "dt", "V", "z", "c"))
    wrong = {"source": T + dt * z / (c * V) + dt * S, "diffusivity": T + dt * z / V + dt * S / c}
    for word, output in wrong.items():
        stage = Stage(scheme.stages[0].messages, {"T_new": Output(output)})
        assert word in str(other_equation(Scheme("wrong", (stage,), equation=STORED)))


def test_a_constant_that_was_not_added_is_not_called_the_same() -> None:
    units = measure_units(find("euler", DECAY))
    assert units.shift is None
    assert "a constant added to all: not tested" in units_line(units).evidence
    assert "a constant added to all: same" in units_line(measure_units(find("euler", CARRIED))).evidence


# Reaction, whether the principle is that of averages, and whether fields stay positive.
REACTIONS = (
    ("0", True, True),
    ("-k*u", False, True),
    ("k*u", False, True),
    ("k*w", False, True),
    ("-k*w", False, False),
)
IMPLICIT = [(*case, "crank-nicolson") for case in REACTIONS]


@pytest.mark.parametrize(
    ("reaction", "averages", "positive", "name"),
    [
        *((*case, "euler") for case in REACTIONS),
        *IMPLICIT[::4],
        *(pytest.param(*case, marks=pytest.mark.slow) for case in IMPLICIT[1:4]),
    ],
)
def test_a_maximum_principle_is_that_of_averages_only(reaction: str, averages: bool, positive: bool, name: str) -> None:
    parameters = {"D": {}, "k": {}, "w": {"default": 5.0}}
    equation = from_document({"name": "e", "diffusion": "D", "reaction": reaction, "parameters": parameters})
    principle = measure_maximum_principle(
        find(name, equation), dual(jittered(4, 0.2, 1)), parameters=equation.example(2)
    )
    assert principle.averages == averages
    assert (principle.over_fourier != 0) == positive
    if name == "euler" and positive:
        # Growth delays the first negative weight by k Δt, here some thousandths.
        assert principle.over_fourier == pytest.approx(1.0, abs=1e-9 if reaction != "k*u" else 0.01)
    line = maximum_line(principle, "here")
    assert line.property == ("maximum principle" if averages else "positivity")
    assert (line.verdict is Verdict.FAILS) != positive


def test_growth_alone_is_certified() -> None:
    parameters = {"k": {"default": 2.0, "units": PER_TIME}}
    equation = from_document({"name": "alone", "reaction": "k*u", "parameters": parameters})
    assert verify(find("euler", equation), quick=True, families=()).verdict == "as claimed"


def test_a_field_that_has_to_grow_does_not_make_its_scheme_unstable() -> None:
    """Growth beyond the decay of the slowest mode, 2π²."""
    grows = from_document(
        {"name": "grows", "diffusion": "D", "reaction": "r*u", "parameters": {"D": {}, "r": {"default": 30.0}}}
    )
    stability = measure_stability(find("euler", grows), dual(jittered(8, 0.2, 1)), parameters=grows.example(2))
    assert stability.dt_max is not None
    assert stability.over_fourier is not None
    assert stability.over_fourier > 1
    assert stability.stable_below
    assert stability.diverges_above is None
