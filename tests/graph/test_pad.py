"""Graphs padded to one size: nothing changes where there are cells, and nothing is compiled again."""

from collections.abc import Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.errors import InputError
from fluxforge.gnn import Network
from fluxforge.graph import PaddedGraph, Size, pad_graph, pad_to_size, padded_size, stack_graphs
from fluxforge.mesh import DualGraph, dual, fourier_step
from fluxforge.scheme import Claims, Hop, Scheme, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import GeneralStepper, general_stepper
from small_networks import random_network, spec
from strategies import BOUNDARIES, MESHES, noise

# Triangles, quadrilaterals, both; different counts of cells, ghosts, and slots of every hop.
GRAPHS = {name: dual(MESHES[name], BOUNDARIES["both"]) for name in ("jittered", "warped", "mixed")}
GRAPHS |= {name: dual(MESHES[name]) for name in ("arrow", "two")}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
MIXED = GRAPHS["mixed"]
# Lines of cells are not in every mesh.
HOPS = (Hop.EDGE, Hop.PATH, Hop.RING)
TO = Size(37, 29, {"edge": 5, "path": 18, "ring": 11}, 17)

RING = (
    SchemeBuilder()
    .stage({"z": (Hop.RING, "A_PN*delta_NQ*T_N + delta_PQ*T_Q**2/V_N"), "y": "T_N*T_P"}, {"T_new": "T + z + y/V + S"})
    .build("ring", summary="", claims=Claims())
)
# Edges with normals, paths, ghosts of every kind; and a ring.
SCHEMES = [BUILT_IN["corrected"], BUILT_IN["two-hop"], RING]


def longer(field: np.ndarray, length: int, fill: float = 0.0) -> jax.Array:
    return jnp.asarray(np.concatenate([field, np.full(length - len(field), fill)]))


def general(scheme: Scheme, graph: DualGraph, to: Size | None = None) -> GeneralStepper:
    dt = 0.5 * fourier_step(graph)
    S = noise(graph.cells, 2)
    step = general_stepper(scheme, graph, dt=dt, parameters={"alpha": 1.5}, source=S, dtype="float64")
    if to is None:
        return step
    within = Size(to.cells, to.ghosts, {name: to.slots[name] for name in step.graph.hops}, to.paths)
    swapped = pad_to_size(step.graph, within), longer(np.asarray(step.S), to.cells)
    return eqx.tree_at(lambda s: (s.graph, s.S), step, swapped)


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_a_scheme_steps_a_padded_graph_as_it_steps_the_graph(scheme: Scheme) -> None:
    graph = MIXED
    T = noise(graph.cells)
    wanted = np.asarray(general(scheme, graph).advance(jnp.asarray(T)))
    for fill in (0.0, 1e9):
        stepped = np.asarray(general(scheme, graph, TO).advance(longer(T, TO.cells, fill)))
        assert np.abs(stepped[: graph.cells] - wanted).max() <= 1e-14 * np.abs(wanted).max()
        assert np.isfinite(stepped).all()


SPECS = {
    "path": spec(mlp="gated", depth=1, hops=2, layers=2),
    "ring": spec(mlp="relu", hops=2, two_hop="ring", message_width=2, aggregate="max"),
}
run = eqx.filter_jit(lambda net, around, T, S: net(around, T, S, dt=0.1, parameters={"alpha": 1.3}))


@pytest.mark.parametrize("name", ["ring", pytest.param("path", marks=pytest.mark.slow)])
def test_a_network_steps_a_stack_of_graphs_as_it_steps_each(name: str) -> None:
    """Garbage in padding cells does not change the result."""
    net, graphs = random_network(SPECS[name]), [GRAPHS["jittered"], MIXED]
    together = stack_graphs([pad_graph(graph, HOPS) for graph in graphs])
    cells = together.V.shape[1]
    T, S = (jnp.stack([longer(noise(g.cells, k), cells, 1e9) for g in graphs]) for k in (1, 2))
    stepped = np.asarray(eqx.filter_jit(jax.vmap(lambda around, T, S: run(net, around, T, S)))(together, T, S))
    assert np.isfinite(stepped).all()
    alone = run(net, pad_graph(MIXED, HOPS), *(jnp.asarray(noise(MIXED.cells, k)) for k in (1, 2)))
    wanted = np.asarray(alone)
    assert np.abs(stepped[1, : MIXED.cells] - wanted).max() <= 1e-14 * np.abs(wanted).max()


def same(one: PaddedGraph, other: PaddedGraph) -> bool:
    leaves, others = jax.tree.leaves(one), jax.tree.leaves(other)
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(leaves, others, strict=True)
    )


@every_graph
def test_padding_to_its_own_size_changes_nothing(graph: DualGraph) -> None:
    around = pad_graph(graph, HOPS)
    assert same(pad_to_size(around, padded_size(around)), around)


@every_graph
def test_a_padded_graph_has_the_size_asked_for_and_padding_twice_is_padding_once(graph: DualGraph) -> None:
    around = pad_graph(graph, HOPS)
    between = Size(36, 27, {"edge": 4, "path": 17, "ring": 10}, 16)
    once = pad_to_size(around, TO)
    assert padded_size(once) == TO
    assert same(pad_to_size(pad_to_size(around, between), TO), once)


@every_graph
def test_padding_takes_part_in_nothing(graph: DualGraph) -> None:
    padded = pad_to_size(pad_graph(graph, HOPS), TO)
    live = np.asarray(padded.live)
    assert live.tolist() == [True] * graph.cells + [False] * (TO.cells - graph.cells)
    assert np.array_equal(padded.V, np.where(live, longer(graph.V, TO.cells), 1.0))
    taken = set(range(graph.cells)) | set(range(TO.cells, TO.cells + graph.ghosts))
    for hop in padded.hops.values():
        mask = np.asarray(hop.mask)
        assert not mask[~live].any()
        for node in hop.ends.values():
            assert set(np.asarray(node)[mask].tolist()) <= taken
            assert (np.asarray(node)[~live] == np.flatnonzero(~live)[:, None]).all()
        if hop.share is not None:
            assert np.all(np.asarray(hop.share).sum(axis=1) == pytest.approx(np.where(mask, 1.0, 0.0)))
        assert all(np.all(np.asarray(value)[~live] == 1.0) for value in hop.geometry.values())
    for rule, shown in padded.shown.items():
        field = np.arange(1.0, TO.cells + 1)
        seen = np.asarray(shown.of(jnp.asarray(field)))
        assert np.array_equal(seen[: graph.cells], field[: graph.cells])
        assert np.array_equal(seen[graph.cells : TO.cells], np.zeros(TO.cells - graph.cells))
        ghosts = pad_graph(graph).shown[rule].of(jnp.asarray(field[: graph.cells]))[graph.cells :]
        assert np.array_equal(seen[TO.cells :], longer(np.asarray(ghosts), TO.ghosts))


def test_a_stack_is_just_large_enough() -> None:
    graphs = [pad_graph(GRAPHS[name], HOPS) for name in ("jittered", "warped", "two")]
    together = stack_graphs(graphs)
    size = padded_size(jax.tree.map(lambda leaf: np.asarray(leaf)[0], together))
    sizes = [padded_size(around) for around in graphs]
    assert size.cells == max(each.cells for each in sizes) == 32
    assert size.ghosts == max(each.ghosts for each in sizes) == 16
    assert size.slots == {name: max(each.slots[name] for each in sizes) for name in HOPS}
    assert size.paths == max(each.paths for each in sizes) == 16
    assert together.V.shape == (3, 32)
    assert {leaf.shape[0] for leaf in jax.tree.leaves(together)} == {3}


def sizes_too_small() -> Iterable[Size]:
    has = padded_size(pad_graph(MIXED, HOPS))
    yield has._replace(cells=has.cells - 1)
    yield has._replace(ghosts=has.ghosts - 1)
    yield has._replace(paths=has.paths - 1)
    for hop in HOPS:
        yield has._replace(slots={**has.slots, str(hop): has.slots[hop] - 1})
        yield has._replace(slots={name: count for name, count in has.slots.items() if name != hop})


@pytest.mark.parametrize("small", list(sizes_too_small()), ids=str)
def test_a_graph_that_does_not_fit_is_refused_in_numbers(small: Size) -> None:
    around = pad_graph(MIXED, HOPS)
    with pytest.raises(InputError) as refusal:
        pad_to_size(around, small)
    assert str(refusal.value) == f"a graph of {padded_size(around)} does not fit into {small}"
    assert str(padded_size(around)) == "24 cells, 16 ghosts, 4 edge slots, 16 path slots, 6 ring slots, 16 paths"


def test_meshes_of_one_padded_size_share_a_trace() -> None:
    traced = []

    @eqx.filter_jit
    def step(net: Network, around: PaddedGraph, T: jax.Array) -> jax.Array:
        traced.append(T.shape)
        return net(around, T, T, dt=0.1, parameters={})

    for k, graph in enumerate(GRAPHS.values()):
        net = random_network(spec(depth=1), seed=k)
        step(net, pad_to_size(pad_graph(graph, HOPS), TO), longer(noise(graph.cells), TO.cells))
    assert traced == [(TO.cells,)]
