"""Two-hop paths and rings against walks in plain Python."""

from collections import Counter, deque

import numpy as np
import pytest

from fluxforge.mesh import DualGraph, Neumann, Paths, dual, jittered, paths, ring
from strategies import MESHES, mixed, renumbered

GRAPHS = {name: dual(mesh) for name, mesh in MESHES.items()}
GRAPHS["insulated"] = dual(MESHES["mixed"], Neumann())
GRAPHS["shuffled"] = dual(renumbered(mixed(5, 0.3, seed=9), seed=4).mesh)
GRAPHS["larger"] = dual(jittered(7, 0.3, seed=2))

every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))


def beside(graph: DualGraph) -> list[list[int]]:
    """The nodes across the faces of each cell, one entry per face."""
    found: list[list[int]] = [[] for _ in range(graph.cells)]
    for f, (P, N) in enumerate(zip(graph.owner.tolist(), graph.neighbour.tolist(), strict=True)):
        found[P].append(N)
        if f < graph.interior:
            found[N].append(P)
    return found


def distances(near: list[list[int]], start: int) -> dict[int, int]:
    """Breadth first over cells."""
    reached, queue = {start: 0}, deque([start])
    while queue:
        P = queue.popleft()
        for N in near[P]:
            if len(near) > N and N not in reached:
                reached[N] = reached[P] + 1
                queue.append(N)
    return reached


@every_graph
def test_the_paths_are_all_walks_of_two_steps_through_a_cell(graph: DualGraph) -> None:
    near, found = beside(graph), paths(graph)
    for P in range(graph.cells):
        wanted = Counter((N, Q) for N in near[P] if graph.cells > N for Q in near[N])
        real = found.mask[P]
        pairs = zip(found.middle[P, real].tolist(), found.end[P, real].tolist(), strict=True)
        assert Counter(pairs) == wanted


@every_graph
def test_each_path_leaves_by_the_slots_it_names(graph: DualGraph) -> None:
    found = paths(graph)
    slots = graph.slot_node.shape[1]
    assert found.first_slot.tolist() == [k for k in range(slots) for _ in range(slots)]
    assert found.second_slot.tolist() == list(range(slots)) * slots
    for P, k in zip(*np.nonzero(found.mask), strict=True):
        N = found.middle[P, k]
        assert graph.slot_mask[P, found.first_slot[k]]
        assert graph.slot_mask[N, found.second_slot[k]]
        assert graph.slot_node[P, found.first_slot[k]] == N
        assert graph.slot_node[N, found.second_slot[k]] == found.end[P, k]


@every_graph
def test_where_there_is_no_path_the_end_is_the_cell_itself(graph: DualGraph) -> None:
    found = paths(graph)
    here = np.broadcast_to(np.arange(graph.cells)[:, None], found.mask.shape)
    assert np.array_equal(found.end[~found.mask], here[~found.mask])
    assert (found.middle < graph.cells).all()


def test_paths_return_and_end_in_ghosts() -> None:
    graph = GRAPHS["mixed"]
    found = paths(graph)
    returning = ((found.end == np.arange(graph.cells)[:, None]) & found.mask).sum(axis=1)
    degree = [sum(graph.cells > N for N in near) for near in beside(graph)]
    assert returning.tolist() == degree
    assert (found.end[found.mask] >= graph.cells).any()


@every_graph
def test_the_ring_is_the_cells_at_distance_exactly_two(graph: DualGraph) -> None:
    near, around = beside(graph), ring(graph)
    for P in range(graph.cells):
        real = around.mask[P]
        cells = around.node[P, real].tolist()
        assert len(set(cells)) == len(cells)
        assert set(cells) == {Q for Q, steps in distances(near, P).items() if steps == 2}
        assert (around.node[P, ~real] == P).all()
        ways = Counter(Q for N in near[P] if graph.cells > N for Q in near[N])
        assert around.multiplicity[P, real].tolist() == [ways[Q] for Q in cells]
        assert (around.multiplicity[P, ~real] == 0).all()


@every_graph
def test_each_path_knows_its_place_in_the_ring(graph: DualGraph) -> None:
    near, found, around = beside(graph), paths(graph), ring(graph)
    assert around.slot_of_path.shape == found.mask.shape
    for P in range(graph.cells):
        far = {Q for Q, steps in distances(near, P).items() if steps == 2}
        for k in range(found.mask.shape[1]):
            slot = around.slot_of_path[P, k]
            if found.mask[P, k] and found.end[P, k] in far:
                assert around.node[P, slot] == found.end[P, k]
            else:
                assert slot == -1


@pytest.mark.parametrize("name", ["fan", "two", "one", "arrow"])
def test_a_graph_without_distance_two_has_an_empty_ring(name: str) -> None:
    around = ring(GRAPHS[name])
    assert not around.mask.any()
    assert around.node.shape[1] == 1


def test_a_ring_takes_the_paths_it_is_given() -> None:
    graph = GRAPHS["mixed"]
    steps: Paths = paths(graph)
    for given, fresh in zip(ring(graph, steps), ring(graph), strict=True):
        assert np.array_equal(given, fresh)
