"""Lines of cells through faces: found by place on squares, refused where a face has no opposite one."""

import numpy as np
import pytest

from fluxforge.errors import MeshError
from fluxforge.mesh import Neumann, dual, lines, right_triangles, squares
from moved_graphs import orthogonal, renumbered, the_other_way_round, turned
from strategies import mixed, warped_quads
from tetrahedra import six_tetrahedra


def test_behind_and_ahead_are_the_cells_in_a_row() -> None:
    n = 4
    graph = dual(squares(n), Neumann())
    through = lines(graph)
    place = {tuple(np.round(x * n - 0.5).astype(int)): cell for cell, x in enumerate(graph.x)}
    for P in range(graph.cells):
        i, j = np.round(graph.x[P] * n - 0.5).astype(int)
        for k in range(4):
            step = np.round(graph.n[graph.slot_face[P, k]] * graph.slot_sign[P, k]).astype(int)
            before, after = (i - step[0], j - step[1]), (i + 2 * step[0], j + 2 * step[1])
            N = graph.slot_node[P, k]
            if before in place:
                assert through.behind[P, k] == place[before]
            else:
                ghost = through.behind[P, k] - graph.cells
                assert graph.owner[graph.interior + ghost] == P
                assert graph.n[graph.interior + ghost] @ step == pytest.approx(-1.0)
            if graph.cells <= N:
                assert through.ahead[P, k] == N
            elif after in place:
                assert through.ahead[P, k] == place[after]
            else:
                ghost = through.ahead[P, k] - graph.cells
                assert graph.owner[graph.interior + ghost] == N


@pytest.mark.parametrize("make", [lambda: squares(4), lambda: warped_quads(4)])
def test_lines_do_not_depend_on_the_order_of_cells_the_sides_of_faces_or_a_rotation(make: object) -> None:
    graph = dual(make())  # type: ignore[operator]
    original = lines(graph)
    for other in (the_other_way_round(graph), turned(graph, orthogonal(2, 5))):
        np.testing.assert_array_equal(lines(other).behind, original.behind)
        np.testing.assert_array_equal(lines(other).ahead, original.ahead)
    order = np.random.default_rng(0).permutation(graph.cells)
    place = np.arange(graph.cells + graph.ghosts)
    place[order] = np.arange(graph.cells)
    moved = lines(renumbered(graph, order))
    np.testing.assert_array_equal(moved.behind, place[original.behind[order][:, ::-1]])
    np.testing.assert_array_equal(moved.ahead, place[original.ahead[order][:, ::-1]])


@pytest.mark.parametrize("make", [lambda: dual(right_triangles(2)), lambda: dual(mixed(3)), six_tetrahedra])
def test_a_cell_without_opposite_faces_is_named_with_the_remedy(make: object) -> None:
    with pytest.raises(MeshError, match=r"cell \d+ at .* barth-jespersen") as caught:
        lines(make())  # type: ignore[operator]
    assert "\n" not in str(caught.value)
