"""Certificates in space: cubes, tetrahedra, and formulas of three coordinates."""

import numpy as np
import pytest

from fluxforge.certify import verify
from fluxforge.certify._families import Levels, cube_graph, tetrahedra_graph
from fluxforge.certify.conservation import measure_conservation
from fluxforge.certify.modified import modified_equation
from fluxforge.certify.order import study_family
from fluxforge.certify.patch import run_patch_test
from fluxforge.errors import InputError
from fluxforge.scheme import Claims, SchemeBuilder, amplification, find

ALONG = SchemeBuilder().stage(
    {"z": "A*alpha*(n_x*d_x + n_y*d_y + n_z*d_z)/delta**2*(T_N - T_P)"}, {"T_new": "T + dt*z/V + dt*S"}
)


@pytest.mark.parametrize(
    "graph", [cube_graph(3), tetrahedra_graph(1), tetrahedra_graph(2, 0.15, 1)], ids=lambda graph: graph.origin
)
def test_graphs_in_space_are_those_of_the_unit_cube(graph) -> None:
    assert graph.V.sum() == pytest.approx(1.0, rel=1e-13)
    assert graph.A[graph.interior :].sum() == pytest.approx(6.0, rel=1e-13)
    closed = ((graph.n * graph.A[:, None])[graph.slot_face] * graph.slot_sign[..., None]).sum(axis=1)
    assert np.abs(closed).max() < 1e-15
    assert (np.einsum("fi,fi->f", graph.n, graph.d) > 0).all()


def test_the_two_point_flux_is_of_second_order_on_cubes() -> None:
    for study in study_family(find("euler"), Levels("cubes", (4, 6, 8, 12))):
        assert study.l2.order == pytest.approx(2.0, abs=0.1)
        assert study.l2.errors[-1] < 1e-3


def test_linear_fields_are_exact_on_cubes_and_not_on_tetrahedra() -> None:
    for walls in ("held", "mixed"):
        assert run_patch_test(find("euler"), cube_graph(3), walls=walls).exact(1)
        patch = run_patch_test(find("euler"), tetrahedra_graph(1), walls=walls)
        assert patch.exact(0)
        assert patch.residual[1] > 0.1
    assert measure_conservation(find("rk4"), tetrahedra_graph(2, 0.15, 1)).holds


def test_a_certificate_on_cubes() -> None:
    certificate = verify("midpoint", quick=True, families=("cubes",))
    assert certificate.verdict == "as claimed"
    assert certificate.space["cubes"].consistent
    assert certificate.space["cubes"].diffusion == pytest.approx(np.eye(3), abs=1e-12)
    assert set(certificate.modified) == {"cubes"}
    assert certificate.units is not None
    assert certificate.units.holds


def test_formulas_of_three_coordinates_are_certified_in_space() -> None:
    claims = Claims(conservative=True, time_order=1)
    scheme = ALONG.build("along", claims=claims)
    assert str(amplification(scheme)) == "z + 1"
    assert modified_equation(scheme, "cubes").consistent
    certificate = verify(scheme, quick=True, levels=1)
    assert certificate.verdict == "as claimed"
    assert set(certificate.space) == {"cubes"}


def test_the_plane_and_space_are_not_mixed() -> None:
    with pytest.raises(InputError, match="are certified separately"):
        verify("euler", quick=True, families=("squares", "cubes"))
