import numpy as np
import pytest

from fluxforge.mesh import dual, squares
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.simulate import generator
from fluxforge.verify.time_order import exact_solution, study_graph, time_order

CLAIMED = {name: scheme for name, scheme in BUILT_IN.items() if scheme.claims.time_order is not None}


@pytest.mark.parametrize("name", CLAIMED)
def test_order_in_time_is_as_claimed(name):
    study = time_order(BUILT_IN[name])
    assert study.order == pytest.approx(CLAIMED[name].claims.time_order, abs=0.05)
    assert len(study.free.errors) >= 4
    assert study.free.errors[-1] < 1e-2


def test_the_printed_midpoint_is_of_order_two_without_a_source_and_one_with_it():
    study = time_order(BUILT_IN["midpoint-printed"])
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
    study = time_order(still, dual(squares(4)))
    assert study.free.exact
    assert study.driven.exact
    assert study.order is None
