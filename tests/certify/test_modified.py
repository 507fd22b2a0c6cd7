import numpy as np
import pytest
import sympy as sp
from fooling_schemes import DECOYS, ring

from fluxforge.certify._lattice import h
from fluxforge.certify.effective import lattice_diffusion
from fluxforge.certify.modified import modified_equation
from fluxforge.errors import FluxforgeError, InputError
from fluxforge.scheme import SchemeBuilder, symbol
from fluxforge.scheme.reference import BUILT_IN

alpha = symbol("alpha")


def same(derivatives, wanted):
    keys = set(derivatives) | set(wanted)
    return all(sp.simplify(derivatives.get(key, 0) - wanted.get(key, 0)) == 0 for key in keys)


def test_euler_on_squares_has_the_textbook_modified_equation():
    equation = modified_equation(BUILT_IN["euler"], "squares")
    assert same(equation.leading, {(2, 0): alpha, (0, 2): alpha})
    assert same(equation.error, {(4, 0): alpha * h**2 / 12, (0, 4): alpha * h**2 / 12})


def test_euler_on_equilateral_triangles_is_isotropic_to_fourth_order():
    equation = modified_equation(BUILT_IN["euler"], "equilateral")
    c = alpha * h**2 / 48
    assert same(equation.leading, {(2, 0): alpha, (0, 2): alpha})
    assert same(equation.error, {(4, 0): c, (2, 2): 2 * c, (0, 4): c})


def test_the_printed_two_hop_scheme_solves_another_equation_exactly():
    printed = BUILT_IN["two-hop-printed"]
    assert modified_equation(printed, "squares").diffusivity() == sp.diag(4, 4)
    assert sp.simplify(
        modified_equation(printed, "equilateral").diffusivity() - (1 + sp.sqrt(3)) * sp.eye(2)
    ) == sp.zeros(2)


@pytest.mark.parametrize("name", ["midpoint", "two-hop", "rkl2-8", "corrected"])
def test_schemes_with_the_right_generator_share_its_equation(name):
    assert same(modified_equation(BUILT_IN[name], "squares").leading, {(2, 0): alpha, (0, 2): alpha})
    assert same(
        modified_equation(BUILT_IN[name], "squares").error, modified_equation(BUILT_IN["euler"], "squares").error
    )


def test_the_printed_crank_nicolson_runs_backwards():
    assert modified_equation(BUILT_IN["crank-nicolson-printed"], "squares").diffusivity() == sp.diag(-1, -1)


def test_a_ring_averages_over_all_paths_to_a_cell():
    """Two paths lead to a diagonal cell of squares: taking one of them would single out a direction."""
    scheme = ring("alpha/2*(T_N - T_P)")
    equation = modified_equation(scheme, "squares")
    assert same(equation.leading, {(2, 0): alpha, (0, 2): alpha})
    assert np.array(equation.diffusivity(), float) == pytest.approx(lattice_diffusion(scheme, "squares"), abs=1e-10)


def test_a_lattice_that_is_not_known_is_refused():
    with pytest.raises(InputError, match="lattice 'right': is not known; choose 'squares', 'equilateral' or 'cubes'"):
        modified_equation(BUILT_IN["euler"], "right")


def test_a_formula_that_would_be_simplified_for_hours_is_refused():
    with pytest.raises(FluxforgeError, match="not attempted"):
        modified_equation(DECOYS["tuned to sines"], "squares")


def test_coefficients_of_one_are_not_written():
    flux = "A/delta*(T_N - T_P)"
    scheme = SchemeBuilder().stage({"z": flux}, {"T_new": "T + dt*z/V + dt*S"}).build("unit")
    assert str(modified_equation(scheme, "squares")).startswith("T_t = T_xx + T_yy + h**2/12*T_xxxx")
    backwards = SchemeBuilder().stage({"z": flux}, {"T_new": "T - dt*z/V + dt*S"}).build("backwards")
    assert str(modified_equation(backwards, "squares")).startswith("T_t = -T_xx - T_yy")
