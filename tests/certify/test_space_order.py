from dataclasses import replace

import numpy as np
import pytest

from fluxforge.certify import Rates, verify
from fluxforge.certify._families import Levels
from fluxforge.certify._problems import PROBLEMS, differentiate_solution
from fluxforge.certify.order import measure_space_order, measure_steady_errors, study_meshes
from fluxforge.errors import InputError
from fluxforge.mesh import right_triangles, squares
from fluxforge.scheme.reference import BUILT_IN

PUBLISHED_LINF = {10: 7.042e-2, 20: 6.816e-2, 50: 6.472e-2, 100: 6.326e-2}


@pytest.mark.parametrize("n", PUBLISHED_LINF)
def test_euler_on_right_triangles_has_the_published_errors(n):
    assert measure_steady_errors(BUILT_IN["euler"], right_triangles(n))[1] == pytest.approx(PUBLISHED_LINF[n], abs=6e-6)


def test_the_error_does_not_depend_on_the_diffusivity():
    mesh = right_triangles(10)
    assert measure_steady_errors(BUILT_IN["corrected"], mesh, parameters={"alpha": 3.7}) == pytest.approx(
        measure_steady_errors(BUILT_IN["corrected"], mesh), rel=1e-9
    )


@pytest.mark.parametrize("family", ["squares", "cross", "equilateral"])
def test_euler_is_of_order_two_where_centroid_lines_are_perpendicular(family):
    study = measure_space_order(BUILT_IN["euler"], Levels(family, (6, 12, 24, 48)))
    assert study.l2.order == pytest.approx(2.0, abs=0.05)
    assert study.linf.order == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("family", ["right", "jittered"])
def test_euler_does_not_converge_on_skewed_triangles(family):
    study = measure_space_order(BUILT_IN["euler"], Levels(family, (6, 12, 24, 48)))
    assert not study.l2.convergent
    assert study.l2.errors[-1] > 0.04


@pytest.mark.parametrize("family", ["right", "jittered", pytest.param("irregular", marks=pytest.mark.slow)])
def test_the_corrected_flux_converges_there(family):
    study = measure_space_order(BUILT_IN["corrected"], Levels(family, (6, 12, 24, 48)))
    assert study.l2.errors[-1] < 2e-3
    assert study.l2.rates[-1] > 1.7


@pytest.mark.parametrize("name", ["rk4", "rkl2-8"])
def test_a_scheme_of_many_stages_shares_the_steady_state_of_its_generator(name):
    mesh = right_triangles(12)
    assert measure_steady_errors(BUILT_IN[name], mesh) == pytest.approx(
        measure_steady_errors(BUILT_IN["euler"], mesh), rel=1e-8
    )


def test_an_order_is_quoted_only_where_it_may_be():
    sizes = (1.0, 0.5, 0.25, 0.125)
    assert Rates(sizes, (1.0, 0.25, 0.0625, 0.015625)).order == pytest.approx(2.0)
    assert Rates(sizes[:3], (1.0, 0.25, 0.0625)).order is None, "three levels are too few"
    assert Rates(sizes, (1.0, 0.25, 0.0625, 0.05)).order is None, "the last rates disagree"
    assert Rates(sizes, (1.0, 0.1, 0.06, 0.037)).order is None, "the rates still drift"
    assert Rates(sizes, (1.0, 0.99, 0.98, 0.97)).order is None, "the error hardly falls"
    assert Rates(sizes, (1.0, 2.0, 0.5, 0.125)).order is None, "the error rose"
    assert Rates(sizes, (1e-3, 1e-7, 1e-11, 1e-15)).order is None, "round-off"
    assert Rates(sizes, (float("nan"),) * 4).order is None
    assert Rates(sizes, (1e-15, 2e-16, 0.0, 3e-16)).convergent, "exact to round-off"


def test_an_order_needs_a_small_error_and_a_trend_to_zero():
    sizes = (1.0, 0.5, 0.25, 0.125)
    errors = (1.0, 0.25, 0.0625, 0.015625)
    assert Rates(sizes, errors, below=0.1).order == pytest.approx(2.0)
    assert Rates(sizes, tuple(10 * e for e in errors), below=0.1).order is None, "the error is too large"
    assert not Rates(sizes, tuple(10 * e for e in errors), below=0.1).stalled, "it falls all the same"
    assert Rates(sizes, (0.3, 0.2, 0.18, 0.175)).stalled
    to_plateau = tuple(0.01 + 0.05 * h**0.3 for h in sizes)
    assert Rates(sizes, to_plateau).rates[-1] > 0.15
    assert Rates(sizes, to_plateau).plateau == pytest.approx(0.01 / to_plateau[-1])
    assert Rates(sizes, to_plateau).order is None, "a quarter of the last error is there to stay"
    assert Rates(sizes, tuple(0.05 * h**0.3 for h in sizes)).order == pytest.approx(0.3)


def test_scatter_over_meshes_loosens_the_agreement_of_rates_and_forbids_an_order_where_it_is_large():
    sizes, errors = (1.0, 0.5, 0.25, 0.125), (1.0, 0.25, 0.08, 0.019)
    assert Rates(sizes, errors).order is None
    assert Rates(sizes, errors, scatter=(0.1,) * 4).order == pytest.approx(2.07, abs=0.01)
    assert Rates(sizes, errors, scatter=(0.3,) * 4).order is None


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: one.name)
def test_the_manufactured_problems_can_tell_directions_and_walls_apart(problem):
    graph = problem.graph(squares(8))
    x, y = graph.x.T
    swapped = differentiate_solution(problem.exact).u(y, x)
    assert np.abs(problem.solution(graph) - swapped).max() > 0.1
    assert np.abs(graph.value).min() > 1e-3
    assert graph.neumann.any() == problem.mixed
    assert not graph.neumann.all()


def test_a_sequence_of_meshes_has_an_order_in_any_units():
    near = study_meshes(BUILT_IN["euler"], [squares(n) for n in (4, 8, 16)])
    far = study_meshes(
        BUILT_IN["euler"], [replace(mesh, points=1e3 * mesh.points + 5e4) for mesh in map(squares, (4, 8, 16))]
    )
    for one, other in zip(near, far, strict=True):
        assert one.l2.order == pytest.approx(2.0, abs=0.1)
        assert other.l2.errors == pytest.approx(one.l2.errors, rel=1e-6)


@pytest.mark.parametrize("counts", [(4,), (8, 4)])
def test_a_sequence_goes_from_coarse_to_fine(counts):
    with pytest.raises(InputError, match="coarse"):
        study_meshes(BUILT_IN["euler"], [squares(n) for n in counts])


def test_an_exact_solution_has_to_be_smooth():
    with pytest.raises(InputError, match="smooth"):
        verify("euler", meshes=[squares(4), squares(8)], exact="abs(x)")
