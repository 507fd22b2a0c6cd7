"""What the shipped fluxes keep on any mesh: symmetries, scaling, linear fields.

The balances are those of the schemes (`test_the_balances_are_those_of_the_scheme`); they cost no compilation.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.mesh import DualGraph, Mesh, dual
from fluxforge.scheme import SKEWED
from fluxforge.skew import Constants, FluxOperator, balances_of, stretch_mesh
from strategies import angles, few, mixed, moved, renumbered, scales, seeds, shifts

MESH = mixed(3, 0.3, seed=3)
FEW_UNITS = 64 * np.finfo(float).eps
"""Round-off of sums of some thirty products, each of which is rounded."""
shipped = pytest.mark.parametrize("name", SKEWED)
# A mesh takes longer to make than Hypothesis allows for drawing it: its numbers are drawn.
stretches = st.tuples(
    st.sampled_from(["right", "jittered", "irregular", "quadrilaterals"]),
    st.integers(0, 10**6),
    st.floats(1.0, 30.0),
    st.floats(-0.5, 0.5),
)


def stretched(stretch: tuple[str, int, float, float]) -> Mesh:
    family, seed, aspect, shear = stretch
    return stretch_mesh(family, 4, seed, aspect, shear).mesh


def balances(name: str, graph: DualGraph) -> np.ndarray:
    return balances_of(Constants(*map(float, SKEWED[name].constants)))(FluxOperator(graph)).toarray()


def between_cells(name: str, mesh: Mesh) -> np.ndarray:
    """The balances without the columns of the walls, whose order depends on that of the cells."""
    return balances(name, dual(mesh))[:, : len(mesh.cells)]


def worst_condition(graph: DualGraph) -> float:
    """The largest condition number of the cells' least-squares matrices: it multiplies round-off of the gradients."""
    inner = graph.interior
    here = np.concatenate([graph.owner, graph.neighbour[:inner]])
    d = np.concatenate([graph.d, -graph.d[:inner]])
    M = np.zeros((graph.cells, 2, 2))
    np.add.at(M, here, d[:, :, None] * d[:, None, :] / (d**2).sum(axis=1)[:, None, None])
    return float(np.linalg.cond(M).max())


def tolerance(graph: DualGraph) -> float:
    """Relative to the largest entry: weights of the gradients err by round-off times the condition number."""
    return FEW_UNITS * worst_condition(graph)


@shipped
@few(20)
@given(stretch=stretches, seed=seeds)
def test_the_numbering_of_cells_and_points_does_not_matter(name, stretch, seed):
    mesh = stretched(stretch)
    other, order = renumbered(mesh, seed)
    one, two = between_cells(name, mesh), between_cells(name, other)
    assert np.abs(two - one[order][:, order]).max() <= tolerance(dual(mesh)) * np.abs(one).max()


@shipped
@few(20)
@given(angle=angles, shift=shifts)
def test_a_rigid_motion_does_not_matter(name, angle, shift):
    one, two = between_cells(name, MESH), between_cells(name, moved(MESH, angle=angle, shift=shift))
    # Coordinates of up to 11 with distances of 0.1 between the centres: a hundred times the round-off.
    assert np.abs(two - one).max() <= 100 * tolerance(dual(MESH)) * np.abs(one).max()


@shipped
@few(20)
@given(stretch=stretches, s=scales)
def test_fluxes_in_the_plane_have_no_length_scale(name, stretch, s):
    mesh = stretched(stretch)
    one, two = between_cells(name, mesh), between_cells(name, moved(mesh, scale=s))
    assert np.abs(two - one).max() <= tolerance(dual(mesh)) * np.abs(one).max()


@shipped
@few(40)
@given(stretch=stretches, slopes=st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)))
def test_linear_fields_are_balanced_on_stretched_meshes(name, stretch, slopes):
    graph = dual(stretched(stretch))
    matrix = balances(name, graph)
    T = 1.0 + np.concatenate([graph.x, graph.centre[graph.interior :]]) @ np.array(slopes)
    size = np.abs(matrix) @ np.abs(T)
    assert np.abs(matrix @ T).max() <= tolerance(graph) * size.max()


@shipped
@few(20)
@given(stretch=stretches, seed=seeds)
def test_what_leaves_through_the_walls_is_what_the_cells_lose(name, stretch, seed):
    """Σ over the cells of their balances is Σ of the fluxes at walls: those between cells cancel."""
    graph = dual(stretched(stretch))
    operator = FluxOperator(graph)
    matrix = balances(name, graph)
    T = np.random.default_rng(seed).standard_normal(matrix.shape[1])
    cosine = operator.invariants.cosine
    # The flux at a wall, from its formula: ψ₁ = c₀ (σ/cos θ + (1 − σ) cos θ), ν = 0.
    c = Constants(*map(float, SKEWED[name].constants))
    weight = c.wall * (c.mix / cosine + (1.0 - c.mix) * cosine)
    walls = slice(graph.interior, None)
    g = np.stack([each @ T for each in operator.gradient], axis=1)[walls]
    rise = T[graph.neighbour[walls]] - T[graph.owner[walls]]
    flux = weight[walls] * (rise - (g * graph.d[walls]).sum(axis=1)) / graph.delta[walls]
    out = graph.A[walls] * (flux + (g * graph.n[walls]).sum(axis=1))
    assert abs((matrix @ T).sum() - out.sum()) <= tolerance(graph) * (np.abs(matrix) @ np.abs(T)).sum()
