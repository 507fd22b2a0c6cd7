"""Products with n and tangential parts: against loops over faces, at walls, from both sides, and under motions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.graph import Neighbourhoods, pad_graph
from fluxforge.mesh import Dirichlet, DualGraph, Neumann, OnDemand, dual, equilateral, jittered, resolve, squares
from fluxforge.pde import from_document
from fluxforge.scheme import Hop, symbol
from moved_graphs import orthogonal, renumbered, shifted, the_other_way_round, turned
from strategies import few, seeds
from tetrahedra import six_tetrahedra

EPS = np.finfo(float).eps
WALLS = {"left": Dirichlet(1.0), "right": Neumann(0.3), "top": Neumann(), "bottom": Dirichlet("x")}
SKEWED = dual(jittered(4, 0.25, 2), WALLS)
CARRIED = from_document(
    {
        "name": "carried",
        "transported": "u",
        "velocity": "a",
        "diffusion": "K",
        "parameters": {"a": {"rank": "vector", "where": "face"}, "K": {"rank": "tensor"}},
    }
)
GRAPHS = {"plane": SKEWED, "space": six_tetrahedra(), "insulated": six_tetrahedra(held=False)}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def velocities(graph: DualGraph, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=graph.n.shape)


def tensor(dimension: int, seed: int = 0) -> np.ndarray:
    """Symmetric and positive definite."""
    root = np.random.default_rng(seed).normal(size=(dimension, dimension))
    return root @ root.T + np.eye(dimension)


def seen(graph: DualGraph, a: np.ndarray, K: np.ndarray) -> dict[str, np.ndarray]:
    """Every invariant in every slot."""
    edge = Neighbourhoods(graph, resolve(CARRIED, graph, {"a": a, "K": K.tolist()}))[Hop.EDGE]
    return {name: edge.geometry[symbol(name)] for name in ("d_n", "d_t", "a_n", "a_t", "K_nn", "K_nt")}


@every_graph
def test_each_is_what_loops_over_cells_and_their_faces_make_of_it(graph: DualGraph) -> None:
    a, K = velocities(graph), tensor(graph.dimension)
    invariants = seen(graph, a, K)
    for cell in range(graph.cells):
        for slot in np.flatnonzero(graph.slot_mask[cell]):
            face = graph.slot_face[cell, slot]
            away = 1.0 if graph.owner[face] == cell else -1.0
            n, d = away * graph.n[face], away * graph.d[face]
            assert n @ (graph.centre[face] - graph.x[cell]) > 0
            for name, v in (("d", d), ("a", a[face]), ("K_n", K @ n)):
                along, rest = v @ n, v - (v @ n) * n
                # Each is a sum of `dimension` products of numbers no larger than |v|.
                close = 8 * EPS * np.linalg.norm(v)
                assert abs(invariants[f"{name}_n".replace("K_n_n", "K_nn")][cell, slot] - along) <= close
                length = invariants[f"{name}_t".replace("K_n_t", "K_nt")][cell, slot]
                assert abs(length - np.sqrt(rest @ rest)) <= close


def test_on_orthogonal_meshes_the_distance_is_along_the_normal_and_on_skewed_ones_it_is_not() -> None:
    for mesh in (squares(4), equilateral(4)):
        graph = dual(mesh, Neumann())
        legs, used = graph.legs(), graph.slot_mask
        apart = np.abs(legs["d_n"] - legs["delta"])[used] / legs["delta"][used]
        # Points of size 1 are known to an eps, and cells are a quarter of that.
        assert apart.max() <= 32 * EPS
        assert legs["d_t"][used].max() <= 32 * EPS * legs["delta"].max()
    legs, inside = SKEWED.legs(), SKEWED.slot_face < SKEWED.interior
    assert (legs["delta"] - legs["d_n"])[inside].max() > 0.05 * legs["delta"].max()
    assert legs["d_t"][inside].max() > 0.2 * legs["delta"].max()
    assert np.allclose(legs["d_n"] ** 2 + legs["d_t"] ** 2, legs["delta"] ** 2, rtol=8 * EPS, atol=0.0)


def test_at_walls_they_are_those_of_the_ghost() -> None:
    """At a Dirichlet face d leads to its centre; at a Neumann face it is δ n, twice the height of the cell's centre."""
    legs = SKEWED.legs()
    for cell, slot in np.argwhere(SKEWED.slot_face >= SKEWED.interior):
        face = SKEWED.slot_face[cell, slot]
        way = SKEWED.centre[face] - SKEWED.x[cell]
        height, offset = way @ SKEWED.n[face], abs(way[0] * SKEWED.n[face, 1] - way[1] * SKEWED.n[face, 0])
        insulated = SKEWED.neumann[face - SKEWED.interior]
        assert legs["d_n"][cell, slot] == pytest.approx((2 if insulated else 1) * height, rel=1e-13)
        assert legs["d_t"][cell, slot] == pytest.approx(0.0 if insulated else offset, abs=8 * EPS)
        assert not insulated or legs["d_n"][cell, slot] == pytest.approx(legs["delta"][cell, slot], rel=4 * EPS)


@every_graph
def test_only_the_product_of_a_vector_and_n_has_another_sign_from_the_other_side(graph: DualGraph) -> None:
    a, K = velocities(graph), tensor(graph.dimension)
    invariants = seen(graph, a, K)
    for face in range(graph.interior):
        (P, k), (N, m) = np.argwhere((graph.slot_face == face) & graph.slot_mask)
        for name, value in invariants.items():
            assert value[P, k] == (-1 if name == "a_n" else 1) * value[N, m], name


@every_graph
@given(seed=seeds)
@few(10)
def test_no_motion_changes_them_nor_which_cell_owns_a_face(graph: DualGraph, seed: int) -> None:
    Q, rng = orthogonal(graph.dimension, seed), np.random.default_rng(seed)
    a, K = velocities(graph, seed), tensor(graph.dimension, seed)
    wanted = seen(graph, a, K)
    order = rng.permutation(graph.cells)
    away = shifted(turned(graph, Q), rng.normal(size=graph.dimension))
    turn_K = Q @ K @ Q.T
    moved = seen(renumbered(away, order), a @ Q.T, (turn_K + turn_K.T) / 2)
    swapped = seen(the_other_way_round(graph), a, K)
    for name, value in wanted.items():
        # Q is orthogonal to a few eps, and each product adds as many.
        size = np.abs(value).max() + np.abs(a).max() + np.abs(K).max()
        assert np.abs(moved[name] - value[order][:, ::-1]).max() <= 64 * EPS * size, name
        assert np.array_equal(swapped[name], value), name


@given(seed=seeds, scale=st.floats(1e-3, 1e3))
@few(10)
def test_lengths_go_with_the_mesh_and_the_parameters_stay(seed: int, scale: float) -> None:
    a, K = velocities(SKEWED, seed), tensor(2, seed)
    larger = replace(
        SKEWED,
        **{name: getattr(SKEWED, name) * scale for name in ("x", "A", "d", "delta", "centre")},
        V=SKEWED.V * scale**2,
    )
    wanted, invariants = seen(SKEWED, a, K), seen(larger, a, K)
    for name, value in wanted.items():
        factor = scale if name in ("d_n", "d_t") else 1.0
        assert np.allclose(invariants[name], factor * value, rtol=1e-13, atol=8 * EPS * factor), name


def test_a_face_between_the_ends_of_a_periodic_row_has_those_of_its_own_d() -> None:
    """Geometry is that of faces, not of centroids: d may lead around."""
    row = _periodic_row(3)
    legs = row.legs()
    assert np.allclose(legs["d_n"], 1.0, rtol=4 * EPS)
    assert np.allclose(legs["d_t"], 0.5, rtol=4 * EPS)
    assert np.linalg.norm(row.x[2] - row.x[0]) > 2.0


def _periodic_row(cells: int) -> DualGraph:
    """Cells in a sheared row, each beside the next, the last beside the first: no walls."""
    x = np.stack([np.arange(cells) + 0.5, 0.5 * np.arange(cells)], axis=1)
    owner = np.arange(cells, dtype=np.int32)
    face = np.stack([owner, (owner - 1) % cells], axis=1).astype(np.int32)
    d = np.tile([1.0, 0.5], (cells, 1))
    return DualGraph(
        V=np.ones(cells),
        x=x,
        owner=owner,
        neighbour=((owner + 1) % cells).astype(np.int32),
        A=np.ones(cells),
        n=np.tile([1.0, 0.0], (cells, 1)),
        d=d,
        delta=np.linalg.norm(d, axis=1),
        centre=x + d / 2,
        slot_face=face,
        slot_node=np.stack([(owner + 1) % cells, (owner - 1) % cells], axis=1).astype(np.int32),
        slot_sign=np.tile([1.0, -1.0], (cells, 1)),
        slot_mask=np.ones((cells, 2), bool),
        tag=np.zeros(0, np.int64),
        neumann=np.zeros(0, bool),
        value=np.zeros(0),
        tags=(),
        origin="a periodic row",
    )


def test_over_a_path_both_legs_have_their_own() -> None:
    hops = Neighbourhoods(SKEWED, resolve(CARRIED, SKEWED, {"a": velocities(SKEWED), "K": tensor(2).tolist()}))
    edge, path, steps = hops[Hop.EDGE], hops[Hop.PATH], hops.paths
    for name in ("d_n", "d_t", "a_n", "a_t", "K_nn", "K_nt"):
        one = edge.geometry[symbol(name)]
        first, second = (path.geometry[symbol(f"{name}_{leg}")] for leg in ("PN", "NQ"))
        assert np.array_equal(first, one[:, steps.first_slot])
        assert np.array_equal(second, one[steps.middle, steps.second_slot])


def test_arrays_are_made_once_and_only_those_asked_for() -> None:
    made = []

    def maker(name: str):
        return lambda: made.append(name) or np.ones(2)

    arrays = OnDemand({name: maker(name) for name in ("a", "b", "c")})
    assert (list(arrays), len(arrays), made) == (["a", "b", "c"], 3, [])
    assert arrays["b"] is arrays["b"]
    assert made == ["b"]
    with pytest.raises(KeyError):
        arrays["d"]


def test_the_device_is_given_the_symbols_asked_for() -> None:
    whole = pad_graph(SKEWED).hops["edge"].geometry
    some = pad_graph(SKEWED, symbols=("d_n", "A", "T_P")).hops["edge"].geometry
    assert set(some) == {"d_n", "A"}
    assert {"d_n", "d_t", "n_x", "d_y", "V_N"} < set(whole)
    assert np.array_equal(some["d_n"], whole["d_n"])
