"""Certificates of equations whose tensor may vary from cell to cell."""

from dataclasses import replace

import pytest

from fluxforge.certify.semidiscrete import falls_with_size
from fluxforge.pde import ANISOTROPIC, Equation, Where
from fluxforge.scheme import Message, Scheme, find, symbol


def test_the_generator_of_the_plain_flux_takes_a_varying_tensor_from_both_sides():
    assert falls_with_size(find("euler", ANISOTROPIC), "squares")


def test_a_flux_with_half_of_the_tensor_is_found_out():
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
