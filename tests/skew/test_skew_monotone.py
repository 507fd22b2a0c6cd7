"""Blends that keep the range of the walls where linear fluxes leave it."""

import numpy as np
import pytest

from fluxforge.mesh import dual
from fluxforge.skew import (
    CORRECTED,
    FluxOperator,
    SteadyProblem,
    face_weights,
    make_mesh,
    manufactured_problems,
    solve_monotone,
    solve_steady,
    stretch_mesh,
)
from fluxforge.skew._monotone import limit_corrections


def halves(graph):
    at = graph.centre[graph.interior :, 0]
    return (at > np.median(at)).astype(float)


def test_the_range_of_the_walls_is_kept_where_the_corrected_flux_leaves_it():
    operator = FluxOperator(stretch_mesh("irregular", 6, 3, 20.0, 0.3).graph)
    graph, psi = operator.graph, face_weights(CORRECTED, operator.invariants)
    nothing, walls = np.zeros(graph.cells), halves(operator.graph)
    linear = solve_steady(operator.matrix(psi), graph, nothing[:, None], walls[:, None])
    assert max(linear.max() - 1.0, -linear.min()) > 1e-3
    blended = solve_monotone(operator, psi, nothing, walls)
    # An M-matrix keeps the range but for the round-off of a solve.
    assert blended.cells.max() <= 1.0 + 1e-12
    assert blended.cells.min() >= -1e-12


def test_a_converged_blend_is_conservative():
    """What the cells gain is what flows through the walls: no source, so both are zero."""
    operator = FluxOperator(dual(make_mesh("irregular", 6, 2)))
    graph, psi = operator.graph, face_weights(CORRECTED, operator.invariants)
    walls = halves(graph)
    solution = solve_monotone(operator, psi, np.zeros(graph.cells), walls)
    assert solution.converged
    nodes = np.concatenate([solution.cells, walls])
    correction = (operator.face_fluxes(psi) - operator.plain_fluxes()) @ nodes
    two_point = operator.plain_fluxes() @ nodes
    balance = operator.plain_matrix() @ nodes + limit_corrections(graph, correction, nodes) @ nodes
    # The last change was a ten millionth of the range; fluxes are up to its size times A/δ.
    assert np.abs(balance).max() <= 1e-5 * np.abs(two_point).max()


def test_where_nothing_has_to_be_limited_the_blend_is_the_linear_flux():
    case = SteadyProblem(make_mesh("jittered", 8, 1), manufactured_problems(2, 1))
    operator = case.operator
    graph = operator.graph
    nodes = np.concatenate([graph.x, graph.centre[graph.interior :]])
    walls = nodes[graph.cells :] @ [1.0, 0.4]
    psi = face_weights(CORRECTED, operator.invariants)
    solution = solve_monotone(operator, psi, np.zeros(graph.cells), walls)
    # A linear field has no extremum inside: limited only if a correction is larger than the two-point fluxes allow.
    assert solution.cells == pytest.approx(nodes[: graph.cells] @ [1.0, 0.4], abs=1e-5)


def test_limited_corrections_raise_no_maximum_and_lower_no_minimum():
    operator = FluxOperator(dual(make_mesh("jittered", 5, 1)))
    graph, rng = operator.graph, np.random.default_rng(0)
    T = rng.normal(size=graph.cells + graph.ghosts)
    correction = (operator.face_fluxes(face_weights(CORRECTED, operator.invariants)) - operator.plain_fluxes()) @ T
    limited = limit_corrections(graph, correction, T)
    off = limited.toarray().copy()
    off[np.arange(graph.cells), np.arange(graph.cells)] = 0.0
    assert (off >= 0.0).all()
    # Constants are not moved; the sums of a row's coefficients round.
    assert np.abs(limited @ np.ones(len(T))).max() <= 1e-12 * np.abs(limited).max()
