"""Schemes broken on purpose: each is caught by the line that should catch it."""

import pytest

from fluxforge.certify import verify
from fluxforge.certify._families import study_graph
from fluxforge.certify.conservation import measure_conservation
from fluxforge.certify.order import measure_time_order
from fluxforge.certify.patch import run_patch_test
from fluxforge.certify.semidiscrete import compare_system
from fluxforge.certify.stability import measure_stability
from fluxforge.errors import SchemeError
from fluxforge.mesh import jittered
from fluxforge.scheme import SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN

FLUX = "alpha*A/delta*(T_N - T_P)"
HALF = "alpha*A/delta*(half_N - half_P)"


def one_stage(flux, update):
    claims = BUILT_IN["euler"].claims
    return SchemeBuilder().stage({"z": flux}, {"T_new": update}).build("mutant", summary="mutant", claims=claims)


def generator_is_right(scheme):
    return compare_system(scheme, study_graph(), run_patch_test(scheme, jittered(5, 0.2, 1))).holds


UPDATE = "T + dt/V*z + dt*S"


def test_the_original_passes_what_the_mutants_fail():
    original = one_stage(FLUX, UPDATE)
    assert generator_is_right(original)
    assert measure_conservation(original).holds
    assert measure_stability(original, study_graph()).dt_max > 0


def test_a_flipped_flux_is_a_wrong_generator_and_never_stable():
    mutant = one_stage("-" + FLUX, UPDATE)
    assert not generator_is_right(mutant)
    assert measure_stability(mutant, study_graph()).dt_max == 0


@pytest.mark.parametrize("flux", ["alpha*A**2/delta*(T_N - T_P)", "2*alpha*A/delta*(T_N - T_P)", "alpha*(T_N - T_P)"])
def test_a_wrong_area_is_a_wrong_generator(flux):
    assert not generator_is_right(one_stage(flux, UPDATE))


@pytest.mark.parametrize("update", ["T + dt/V*z", "T + dt/V*z + dt*S/2"])
def test_a_dropped_or_scaled_source_is_a_wrong_generator(update):
    assert not generator_is_right(one_stage(FLUX, update))


def test_a_source_without_dt_leaves_no_generator():
    with pytest.raises(SchemeError, match="a step of dt = 0 changes the field"):
        generator_is_right(one_stage(FLUX, "T + dt/V*z + S"))


def test_the_volume_of_the_wrong_cell_is_not_conservative():
    mutant = one_stage("alpha*A/delta*(T_N - T_P)/V_N", "T + dt*z + dt*S")
    conservation = measure_conservation(mutant)
    assert not conservation.holds
    assert conservation.defect > 1e-3
    assert conservation.drift > 1e-6


def test_a_missing_half_is_of_order_one():
    mutant = (
        SchemeBuilder()
        .stage({"z": FLUX}, {"half": "T + dt/V*z + dt*S"})
        .stage({"y": HALF}, {"T_new": "T + dt/V*y + dt*S"})
        .build("mutant", summary="mutant", claims=BUILT_IN["midpoint"].claims)
    )
    assert measure_time_order(mutant).order == pytest.approx(1.0, abs=0.1)


def test_a_correction_with_a_flipped_sign_does_not_keep_linear_fields():
    stages = BUILT_IN["corrected"].stages
    expression = stages[1].messages["z"].expression
    from fluxforge.scheme import Message, Scheme, Stage, symbol

    flipped = expression.xreplace({symbol("g_x_P"): -symbol("g_x_P"), symbol("g_x_N"): -symbol("g_x_N")})
    mutant = Scheme("mutant", (stages[0], Stage({"z": Message(flipped)}, stages[1].outputs)))
    assert run_patch_test(BUILT_IN["corrected"], jittered(5, 0.2, 1)).exact(1)
    assert not run_patch_test(mutant, jittered(5, 0.2, 1)).exact(1)


def test_doubling_the_corrected_flux_keeps_linear_fields_and_is_caught_all_the_same():
    stages = BUILT_IN["corrected"].stages
    from fluxforge.scheme import Message, Scheme, Stage

    doubled = Message(2 * stages[1].messages["z"].expression)
    mutant = Scheme("mutant", (stages[0], Stage({"z": doubled}, stages[1].outputs)))
    assert run_patch_test(mutant, jittered(5, 0.2, 1)).exact(1)
    assert not generator_is_right(mutant)


def test_a_certificate_names_the_claims_a_mutant_breaks():
    mutant = one_stage("2*alpha*A/delta*(T_N - T_P)", "T + dt/V*z")
    certificate = verify(mutant, quick=True, families=("squares",))
    assert certificate.verdict == "contradicted"
    assert {check.property for check in certificate.contradicted} == {"generator", "space order on squares"}
