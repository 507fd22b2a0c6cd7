import numpy as np
import pytest

from fluxforge.certify._families import Levels
from fluxforge.certify.effective import fitted_diffusion, lattice_diffusion
from fluxforge.errors import NumericalError
from fluxforge.scheme import SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN


def test_euler_has_an_anisotropic_diffusivity_on_right_triangles():
    K = lattice_diffusion(BUILT_IN["euler"], "right")
    assert pytest.approx(np.array([[1.025, 0.317], [0.317, 1.025]]), abs=5e-4) == K
    values, vectors = np.linalg.eigh(K)
    assert values == pytest.approx([0.7082, 3 / np.sqrt(5)], abs=1e-4)
    assert abs(vectors[:, 1] @ [1, 1]) == pytest.approx(np.sqrt(2)), "the faster direction is along the cut"


@pytest.mark.parametrize("family", ["squares", "equilateral", "cross"])
def test_euler_has_the_right_diffusivity_on_orthogonal_lattices(family):
    assert lattice_diffusion(BUILT_IN["euler"], family) == pytest.approx(np.eye(2), abs=1e-10)


@pytest.mark.parametrize("family", ["squares", "right", "cross", "equilateral"])
def test_the_corrected_flux_has_the_right_diffusivity_on_every_lattice(family):
    assert lattice_diffusion(BUILT_IN["corrected"], family) == pytest.approx(np.eye(2), abs=1e-10)


def test_the_printed_two_hop_scheme_diffuses_too_fast():
    printed = BUILT_IN["two-hop-printed"]
    assert lattice_diffusion(printed, "squares") == pytest.approx(4 * np.eye(2), abs=1e-10)
    assert lattice_diffusion(printed, "equilateral") == pytest.approx((1 + np.sqrt(3)) * np.eye(2), abs=1e-10)


def test_the_fit_agrees_with_the_cell_problem_on_a_lattice():
    """Two independent routes to the same tensor."""
    mesh = Levels("right", (48,)).mesh(48)
    fitted = fitted_diffusion(BUILT_IN["euler"], mesh)
    assert fitted == pytest.approx(lattice_diffusion(BUILT_IN["euler"], "right"), abs=0.01)


def test_the_printed_two_hop_scheme_is_as_wrong_on_irregular_meshes():
    K = fitted_diffusion(BUILT_IN["two-hop-printed"], Levels("irregular", (36,)).mesh(36))
    assert np.linalg.eigvalsh(K) == pytest.approx([2.7, 2.7], abs=0.1)
    assert fitted_diffusion(BUILT_IN["corrected"], Levels("irregular", (18,)).mesh(18)) == pytest.approx(
        np.eye(2), abs=0.03
    )


@pytest.mark.parametrize("source", ["-dt*S", "dt*S/2", "0"])
def test_an_error_of_the_source_is_not_taken_for_one_of_the_diffusivity(source):
    flux = "alpha*A/delta*(T_N - T_P)"
    scheme = SchemeBuilder().stage({"z": flux}, {"T_new": f"T + dt*z/V + {source}"}).build("wrong-source")
    with pytest.raises(NumericalError, match="not measured: the source enters with a wrong coefficient"):
        fitted_diffusion(scheme, Levels("irregular", (9,)).mesh(9))
