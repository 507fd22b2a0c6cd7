import math

import numpy as np
import pytest

from fluxforge.mesh import dual, jittered, squares
from fluxforge.scheme import Claims, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.verify.maximum import maximum_principle
from fluxforge.verify.stability import stability

GRAPH = dual(jittered(6, 0.2, 4))

INTERVALS = {
    "euler": 2.0,
    "midpoint": 2.0,
    "midpoint-printed": 2.0,
    "rk4": 2.785293563405282,
    "rkl2-8": 35.0,
    "two-hop": 2.0,
    "two-hop-printed": 2.0,
    "corrected": 2.0,
}


@pytest.mark.parametrize("name", INTERVALS)
def test_the_largest_stable_step_is_confirmed_by_rollouts(name):
    found = stability(BUILT_IN[name], GRAPH)
    assert found.one_operator
    assert found.interval == pytest.approx(INTERVALS[name], rel=1e-12)
    assert found.stable_below
    assert found.diverges_above


def test_the_fourier_condition_is_sufficient_not_necessary():
    assert 1.0 < stability(BUILT_IN["euler"], GRAPH).over_fourier < 2.0


def test_crank_nicolson_is_unlimited_but_oscillates():
    found = stability(BUILT_IN["crank-nicolson"], GRAPH)
    assert math.isinf(found.dt_max)
    assert found.over_fourier is None
    assert found.oscillation == pytest.approx(2.0)


def test_the_printed_crank_nicolson_is_never_stable():
    assert stability(BUILT_IN["crank-nicolson-printed"], GRAPH).dt_max == 0


def test_a_scheme_of_two_operators_gets_its_limit_from_the_spectral_radius():
    """The second stage uses another weight, so no single R(z) describes the step."""
    odd = (
        SchemeBuilder()
        .stage({"z": "alpha*A/delta*(T_N - T_P)"}, {"half": "T + dt/(2*V)*z"})
        .stage({"y": "alpha*A*(half_N - half_P)"}, {"T_new": "T + dt/V*y"})
        .build("odd", summary="two operators", claims=Claims())
    )
    found = stability(odd, GRAPH)
    assert found.one_operator is False
    assert found.interval is None
    assert found.stable_below
    assert found.diverges_above


def test_eulers_maximum_principle_ends_exactly_at_the_fourier_step():
    assert maximum_principle(BUILT_IN["euler"], GRAPH).over_fourier == pytest.approx(1.0, abs=1e-9)


def test_the_maximum_principle_of_crank_nicolson_ends_at_twice_the_fourier_step_or_later():
    found = maximum_principle(BUILT_IN["crank-nicolson"], dual(squares(5)))
    assert 2.0 - 1e-9 <= found.over_fourier < 4.0


def test_the_corrected_flux_has_no_maximum_principle_on_skewed_meshes():
    found = maximum_principle(BUILT_IN["corrected"], GRAPH)
    assert found.over_fourier == 0.0
    assert found.weight < 0


def test_a_broken_maximum_principle_really_makes_a_new_extremum():
    from fluxforge.mesh import fourier_step
    from fluxforge.simulate import step_matrix

    found = maximum_principle(BUILT_IN["euler"], GRAPH)
    M = step_matrix(BUILT_IN["euler"], GRAPH, 1.05 * fourier_step(GRAPH))
    T = np.zeros(GRAPH.cells)
    T[found.cell] = 1.0
    assert (M @ T).min() < 0
