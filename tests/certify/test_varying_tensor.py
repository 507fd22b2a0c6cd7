"""Certificates of equations whose tensor may vary from cell to cell."""

from dataclasses import replace

import pytest

from fluxforge.certify.modified import modified_equation
from fluxforge.certify.patch import run_patch_tests
from fluxforge.certify.semidiscrete import compare_system, falls_with_size
from fluxforge.mesh import dual, jittered
from fluxforge.pde import ANISOTROPIC, Equation, Where
from fluxforge.scheme import Message, Scheme, find, symbol


def test_the_generator_of_the_plain_flux_takes_a_varying_tensor_from_both_sides():
    assert falls_with_size(find("euler", ANISOTROPIC), "squares")


def test_a_flux_with_half_of_the_tensor_is_not_consistent():
    plain = find("euler", ANISOTROPIC)
    (stage,) = plain.stages
    message = stage.messages["z"].expression
    half = Message(message.xreplace({symbol("K_nn"): symbol("K_nn") ** 2 / (1 + symbol("K_nn"))}))
    wrong = Scheme("wrong", (type(stage)({"z": half}, stage.outputs),), equation=ANISOTROPIC)
    assert not falls_with_size(wrong, "squares")


@pytest.mark.parametrize("where", ["constant", "cell", "face"])
def test_the_two_point_flux_reads_the_same_letter(where):
    (K,) = ANISOTROPIC.parameters
    equation = Equation("own", unknown="T", parameters=(replace(K, where=Where(where)),), diffusion=symbol("K"))
    assert find("euler", equation).stages == find("euler", ANISOTROPIC).stages


def test_the_corrected_flux_keeps_linear_fields_at_walls_that_prescribe_the_conormal_derivative():
    scheme = find("corrected", ANISOTROPIC)
    assert all(each.exact(1) for each in run_patch_tests(scheme, jittered(6, 0.2, 1)))


def test_the_modified_equation_of_the_corrected_flux_has_the_whole_tensor():
    equation = modified_equation(find("corrected", ANISOTROPIC), "squares")
    assert equation is not None
    assert equation.consistent
    assert equation.leading[(1, 1)] == 2 * symbol("K_xy")


def test_the_two_point_flux_of_a_full_tensor_misses_what_is_off_its_diagonal():
    equation = modified_equation(find("euler", ANISOTROPIC), "squares")
    assert equation is not None
    assert not equation.consistent


def test_the_generator_of_scharfetter_and_gummel_is_the_equation_and_one_with_half_its_diffusion_is_not():
    scheme = find("scharfetter-gummel", "advection-diffusion")
    mesh = jittered(6, 0.2, 1)
    assert compare_system(scheme, dual(mesh), run_patch_tests(scheme, mesh)[0]).holds
    (stage,) = scheme.stages
    half = {name: Message(m.expression / 2, m.hop) for name, m in stage.messages.items()}
    wrong = Scheme("wrong", (type(stage)(half, stage.outputs),), equation=scheme.equation)
    assert not compare_system(wrong, dual(mesh), run_patch_tests(wrong, mesh)[0]).holds
