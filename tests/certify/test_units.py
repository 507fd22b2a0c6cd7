"""Units, and the system behind a scheme, of every built-in scheme."""

import jax
import pytest

from fluxforge.certify._families import study_graph
from fluxforge.certify.patch import choose_worse, run_patch_test
from fluxforge.certify.semidiscrete import compare_system, other_equation
from fluxforge.certify.units import list_homogeneous_units, measure_units, units_line
from fluxforge.mesh import jittered
from fluxforge.pde import find as find_equation
from fluxforge.scheme import SchemeBuilder, find
from fluxforge.scheme.reference import BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_built_in_schemes_do_not_depend_on_units(name):
    units = measure_units(BUILT_IN[name])
    assert units.holds
    assert units.algebra == ("lengths", "times", "temperatures")


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_generator_is_as_claimed_with_any_wall_and_alpha(name):
    scheme = BUILT_IN[name]
    patch = choose_worse(*(run_patch_test(scheme, jittered(5, 0.2, 1), walls=walls) for walls in ("held", "mixed")))
    assert compare_system(scheme, study_graph(), patch).holds == scheme.claims.generator
    assert (other_equation(scheme) is None) == scheme.claims.generator


@pytest.mark.parametrize(
    ("flux", "kept"),
    [
        ("alpha*A/delta*(T_N - T_P)", ("lengths", "times", "temperatures")),
        ("alpha*A/delta**2*(T_N - T_P)", ("times", "temperatures")),
        ("A/delta*(T_N - T_P)", ("lengths", "temperatures")),
        ("alpha*A/delta*(T_N - T_P)*T_P", ("lengths", "times")),
        ("alpha*sqrt(A)/sqrt(delta)*(T_N - T_P)", ()),
    ],
)
def test_dimensions_are_read_off_the_formulas(flux, kept):
    """The last has the right dimensions, but is no rational function: the numbers decide."""
    scheme = SchemeBuilder().stage({"z": flux}, {"T_new": "T + dt/V*z + dt*S"}).build("flux")
    assert list_homogeneous_units(scheme) == kept
    with jax.enable_x64(True):
        assert measure_units(scheme).holds == ("sqrt" in flux or len(kept) == 3)


def test_long_quotients_of_sums_are_judged_term_by_term() -> None:
    """Cancelling the gradients of a conductivity that varies takes minutes."""
    assert list_homogeneous_units(find("corrected", "conduction")) == list_homogeneous_units(find("corrected"))
    assert list_homogeneous_units(find("corrected", "anisotropic")) == list_homogeneous_units(find("corrected"))


@pytest.mark.parametrize(("name", "scaled"), [("burgers", False), ("advection", True)])
def test_an_unknown_without_a_unit_of_its_own_is_not_called_scaled(name, scaled):
    scheme = find("euler", find_equation(name))
    units = measure_units(scheme)
    assert units.holds
    assert (units.temperatures is not None) == scaled
    assert scaled or "temperatures" not in units.algebra
    assert ("u × anything: same" in units_line(units, scheme.equation.words).evidence) == scaled
    assert ("u has no unit of its own" in units_line(units, scheme.equation.words).evidence) != scaled
