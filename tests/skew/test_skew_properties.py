"""What the shipped fluxes keep on any mesh: symmetries, scaling, linear fields.

The balances are those of the schemes (`test_the_balances_are_those_of_the_scheme`); they cost no compilation.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.mesh import DualGraph, Mesh, dual
from fluxforge.scheme import SKEWED
from fluxforge.skew import Constants, FluxOperator, balances_of, stretch_mesh
from strategies import angles, few, mixed, moved, renumbered, scales, seeds, shifts

MESH = mixed(3, 0.3, seed=3)
FEW_UNITS = 64 * np.finfo(float).eps
"""Round-off of sums of some thirty products, each of which is rounded."""
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


def balances(graph: DualGraph) -> np.ndarray:
    """Those of all shipped fluxes, one after another: a mesh costs more than all that is asked of it."""
    operator = FluxOperator(graph)
    return np.stack(
        [balances_of(Constants(*map(float, each.constants)))(operator).toarray() for each in SKEWED.values()]
    )


def between_cells(mesh: Mesh) -> np.ndarray:
    """The balances without the columns of the walls, whose order depends on that of the cells."""
    return balances(dual(mesh))[:, :, : len(mesh.cells)]


def assert_close(one: np.ndarray, two: np.ndarray, tolerance: float) -> None:
    """Relative to the largest entry of each flux."""
    off, size = (np.abs(each).max(axis=(1, 2)) for each in (two - one, one))
    assert (off <= tolerance * size).all(), dict(zip(SKEWED, off / size, strict=True))


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


@few(12)
@given(stretch=stretches, seed=seeds)
def test_the_numbering_of_cells_and_points_does_not_matter(stretch, seed):
    mesh = stretched(stretch)
    other, order = renumbered(mesh, seed)
    one, two = between_cells(mesh), between_cells(other)
    assert_close(one[:, order][:, :, order], two, tolerance(dual(mesh)))


@few(12)
@given(angle=angles, shift=shifts)
def test_a_rigid_motion_does_not_matter(angle, shift):
    one, two = between_cells(MESH), between_cells(moved(MESH, angle=angle, shift=shift))
    # Coordinates of up to 11 with distances of 0.1 between the centres: a hundred times the round-off.
    assert_close(one, two, 100 * tolerance(dual(MESH)))


@few(12)
@given(stretch=stretches, s=scales)
def test_fluxes_in_the_plane_have_no_length_scale(stretch, s):
    mesh = stretched(stretch)
    assert_close(between_cells(mesh), between_cells(moved(mesh, scale=s)), tolerance(dual(mesh)))


@few(20)
@given(stretch=stretches, slopes=st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)))
def test_linear_fields_are_balanced_on_stretched_meshes(stretch, slopes):
    graph = dual(stretched(stretch))
    T = 1.0 + np.concatenate([graph.x, graph.centre[graph.interior :]]) @ np.array(slopes)
    for name, matrix in zip(SKEWED, balances(graph), strict=True):
        size = np.abs(matrix) @ np.abs(T)
        assert np.abs(matrix @ T).max() <= tolerance(graph) * size.max(), name


@few(12)
@given(stretch=stretches, seed=seeds)
def test_what_leaves_through_the_walls_is_what_the_cells_lose(stretch, seed):
    """Σ over the cells of their balances is Σ of the fluxes at walls: those between cells cancel."""
    graph = dual(stretched(stretch))
    operator = FluxOperator(graph)
    cosine = operator.invariants.cosine
    walls = slice(graph.interior, None)
    T = np.random.default_rng(seed).standard_normal(graph.cells + graph.ghosts)
    g = np.stack([each @ T for each in operator.gradient], axis=1)[walls]
    rise = T[graph.neighbour[walls]] - T[graph.owner[walls]]
    for name, matrix in zip(SKEWED, balances(graph), strict=True):
        # The flux at a wall, from its formula: ψ₁ = c₀ (σ/cos θ + (1 − σ) cos θ), ν = 0.
        c = Constants(*map(float, SKEWED[name].constants))
        weight = c.wall * (c.mix / cosine + (1.0 - c.mix) * cosine)
        flux = weight[walls] * (rise - (g * graph.d[walls]).sum(axis=1)) / graph.delta[walls]
        out = graph.A[walls] * (flux + (g * graph.n[walls]).sum(axis=1))
        assert abs((matrix @ T).sum() - out.sum()) <= tolerance(graph) * (np.abs(matrix) @ np.abs(T)).sum(), name
