"""Certificates of transport schemes: their lines, their sentence, and their document."""

import json

import pytest

from fluxforge.certify import Certificate, Verdict, verify
from fluxforge.certify._claims import transport_claims
from fluxforge.certify.flux import named_flux, named_limiter
from fluxforge.mesh import two_cells
from fluxforge.pde import find as find_equation
from fluxforge.scheme import SchemeBuilder, find


@pytest.fixture(scope="module")
def godunov() -> Certificate:
    return verify("godunov", equation="burgers", quick=True, families=())


def verdicts(certificate: Certificate) -> dict[str, Verdict]:
    return {line.property: line.verdict for line in certificate.lines}


def test_the_sentence_says_what_is_proved(godunov: Certificate) -> None:
    assert godunov.summary.startswith(
        "Explicit scheme, not linear in u; monotone; total variation diminishing up to Courant number 1;"
    )
    assert "conserves the total of u" in godunov.summary
    assert godunov.verdict == "as claimed"


def test_every_property_has_its_line(godunov: Certificate) -> None:
    verdict_by_line = verdicts(godunov)
    for name in (
        "consistent flux",
        "monotone flux",
        "E-flux",
        "total variation and maximum principle",
        "Riemann problems tend to the entropy solution",
        "small-step limit is the equation's",
        "claim: monotone",
    ):
        assert verdict_by_line[name] is Verdict.HOLDS


def test_the_document_has_one_key_more_and_heat_has_not(godunov: Certificate) -> None:
    document = json.loads(json.dumps(godunov.to_document()))["transport"]
    assert document["states"] == [-1.0, 1.0]
    assert document["monotone"] is document["e_flux"] is document["consistent"] is True
    assert {one["problem"]: one["falls"] for one in document["riemann"]}["transonic rarefaction -1 → 1"]
    assert document["variation_to_courant"] <= 1.0
    heat = verify("euler", mesh=two_cells())
    assert "transport" not in heat.to_document()


def test_a_flux_named_after_another_one_claims_nothing_for_it() -> None:
    burgers = find_equation("burgers")
    flux = "-A*(direction_n*(T_P**2 + T_N**2)/4 - abs(direction_n*(T_P + T_N)/2)*(T_N - T_P)/2)"
    roe = SchemeBuilder(burgers).stage({"z": flux}, {"T_new": "T + dt/V*z + dt*S"}).build("godunov")
    assert named_flux(roe) is None
    assert transport_claims(roe, None) == ()
    assert named_flux(find("godunov", burgers)) is not None
    assert named_limiter(find("minmod", "advection")) is not None
    assert named_limiter(find("upwind", "advection")) is None
