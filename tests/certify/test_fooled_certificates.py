"""Wrong schemes that certificates once accepted, most of them "as claimed": each gets the right lines and verdict."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from fooling_schemes import DECOYS, FLUX, one_stage

from fluxforge.certify import Certificate, FamilyResult, Line, Rates, Verdict, _verify, verify, verify_step
from fluxforge.certify._equations import SemiDiscrete
from fluxforge.certify._families import Levels
from fluxforge.certify._studies import SpaceStudy
from fluxforge.certify.effective import lattice_equation
from fluxforge.certify.modified import choose_lattices
from fluxforge.certify.order import study_family
from fluxforge.mesh import jittered
from fluxforge.scheme import Claims, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import step_matrix

# Two that are caught by the lines that catch others, too.
SLOW = ("alpha forgotten", "anisotropic")
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in DECOYS]


@cache
def certify_decoy(name: str) -> Certificate:
    return verify(DECOYS[name], quick=True, families=("squares",))


@pytest.fixture(scope="module", autouse=True)
def _no_modified_equations() -> Iterator[None]:
    """Of heat they are reported and decide nothing; with decimals and directions they take seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_verify, "choose_lattices", lambda *_: ())
        yield


def line(certificate: Certificate, start: str) -> Line:
    return next(line for line in certificate.lines if line.property.startswith(start))


# Decoy, the claims that must be contradicted, and lines (by how they start) with the verdict each must get.
EXPECTED = {
    "alpha forgotten": (
        {"generator", "space order on squares"},
        {"unchanged by units": "fails", "small-step limit": "fails", "squares: does not converge": "fails"},
    ),
    "wall ignored": (
        {"generator", "space order on squares"},
        {"unchanged by units": "fails", "small-step limit": "fails", "squares: does not converge": "fails"},
    ),
    "exponentials": (
        {"generator"},
        {
            "unchanged by units": "fails",
            "linear in T": "fails",
            "claim: space order on squares": "not established",
            "claim: time_order": "not established",
            "claim: stable_to": "not established",
        },
    ),
    "anisotropic": (
        {"generator", "space order on squares"},
        {"small-step limit": "fails", "squares: does not converge": "fails"},
    ),
    "delta over A": ({"generator", "space order on squares"}, {"small-step limit": "fails"}),
    "half step 0.50001": (
        {"time_order", "stable_to"},
        {"order in time 1.00": "measured", "claim: time_order": "fails"},
    ),
    "extra for negative T": ({"conservative", "generator"}, {"conservative": "fails", "unchanged by units": "fails"}),
    "drift": (
        {"conservative", "generator"},
        {"unchanged by units": "fails", "small-step limit": "fails", "diffusivity, squares": "not established"},
    ),
    "tuned to sines": (
        {"generator"},
        {"unchanged by units": "fails", "small-step limit": "fails", "squares: converges, order 1.99": "holds"},
    ),
    "no Neumann flux": (
        {"generator", "space order on squares"},
        {"small-step limit": "fails", "squares: does not converge": "fails"},
    ),
    "homogeneous": ({"generator"}, {"linear in T": "fails", "unchanged by units": "fails"}),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_decoy_is_contradicted_by_the_right_claims(name: str) -> None:
    certificate = certify_decoy(name)
    assert certificate.verdict == "contradicted"
    assert {check.property for check in certificate.contradicted} == EXPECTED[name][0]


@pytest.mark.parametrize("name", NAMES)
def test_a_decoy_gets_the_lines_it_deserves(name: str) -> None:
    for start, verdict in EXPECTED[name][1].items():
        first = line(certify_decoy(name), start)
        assert str(first.verdict) == verdict, first


def test_the_original_gets_none_of_these_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_verify, "choose_lattices", choose_lattices)
    certificate = verify(one_stage(FLUX), quick=True, families=("squares",))
    assert certificate.verdict == "as claimed"
    assert certificate.units.holds
    assert certificate.units.algebra == ("lengths", "times", "temperatures")


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_has_a_line(name: str) -> None:
    claims = DECOYS[name].claims
    wanted = {"conservative", "generator", "time_order", "stable_to"} | {
        f"space order on {one}" for one in claims.space
    }
    lines = {line.property.removeprefix("claim: ") for line in certify_decoy(name).lines if "claim: " in line.property}
    assert lines == wanted
    left_out = {check.property for check in certify_decoy(name).claims if not check.asked}
    assert left_out == {f"space order on {one}" for one in claims.space if one != "squares"}


def test_a_nonlinear_scheme_that_no_line_contradicts_is_not_established() -> None:
    """Only unmeasured claims are left: the verdict is neither "as claimed" nor "contradicted"."""
    claims = Claims(conservative=True, time_order=1, space={"squares": 2.0})
    scheme = SchemeBuilder().stage({"z": "alpha*A/delta*(exp(T_N) - exp(T_P))"}, {"T_new": "T + dt/V*z"})
    certificate = verify(scheme.build("decoy", claims=claims), quick=True, families=("squares",))
    assert certificate.verdict == "not established"
    assert {check.property for check in certificate.not_established} == {"time_order", "space order on squares"}


def test_a_stability_interval_without_one_operator_is_not_established() -> None:
    odd = (
        SchemeBuilder()
        .stage({"z": FLUX}, {"half": "T + dt/(2*V)*z"})
        .stage({"y": "alpha*A*(half_N - half_P)"}, {"T_new": "T + dt/V*y"})
        .build("odd", claims=Claims(stable_to=2.0))
    )
    certificate = verify(odd, mesh=jittered(4, 0.2, 1))
    assert certificate.verdict == "not established"
    assert "not a function of one operator" in line(certificate, "claim: stable_to").evidence
    assert line(certificate, "no bound: ").verdict is Verdict.MEASURED


def test_families_that_were_not_asked_for_do_not_count() -> None:
    certificate = verify("euler", quick=True, families=("squares",), levels=1)
    assert certificate.verdict == "as claimed"
    assert all(not check.asked for check in certificate.claims if "space" in check.property)
    assert line(certificate, "claim: space order on squares").verdict is Verdict.LEFT_OUT


def test_an_unmeasured_drift_does_not_count_as_zero() -> None:
    system = SemiDiscrete(0.1, 0.1, 0.0, 0.0, True, True, "squares", diffusion=1.0)
    assert not system.holds
    assert replace(system, drift=0.0).holds
    assert not replace(system, drift=1e-6).holds


def test_the_drift_has_a_diffusivity_of_one_beside_it() -> None:
    equation = lattice_equation(DECOYS["drift"], "squares")
    assert pytest.approx(np.eye(2), abs=1e-9) == equation.K
    assert equation.drift == pytest.approx([1e-6, 0.0], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("family", ["equilateral", "cross"])
def test_a_large_error_has_no_order(family: str) -> None:
    for study in study_family(DECOYS["delta over A"], Levels(family, (4, 8, 16, 32))):
        assert study.l2.order is None
        assert study.l2.stalled


def test_linear_means_additive_too() -> None:
    """The median is homogeneous for every factor, negative ones among them, and not additive."""

    def make(graph, dt):
        M = jnp.asarray(step_matrix(BUILT_IN["euler"], graph, dt).toarray())
        return lambda T: M @ T + 0.01 * (jnp.median(T) - T)

    linearity = verify_step(make, mesh=jittered(4, 0.2, 1)).linearity
    assert linearity.homogeneity < 1e-10
    assert linearity.additivity > 1e-4
    assert not linearity.linear


@pytest.mark.parametrize(("K", "consistent"), [(np.eye(2), True), (np.diag([1.3, 0.7]), False), (None, False)])
def test_a_scheme_that_converges_with_another_diffusivity_is_not_consistent(
    K: np.ndarray | None, consistent: bool
) -> None:
    rates = Rates((1.0, 0.5, 0.25, 0.125), (0.08, 0.02, 0.005, 0.00125))
    study = SpaceStudy("squares", (16, 64, 256, 1024), rates, rates, "sines")
    result = FamilyResult((study,), diffusion=K)
    assert result.convergent
    assert result.consistent is consistent
