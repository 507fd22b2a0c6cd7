"""Random pairs of triangles: valid whatever the key, within the recipe's ranges, and what a mesh of them would be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pair_meshes import corners_of, pair_graph, values_of

from fluxforge import recipe
from fluxforge.data import PairSource, Problem, heat, source
from fluxforge.graph import pad_graph
from fluxforge.scheme.reference import BUILT_IN
from strategies import few, whole_step

# The largest displacements that a recipe allows.
WILD = recipe.Pairs(stretch=0.35, size=(0.5, 3.0), time_step=(0.02, 0.4), common=0.25, presence=0.5)
COUNT = 64
ALPHA = 1.7
seeds = st.integers(0, 2**31 - 1)


@jax.jit
def batch(key: jax.Array) -> Problem:
    return PairSource(WILD, heat(ALPHA), "float64").batch(key, COUNT)


def drawn(seed: int) -> Problem:
    return jax.tree.map(np.asarray, batch(jax.random.key(seed)))


def one(problems: Problem, k: int) -> Problem:
    return jax.tree.map(lambda leaf: leaf[k], problems)


@few(15)
@given(seed=seeds)
def test_every_triangle_is_a_triangle(seed: int) -> None:
    """None turns over and none is flat: outward normals, closed outlines, altitudes bounded from below."""
    around = drawn(seed).graph
    g = around.hops["edge"].geometry
    n = np.stack([g["n_x"], g["n_y"]], axis=-1)
    d = np.stack([g["d_x"], g["d_y"]], axis=-1)
    assert np.hypot(n[..., 0], n[..., 1]) == pytest.approx(np.ones_like(g["A"]), rel=1e-14)
    assert np.hypot(d[..., 0], d[..., 1]) == pytest.approx(g["delta"], rel=1e-14)
    assert ((n * d).sum(axis=-1) > 0).all()
    assert np.abs((g["A"][..., None] * n).sum(axis=2)).max() <= 1e-13
    heron = g["A"].sum(axis=-1) / 2
    assert np.sqrt(heron * (heron[..., None] - g["A"]).prod(axis=-1)) == pytest.approx(around.V, rel=1e-10)
    # The apex was 0.866 sides from its face, and both came at most 0.35 sides closer.
    altitude = 2 * around.V / g["A"].max(axis=-1)
    assert (altitude > 0.08 * g["A"].max(axis=-1)).all()
    assert g["A"][:, 0, 0] == pytest.approx(g["A"][:, 1, 0], rel=1e-15)
    assert n[:, 0, 0] == pytest.approx(-n[:, 1, 0], abs=1e-15)
    assert d[:, 0, 0] == pytest.approx(-d[:, 1, 0], abs=1e-14)


@few(15)
@given(seed=seeds)
def test_volumes_steps_and_values_lie_in_their_ranges(seed: int) -> None:
    problems = drawn(seed)
    mean = problems.graph.V.mean(axis=1)
    assert (mean >= 0.5 * (1 - 1e-14)).all()
    assert (mean <= 3.0 * (1 + 1e-14)).all()
    assert np.ptp(mean) > 1.5
    assert (problems.dt >= 0.02).all()
    assert (problems.dt <= 0.4).all()
    assert np.ptp(problems.dt) > 0.25
    g = np.stack([values_of(one(problems, k)) for k in range(COUNT)])
    for values in (problems.T, problems.S, g):
        assert 0.8 < np.abs(values).max() <= 1.0
    # A quarter of the range is a level common to the whole pair: differences fill what is left.
    assert np.ptp(np.concatenate([problems.T, g.reshape(COUNT, 4)], axis=1), axis=1).max() <= 1.5
    assert (problems.parameters["alpha"] == ALPHA).all()


@few(3)
@given(seed=seeds)
def test_a_pair_is_the_dual_graph_of_its_mesh_and_its_answer_the_schemes(seed: int) -> None:
    problems = drawn(seed)
    for k in range(5):
        problem = one(problems, k)
        edge = problem.graph.hops["edge"]
        corners, value = corners_of(problem), values_of(problem)
        wanted = pad_graph(pair_graph(corners, np.ones((2, 2), bool), value))
        assert np.asarray(wanted.V) == pytest.approx(problem.graph.V, rel=1e-12)
        for name, entry in wanted.hops["edge"].geometry.items():
            assert np.asarray(entry) == pytest.approx(edge.geometry[name], rel=1e-11, abs=1e-13), name
        graph = pair_graph(corners, edge.mask[:, 1:], value)
        step = whole_step(BUILT_IN["euler"], graph, float(problem.dt), ALPHA)
        assert step(problem.T, problem.S) == pytest.approx(problem.answer, abs=1e-12)


def test_faces_come_and_go_and_cells_have_one_to_three_messages() -> None:
    mask = np.concatenate([drawn(seed).graph.hops["edge"].mask for seed in range(8)])
    assert mask[..., 0].all()
    assert set(mask.sum(axis=-1).ravel().tolist()) == {1, 2, 3}
    assert mask[..., 1:].mean() == pytest.approx(WILD.presence, abs=0.05)


def test_every_direction_is_as_good_as_any_other() -> None:
    turned = np.concatenate([drawn(seed).graph.hops["edge"].geometry["n_x"][:, 0, 0] for seed in range(8)])
    angles = np.sort(np.arccos(turned) / np.pi)
    assert np.abs(angles - np.linspace(0, 1, len(angles))).max() < 0.08


def test_the_same_key_gives_the_same_pairs_and_no_two_pairs_are_the_same() -> None:
    first, again, other = drawn(5), drawn(5), drawn(6)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        assert np.array_equal(a, b)
    assert len(np.unique(np.concatenate([first.T, other.T]))) == 4 * COUNT
    assert len(np.unique(np.concatenate([first.graph.V, other.graph.V]))) == 4 * COUNT


def test_without_faces_a_pair_has_one_slot_and_no_ghost() -> None:
    plain = PairSource(recipe.Pairs(faces="none"), heat(), "float32")
    shapes = jax.eval_shape(lambda key: plain.batch(key, 3), jax.random.key(0))
    assert shapes.graph.hops["edge"].mask.shape == (3, 2, 1)
    assert shapes.graph.shown["zero"].cell.shape == (3, 2)
    assert shapes.answer.dtype == jnp.float32


def test_a_recipe_of_pairs_draws_them_anew() -> None:
    spec = recipe.Recipe(name="a", data=WILD, diffusivity=2.5, training=recipe.Training(precision="float64"))
    pairs = source(spec)
    assert isinstance(pairs, PairSource)
    assert (pairs.spec, pairs.model, pairs.dtype) == (WILD, heat(2.5), "float64")
