"""A graph in space made by hand: the unit cube in six tetrahedra around its diagonal."""

from itertools import permutations

import numpy as np

from fluxforge.mesh import DualGraph


def six_tetrahedra(*, held: bool = True, value: float | str = 0.0) -> DualGraph:
    """The dual graph of Kuhn's six tetrahedra, its walls held at `value` (or at x, y or z) or insulated."""
    cells = np.array([np.cumsum([np.zeros(3), *np.eye(3)[list(order)]], axis=0) for order in permutations(range(3))])
    x = cells.mean(axis=1)
    V = np.abs(np.linalg.det(cells[:, 1:] - cells[:, :1])) / 6
    corners: dict[frozenset, list[tuple[int, np.ndarray]]] = {}
    for cell, points in enumerate(cells):
        for left_out in range(4):
            face = np.delete(points, left_out, axis=0)
            corners.setdefault(frozenset(map(tuple, face.tolist())), []).append((cell, face))
    inside = [sides for sides in corners.values() if len(sides) == 2]
    walls = [sides for sides in corners.values() if len(sides) == 1]
    faces = [sides[0][1] for sides in inside + walls]
    owner = np.array([sides[0][0] for sides in inside + walls], np.int32)
    across = [sides[1][0] for sides in inside] + [len(cells) + b for b in range(len(walls))]
    normal = np.array([np.cross(p[1] - p[0], p[2] - p[0]) / 2 for p in faces])
    centre = np.array([p.mean(axis=0) for p in faces])
    normal *= np.sign(np.einsum("fi,fi->f", normal, centre - x[owner]))[:, None]
    A = np.linalg.norm(normal, axis=1)
    n = normal / A[:, None]
    d = centre - x[owner]
    d[: len(inside)] = x[across[: len(inside)]] - x[owner[: len(inside)]]
    neumann = np.full(len(walls), not held)
    mirrored = 2 * np.einsum("fi,fi->f", d, n)[:, None] * n
    d[len(inside) :] = np.where(neumann[:, None], mirrored[len(inside) :], d[len(inside) :])
    slot_face = np.array(
        [[f for f in range(len(faces)) if cell in (owner[f], across[f])] for cell in range(len(cells))]
    )
    own = owner[slot_face] == np.arange(len(cells))[:, None]
    given = centre[len(inside) :, "xyz".index(value)] if isinstance(value, str) else np.full(len(walls), value)
    return DualGraph(
        V=V,
        x=x,
        owner=owner,
        neighbour=np.array(across, np.int32),
        A=A,
        n=n,
        d=d,
        delta=np.linalg.norm(d, axis=1),
        centre=centre,
        slot_face=slot_face.astype(np.int32),
        slot_node=np.where(own, np.array(across)[slot_face], owner[slot_face]).astype(np.int32),
        slot_sign=np.where(own, 1.0, -1.0),
        slot_mask=np.ones(slot_face.shape, bool),
        tag=np.zeros(len(walls), np.int64),
        neumann=neumann,
        value=np.zeros(len(walls)) if not held else given,
        tags=("wall",),
        origin="six tetrahedra",
    )
