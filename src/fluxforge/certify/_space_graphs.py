"""Graphs in space for certificates: cubes, and Kuhn's tetrahedra, on the unit cube with T = 0 on its walls."""

from itertools import permutations, product

import numpy as np

from fluxforge.mesh import DualGraph


def cubes(n: int) -> DualGraph:
    """The unit cube in n³ cubes."""
    side = 1.0 / n
    place = np.array(list(product(range(n), repeat=3)))
    shape = (n, n, n)
    pairs, walls = [], []
    for axis in range(3):
        step = np.eye(3, dtype=int)[axis]
        inside = place[place[:, axis] < n - 1]
        pairs.append((_index(inside, shape), _index(inside + step, shape), step))
        for end, sign in ((0, -1), (n - 1, 1)):
            walls.append((_index(place[place[:, axis] == end], shape), sign * step))
    x = (place + 0.5) * side
    owner = np.concatenate([one for one, _, _ in pairs] + [one for one, _ in walls])
    other = np.concatenate([two for _, two, _ in pairs])
    normal = np.concatenate(
        [np.broadcast_to(step, (len(one), 3)) for one, _, step in pairs]
        + [np.broadcast_to(step, (len(one), 3)) for one, step in walls]
    ).astype(float)
    return _graph(
        np.full(n**3, side**3), x, owner, other, side**2 * normal, x[owner] + 0.5 * side * normal, f"{n}³ cubes"
    )


def tetrahedra(n: int, jitter: float = 0.0, seed: int = 0) -> DualGraph:
    """The unit cube in n³ cubes of six tetrahedra around a diagonal each, inner points moved by up to `jitter`/n."""
    place = np.array(list(product(range(n + 1), repeat=3)))
    points = place / n
    inner = np.logical_and(place > 0, place < n).all(axis=1)
    moves = np.random.default_rng(seed).uniform(-1.0, 1.0, points.shape) * jitter / n
    points = points + np.where(np.asarray(inner)[:, None], moves, 0.0)
    shape = (n + 1, n + 1, n + 1)
    corners = np.array(
        [np.cumsum([np.zeros(3, int), *np.eye(3, dtype=int)[list(o)]], axis=0) for o in permutations(range(3))]
    )
    lowest = np.array(list(product(range(n), repeat=3)))
    cells = _index((lowest[:, None, None] + corners).reshape(-1, 3), shape).reshape(-1, 4)
    return tetrahedral_graph(points, cells, f"{6 * n**3} tetrahedra")


def rough_tetrahedra() -> DualGraph:
    """A few tetrahedra without symmetry, where schemes are tried in space: 48 of them."""
    return tetrahedra(2, 0.15, 3)


def tetrahedral_graph(points: np.ndarray, cells: np.ndarray, origin: str) -> DualGraph:
    """The dual graph of tetrahedra, each four indices of points, T = 0 on its walls."""
    at = points[cells]
    V = np.abs(np.linalg.det(at[:, 1:] - at[:, :1])) / 6
    x = at.mean(axis=1)
    faces = np.sort(np.concatenate([np.delete(cells, k, axis=1) for k in range(4)]), axis=1)
    cell = np.tile(np.arange(len(cells)), 4)
    _, first, which, count = np.unique(faces, axis=0, return_index=True, return_inverse=True, return_counts=True)
    second = np.full(len(first), -1)
    later = np.ones(len(faces), bool)
    later[first] = False
    second[which.ravel()[later]] = cell[later]
    order = np.argsort(count != 2, kind="stable")
    first, second = first[order], second[order]
    corners = points[faces[first]]
    centre = corners.mean(axis=1)
    area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2
    owner = cell[first]
    area = area * np.sign(np.einsum("fi,fi->f", area, centre - x[owner]))[:, None]
    return _graph(V, x, owner, second[second >= 0], area, centre, origin)


def _index(place: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.ravel_multi_index(tuple(place.T), shape)


def _graph(
    V: np.ndarray,
    x: np.ndarray,
    owner: np.ndarray,
    other: np.ndarray,
    area: np.ndarray,
    centre: np.ndarray,
    origin: str,
) -> DualGraph:
    """Faces between cells first, `other` of them the cells on their far side; `area` is A n, out of the owner."""
    cells, faces, inside = len(V), len(owner), len(other)
    walls = faces - inside
    neighbour = np.concatenate([other, cells + np.arange(walls)]).astype(np.int32)
    d = centre - x[owner]
    d[:inside] = x[other] - x[owner[:inside]]
    A = np.linalg.norm(area, axis=1)
    ends = np.concatenate([owner, other])
    face = np.concatenate([np.arange(faces), np.arange(inside)])[np.argsort(ends, kind="stable")]
    count = np.bincount(ends, minlength=cells)
    slots = int(count.max())
    assert (count == slots).all(), "cells of one kind have as many faces each"
    slot_face = face.reshape(cells, slots).astype(np.int32)
    own = owner[slot_face] == np.arange(cells)[:, None]
    return DualGraph(
        V=V,
        x=x,
        owner=owner.astype(np.int32),
        neighbour=neighbour,
        A=A,
        n=area / A[:, None],
        d=d,
        delta=np.linalg.norm(d, axis=1),
        centre=centre,
        slot_face=slot_face,
        slot_node=np.where(own, neighbour[slot_face], owner[slot_face]).astype(np.int32),
        slot_sign=np.where(own, 1.0, -1.0),
        slot_mask=np.ones(slot_face.shape, bool),
        tag=np.zeros(walls, np.int64),
        neumann=np.zeros(walls, bool),
        value=np.zeros(walls),
        tags=("wall",),
        origin=origin,
    )
