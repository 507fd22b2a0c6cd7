from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from fooling_schemes import half_step

from fluxforge.certify._families import study_graph
from fluxforge.certify._systems import exact_solution
from fluxforge.certify.order import measure_series_order, measure_time_order
from fluxforge.mesh import dual, squares
from fluxforge.pde import HEAT
from fluxforge.scheme import Scheme, face_invariants, find, nested_tableau, weighted_scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator

CLAIMED = {name: scheme for name, scheme in BUILT_IN.items() if scheme.claims.time_order is not None}


@pytest.mark.parametrize("name", CLAIMED)
def test_order_in_time_is_as_claimed(name):
    study = measure_time_order(BUILT_IN[name])
    assert study.order == pytest.approx(CLAIMED[name].claims.time_order, abs=0.05)
    assert len(study.free.errors) >= 4
    assert study.free.errors[-1] < 1e-2


def test_the_printed_midpoint_is_of_order_two_without_a_source_and_one_with_it():
    study = measure_time_order(BUILT_IN["midpoint-printed"])
    assert study.free.order == pytest.approx(2.0, abs=0.05)
    assert study.driven.order == pytest.approx(1.0, abs=0.05)


def test_the_exact_solution_solves_its_system():
    graph = study_graph()
    system = generator(BUILT_IN["euler"], graph)
    rng = np.random.default_rng(1)
    T0, S = rng.random(graph.cells), rng.random(graph.cells)
    t, e = 1e-3, 1e-6
    slope = (exact_solution(system, T0, S, t + e) - exact_solution(system, T0, S, t - e)) / (2 * e)
    now = exact_solution(system, T0, S, t)
    assert slope == pytest.approx(system.M @ now + system.N @ S + system.b, rel=1e-5, abs=1e-5)


def test_a_scheme_that_stands_still_is_exact_for_its_own_generator():
    from fluxforge.scheme import Claims, SchemeBuilder

    still = SchemeBuilder().stage({}, {"T_new": "T"}).build("still", summary="nothing moves", claims=Claims())
    study = measure_time_order(still, dual(squares(4)))
    assert study.free.exact
    assert study.driven.exact
    assert study.order is None


@pytest.mark.parametrize("name", CLAIMED)
def test_the_algebra_finds_the_claimed_order_exactly(name):
    study = measure_time_order(BUILT_IN[name])
    assert study.exact_order == study.series == CLAIMED[name].claims.time_order
    assert min(study.one_cell.free, study.one_cell.driven) == study.series


@pytest.mark.parametrize("share", ["0.50001", "50001/100000", "0.4999999"])
def test_a_half_step_that_is_not_half_is_of_order_one_however_it_looks(share):
    study = measure_time_order(half_step(share))
    assert study.observed > 1.9
    assert study.order == study.exact_order == 1


def test_a_term_that_one_cell_cannot_see_is_found_on_a_mesh():
    """Paths need a neighbour: one cell between walls has none."""
    stage = BUILT_IN["two-hop"].stages[0]
    path = replace(stage.messages["z2"], expression=stage.messages["z2"].expression * sp.Rational(100001, 100000))
    spoilt = Scheme("spoilt", (replace(stage, messages={**stage.messages, "z2": path}),))
    study = measure_time_order(spoilt)
    assert (study.one_cell.free, study.one_cell.driven) == (2, 2)
    assert study.series == 1
    assert study.order == 1


def test_a_step_that_is_not_analytic_has_no_series_and_its_measured_order() -> None:
    numbers = face_invariants(HEAT)
    scheme = weighted_scheme("root", nested_tableau(2), HEAT, lambda _: 1 - sp.sqrt(numbers["total"]) / 3)
    assert measure_series_order(scheme) is None
    study = measure_time_order(scheme)
    # The second Taylor coefficient is right in the limit only: order two less a half.
    assert study.order == pytest.approx(1.5, abs=0.15)
    assert measure_series_order(find("implicit")) == 1
