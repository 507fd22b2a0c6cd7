"""A step of Δt = 0 must change nothing, and what P loses N must gain, whatever the equation."""

import jax
import pytest

import fluxforge as ff
from fluxforge.certify._equations import Rate
from fluxforge.certify._families import study_graph
from fluxforge.certify.conservation import conservation_line, measure_conservation
from fluxforge.certify.semidiscrete import compare_rate
from fluxforge.errors import SchemeError
from fluxforge.mesh import dual, jittered
from fluxforge.pde import HEAT, Equation, from_document
from fluxforge.scheme import Claims, Scheme, SchemeBuilder, find
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator

PER_TIME = {"time": -1}
AREA_PER_TIME = {"length": 2, "time": -1}
DECAY = from_document(
    {
        "name": "decay",
        "diffusion": "D",
        "reaction": "-k*u",
        "parameters": {"D": {"default": 1.0, "units": AREA_PER_TIME}, "k": {"default": 1.0, "units": PER_TIME}},
    }
)
CLAIMED = Claims(conservative=True, generator=True, time_order=1)


def compare_rate_of(scheme: Scheme) -> Rate:
    with jax.enable_x64(True):
        return compare_rate(scheme, study_graph(), parameters=scheme.equation.example(2))


def build(equation: Equation, message: str, output: str, claims: Claims = CLAIMED) -> Scheme:
    return SchemeBuilder(equation).stage({"z": message}, {"T_new": output}).build("made", claims=claims)


@pytest.mark.parametrize(
    ("equation", "message", "output"),
    [
        (HEAT, "A*alpha*(T_N - T_P)/delta", "T/2 + dt*z/V + dt*S"),
        pytest.param(
            DECAY, "A*D*(T_N - T_P)/delta", "T/2 + dt*z/V + dt*S - dt*k*T", marks=pytest.mark.slow
        ),  # as of heat
        (DECAY, "A*D*(T_N - T_P)/delta", "T + S/1000 + dt*z/V + dt*S - dt*k*T"),
    ],
)
def test_what_changes_the_field_in_no_time_has_no_generator_and_no_order(
    equation: Equation, message: str, output: str
) -> None:
    scheme = build(equation, message, output)
    with pytest.raises(SchemeError, match="a step of dt = 0 changes the field"):
        generator(scheme, dual(jittered(3, 0.2, 1)))
    certificate = ff.verify(scheme, quick=True, families=())
    assert certificate.verdict != "as claimed"
    assert certificate.semidiscrete is None
    assert certificate.time is None


@pytest.mark.parametrize(
    ("output", "holds"),
    [
        ("T + dt*z/V + dt*S - dt*k*T", True),
        ("T/2 + dt*z/V + dt*S - dt*k*T", False),
        # The receiver changes what it gets.
        ("T + dt*z*(1 + T)/V + dt*S - dt*k*T", False),
        ("T + dt*z + dt*S - dt*k*T", False),
    ],
)
def test_fluxes_of_a_reaction_must_be_passed_on_whole(output: str, holds: bool) -> None:
    conservation = measure_conservation(build(DECAY, "A*D*(T_N - T_P)/delta", output))
    assert conservation.holds is holds
    assert ("does not add each of them in full" in conservation_line(conservation, "").evidence) is not holds


@pytest.mark.parametrize("name", ["euler", "midpoint", "rk4", "rkl2-8"])
def test_integrators_pass_fluxes_on(name: str) -> None:
    assert measure_conservation(find(name, DECAY)).holds


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_steps_of_no_length_change_nothing(name: str) -> None:
    generator(find(name), dual(jittered(3, 0.2, 1)))


def test_a_conductivity_of_the_receiver_is_not_conservative() -> None:
    """k_P (T_N − T_P) is antisymmetric where k is the same everywhere, and nowhere else."""
    layers = from_document(
        {
            "name": "layers",
            "diffusion": "k",
            "parameters": {"k": {"where": "cell", "units": AREA_PER_TIME, "default": 1.0}},
        }
    )
    one_sided = build(layers, "A*k_P*(T_N - T_P)/delta", "T + dt*z/V + dt*S")
    assert not measure_conservation(one_sided).holds
    assert measure_conservation(find("euler", layers)).holds


FISHER = from_document(
    {
        "name": "fisher",
        "diffusion": "D",
        "reaction": "k*u*(1 - u/m)",
        "parameters": {
            "D": {"default": 0.5, "units": AREA_PER_TIME},
            "k": {"default": 3.0, "units": PER_TIME},
            "m": {"default": 0.7, "units": {"unknown": 1}},
        },
    }
)


@pytest.mark.parametrize(
    ("message", "output", "holds"),
    [
        ("A*D*(T_N - T_P)/delta", "T + dt*(z/V + S + k*T*(1 - T/m))", True),
        ("A*D*(T_N - T_P)/delta", "T + dt*(z/V + S - k*T*(1 - T/m))", False),
        ("7*A*D*(T_N - T_P)/delta", "T + dt*(z/V + S + k*T*(1 - T/m))", False),
        ("A*D*(T_N - T_P)/delta", "T/2 + dt*(z/V + S + k*T*(1 - T/m))", False),
        ("A*D*(T_N - T_P)/delta", "T + dt*(z/V + 2*S + k*T*(1 - T/m))", False),
        ("1.000001*A*D*(T_N - T_P)/delta", "T + dt*(z/V + S + k*T*(1 - T/m))", False),
    ],
)
def test_a_scheme_of_an_equation_that_is_not_linear_is_held_against_it(message: str, output: str, holds: bool) -> None:
    assert compare_rate_of(build(FISHER, message, output)).holds is holds


@pytest.mark.parametrize(("sign", "verdict"), [("+", "as claimed"), ("-", "contradicted")])
def test_the_rate_of_an_equation_that_is_not_linear_decides_the_verdict(sign: str, verdict: str) -> None:
    output = f"T + dt*(z/V + S {sign} k*T*(1 - T/m))"
    scheme = build(FISHER, "A*D*(T_N - T_P)/delta", output, Claims(generator=True))
    assert ff.verify(scheme, quick=True, families=()).verdict == verdict


@pytest.mark.parametrize("name", ["euler", "midpoint", "rk4", "rkl2-8"])
def test_integrators_of_an_equation_that_is_not_linear_have_its_rate(name: str) -> None:
    assert compare_rate_of(find(name, FISHER)).holds


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("midpoint", "rk4", "rkl2-8")]


@pytest.mark.parametrize("name", ["euler", *SLOW])
def test_integrators_of_an_equation_that_is_not_linear_are_as_claimed(name: str) -> None:
    certificate = ff.verify(find(name, FISHER), quick=True, families=())
    assert certificate.verdict == "as claimed"
    assert any(line.property.startswith("small-step limit") and line.verdict == "holds" for line in certificate.lines)
