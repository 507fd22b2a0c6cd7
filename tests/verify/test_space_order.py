import pytest

from fluxforge.mesh import right_triangles
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.verify._families import Levels
from fluxforge.verify._rates import Rates
from fluxforge.verify.order import space_order, steady_errors

PUBLISHED_LINF = {10: 7.042e-2, 20: 6.816e-2, 50: 6.472e-2, 100: 6.326e-2}


@pytest.mark.parametrize("n", PUBLISHED_LINF)
def test_euler_on_right_triangles_has_the_published_errors(n):
    assert steady_errors(BUILT_IN["euler"], right_triangles(n))[1] == pytest.approx(PUBLISHED_LINF[n], abs=6e-6)


def test_the_error_does_not_depend_on_the_diffusivity():
    mesh = right_triangles(10)
    assert steady_errors(BUILT_IN["corrected"], mesh, diffusivity=3.7) == pytest.approx(
        steady_errors(BUILT_IN["corrected"], mesh), rel=1e-9
    )


@pytest.mark.parametrize("family", ["squares", "cross", "equilateral"])
def test_euler_is_of_order_two_where_centroid_lines_are_perpendicular(family):
    study = space_order(BUILT_IN["euler"], Levels(family, (6, 12, 24, 48)))
    assert study.l2.order == pytest.approx(2.0, abs=0.05)
    assert study.linf.order == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("family", ["right", "jittered"])
def test_euler_does_not_converge_on_skewed_triangles(family):
    study = space_order(BUILT_IN["euler"], Levels(family, (6, 12, 24, 48)))
    assert not study.l2.convergent
    assert study.l2.errors[-1] > 0.04


@pytest.mark.parametrize("family", ["right", "jittered", "irregular"])
def test_the_corrected_flux_converges_there(family):
    study = space_order(BUILT_IN["corrected"], Levels(family, (6, 12, 24, 48)))
    assert study.l2.errors[-1] < 2e-3
    assert study.l2.rates[-1] > 1.7


@pytest.mark.parametrize("name", ["rk4", "rkl2-8"])
def test_a_scheme_of_many_stages_shares_the_steady_state_of_its_generator(name):
    mesh = right_triangles(12)
    assert steady_errors(BUILT_IN[name], mesh) == pytest.approx(steady_errors(BUILT_IN["euler"], mesh), rel=1e-8)


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
