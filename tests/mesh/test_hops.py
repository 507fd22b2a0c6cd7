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
    neighbours: list[list[int]] = [[] for _ in range(graph.cells)]
    for f, (P, N) in enumerate(zip(graph.owner.tolist(), graph.neighbour.tolist(), strict=True)):
        neighbours[P].append(N)
        if f < graph.interior:
            neighbours[N].append(P)
    return neighbours


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
    near, walks = beside(graph), paths(graph)
    for P in range(graph.cells):
        wanted = Counter((N, Q) for N in near[P] if graph.cells > N for Q in near[N])
        real = walks.mask[P]
        pairs = zip(walks.middle[P, real].tolist(), walks.end[P, real].tolist(), strict=True)
        assert Counter(pairs) == wanted


@every_graph
def test_each_path_leaves_by_the_slots_it_names(graph: DualGraph) -> None:
    walks = paths(graph)
    slots = graph.slot_node.shape[1]
    assert walks.first_slot.tolist() == [k for k in range(slots) for _ in range(slots)]
    assert walks.second_slot.tolist() == list(range(slots)) * slots
    for P, k in zip(*np.nonzero(walks.mask), strict=True):
        N = walks.middle[P, k]
        assert graph.slot_mask[P, walks.first_slot[k]]
        assert graph.slot_mask[N, walks.second_slot[k]]
        assert graph.slot_node[P, walks.first_slot[k]] == N
        assert graph.slot_node[N, walks.second_slot[k]] == walks.end[P, k]


@every_graph
def test_where_there_is_no_path_the_end_is_the_cell_itself(graph: DualGraph) -> None:
    walks = paths(graph)
    here = np.broadcast_to(np.arange(graph.cells)[:, None], walks.mask.shape)
    assert np.array_equal(walks.end[~walks.mask], here[~walks.mask])
    assert (walks.middle < graph.cells).all()


def test_paths_return_and_end_in_ghosts() -> None:
    graph = GRAPHS["mixed"]
    walks = paths(graph)
    returning = ((walks.end == np.arange(graph.cells)[:, None]) & walks.mask).sum(axis=1)
    degree = [sum(graph.cells > N for N in near) for near in beside(graph)]
    assert returning.tolist() == degree
    assert (walks.end[walks.mask] >= graph.cells).any()


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
    near, walks, around = beside(graph), paths(graph), ring(graph)
    assert around.slot_of_path.shape == walks.mask.shape
    for P in range(graph.cells):
        far = {Q for Q, steps in distances(near, P).items() if steps == 2}
        for k in range(walks.mask.shape[1]):
            slot = around.slot_of_path[P, k]
            if walks.mask[P, k] and walks.end[P, k] in far:
                assert around.node[P, slot] == walks.end[P, k]
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
