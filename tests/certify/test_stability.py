import math

import numpy as np
import pytest

from fluxforge.certify.growth import measure_maximum_principle, measure_transient_growth
from fluxforge.certify.stability import find_largest_step, measure_stability, stability_line
from fluxforge.mesh import dual, fourier_step, jittered, squares
from fluxforge.scheme import Claims, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator, step_matrix
from real_intervals import INTERVALS, LIMITED

GRAPH = dual(jittered(6, 0.2, 4))


@pytest.mark.parametrize("name", LIMITED)
def test_the_largest_stable_step_is_confirmed_by_rollouts(name):
    stability = measure_stability(BUILT_IN[name], GRAPH)
    assert stability.one_operator
    assert stability.interval == pytest.approx(INTERVALS[name], rel=1e-12)
    assert stability.stable_below
    assert stability.diverges_above


def test_the_fourier_condition_is_sufficient_not_necessary():
    assert 1.0 < measure_stability(BUILT_IN["euler"], GRAPH).over_fourier < 2.0


def test_crank_nicolson_is_unlimited_but_oscillates():
    stability = measure_stability(BUILT_IN["crank-nicolson"], GRAPH)
    assert math.isinf(stability.dt_max)
    assert stability.over_fourier is None
    assert stability.oscillation == pytest.approx(2.0)


def test_the_printed_crank_nicolson_is_never_stable():
    assert measure_stability(BUILT_IN["crank-nicolson-printed"], GRAPH).dt_max == 0


def test_a_factor_is_shown_with_fewer_digits_than_it_has_only_with_a_note():
    for half, shown in (
        ("0.50000003", "0.5*z**2 + 1.0*z + 1.0 (decimals to six digits)"),
        ("1/2", "z**2/2 + z + 1, real"),
    ):
        scheme = (
            SchemeBuilder()
            .stage({"z": "alpha*A/delta*(T_N - T_P)"}, {"half": f"T + {half}*dt/V*z"})
            .stage({"y": "alpha*A/delta*(half_N - half_P)"}, {"T_new": "T + dt/V*y"})
            .build("half", summary="", claims=Claims())
        )
        assert shown in stability_line(measure_stability(scheme, GRAPH), "here").evidence


def test_a_scheme_of_two_operators_gets_its_limit_from_the_spectral_radius():
    """The second stage uses another weight, so no single R(z) describes the step."""
    odd = (
        SchemeBuilder()
        .stage({"z": "alpha*A/delta*(T_N - T_P)"}, {"half": "T + dt/(2*V)*z"})
        .stage({"y": "alpha*A*(half_N - half_P)"}, {"T_new": "T + dt/V*y"})
        .build("odd", summary="two operators", claims=Claims())
    )
    stability = measure_stability(odd, GRAPH)
    assert stability.one_operator is False
    assert stability.interval is None
    assert not stability.bound
    assert stability.stable_below
    assert stability.diverges_above
    line = stability_line(stability, "here")
    assert line.property.startswith("no bound: spectral radius at most 1 at steps tried up to")
    assert "those between were not" in line.evidence


def test_a_slowly_growing_mode_is_not_stable_at_any_step():
    """One mode of the generator grows, far more slowly than the fastest decays."""
    odd = (
        SchemeBuilder()
        .stage({"z": "alpha*A/delta*(T_N - T_P)"}, {"half": "T + dt/(2*V)*z"})
        .stage({"y": "alpha*A*(half_N - half_P)/1000"}, {"T_new": "T + dt/V*y + dt*T/35000*alpha/V"})
        .build("odd", summary="grows", claims=Claims())
    )
    rates = np.linalg.eigvals(generator(odd, GRAPH).M.toarray()).real
    assert 0 < rates.max() < 1e-2 * np.abs(rates).max()
    assert measure_stability(odd, GRAPH).dt_max == 0


def test_a_symmetric_step_has_no_transient_growth():
    growth = measure_transient_growth(BUILT_IN["euler"], GRAPH, largest=find_largest_step(BUILT_IN["euler"], GRAPH))
    assert growth.normal
    assert growth.largest == growth.one_step <= 1


def test_the_growth_of_a_non_normal_step_is_that_of_its_powers():
    """A stable one-sided coupling: the norms of all powers, one by one, are the reference."""
    lopsided = (
        SchemeBuilder()
        .stage({"z": "alpha*A/delta*(T_N - T_P)*(1 + 9/10*n_x)"}, {"T_new": "T + dt/V*z"})
        .build("lopsided", claims=Claims())
    )
    growth = measure_transient_growth(lopsided, GRAPH, largest=find_largest_step(lopsided, GRAPH))
    assert not growth.normal
    dt = growth.over_fourier * fourier_step(GRAPH)
    root = np.sqrt(GRAPH.V)
    B = root[:, None] * step_matrix(lopsided, GRAPH, dt).toarray() / root
    assert np.abs(np.linalg.eigvals(B)).max() <= 1
    norms = [np.linalg.norm(np.linalg.matrix_power(B, k), 2) for k in range(1, 1001)]
    assert growth.one_step == pytest.approx(norms[0])
    assert growth.largest == pytest.approx(max(norms))
    assert growth.largest > 1.01
    assert growth.steps == int(np.argmax(norms)) + 1


def test_eulers_maximum_principle_ends_exactly_at_the_fourier_step():
    assert measure_maximum_principle(BUILT_IN["euler"], GRAPH).over_fourier == pytest.approx(1.0, abs=1e-9)


def test_the_maximum_principle_of_crank_nicolson_ends_at_twice_the_fourier_step_or_later():
    principle = measure_maximum_principle(BUILT_IN["crank-nicolson"], dual(squares(5)))
    assert 2.0 - 1e-9 <= principle.over_fourier < 4.0


def test_the_corrected_flux_has_no_maximum_principle_on_skewed_meshes():
    principle = measure_maximum_principle(BUILT_IN["corrected"], GRAPH)
    assert principle.over_fourier == 0.0
    assert principle.weight < 0


def test_a_broken_maximum_principle_really_makes_a_new_extremum():
    principle = measure_maximum_principle(BUILT_IN["euler"], GRAPH)
    M = step_matrix(BUILT_IN["euler"], GRAPH, 1.05 * fourier_step(GRAPH))
    T = np.zeros(GRAPH.cells)
    T[principle.cell] = 1.0
    assert (M @ T).min() < 0
