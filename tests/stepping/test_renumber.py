"""Steppers that renumber the cells: the results are those in the mesh's order."""

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

from fluxforge.mesh import Mesh, dual, fourier_step, jittered, squares
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import operator, sides, stepper
from fluxforge.stepping._stepper import hilbert_order, local_order
from strategies import BOUNDARIES, noise, renumbered

SHUFFLED = dual(renumbered(jittered(46, 0.3, seed=1), seed=2).mesh, BOUNDARIES["both"])


def test_a_shuffled_mesh_is_put_in_order_and_a_sorted_one_left_alone() -> None:
    order = local_order(SHUFFLED)
    assert order is not None
    assert sorted(order.tolist()) == list(range(SHUFFLED.cells))
    assert local_order(dual(jittered(46))) is None
    assert local_order(dual(renumbered(squares(20), seed=1).mesh)) is None


@pytest.mark.parametrize("scheme", BUILT_IN.values(), ids=str)
def test_the_order_of_a_stepper_is_invisible(scheme: Scheme) -> None:
    T, S = noise(SHUFFLED.cells, 1), noise(SHUFFLED.cells, 2)
    dt = 0.5 * fourier_step(SHUFFLED, 1.3)
    system = operator(scheme, SHUFFLED, dt=dt, parameters={"alpha": 1.3})
    wanted = system.M @ T + system.N @ S + system.b
    if scheme.implicit:
        left, right = sides(system)
        wanted = spsolve(left.tocsc(), right @ T + system.N @ S + system.b)
    for renumber in (True, False):
        step = stepper(scheme, SHUFFLED, dt, diffusivity=1.3, source=S, renumber=renumber)
        after = np.asarray(step.rollout(T, 1))
        assert np.abs(after - wanted).max() <= 1e-12 * np.abs(wanted).max(), renumber


def test_entering_and_leaving_undo_each_other() -> None:
    step = stepper("euler", SHUFFLED, 1e-6)
    T = noise(SHUFFLED.cells)
    inside = np.asarray(step.enter(T))
    assert not np.array_equal(inside, T)
    assert np.array_equal(np.asarray(step.leave(step.enter(T))), T)


def test_a_hilbert_curve_visits_every_box_once_and_never_jumps() -> None:
    side = 16
    ticks = (np.arange(side) + 0.5) / side
    x = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    order = hilbert_order(x[np.random.default_rng(3).permutation(side * side)])
    assert sorted(order.tolist()) == list(range(side * side))
    shuffled = x[np.random.default_rng(3).permutation(side * side)]
    steps = np.abs(np.diff(shuffled[order], axis=0)).sum(axis=1)
    assert np.allclose(steps, 1 / side)


def test_points_on_one_spot_or_on_a_line_have_an_order_too() -> None:
    assert hilbert_order(np.zeros((5, 2))).tolist() == [0, 1, 2, 3, 4]
    assert sorted(hilbert_order(np.stack([np.arange(9.0), np.zeros(9)], axis=-1)).tolist()) == list(range(9))


def test_thousands_of_cells_that_do_not_touch() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    count = 4100
    points = (corners + np.stack([2.0 * np.arange(count), np.zeros(count)], axis=-1)[:, None]).reshape(-1, 2)
    graph = dual(Mesh(points, np.arange(3 * count).reshape(-1, 3)))
    assert graph.interior == 0
    after = np.asarray(stepper("euler", graph, 1e-3).rollout(np.ones(count), 1))
    assert np.ptp(after) <= 1e-12
    assert after[0] < 1
