"""A step known only as a function gets the verdicts its scheme would get."""

import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.certify import Verdict, verify_step
from fluxforge.mesh import jittered
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import general_stepper

SMALL = jittered(4, 0.2, 1)


def as_function(name):
    def make(graph, dt):
        return general_stepper(
            BUILT_IN[name], graph, dt=dt, parameters={"alpha": 1.0}, source=np.zeros(graph.cells), dtype="float64"
        ).advance

    return make


def verdicts(certificate):
    return {line.property: line.verdict for line in certificate.lines}


def test_a_good_scheme_in_disguise_is_recognised():
    certificate = verify_step(as_function("midpoint"), name="disguised")
    verdict_by_line = verdicts(certificate)
    assert certificate.linearity.linear
    assert certificate.linearity.hops == 2
    assert certificate.conservation.holds
    assert verdict_by_line["constants are kept"] is Verdict.HOLDS
    assert verdict_by_line["diffusivity on squares is α"] is Verdict.HOLDS
    assert verdict_by_line["at 1 Δt_Fourier: stable, maximum principle"] is Verdict.HOLDS


def test_the_printed_two_hop_scheme_is_caught_without_its_formula():
    certificate = verify_step(as_function("two-hop-printed"), mesh=SMALL)
    line = next(line for line in certificate.lines if line.property.startswith("diffusivity"))
    assert line.verdict is Verdict.FAILS
    assert "4.0000" in line.evidence


@pytest.mark.parametrize("spoil", [lambda T: T + 1e-3 * T**2, lambda T: T + 1e-3])
def test_a_step_that_is_spoilt_a_little_is_caught(spoil):
    make = as_function("euler")
    certificate = verify_step(lambda graph, dt: lambda T: spoil(make(graph, dt)(jnp.asarray(T))), mesh=SMALL)
    assert not certificate.linearity.linear or verdicts(certificate)["constants are kept"] is Verdict.FAILS
    assert certificate.conservation.drift > 1e-3


@pytest.mark.parametrize("size", [1e-2, 1e-5])
def test_a_step_that_is_spoilt_near_zero_only_is_caught(size):
    make = as_function("euler")

    def make_spoilt(graph, dt):
        step = make(graph, dt)
        return lambda T: jnp.where(jnp.abs(T).max() < size, 2.0, 1.0) * step(T)

    certificate = verify_step(make_spoilt, mesh=SMALL)
    assert not certificate.linearity.linear
    assert certificate.linearity.homogeneity > size / 100
    line = next(line for line in certificate.lines if line.property.startswith("at 1 Δt_Fourier"))
    assert line.verdict is Verdict.FAILS


@pytest.mark.parametrize(("linear", "where"), [(True, "a random T in (0, 1)"), (False, "T = 0")])
def test_lines_about_the_jacobian_name_the_state(linear, where):
    make = as_function("euler")
    certificate = verify_step(lambda graph, dt: lambda T: make(graph, dt)(T) + (not linear) * T**3, mesh=SMALL)
    assert certificate.linearity.linear == linear
    lines = [line for line in certificate.lines if "Jacobian" in line.method]
    assert len(lines) == 6
    assert all(line.evidence.endswith(f", linearised at {where}") for line in lines)
