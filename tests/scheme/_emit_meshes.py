"""Irregular meshes with every kind of face, and the plain arrays that emitted code wants of them."""

import numpy as np

from fluxforge.mesh import Dirichlet, DualGraph, Mesh, Neumann, dual, jittered, squares

FIELDS = (
    *("node", "used", "A", "delta", "n_x", "n_y", "d_x", "d_y", "chi", "V"),
    *("ghost_owner", "ghost_neumann", "ghost_value", "ghost_delta"),
    *("n_z", "d_z", "d_n", "d_t", "p_x", "p_y", "p_z", "behind", "ahead"),
)
BOUNDARY = {
    "left": Dirichlet("1 + y"),
    "right": Neumann("0.3 - y"),
    "bottom": Dirichlet(-0.4),
    "top": Neumann(0.7),
}


def triangles() -> DualGraph:
    """72 skewed triangles."""
    return dual(jittered(6, jitter=0.25, seed=3), BOUNDARY)


def mixed() -> DualGraph:
    """Quadrilaterals, every third cut into two triangles, so that some fourth slots are unused.

    The last triangle is cut into three that touch each other: there, two faces away is also next door.
    """
    plain, moved = squares(5), jittered(5, jitter=0.2, seed=1)
    cut = np.arange(len(plain.cells)) % 3 == 0
    whole, (a, b, c, d) = plain.cells[~cut], plain.cells[cut].T
    halves = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    centre = len(moved.points)
    thirds = np.stack([halves[-1], np.roll(halves[-1], -1), np.full(3, centre)], 1)
    triangles = np.pad(np.concatenate([halves[:-1], thirds]), ((0, 0), (0, 1)), constant_values=-1)
    points = np.concatenate([moved.points, moved.points[halves[-1]].mean(axis=0, keepdims=True)])
    return dual(Mesh(points, np.concatenate([whole, triangles]), plain.boundary, origin="mixed"), BOUNDARY)


def table(graph: DualGraph) -> dict[str, np.ndarray]:
    """A graph as the arrays of the emitted interface; what unused slots hold would spoil any sum it got into."""
    face, sign, used = graph.slot_face, graph.slot_sign, graph.slot_mask
    legs = {
        "A": graph.A[face],
        "delta": graph.delta[face],
        "n_x": graph.n[face, 0] * sign,
        "n_y": graph.n[face, 1] * sign,
        "d_x": graph.d[face, 0] * sign,
        "d_y": graph.d[face, 1] * sign,
        "chi": graph.moving[face].astype(float),
        "d_n": graph.n[face, 0] * graph.d[face, 0] + graph.n[face, 1] * graph.d[face, 1],
        "d_t": np.abs(graph.n[face, 0] * graph.d[face, 1] - graph.n[face, 1] * graph.d[face, 0]),
        "p_x": graph.centre[face, 0] - graph.x[:, :1],
        "p_y": graph.centre[face, 1] - graph.x[:, 1:],
    }
    boundary = slice(graph.interior, None)
    return {
        "node": graph.slot_node,
        "used": used,
        **{name: np.where(used, value, 0.0) for name, value in legs.items()},
        "V": graph.V,
        "ghost_owner": graph.owner[boundary],
        "ghost_neumann": graph.neumann,
        "ghost_value": graph.value,
        "ghost_delta": graph.delta[boundary],
    }


def fields(graph: DualGraph) -> tuple[np.ndarray, np.ndarray]:
    """A temperature with ties between cells, and a source."""
    rng = np.random.default_rng(5)
    return rng.uniform(0.2, 1.7, graph.cells).round(1), rng.normal(size=graph.cells)
