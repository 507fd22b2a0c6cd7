"""Networks that are given d·n, a·n, tangential parts and the correction by gradients: what they can learn then."""

from typing import Any

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from carried_networks import CARRIED, posed, random_weights
from fluxforge import recipe
from fluxforge.data import heat, model_of, source
from fluxforge.distil import compose, sample, to_canonical, units_of
from fluxforge.errors import InputError, RecipeError, SchemeError
from fluxforge.gnn import Network, Standardised, build, inputs, parameters, standards
from fluxforge.graph import PaddedGraph, evaluate_stages, pad_graph, stack_graphs
from fluxforge.mesh import Dirichlet, DualGraph, Neumann, dual, jittered, resolve
from fluxforge.pde import HEAT, unit
from fluxforge.scheme import Message, Output, Scheme, Stage, symbol
from fluxforge.stepping import network_stepper
from fluxforge.train import begin, optimiser
from moved_graphs import orthogonal, renumbered, shifted, the_other_way_round, turned
from small_networks import spec
from strategies import few, noise, seeds
from tetrahedra import six_tetrahedra

EVERY = ("d_n", "d_t", "a_n", "a_t", "K_nn", "K_nt", "correction")
WALLS = {"left": Dirichlet(1.0), "right": Neumann(0.3), "top": Neumann(), "bottom": Dirichlet("x")}
GRAPHS = {"plane": dual(jittered(3, 0.2, 1), WALLS), "space": six_tetrahedra(value="x")}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def settings(graph: DualGraph, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(graph.dimension, graph.dimension))
    return {"a": rng.normal(size=graph.n.shape), "K": np.eye(graph.dimension) + root @ root.T / 4}


@eqx.filter_jit
def step(network: Network, around: PaddedGraph, T: jax.Array, S: jax.Array) -> jax.Array:
    return evaluate_stages(network.rounds, around, T, S, parameters={"dt": 0.01, "alpha": 1.0})


def on(
    network: Network, graph: DualGraph, values: dict[str, np.ndarray], order: np.ndarray | None = None
) -> np.ndarray:
    fields = resolve(CARRIED, graph, {"a": values["a"], "K": values["K"].tolist()})
    T, S = (jnp.asarray(noise(graph.cells, k)) for k in (1, 2))
    if order is not None:
        T, S = T[order], S[order]
    return np.asarray(step(network, pad_graph(graph, network.hops, parameters=fields), T, S))


@every_graph
@given(seed=seeds)
@few(5)
def test_no_motion_changes_the_step_of_a_network(graph: DualGraph, seed: int) -> None:
    of = spec(mlp="relu", layers=2, hops=2, invariants=EVERY)
    network = random_weights(of, CARRIED, graph.dimension)
    Q, rng = orthogonal(graph.dimension, seed), np.random.default_rng(seed)
    values, order = settings(graph, seed), rng.permutation(graph.cells)
    wanted = on(network, graph, values)
    moved = renumbered(shifted(turned(graph, Q), rng.normal(size=graph.dimension)), order)
    K = Q @ values["K"] @ Q.T
    stepped = on(network, moved, {"a": values["a"] @ Q.T, "K": (K + K.T) / 2}, order)
    # Two layers with sums of dozens of messages: inputs that differ by a few eps differ by some thousand at the end.
    close = 1e-11 * np.abs(wanted).max()
    assert np.abs(stepped - wanted[order]).max() <= close
    assert np.abs(on(network, the_other_way_round(graph), values) - wanted).max() <= close
    # The same network sees that a velocity alone is turned.
    assert np.abs(on(network, graph, {**values, "a": -values["a"]}) - wanted).max() > 1e3 * close


@given(scale=st.floats(1e-3, 1e3))
@few(5)
def test_a_network_of_lengths_steps_a_mesh_of_another_size_alike(scale: float) -> None:
    mesh, T = jittered(3, 0.2, 1), noise(18, 1)
    network = random_weights(spec(mlp="relu", invariants=("d_n", "d_t", "correction")), HEAT, 2)
    wanted = network_stepper(network, dual(mesh, Dirichlet(1.0)), 0.01, source=2.0)(T)
    larger = dual(type(mesh)(mesh.points * scale, mesh.cells, mesh.boundary), Dirichlet(1.0))
    stepped = network_stepper(network, larger, 0.01 * scale**2, source=2.0 / scale**2)(T)
    assert np.abs(np.asarray(stepped) - np.asarray(wanted)).max() <= 1e-11 * np.abs(np.asarray(wanted)).max()


@every_graph
def test_the_correction_of_a_linear_field_is_what_the_two_point_flux_lacks(graph: DualGraph) -> None:
    """T = b·x, on walls too: (T_N − T_P)/(d·n) + correction = b·n, and d·n alone is not enough."""
    b = np.array([1.0, -2.0, 3.0])[: graph.dimension]
    held = dual(jittered(3, 0.2, 1), Dirichlet("x - 2*y")) if graph.dimension == 2 else six_tetrahedra(value=0.0)
    T = held.x @ b
    if graph.dimension == 3:
        held = eqx.tree_at(lambda g: g.value, held, held.centre[held.interior :] @ b)
    network = random_weights(spec(invariants=("d_n", "d_t", "correction")), HEAT, held.dimension)
    table = np.asarray(inputs(network, posed(pad_graph(held), T))[0])
    T_N, T_P, d_n, correction = (table[:, k] for k in (0, 1, 4, 6))
    along = (held.n @ b)[held.slot_face] * held.slot_sign
    assert np.abs((T_N - T_P) / d_n + correction - along[held.slot_mask]).max() < 1e-12
    assert np.abs((T_N - T_P) / d_n - along[held.slot_mask]).max() > 0.1
    assert np.array_equal(d_n, held.legs()["d_n"][held.slot_mask])


def test_inputs_are_standardised_and_the_learned_ones_left_alone() -> None:
    graph = GRAPHS["plane"]
    around = pad_graph(graph, parameters=resolve(CARRIED, graph, settings(graph)))
    network = random_weights(spec(mlp="relu", layers=2, invariants=EVERY), CARRIED, 2)
    problems = posed(around, noise(graph.cells))
    tables = inputs(network, problems)
    statistics = standards(network, tables)
    for standard, table, learned in zip((statistics[0], statistics[2]), (tables[0], tables[2]), (0, 2), strict=True):
        assert table.shape[1] == len(standard.mean) == 4 + len(EVERY)
        measured = np.asarray(table)[:, learned:]
        assert standard.mean[learned:] == pytest.approx(measured.mean(axis=0), rel=1e-12)
        assert standard.spread[learned:] == pytest.approx(measured.std(axis=0), rel=1e-12)
        assert set(zip(standard.mean[:learned], standard.spread[:learned], strict=True)) <= {(0.0, 1.0)}


def test_without_invariants_a_network_is_what_it_was() -> None:
    plain, other = (build(spec(hops=2, **more), jax.random.key(3)) for more in ({}, {"invariants": ()}))
    assert np.array_equal(parameters(plain), parameters(other))
    assert plain.gradient is None
    names = [str(own) for own in plain.layers[0].messages[0].features]
    assert names == ["T_N", "T_P", "A", "delta"]
    more = build(spec(hops=2, invariants=("d_t", "d_n")), jax.random.key(3)).layers[0]
    assert [str(own) for own in more.messages[0].features] == [*names, "d_t", "d_n"]
    assert [str(own) for own in more.messages[1].features[-4:]] == ["d_t_PN", "d_n_PN", "d_t_NQ", "d_n_NQ"]
    ring = build(spec(hops=2, two_hop="ring", invariants=("d_n",)), jax.random.key(3)).layers[0]
    assert [str(own) for own in ring.messages[0].features] == [*names, "d_n"]
    assert len(ring.messages[1].features) == len(plain.layers[0].messages[1].features)


def test_padding_spoils_neither_a_step_nor_its_slopes() -> None:
    graphs = [dual(jittered(n, 0.2, 1), Dirichlet(1.0)) for n in (2, 4)]
    network = random_weights(spec(mlp="relu", invariants=("correction",)), HEAT, 2)
    together = stack_graphs([pad_graph(graph) for graph in graphs])
    T = [noise(graph.cells) for graph in graphs]
    padded = jnp.stack([jnp.asarray(np.resize(each, graphs[1].cells)) for each in T])

    def total(network: Network, T: jax.Array) -> jax.Array:
        after = jax.vmap(lambda around, T: step(network, around, T, jnp.zeros_like(T)))(together, T)
        return jnp.where(together.live, after, 0.0).sum()

    alone = sum(
        float(step(network, pad_graph(g), jnp.asarray(t), jnp.zeros(len(t))).sum())
        for g, t in zip(graphs, T, strict=True)
    )
    assert float(total(network, padded)) == pytest.approx(alone, rel=1e-12)
    assert np.isfinite(np.asarray(parameters(eqx.filter_grad(total)(network, padded)))).all()
    assert np.isfinite(np.asarray(jax.grad(total, argnums=1)(network, padded))).all()


def test_invariants_that_the_equation_or_mesh_lacks_are_refused() -> None:
    with pytest.raises(InputError, match="equation 'heat' has no invariant 'a_n'; it has: d_n, d_t, correction"):
        build(spec(invariants=("a_n",)), jax.random.key(0))
    flat = random_weights(spec(invariants=("correction",)), HEAT, 2)
    with pytest.raises(SchemeError, match="uses gradients in 2 dimensions, and the mesh has 3"):
        step(flat, pad_graph(GRAPHS["space"]), jnp.ones(6), jnp.zeros(6))


VECTOR = {"rank": "vector", "units": {"length": 1, "time": -1}}
FLOW = {
    **{"name": "flow", "transported": "u", "velocity": "a", "diffusion": "K"},
    "parameters": {"a": VECTOR, "K": {"rank": "tensor", "units": {"length": 2, "time": -1}}},
}
VALUES = {"a": (0.6, -0.8), "K": ((2.0, 0.5), (0.5, 1.0))}


def small(**options: object) -> recipe.Recipe:
    of = {"equation": FLOW, "parameters": VALUES} if options.pop("flows", False) else {}
    return recipe.Recipe(
        **of,  # type: ignore[arg-type]
        name="small",
        data=options.pop("data", recipe.TwoCells(graphs=4)),  # type: ignore[arg-type]
        network=recipe.Network(width=2, depth=1, **options),  # type: ignore[arg-type]
        loss=recipe.Loss(residual=recipe.Residual()),
    )


def test_a_recipe_names_invariants_that_there_are() -> None:
    recipe.check(small(invariants=("d_n", "d_t")))
    recipe.check(small(invariants=("correction",), data=recipe.Meshes()))
    with pytest.raises(RecipeError, match=r"network.invariants\[1\].*expected .*'d_t'.*got 'd_m'"):
        recipe.check(small(invariants=("d_n", "d_m")))
    with pytest.raises(RecipeError, match="'d_n' is listed twice"):
        recipe.check(small(invariants=("d_n", "d_n")))
    for data in (recipe.TwoCells(graphs=4), recipe.Pairs()):
        with pytest.raises(
            RecipeError, match=r"'data.kind'.*: only cells of meshes have .* choose data of kind 'meshes'$"
        ):
            recipe.check(small(invariants=("correction",), data=data))
    with pytest.raises(RecipeError, match=r"network.invariants\[0\].*got 'a_n'"):
        recipe.check(small(invariants=("a_n",)))
    recipe.check(small(invariants=("a_n", "K_nt"), flows=True))
    with pytest.raises(RecipeError, match="data have a_n over one hop only"):
        recipe.check(small(invariants=("a_n",), flows=True, hops=2, data=recipe.Meshes()))


def test_a_recipe_of_another_equation_gives_its_network_what_faces_see_of_the_parameters() -> None:
    """The data's own a·n, n·K n and tangential parts are those that NumPy resolves on the same graph."""
    flow_recipe = small(invariants=("a_n", "a_t", "K_nn", "K_nt"), flows=True)
    network: Any = begin(flow_recipe, optimiser(flow_recipe.training)).network
    assert [str(own) for own in network.layers[0].messages[0].features[-4:]] == ["a_n", "a_t", "K_nn", "K_nt"]
    graph = GRAPHS["plane"]
    fields = resolve(CARRIED, graph, {"a": np.tile(VALUES["a"], (len(graph.n), 1)), "K": VALUES["K"]})
    around, _ = model_of(flow_recipe).put_on(pad_graph(graph))
    resolved = {**fields.slots, **fields.tangential}
    for name in ("a_n", "a_t", "K_nn", "K_nt"):
        values = np.asarray(around.hops["edge"].geometry[name])
        assert np.abs(values - resolved[name]).max() <= 1e-15 * 8, name


OF_MESHES = recipe.Recipe(
    name="of-meshes",
    data=recipe.Meshes(meshes=2, cells=(15, 25), engine="builtin", law="alpha*A/d_n*(T_N - T_P)"),
    network=recipe.Network(mlp="relu", depth=1, width=2, standardise=True, invariants=("d_n", "correction")),
    loss=recipe.Loss(supervised=recipe.Supervised()),
    training=recipe.Training(steps=30, batch=2, learning_rate=0.03, chunk=10, checkpoint_every=30, precision="float64"),
)


@pytest.mark.slow
def test_a_recipe_s_network_is_read_in_their_symbols_and_the_formula_steps_alike() -> None:
    data = source(OF_MESHES)
    # As training begins, with its standards measured: the first member of what is trained side by side.
    begun = begin(OF_MESHES, optimiser(OF_MESHES.training), data).network
    network = jax.tree.map(lambda leaf: leaf[0], begun)
    problems = eqx.filter_jit(lambda key: data.batch(key, 3))(jax.random.key(7))
    message, update = sample(network, problems, rows=60)
    assert message.table.names == ("T_N", "T_P", "A", "delta", "d_n", "x6")
    assert units_of(message.table.names)["d_n"] == unit(length=1)
    used = np.asarray(problems.graph.hops["edge"].mask)
    there = np.asarray(problems.graph.hops["edge"].geometry["d_n"])[used]
    assert np.isin(message.table.X[:, 4], there).all()
    formulas = {}
    for part, f in ((message, network.layers[0].messages[0].f), (update, network.layers[0].update.f)):
        assert isinstance(f, Standardised)
        ((linear,), (mean, spread)) = f.f.layers, f.standard  # type: ignore[attr-defined]
        columns = zip(np.asarray(linear.weight)[0].tolist(), part.table.names, mean, spread, strict=True)
        terms = sp.Add(*(w / s * (symbol(name) - m) for w, name, m, s in columns))
        formulas[part.name] = part.translate(terms + float(linear.bias[0]))
    assert {"d_n", "g_x_P", "g_y_N", "n_y"} <= {own.name for own in formulas["z1"].free_symbols}
    stages = (*(each.stage for each in network.before), *to_canonical(compose(network, formulas), heat(1.0)))
    assert Scheme("read", stages).dimension == 2
    first = jax.tree.map(lambda leaf: leaf[0], problems)
    live, numbers = np.asarray(first.graph.live), {"dt": first.dt, "alpha": 1.0}
    by_formula, by_network = (
        np.asarray(evaluate_stages(rounds, first.graph, first.T, first.S, parameters=numbers))[live]
        for rounds in (stages, network.rounds)
    )
    # Formulas are multiplied out: sums of some forty terms, each larger than their sum by the mean over the spread.
    assert np.abs(by_formula - by_network).max() <= 1e-10 * np.abs(by_network).max()


def test_a_flux_with_its_correction_is_one_where_gradients_vanish_with_the_differences() -> None:
    """T_N − T_P and gradients are 0 together, so that the message is a flux and gets its α."""
    flux = 2.0 * symbol("A") * ((symbol("T_N") - symbol("T_P")) / symbol("d_n"))
    correction = (
        2.0 * symbol("A") * (symbol("g_x_P") + symbol("g_x_N")) * (symbol("n_x") - symbol("d_x") / symbol("d_n"))
    )
    new = Output(symbol("T") + symbol("dt") / symbol("V") * symbol("z1"))
    (stage,) = to_canonical((Stage({"z1": Message(flux + correction)}, {"T_new": new}),), heat(1.0))
    assert symbol("alpha") in stage.messages["z1"].expression.free_symbols
