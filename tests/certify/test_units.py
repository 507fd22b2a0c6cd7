"""Units, and the system behind a scheme, of every built-in scheme."""

import jax
import pytest

from fluxforge.certify._families import study_graph
from fluxforge.certify.patch import patch_test, worse
from fluxforge.certify.semidiscrete import other_equation, semidiscrete
from fluxforge.certify.units import dimensions, units
from fluxforge.mesh import jittered
from fluxforge.scheme import SchemeBuilder, find
from fluxforge.scheme.reference import BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_built_in_schemes_do_not_depend_on_units(name):
    found = units(BUILT_IN[name])
    assert found.holds
    assert found.algebra == ("lengths", "times", "temperatures")


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_generator_is_as_claimed_with_any_wall_and_alpha(name):
    scheme = BUILT_IN[name]
    patch = worse(*(patch_test(scheme, jittered(5, 0.2, 1), walls=walls) for walls in ("held", "mixed")))
    assert semidiscrete(scheme, study_graph(), patch).holds == scheme.claims.generator
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
    assert dimensions(scheme) == kept
    with jax.enable_x64(True):
        assert units(scheme).holds == ("sqrt" in flux or len(kept) == 3)


def test_long_quotients_of_sums_are_judged_term_by_term() -> None:
    """Cancelling the gradients of a conductivity that varies takes minutes."""
    assert dimensions(find("corrected", "conduction")) == dimensions(find("corrected"))
    assert dimensions(find("corrected", "anisotropic")) == dimensions(find("corrected"))
