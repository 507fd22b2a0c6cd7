"""Random fields, and ensembles of padded meshes with problems on them."""

from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge import recipe
from fluxforge.data import (
    Ensemble,
    EnsembleSource,
    FixedSource,
    Problem,
    ensemble,
    heat,
    pose,
    random_field,
    smooth_field,
    source,
)
from fluxforge.graph import pad_graph
from fluxforge.mesh import DualGraph, Mesh, Neumann, dual, fourier_step, jittered, squares, two_cells, unit_volume
from fluxforge.scheme import Hop
from fluxforge.scheme.reference import BUILT_IN
from strategies import few, moved, whole_step

X = jnp.asarray(np.random.default_rng(0).random((200, 2)))
KEYS = 32


@jax.jit
def fields(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """All kinds of many keys, and what the smooth part alone would be."""
    keys = jax.random.split(key, KEYS)
    of_kinds = jax.vmap(lambda kind: jax.vmap(lambda own: random_field(own, X, kind))(keys))(jnp.arange(3))
    return of_kinds, jax.vmap(lambda own: smooth_field(jax.random.split(own, 3)[0], X))(keys)


@few(4)
@given(seed=st.integers(0, 2**31 - 1))
def test_fields_of_every_kind_stay_within_minus_one_and_one(seed: int) -> None:
    fields_by_kind, smooth = map(np.asarray, fields(jax.random.key(seed)))
    assert np.abs(fields_by_kind).max() <= 1.0
    by_name = dict(zip(recipe.FIELDS, fields_by_kind, strict=True))
    assert by_name["smooth"] == pytest.approx(smooth, abs=1e-13)
    assert by_name["noise"].std() == pytest.approx(1 / np.sqrt(3), abs=0.03)
    share = [
        np.linalg.lstsq(np.stack(parts, axis=1), mixed, rcond=None)[0]
        for *parts, mixed in zip(*fields_by_kind, strict=True)
    ]
    assert np.asarray(share).sum(axis=1) == pytest.approx(np.ones(KEYS), abs=1e-9)
    assert np.ptp(np.asarray(share)[:, 0]) > 0.5


def test_a_smooth_field_is_a_smooth_function_of_the_place() -> None:
    """|∇| is at most the largest wave number, and fields differ from key to key."""
    near = jnp.asarray(np.random.default_rng(1).random((100, 2)))
    step = 1e-5
    pairs = jnp.concatenate([near, near + jnp.array([[step, 0.0]]), near + jnp.array([[0.0, step]])])
    of_key = jax.jit(lambda key: smooth_field(key, pairs))
    samples = np.stack([np.asarray(of_key(jax.random.key(seed))) for seed in range(20)]).reshape(20, 3, 100)
    slope = np.hypot(samples[:, 1] - samples[:, 0], samples[:, 2] - samples[:, 0]) / step
    assert slope.max() <= 6 * np.pi * np.sqrt(2)
    assert slope.max() > 4.0
    assert np.abs(np.corrcoef(samples[:, 0])[~np.eye(20, dtype=bool)]).max() < 0.95
    assert np.abs(samples).max() > 0.6


def test_a_fixed_source_draws_from_its_set_with_replacement() -> None:
    around = jax.tree.map(lambda leaf: jnp.asarray(np.stack([leaf] * 5)), pad_graph(dual(two_cells())))
    T, unit = jnp.asarray(np.repeat(np.arange(5.0)[:, None], 2, axis=1)), jnp.ones(5)
    fixed = FixedSource(Problem(around, T, T, unit, {"alpha": unit}, 10 * T))
    draw = jax.jit(lambda key: fixed.batch(key, 40))
    batch, again, other = (draw(jax.random.key(seed)) for seed in (3, 3, 4))
    which = np.asarray(batch.T)[:, 0].astype(int)
    assert np.array_equal(batch.T, np.repeat(which[:, None], 2, axis=1))
    assert np.array_equal(batch.answer, 10 * np.asarray(batch.T))
    assert set(which.tolist()) == set(range(5))
    assert np.array_equal(again.T, batch.T)
    assert not np.array_equal(other.T, batch.T)


# Different sizes, different cells, one of them far from the unit square.
MESHES: tuple[Mesh, ...] = (jittered(5, 0.3, seed=1), moved(squares(2), scale=40.0, shift=(7.0, -3.0)))
SPEC = recipe.Meshes(fourier=(0.1, 0.8))
ALPHA = 2.5
COUNT = 96


@cache
def together() -> Ensemble:
    return ensemble(MESHES)


@eqx.filter_jit
def drawn(source: EnsembleSource, key: jax.Array) -> Problem:
    return source.batch(key, COUNT)


@cache
def batch() -> Problem:
    return jax.tree.map(np.asarray, drawn(EnsembleSource(together(), SPEC, heat(ALPHA)), jax.random.key(0)))


def which(problems: Problem) -> np.ndarray:
    """The number of the mesh of every problem."""
    return np.where(problems.graph.live.all(axis=1), 0, 1)


def held(problems: Problem, k: int) -> tuple[DualGraph, int]:
    """The graph of a problem with the boundary values it holds, in units of its mean cell."""
    number = int(which(problems)[k])
    graph, _ = unit_volume(dual(MESHES[number]))
    g = problems.graph.shown["dirichlet"].constant[k, 50 : 50 + graph.ghosts]
    return eqx.tree_at(lambda each: each.value, graph, g), graph.cells


def test_meshes_are_in_units_of_their_mean_cell() -> None:
    V, live = (np.asarray(leaf) for leaf in (together().graph.V, together().graph.live))
    assert live.sum(axis=1).tolist() == [50, 4]
    assert [V[k][live[k]].mean() for k in range(2)] == pytest.approx([1.0, 1.0], rel=1e-14)
    assert np.all(V[~live] == 1.0)
    assert together().meshes == 2


def longest() -> list[float]:
    """The Fourier step of each mesh in its units, values given on all of its boundary."""
    return [fourier_step(dual(mesh), ALPHA) / dual(mesh).V.mean() for mesh in MESHES]


def test_the_fourier_step_is_that_of_each_mesh_in_its_units() -> None:
    how: dict[str, Any] = {"field": jnp.array(1), "fourier": jnp.array(1.0), "model": heat(ALPHA)}
    posed = eqx.filter_jit(lambda mesh: pose(mesh, jax.random.key(0), **how).dt)
    for number, step in enumerate(longest()):
        assert float(posed(together().member(number))) == pytest.approx(step, rel=1e-13)


def test_places_lie_in_the_unit_square_and_ghosts_on_its_sides() -> None:
    x = np.asarray(together().x)
    for number, mesh in enumerate(MESHES):
        graph = dual(mesh)
        inside, ghosts = x[number, : graph.cells], x[number, 50 : 50 + graph.ghosts]
        low = mesh.points.min(axis=0)
        assert inside == pytest.approx((graph.x - low) / np.ptp(mesh.points[:, 0]), abs=1e-13)
        assert (inside > 0).all()
        assert (inside < 1).all()
        assert np.abs(ghosts * (1 - ghosts)).min(axis=1) == pytest.approx(np.zeros(graph.ghosts), abs=1e-13)


def test_one_of_the_meshes_is_that_mesh_alone() -> None:
    assert together().member(1).graph.V.shape == (50,)


def test_every_problem_is_within_its_ranges() -> None:
    problems = batch()
    live = problems.graph.live
    for values in (problems.T, problems.S):
        assert 0.9 < np.abs(values).max() <= 1.0
        assert np.all(values[~live] == 0.0)
    g = problems.graph.shown["dirichlet"].constant[:, 50:]
    assert 0.9 < np.abs(g).max() <= 1.0
    number = which(problems)
    assert 0.3 < number.mean() < 0.7
    fo = problems.dt / np.array(longest())[number]
    assert fo.min() >= 0.1
    assert fo.max() <= 0.8
    assert np.ptp(fo) > 0.6
    assert np.all(problems.parameters["alpha"] == ALPHA)
    assert len(np.unique(problems.dt)) == COUNT


@pytest.mark.parametrize("k", range(6))
def test_the_answer_is_a_step_of_the_first_order_scheme(k: int) -> None:
    problems = batch()
    graph, cells = held(problems, k)
    step = whole_step(BUILT_IN["euler"], graph, float(problems.dt[k]), ALPHA)
    assert step(problems.T[k, :cells], problems.S[k, :cells]) == pytest.approx(problems.answer[k, :cells], abs=1e-13)
    assert np.all(problems.answer[k, cells:] == 0.0)


def test_fields_are_of_all_kinds() -> None:
    """A sum of cosines seldom comes near its bound, noise does."""
    spread = batch().T[which(batch()) == 0].std(axis=1)
    assert (spread < 0.3).sum() > 5
    assert (spread > 0.5).sum() > 5


def test_the_boundary_continues_a_smooth_field_half_of_the_time() -> None:
    """Of the fields a third is smooth, so that a sixth of all walls look like the cells beside them."""
    here, graph = which(batch()) == 0, dual(MESHES[0])
    g = batch().graph.shown["dirichlet"].constant[here, 50 : 50 + graph.ghosts]
    owners = batch().T[here][:, graph.owner[graph.interior :]]
    alike = np.array([np.corrcoef(*pair)[0, 1] for pair in zip(g, owners, strict=True)])
    assert 0.05 < (alike > 0.7).mean() < 0.4
    assert 0.5 < (alike < 0.6).mean() < 0.95


def test_insulated_walls_stay_insulated() -> None:
    """Held values go to Dirichlet ghosts only; a Neumann ghost keeps showing its owner."""
    insulated = ensemble(MESHES, boundary={"left": Neumann(), "right": Neumann(0.5)})
    scale = np.asarray(insulated.graph.shown["dirichlet"].scale)
    problems = jax.tree.map(np.asarray, drawn(EnsembleSource(insulated, SPEC, heat(ALPHA)), jax.random.key(0)))
    first = int(np.flatnonzero(which(problems) == 0)[0])
    ghosts_shown = jax.tree.map(lambda leaf: leaf[first], problems.graph.shown["dirichlet"])
    graph, _ = unit_volume(dual(MESHES[0], {"left": Neumann(), "right": Neumann(0.5)}))
    ghosts = ghosts_shown.constant[50 : 50 + graph.ghosts]
    slopes = graph.value * graph.delta[graph.interior :]
    assert graph.neumann.sum() == 10
    assert ghosts[graph.neumann] == pytest.approx(slopes[graph.neumann], rel=1e-14)
    assert np.all(ghosts[~graph.neumann] != 0.0)
    assert np.array_equal(ghosts_shown.scale, scale[0])
    fo = problems.dt / np.array(longest())[which(problems)]
    assert 0.1 <= fo.min() < 0.2
    assert 0.7 < fo.max() <= 0.8


def test_a_recipe_of_meshes_is_an_ensemble_with_the_hops_a_network_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUXFORGE_CACHE", str(tmp_path))
    data = recipe.Meshes(meshes=2, cells=(8, 12), engine="builtin")
    spec = recipe.Recipe(name="a", data=data, diffusivity=0.5, training=recipe.Training(precision="float32"))
    ensemble_source = source(spec, {Hop.EDGE, Hop.PATH})
    assert isinstance(ensemble_source, EnsembleSource)
    assert set(ensemble_source.ensemble.graph.hops) == {"edge", "path"}
    assert ensemble_source.ensemble.x.dtype == jnp.float32
    assert (ensemble_source.spec, ensemble_source.model) == (data, heat(0.5))
