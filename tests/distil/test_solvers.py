"""Solvers: least Σ |r + J d| with known vertices, optimality by subgradients and exact digits; Gauss–Newton."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.distil import _solvers, least_absolute
from fluxforge.distil._objective import least_corner
from strategies import few


def problem_of(seed: int, rows: int = 60, unknowns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=rows), rng.normal(size=(rows, unknowns))


def test_one_unknown_is_the_weighted_median() -> None:
    r, J = -np.array([1.0, 2.0, 7.0, 8.0, 9.0]), np.ones((5, 1))
    vertex = least_absolute(r, J)
    assert vertex.move == pytest.approx([7.0], abs=1e-15)
    assert vertex.rows.tolist() == [2]
    assert vertex.value == pytest.approx(14.0)
    # One row on the median, two on either side: its subgradient is 0.
    assert vertex.slack == pytest.approx(1.0)


@few(40)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_no_direction_lowers_the_sum(seed: int, unknowns: int) -> None:
    """At a minimum of a convex function every one-sided slope is at least zero, up to round-off of sums of 60 rows."""
    r, J = problem_of(seed, unknowns=unknowns)
    vertex = least_absolute(r, J)
    off = r + J @ vertex.move
    off[vertex.rows] = 0.0
    directions = np.random.default_rng(seed + 1).normal(size=(50, unknowns))
    directions = np.concatenate([directions, np.linalg.inv(J[vertex.rows]).T, -np.linalg.inv(J[vertex.rows]).T])
    along = directions @ J.T
    slope = (np.where(off == 0.0, np.abs(along), np.sign(off) * along)).sum(axis=1)
    assert np.all(slope >= -1e-9 * np.abs(along).sum(axis=1))


@few(40)
@given(st.integers(0, 10_000), st.floats(1e-7, 1e3), st.floats(1e-6, 1e6))
def test_units_and_large_shifts_change_nothing(seed: int, size: float, scale: float) -> None:
    """r = −J x + size·e has the vertex of e, whatever x is and however the columns are scaled."""
    e, J = problem_of(seed)
    wanted = least_absolute(e, J)
    if wanted.slack < 1e-6:
        return  # two vertices as good as each other
    x = np.array([1.0, -2.0, 0.5])
    columns = J * np.array([1.0, scale, 1.0 / scale])
    vertex = least_absolute(size * e - J @ x, columns)
    assert sorted(vertex.rows) == sorted(wanted.rows)
    conditioning = np.linalg.cond(J[wanted.rows])
    digits = 100.0 * np.finfo(float).eps * conditioning * (np.abs(x).max() + size)
    move = vertex.move * np.array([1.0, scale, 1.0 / scale])
    np.testing.assert_allclose(move, size * wanted.move + x, rtol=0, atol=digits)


def test_pivots_alone_reach_the_vertex_from_a_wrong_start() -> None:
    """Without the programme's answer, the exact steps from vertex to vertex end at the minimum as well."""
    r, J = problem_of(7, rows=200, unknowns=4)
    wanted = least_absolute(r, J)
    rows, slack = _solvers.improve_vertex(r, J, np.array([3, 50, 101, 180]))
    assert sorted(rows) == sorted(wanted.rows)
    assert slack == pytest.approx(wanted.slack, abs=1e-9)
    np.testing.assert_allclose(np.linalg.solve(J[rows], -r[rows]), wanted.move, rtol=1e-12)


def test_an_exact_fit_has_no_sum() -> None:
    _, J = problem_of(3)
    x = np.array([1.0, 2.0, 3.0])
    vertex = least_absolute(-J @ x, J)
    np.testing.assert_allclose(vertex.move, x, rtol=1e-13)
    assert vertex.value < 1e-12


def test_columns_that_depend_on_each_other_are_solved_for_the_shortest_move() -> None:
    """Constants of a formula come to depend on each other while they are fitted: nothing is raised."""
    r, J = problem_of(3, unknowns=1)
    alone = least_absolute(r, J)
    vertex = least_absolute(r, np.hstack([J, J, np.zeros_like(J)]))
    assert np.isfinite(vertex.move).all()
    # A sum of 60 absolute values of size one.
    assert vertex.value == pytest.approx(alone.value, rel=1e-9)


@pytest.mark.parametrize("start", [1e2, 1e6])
def test_constants_that_run_away_together_end_without_a_corner_of_their_own(start: float) -> None:
    """b x/(c + y) is nearest to 2x as b and c grow without end, where both do the same: one row vanishes, not two."""
    x, y, off = np.random.default_rng(0).normal(size=(3, 200))

    def rows(c: np.ndarray) -> np.ndarray:
        return np.asarray(c[0] * x / (c[1] + y) - 2.0 * x - 0.1 * off)

    def slopes(c: np.ndarray) -> np.ndarray:
        return np.stack([x / (c[1] + y), -c[0] * x / (c[1] + y) ** 2], axis=1)

    minimum, corner = least_corner(rows, slopes, np.array([2.0 * start, start]), np.array([True, True]), near=None)
    assert corner is not None
    assert len(corner) == 1
    assert minimum[0] / minimum[1] == pytest.approx(2.0, abs=0.1)


def test_gauss_newton_follows_a_curved_valley() -> None:
    """Rosenbrock's valley, whose rows vanish at (1, 1) alone."""
    solution = _solvers.gauss_newton(
        lambda c: (np.array([10 * (c[1] - c[0] ** 2), 1 - c[0]]), np.array([[-20 * c[0], 10.0], [-1.0, 0.0]])),
        np.array([-1.2, 1.0]),
        rounds=50,
        gain=1e-15,
        rank=1e-12,
        halvings=20,
    )
    assert solution is not None
    assert solution[0] == pytest.approx([1.0, 1.0], abs=1e-12)


def test_gauss_newton_shares_a_move_between_unknowns_that_do_the_same() -> None:
    """Only the sum of both counts: the shortest move gives each of them half."""
    J = np.ones((3, 2))
    solution = _solvers.gauss_newton(lambda c: (J @ c - 4.0, J), np.zeros(2), rounds=5, gain=1e-9, rank=1e-7)
    assert solution is not None
    assert solution[0] == pytest.approx([2.0, 2.0], abs=1e-14)


def test_gauss_newton_gives_up_on_what_the_first_round_shows_to_be_hopeless() -> None:
    J = np.ones((2, 1))
    target = np.array([1.0, -1.0])
    how = {"rounds": 5, "gain": 1e-9, "rank": 1e-7}
    assert _solvers.gauss_newton(lambda c: (J @ c - target, J), np.ones(1), largest_residual=1.0, **how) is None
    assert _solvers.gauss_newton(lambda c: (J @ c - target, J), np.ones(1), largest_residual=2.0, **how) is not None
