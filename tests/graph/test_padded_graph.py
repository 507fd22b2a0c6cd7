"""Graphs on the device: transfer, hops, slots, and boundary data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.graph import Neighbourhoods, PaddedGraph, node_volumes, pad_graph, put, view
from fluxforge.mesh import Dirichlet, DualGraph, Neumann, dual, squares
from fluxforge.scheme import Ghost, Hop, symbol
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator
from strategies import BOUNDARIES, MESHES, noise

# Lines of cells are not in every mesh.
HOPS = [Hop.EDGE, Hop.PATH, Hop.RING]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("asked", [True, False])
def test_an_array_that_is_changed_later_has_been_copied(dtype: str, asked: bool) -> None:
    # Memory is shared only where it is aligned: one of these offsets is.
    for offset in range(16):
        mine = np.zeros(4096 + 16, dtype)[offset : offset + 4096]
        there = put(mine, dtype if asked else None)
        mine[:] = 1.0
        assert not np.asarray(there).any()


def test_precision_and_kind_are_kept_or_as_asked():
    assert put(np.arange(3, dtype=np.int32)).dtype == np.int32
    assert put(np.array([True, False])).dtype == bool
    assert put(np.arange(3.0), np.float32).dtype == np.float32
    assert put(np.float64(2.0)).shape == ()


def test_a_graph_is_a_pytree_of_its_arrays() -> None:
    graph = dual(squares(2))
    leaves, structure = jax.tree.flatten(graph)
    assert len(leaves) == 16
    assert all(isinstance(leaf, np.ndarray) for leaf in leaves)
    again = jax.tree.unflatten(structure, leaves)
    assert (again.tags, again.origin, again.cells) == (graph.tags, graph.origin, 4)


GRAPHS = {
    "mixed": dual(MESHES["mixed"], BOUNDARIES["both"]),
    "arrow": dual(MESHES["arrow"], Dirichlet(2.0)),
    "islands": dual(MESHES["islands"], Neumann(0.5)),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
MIXED = GRAPHS["mixed"]


def neighbours(graph: DualGraph, cell: int) -> list[int]:
    """The nodes across the faces of a cell, one per face."""
    return [int(node) for node in graph.slot_node[cell][graph.slot_mask[cell]]]


@every_graph
@pytest.mark.parametrize("hop", HOPS)
def test_every_array_of_a_hop_is_there_under_its_name(graph: DualGraph, hop: Hop) -> None:
    wanted, padded = Neighbourhoods(graph)[hop], pad_graph(graph, HOPS).hops[hop]
    assert np.array_equal(padded.mask, wanted.mask)
    assert {end: np.asarray(node).tolist() for end, node in padded.ends.items()} == {
        end: node.tolist() for end, node in wanted.ends.items()
    }
    assert set(padded.geometry) == {name.name for name in wanted.geometry}
    for name, value in wanted.geometry.items():
        assert np.array_equal(padded.geometry[name.name], value)
    assert (padded.middle is None) == (padded.share is None) == (hop is not Hop.RING)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_precision_is_the_one_asked_for(dtype: str) -> None:
    padded = pad_graph(MIXED, HOPS, dtype=dtype)  # type: ignore[arg-type]
    real = [padded.V, padded.hops["ring"].share]
    real += [leaf for hop in padded.hops.values() for leaf in hop.geometry.values()]
    real += [leaf for shown in padded.shown.values() for leaf in (shown.scale, shown.constant)]
    assert {leaf.dtype.name for leaf in real if leaf is not None} == {dtype}
    assert padded.hops["edge"].ends["N"].dtype == jnp.int32
    assert np.array_equal(padded.V, MIXED.V.astype(dtype))


def test_hops_may_be_asked_for_twice_and_in_any_order() -> None:
    padded = pad_graph(MIXED, [Hop.RING, Hop.EDGE, Hop.RING])
    assert list(padded.hops) == ["edge", "ring"]
    assert list(pad_graph(MIXED).hops) == ["edge"]


@every_graph
@pytest.mark.parametrize("rule", list(Ghost))
def test_nodes_show_a_field_as_the_view_says(graph: DualGraph, rule: Ghost) -> None:
    T = noise(graph.cells)
    nodes = pad_graph(graph).nodes({"T": jnp.asarray(T)}, {"T": rule})
    assert np.array_equal(nodes["T"], view(graph, rule).of(T))


@every_graph
def test_the_far_end_of_an_edge_and_of_a_path(graph: DualGraph) -> None:
    around = pad_graph(graph, HOPS)
    value = noise(graph.cells + graph.ghosts)
    edge, path = (np.asarray(around.hops[hop].mask) for hop in ("edge", "path"))
    across, far = (
        np.asarray(around.hops[hop].at(end, jnp.asarray(value))) for hop, end in (("edge", "N"), ("path", "Q"))
    )
    for cell in range(graph.cells):
        one = neighbours(graph, cell)
        assert across[cell][edge[cell]].tolist() == value[one].tolist()
        two = [end for middle in one if middle < graph.cells for end in neighbours(graph, middle)]
        assert far[cell][path[cell]].tolist() == value[two].tolist()


@every_graph
def test_the_middle_of_a_ring_is_the_mean_over_its_paths(graph: DualGraph) -> None:
    ring = pad_graph(graph, [Hop.RING]).hops["ring"]
    value = noise(graph.cells + graph.ghosts)
    middle, far = (np.asarray(ring.at(end, jnp.asarray(value))) for end in ("N", "Q"))
    mask, node = np.asarray(ring.mask), np.asarray(ring.ends["Q"])
    for cell in range(graph.cells):
        beside = neighbours(graph, cell)
        paths = [(i, j) for i in beside if i < graph.cells for j in neighbours(graph, i)]
        ends = sorted({j for _, j in paths if j < graph.cells and j != cell and j not in beside})
        used = np.flatnonzero(mask[cell])
        assert node[cell, used].tolist() == ends
        for k, j in zip(used, ends, strict=True):
            through = [value[i] for i, end in paths if end == j]
            assert middle[cell, k] == pytest.approx(np.mean(through), rel=1e-14)
            assert far[cell, k] == value[j]
    assert mask.any() == (graph is MIXED)
    assert np.all(middle[~mask] == 0.0)


def test_a_symbol_is_a_parameter_geometry_or_a_field_at_an_end() -> None:
    around = pad_graph(MIXED, [Hop.PATH])
    hop, h1 = around.hops["path"], jnp.asarray(noise(MIXED.cells + MIXED.ghosts))
    wanted = [symbol(name) for name in ("dt", "A_NQ", "V_Q", "h1_Q", "h1_P")]
    values = hop.values(wanted, {"h1": h1}, {"dt": 0.25})
    assert list(values) == wanted
    assert values[symbol("dt")] == 0.25
    assert np.array_equal(values[symbol("A_NQ")], hop.geometry["A_NQ"])
    assert np.array_equal(values[symbol("h1_Q")], h1[hop.ends["Q"]])
    assert np.array_equal(values[symbol("h1_P")], np.broadcast_to(h1[: MIXED.cells, None], hop.mask.shape))
    volumes = node_volumes(MIXED)[np.asarray(hop.ends["Q"])]
    assert np.isinf(volumes).any()
    assert np.array_equal(values[symbol("V_Q")], volumes)


def rate(around: PaddedGraph, T: np.ndarray) -> np.ndarray:
    """1/V Σ A/δ (T_N − T_P)."""
    edge = around.hops["edge"]
    across = edge.at("N", around.shown["dirichlet"].of(jnp.asarray(T))) - T[:, None]
    flux = np.where(edge.mask, edge.geometry["A"] / edge.geometry["delta"] * across, 0.0)
    return flux.sum(axis=1) / np.asarray(around.V)


def test_other_boundary_data_are_those_of_another_graph() -> None:
    """Held values replace g and q δ, and nothing else."""
    other = dual(MESHES["mixed"], {"left": Dirichlet("1 - 3*y"), "right": Neumann("y"), "bottom": Neumann(2.0)})
    around = pad_graph(MIXED)
    assert np.array_equal(other.neumann, MIXED.neumann)
    value = view(other, Ghost.DIRICHLET).constant
    held = around.with_boundary(jnp.asarray(value))
    T = noise(MIXED.cells)
    wanted = generator(BUILT_IN["euler"], other)
    assert np.abs(rate(held, T) - (wanted.M @ T + wanted.b)).max() <= 1e-12 * np.abs(wanted.M @ T).max()
    assert held.shown["owner"] is around.shown["owner"]
    assert held.shown["zero"] is around.shown["zero"]
    assert held.hops is around.hops
    assert not np.array_equal(rate(around, T), rate(held, T))
