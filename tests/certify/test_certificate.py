import json
from typing import Any

import pytest

from fluxforge.certify import Verdict, verify
from fluxforge.certify._families import study_graph
from fluxforge.certify.order import measure_steady_errors, measure_time_order
from fluxforge.certify.stability import measure_stability
from fluxforge.errors import InputError
from fluxforge.mesh import right_triangles, squares, two_cells
from fluxforge.scheme import Claims, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN

KEYS = {
    "scheme",
    "linear",
    "conservative",
    "time_order",
    "generator_ok",
    "space",
    "stability",
    "maximum_principle_over_fourier",
    "cost",
    "claims",
    "verdict",
}
SPACE_KEYS = {"consistent", "convergent", "order", "order_linf", "cells", "relative_l2", "relative_linf", "diffusivity"}


def build(messages, outputs, claims=None):
    return SchemeBuilder().stage(messages, outputs).build("mine", summary="mine", claims=claims or Claims())


def test_the_document_has_the_keys_it_promises(tmp_path):
    certificate = verify("euler", quick=True, families=("squares", "right"))
    certificate.save(tmp_path / "certificate.json")
    document = json.loads((tmp_path / "certificate.json").read_text())
    assert document["format_version"] == 1
    assert set(document) >= KEYS
    assert set(document["space"]["right"]) >= SPACE_KEYS
    assert document["linear"] is True
    assert document["conservative"] is True
    assert document["time_order"] == pytest.approx(1, abs=0.05)
    assert document["generator_ok"] is True
    assert document["space"]["squares"]["order"] == pytest.approx(2, abs=0.05)
    assert document["space"]["right"]["order"] is None
    assert document["space"]["right"]["convergent"] is False
    assert document["stability"]["real_interval"] == -2
    assert document["maximum_principle_over_fourier"] == pytest.approx(1)
    assert document["verdict"] == "as claimed"
    assert all(
        set(check) == {"property", "claimed", "measured", "holds", "asked", "reason"} for check in document["claims"]
    )


def test_a_nonlinear_scheme_gets_a_certificate_that_says_so():
    scheme = build({"z": "alpha*(1 + T_P**2 + T_N**2)*A/delta*(T_N - T_P)"}, {"T_new": "T + dt/V*z + dt*S"})
    certificate = verify(scheme, quick=True)
    assert certificate.to_document()["linear"] is False
    assert certificate.linearity.hops == 1
    assert certificate.conservation.holds
    assert {line.verdict for line in certificate.lines if "order in time" in line.property} == {Verdict.UNKNOWN}
    json.dumps(certificate.to_document(), allow_nan=False)


def test_a_nonlinear_scheme_that_does_not_conserve_is_told_so():
    scheme = build({"z": "alpha*T_P*A/delta*(T_N - T_P)"}, {"T_new": "T + dt/V*z"})
    assert verify(scheme, quick=True).to_document()["conservative"] is False


@pytest.mark.parametrize("divisor", ["n_x", "(d_x - d_x)*V_P + n_y", "d_x*n_y - d_x*n_y + n_x"])
def test_a_scheme_that_divides_by_zero_on_a_mesh_is_told_where(divisor):
    scheme = build({"z": f"alpha*A/({divisor})*(T_N - T_P)"}, {"T_new": "T + dt/V*z"})
    certificate = verify(scheme, mesh=right_triangles(4))
    assert any("not finite at cell" in line.evidence for line in certificate.lines)
    json.dumps(certificate.to_document(), allow_nan=False)


def test_a_scheme_that_blows_up_is_never_stable():
    scheme = build({"z": "-alpha*A/delta*(T_N - T_P)"}, {"T_new": "T + dt/V*z + dt*S"})
    certificate = verify(scheme, quick=True, families=("squares",))
    assert certificate.stability.dt_max == 0
    document: Any = certificate.to_document()
    assert document["stability"]["dt_max_over_fourier"] == 0
    assert not certificate.space["squares"].consistent


def test_a_scheme_that_forgets_its_field_gets_a_certificate():
    certificate = verify(build({}, {"T_new": "S*dt"}), quick=True, families=("squares",))
    assert certificate.to_document()["conservative"] is False
    assert certificate.to_document()["generator_ok"] is not True


def test_a_false_claim_is_contradicted():
    scheme = build(
        {"z": "alpha*A/delta*(T_N - T_P)"}, {"T_new": "T + dt/V*z + dt*S"}, Claims(time_order=2, stable_to=3.0)
    )
    certificate = verify(scheme, quick=True, families=())
    assert {check.property for check in certificate.contradicted} == {"time_order", "stable_to"}
    assert certificate.verdict == "contradicted"


def test_on_ones_own_mesh():
    certificate = verify("euler", mesh=right_triangles(6))
    document = certificate.to_document()
    assert document["mesh"] == "right_triangles(6)"
    assert document["maximum_principle_over_fourier"] == pytest.approx(1)
    assert document["space"] == {}
    assert any("right_triangles(6)" in line.evidence for line in certificate.lines)


def test_families_and_levels_are_refused_together_with_a_mesh():
    for options in ({"families": ("squares",)}, {"levels": 3}):
        with pytest.raises(InputError, match=r"^mesh= certifies without refinement: leave out families and levels$"):
            verify("euler", mesh=two_cells(), **options)
        with pytest.raises(
            InputError, match=r"^meshes= takes the place of the families: leave out families and levels$"
        ):
            verify("euler", meshes=(squares(2), squares(4)), **options)


def test_on_the_smallest_mesh():
    json.dumps(verify("corrected", mesh=two_cells()).to_document(), allow_nan=False)


def test_two_hop_certifies_like_midpoint():
    one, two = (BUILT_IN[name] for name in ("midpoint", "two-hop"))
    assert measure_time_order(one).order == pytest.approx(measure_time_order(two).order, abs=1e-6)
    limits = [measure_stability(scheme, study_graph()).over_fourier for scheme in (one, two)]
    assert limits[0] == pytest.approx(limits[1], rel=1e-9)
    assert measure_steady_errors(one, squares(8)) == pytest.approx(measure_steady_errors(two, squares(8)), rel=1e-9)


@pytest.mark.parametrize(("options", "word"), [({"families": ("circles",)}, "circles"), ({"levels": 0}, "levels")])
def test_bad_options_are_named(options, word):
    with pytest.raises(InputError, match=word):
        verify("euler", **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_full_certificates_are_as_claimed(name):
    certificate = verify(name)
    assert certificate.verdict == "as claimed", certificate.contradicted
    assert all(max(result.study.cells) >= 10_000 for result in certificate.space.values())
