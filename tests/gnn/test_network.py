"""Networks against loops over cells: values, derivatives, symmetries, and the inputs of each MLP."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge import recipe
from fluxforge.gnn import Network, build, cast, inputs, parameters
from fluxforge.graph import PaddedGraph, pad_graph, stack_graphs
from fluxforge.mesh import DualGraph, dual
from fluxforge.scheme import Hop
from small_networks import Numbers, Plain, random_network, spec
from strategies import BOUNDARIES, MESHES, moved, noise, renumbered

GRAPH = dual(MESHES["mixed"], BOUNDARIES["both"])
NUMBERS = Numbers(noise(GRAPH.cells, 1), noise(GRAPH.cells, 2), dt=0.03, alpha=1.7)
SPECS = {
    "simplified": spec(features="simplified", mlp="relu", layers=2, update="direct"),
    "wide-messages-mean": spec(mlp="gated", depth=1, message_width=2, aggregate="mean"),
    "three-layers-min": spec(mlp="relu", depth=3, layers=3, hidden=2, aggregate="min"),
    "path-max": spec(mlp="gated", depth=1, hops=2, layers=2, aggregate="max"),
    "ring-mean": spec(mlp="gated", depth=1, hops=2, two_hop="ring", aggregate="mean"),
}
every_spec = pytest.mark.parametrize("name", SPECS)


@eqx.filter_jit
def whole(net: Network, around: PaddedGraph, numbers: Numbers, weights: jax.Array) -> tuple[jax.Array, Network]:
    """T', and the slope of weights · T' with respect to every parameter."""

    def value(net: Network) -> tuple[jax.Array, jax.Array]:
        after = net(around, numbers.T, numbers.S, dt=numbers.dt, parameters={"alpha": numbers.alpha})
        return weights @ after, after

    slope, after = eqx.filter_grad(value, has_aux=True)(net)
    return after, slope


def on(
    graph: DualGraph, name: str, numbers: Numbers = NUMBERS, net: Network | None = None
) -> tuple[np.ndarray, Network]:
    net = random_network(SPECS[name]) if net is None else net
    arrays = jax.tree.map(jnp.asarray, numbers)
    after, slope = whole(net, pad_graph(graph, net.hops), arrays, jnp.asarray(noise(graph.cells, 3)))
    return np.asarray(after), slope


def gap(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max() / np.abs(other).max())


@every_spec
def test_a_step_is_what_loops_over_the_cells_make_of_it(name: str) -> None:
    net = random_network(SPECS[name])
    stepped, _ = on(GRAPH, name)
    assert gap(stepped, Plain(SPECS[name], net, GRAPH, NUMBERS).step()) <= 1e-12


@every_spec
def test_slopes_are_finite_and_those_of_the_loops(name: str) -> None:
    """1/V = 0 at ghosts, unused slots and the corners of ReLUs must not spoil a derivative."""
    net = random_network(SPECS[name])
    _, slope = on(GRAPH, name)
    flat = np.asarray(parameters(slope))
    assert np.isfinite(flat).all()
    along = jax.tree.map(lambda leaf: jnp.asarray(noise(leaf.size, 4).reshape(leaf.shape)), net)
    far = 1e-6
    up, down = (jax.tree.map(lambda a, b, k=k: a + k * far * b, net, along) for k in (1, -1))
    ends = [noise(GRAPH.cells, 3) @ Plain(SPECS[name], each, GRAPH, NUMBERS).step() for each in (up, down)]
    assert flat @ np.asarray(parameters(along)) == pytest.approx((ends[0] - ends[1]) / (2 * far), rel=1e-6)
    assert np.count_nonzero(flat) > 0.4 * flat.size


@pytest.mark.parametrize("name", ["path-max", "ring-mean", "simplified"])
def test_renumbering_the_cells_renumbers_the_step(name: str) -> None:
    mesh, order = renumbered(MESHES["mixed"], seed=5)
    turned = Numbers(NUMBERS.T[order], NUMBERS.S[order], NUMBERS.dt, NUMBERS.alpha)
    wanted, _ = on(GRAPH, name)
    stepped, _ = on(dual(mesh, BOUNDARIES["both"]), name, turned)
    assert gap(stepped, wanted[order]) <= 1e-13
    assert gap(wanted, wanted[order]) > 1e-3


@pytest.mark.parametrize("name", ["path-max", "ring-mean", "simplified"])
def test_a_step_does_not_see_where_the_mesh_lies(name: str) -> None:
    far = moved(MESHES["mixed"], angle=1.1, shift=(3.0, -7.0))
    graph = eqx.tree_at(lambda g: g.value, dual(far, BOUNDARIES["both"]), GRAPH.value)
    assert gap(on(graph, name)[0], on(GRAPH, name)[0]) <= 1e-12


def test_a_step_does_see_the_size_of_the_mesh() -> None:
    graph = eqx.tree_at(lambda g: g.value, dual(moved(MESHES["mixed"], scale=1.1), BOUNDARIES["both"]), GRAPH.value)
    assert gap(on(graph, "path-max")[0], on(GRAPH, "path-max")[0]) > 1e-4


@pytest.mark.parametrize("name", ["path-max", "three-layers-min"])
def test_nothing_assumes_that_a_step_is_linear(name: str) -> None:
    double = Numbers(2 * NUMBERS.T, 2 * NUMBERS.S, NUMBERS.dt, NUMBERS.alpha)
    nothing = Numbers(0 * NUMBERS.T, 0 * NUMBERS.S, NUMBERS.dt, NUMBERS.alpha)
    two, one, zero = (on(GRAPH, name, numbers)[0] for numbers in (double, NUMBERS, nothing))
    assert gap(two - one, one - zero) > 1e-4


def test_the_papers_network_has_516_parameters() -> None:
    paper = recipe.Network(features="simplified", mlp="relu", layers=2, depth=2, width=32, update="direct")
    shape = eqx.filter_eval_shape(build, paper, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(shape)) == 516
    assert [len(layer.messages) for layer in shape.layers] == [1, 1]
    assert parameters(random_network(paper)).shape == (516,)


@pytest.mark.parametrize("preset", recipe.PRESETS)
@pytest.mark.parametrize("name", recipe.list_recipes())
def test_every_shipped_network_can_be_built(name: str, preset: str) -> None:
    section = recipe.load(name, preset=preset).network
    shape = eqx.filter_eval_shape(build, section, jax.random.key(0))
    assert len(shape.layers) == section.layers
    assert shape.hops == {Hop.EDGE} | ({Hop(section.two_hop)} if section.hops == 2 else set())


def test_the_same_key_gives_the_same_weights_and_no_two_entries_are_one() -> None:
    section = spec(features="simplified", mlp="relu", layers=2, update="direct")
    make = eqx.filter_jit(lambda key: parameters(build(section, key)))
    one, again, other = (np.asarray(make(jax.random.key(seed))) for seed in (3, 3, 4))
    assert np.array_equal(one, again)
    assert not np.isin(one, other).any()
    assert len(set(one.tolist())) == len(one)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_cast_network_keeps_its_numbers_and_its_structure(dtype: str) -> None:
    net = random_network(SPECS["simplified"])
    converted = cast(net, dtype)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(converted)} == {dtype}
    assert jax.tree.structure(converted) == jax.tree.structure(net)
    assert np.array_equal(parameters(converted), np.asarray(parameters(net)).astype(dtype))


def posed(graphs: list[DualGraph], hops: frozenset[Hop]) -> SimpleNamespace:
    """Problems on several graphs, padded, with garbage where there is no cell."""
    around = stack_graphs([pad_graph(graph, hops) for graph in graphs])
    cells = around.V.shape[1]

    def field(seed: int) -> jax.Array:
        filled = [np.append(noise(g.cells, seed + k), np.full(cells - g.cells, 1e9)) for k, g in enumerate(graphs)]
        return jnp.asarray(np.stack(filled))

    many = len(graphs)
    return SimpleNamespace(
        graph=around, T=field(10), S=field(20), dt=jnp.full(many, 0.03), parameters={"alpha": jnp.ones(many)}
    )


def test_the_rows_every_mlp_sees_are_those_of_the_loops() -> None:
    """Unused slots and padding are left out, layer by layer, messages before update."""
    section = spec(mlp="relu", layers=2, hidden=2, aggregate="mean")
    net = random_network(section)
    graphs = [GRAPH, dual(MESHES["two"])]
    problems = posed(graphs, net.hops)
    loops = []
    for k, graph in enumerate(graphs):
        T, S = (np.asarray(field)[k, : graph.cells] for field in (problems.T, problems.S))
        loops.append(Plain(section, net, graph, Numbers(T, S, 0.03, 1.0)))
        loops[-1].step()
    tables = inputs(net, problems)
    assert len(tables) == 4
    for table, first, second in zip(tables, loops[0].rows, loops[1].rows, strict=True):
        assert np.allclose(np.asarray(table), np.array([*first, *second]), rtol=1e-12, atol=1e-13)
