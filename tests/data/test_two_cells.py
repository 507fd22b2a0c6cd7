"""The paper's training set: its geometry, its corner cases, its distribution, and its answers."""

from functools import cache

import jax
import numpy as np
import pytest
from pair_meshes import corners_of, pair_graph, pair_mesh, values_of

from fluxforge import mesh, recipe
from fluxforge.data import CORNER_CASES, EQUILATERAL, FixedSource, Problem, heat, source, two_cells
from fluxforge.graph import pad_graph
from fluxforge.mesh import dual
from fluxforge.stepping import stepper

ROOT = np.sqrt(3.0)
FACES = recipe.TwoCells(graphs=200, faces="random", time_step=0.07)
NONE = recipe.TwoCells(graphs=200, negated=True)


@cache
def drawn(spec: recipe.TwoCells, seed: int = 0, dtype: str = "float64") -> Problem:
    """The problems in NumPy."""
    return jax.tree.map(np.asarray, two_cells(spec, jax.random.key(seed), model=heat(1.3), dtype=dtype))


def one(problems: Problem, k: int) -> Problem:
    return jax.tree.map(lambda leaf: leaf[k], problems)


def test_the_geometry_is_that_of_equilateral_triangles_of_side_two() -> None:
    """To the last digits, although the package was perhaps imported in JAX's 32-bit mode."""
    around = drawn(FACES).graph
    edge = around.hops["edge"].geometry
    assert isinstance(EQUILATERAL, np.ndarray)
    assert EQUILATERAL.dtype == np.float64
    assert pytest.approx(np.full((205, 2), ROOT), rel=1e-15) == around.V
    assert edge["A"] == pytest.approx(np.full((205, 2, 3), 2.0), rel=1e-15)
    inner, outer = edge["delta"][..., 0], edge["delta"][..., 1:]
    assert inner == pytest.approx(np.full_like(inner, 2 / ROOT), rel=1e-15)
    assert outer == pytest.approx(np.full_like(outer, 1 / ROOT), rel=1e-15)
    assert np.isinf(edge["V_N"][..., 1:]).all()
    assert around.live.all()


def test_the_geometry_is_that_of_the_mesh_of_two_cells() -> None:
    wanted = pad_graph(dual(mesh.two_cells())).hops["edge"]
    drawn_graph = one(drawn(FACES), 0).graph
    assert np.asarray(pad_graph(dual(mesh.two_cells())).V) == pytest.approx(np.asarray(drawn_graph.V), rel=1e-15)
    for name in ("A", "delta", "V_P", "V_N", "chi"):
        assert np.asarray(wanted.geometry[name]) == pytest.approx(drawn_graph.hops["edge"].geometry[name], rel=1e-14), (
            name
        )


def test_every_array_is_that_of_the_dual_graph_of_the_same_corners() -> None:
    """Slot by slot, normals and vectors included, and whatever a ghost shows under each rule."""
    problem = one(drawn(FACES), 3)
    corners = corners_of(problem)
    assert corners - corners[0] == pytest.approx(EQUILATERAL - EQUILATERAL[0], abs=1e-14)
    graph = pair_graph(corners, np.ones((2, 2), bool), values_of(problem))
    wanted = pad_graph(graph)
    edge = problem.graph.hops["edge"]
    assert set(edge.geometry) == set(wanted.hops["edge"].geometry)
    for name, value in wanted.hops["edge"].geometry.items():
        assert np.asarray(value) == pytest.approx(edge.geometry[name], abs=1e-14), name
    T = jax.numpy.asarray(problem.T)
    for rule, shown in wanted.shown.items():
        across = wanted.hops["edge"].at("N", shown.of(T))
        mine = problem.graph.shown[rule]
        seen = (mine.scale * problem.T[mine.cell] + mine.constant)[edge.ends["N"]]
        assert np.asarray(across) == pytest.approx(seen, abs=1e-15), rule


@pytest.mark.parametrize("k", [0, 1, 2, 3, 200])
def test_the_answer_is_a_step_of_the_first_order_scheme_on_that_mesh(k: int) -> None:
    problem = one(drawn(FACES), k)
    present = problem.graph.hops["edge"].mask[:, 1:]
    graph = pair_graph(EQUILATERAL, present, values_of(problem))
    step = stepper("euler", graph, 0.07, diffusivity=1.3, source=problem.S, renumber=False)
    assert problem.dt == 0.07
    assert problem.parameters["alpha"] == 1.3
    assert np.asarray(step.advance(step.enter(problem.T))) == pytest.approx(problem.answer, abs=1e-14)


def test_the_corner_cases_come_last_exactly_and_their_negatives_after_them() -> None:
    problems = drawn(NONE)
    cases = np.concatenate([problems.T, problems.S], axis=1)[200:].tolist()
    assert cases == [*map(list, CORNER_CASES), *([-v for v in case] for case in CORNER_CASES[1:])]
    assert len(drawn(FACES).T) == 205
    assert not drawn(FACES).graph.hops["edge"].mask[200:, :, 1:].any()
    exchange = 1.3 * 0.1 * 2 / (2 / ROOT) / ROOT
    assert problems.answer[200:205] == pytest.approx(
        np.array([[0, 0], [1, 1], [0.1, 0.1], [exchange, 1 - exchange], [1 - exchange, exchange]]), abs=1e-15
    )


def test_without_corner_cases_there_are_none() -> None:
    spec = recipe.TwoCells(graphs=3, corner_cases=False, negated=True)
    assert jax.eval_shape(lambda key: two_cells(spec, key), jax.random.key(0)).T.shape == (3, 2)


def test_without_faces_there_is_one_slot_and_no_ghost() -> None:
    around = drawn(NONE).graph
    assert around.hops["edge"].mask.shape == (209, 2, 1)
    assert around.hops["edge"].mask.all()
    assert around.hops["edge"].ends["N"].tolist() == [[[1], [0]]] * 209
    assert {shown.cell.shape for shown in around.shown.values()} == {(209, 2)}


def test_with_faces_a_cell_has_one_to_three_messages_in_every_combination() -> None:
    mask = drawn(FACES).graph.hops["edge"].mask[:200]
    assert mask.shape == (200, 2, 3)
    assert mask[..., 0].all()
    outer = mask[..., 1:].reshape(200, 4)
    assert len({tuple(row) for row in outer.tolist()}) == 16
    assert 0.4 < outer.mean() < 0.6


@pytest.mark.parametrize("spec", [FACES, NONE])
def test_values_are_uniform_between_minus_one_and_one(spec: recipe.TwoCells) -> None:
    problems = drawn(spec)
    fields = [problems.T[:200], problems.S[:200]]
    fields += [np.stack([values_of(one(problems, k)) for k in range(200)])] if spec is FACES else []
    for values in fields:
        assert 0.95 < np.abs(values).max() <= 1.0
        assert abs(values.mean()) < 0.12
        assert values.std() == pytest.approx(1 / ROOT, abs=0.06)
        assert len(np.unique(values)) == values.size


def leaves_equal(a: Problem, b: Problem) -> list[bool]:
    return [np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)]


def test_the_same_key_gives_the_same_data_and_another_gives_others() -> None:
    again = jax.tree.map(np.asarray, two_cells(FACES, jax.random.key(0), model=heat(1.3), dtype="float64"))
    assert all(leaves_equal(again, drawn(FACES)))
    assert not np.isin(drawn(FACES, 1).T[:200], drawn(FACES).T[:200]).any()


def of_recipe(precision: str, dtype: str | None, x64: bool) -> Problem:
    training = recipe.Training(precision=precision)  # type: ignore[arg-type]
    spec = recipe.Recipe(name="a", data=FACES, diffusivity=1.3, training=training)
    with jax.enable_x64(x64):
        fixed = source(spec, dtype=dtype)  # type: ignore[arg-type]
        assert isinstance(fixed, FixedSource)
        return jax.tree.map(np.asarray, fixed.problems)


def test_a_recipes_graphs_depend_neither_on_precision_nor_on_jaxs_mode() -> None:
    single, double = (of_recipe(precision, None, x64=True) for precision in ("float32", "float64"))
    assert all(leaves_equal(single, of_recipe("float32", None, x64=False)))
    assert all(leaves_equal(double, of_recipe("float64", None, x64=False)))
    assert all(leaves_equal(double, of_recipe("float32", "float64", x64=False)))
    for problems, dtype in ((single, "float32"), (double, "float64")):
        real = [leaf.dtype for leaf in jax.tree.leaves(problems) if leaf.dtype.kind == "f"]
        assert set(real) == {np.dtype(dtype)}
    assert np.array_equal(single.T, double.T)
    assert np.array_equal(single.graph.hops["edge"].mask, double.graph.hops["edge"].mask)
    assert 0.0 < np.abs(single.answer - double.answer).max() < 1e-6


def test_a_mesh_of_a_pair_is_made_of_two_counter_clockwise_triangles() -> None:
    """What the comparisons above rest on."""
    assert mesh.info(pair_mesh(EQUILATERAL)).cell_area_min == pytest.approx(ROOT, rel=1e-14)
