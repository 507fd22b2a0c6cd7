"""Mesh families of a refinement study and their sizes; graphs of cubes, of Kuhn's tetrahedra and of lattices."""

from dataclasses import dataclass
from itertools import permutations, product

import equinox as eqx
import numpy as np

from fluxforge._arguments import check_kind, check_whole
from fluxforge.errors import InputError
from fluxforge.mesh import FAMILIES as GENERATORS
from fluxforge.mesh._boundary import Dirichlet
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import generate, jittered
from fluxforge.mesh._mesh import Mesh
from fluxforge.scheme._scheme import FAMILIES


def cube_graph(n: int) -> DualGraph:
    """The dual graph of the unit cube divided into n³ cubes, T = 0 on its walls."""
    side = 1.0 / n
    place = np.array(list(product(range(n), repeat=3)))
    shape = (n, n, n)
    # Owners and unit normals, of faces between cells and of walls; and the cells beyond the former.
    pairs, walls, beyond = [], [], []
    for axis, step in enumerate(np.eye(3, dtype=int)):
        inside = place[place[:, axis] < n - 1]
        pairs.append((_index(inside, shape), step))
        beyond.append(_index(inside + step, shape))
        walls += [(_index(place[place[:, axis] == end], shape), sign * step) for end, sign in ((0, -1), (n - 1, 1))]
    x = (place + 0.5) * side
    owner = np.concatenate([cells for cells, _ in pairs + walls])
    other = np.concatenate(beyond)
    normal = np.concatenate([np.broadcast_to(step, (len(cells), 3)) for cells, step in pairs + walls]).astype(float)
    return _graph(
        np.full(n**3, side**3), x, owner, other, side**2 * normal, x[owner] + 0.5 * side * normal, f"{n}³ cubes"
    )


def tetrahedra_graph(n: int, jitter: float = 0.0, seed: int = 0) -> DualGraph:
    """The dual graph of the unit cube in n³ cubes of six tetrahedra around a diagonal, T = 0 on its walls.

    Inner points are moved at random by up to `jitter`/n in each coordinate.
    """
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


def rough_tetrahedra_graph() -> DualGraph:
    """48 jittered tetrahedra, on which schemes in space are tested."""
    return tetrahedra_graph(2, 0.15, 3)


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


# Sizes n of the structured families; unstructured meshes have about 2n² cells. The sizes of right triangles are those
# of the published errors.
FULL_SIZES = dict.fromkeys(FAMILIES, (9, 18, 36, 72))
FULL_SIZES |= {"squares": (10, 20, 50, 100), "right": (10, 20, 50, 100), "cross": (6, 12, 30, 50)}
QUICK_SIZES = dict.fromkeys(FAMILIES, (6, 12, 24, 48)) | {"squares": (8, 16, 32, 64), "cross": (4, 8, 16, 32)}
# Families in space, whose graphs are made here.
SPACE = {"cubes": (4, 6, 8, 12)}
LATTICES = ("squares", "right", "cross", "equilateral", "cubes")
SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Levels:
    """A mesh family and its sizes in a refinement study, from coarse to fine."""

    family: str
    sizes: tuple[int, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """One seed for a lattice; several for random families, whose errors scatter from mesh to mesh."""
        return SEEDS[:1] if self.family in LATTICES else SEEDS

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return 3 if self.family in SPACE else 2

    def graph(self, n: int, seed: int = SEEDS[0]) -> DualGraph:
        """The graph of size n, with T = 0 on every wall."""
        return cube_graph(n) if self.family in SPACE else dual(self.mesh(n, seed))

    def mesh(self, n: int, seed: int = SEEDS[0]) -> Mesh:
        """The mesh of size n. Unstructured ones come from the built-in generator, and do not depend on gmsh."""
        if self.family in ("regular", "irregular"):
            return generate(kind=self.family, cells=2 * n * n, seed=seed, engine="builtin")
        return GENERATORS[self.family](n, seed)


def choose_levels(
    families: tuple[str, ...] | None, levels: int | None, *, quick: bool, dimension: int | None = None
) -> tuple[Levels, ...]:
    """The requested families with the sizes of their levels; further levels double the last size.

    By default these are all families of the plane, or those in space for formulas of three coordinates. Raises
    InputError for an unknown family, families of both dimensions, and a number of levels outside 1 to 7.
    """
    wanted = (tuple(SPACE) if dimension == 3 else FAMILIES) if families is None else families
    check_kind(wanted, "families", tuple | list, "a tuple of names")
    known = (*FAMILIES, *SPACE)
    if stray := [family for family in wanted if family not in known]:
        raise InputError(f"unknown mesh family {stray[0]!r:.60}; known: {', '.join(known)}")
    if len({family in SPACE for family in wanted}) > 1:
        raise InputError(
            f"families of the plane and of space ({', '.join(SPACE)}) are certified separately: give families of "
            "one dimension only"
        )
    if levels is not None and not 1 <= check_whole(levels, "levels") <= 7:
        raise InputError(f"levels should be between 1 and 7, got {levels}")
    chosen = (QUICK_SIZES if quick else FULL_SIZES) | SPACE
    return tuple(Levels(family, _extend_sizes(chosen[family], levels)) for family in wanted)


def enlarge_levels(levels: Levels) -> Levels | None:
    """The full sizes of a random family whose quick ones are given; None for any other."""
    if levels.family in LATTICES or levels.sizes != QUICK_SIZES[levels.family]:
        return None
    return Levels(levels.family, FULL_SIZES[levels.family])


def _extend_sizes(sizes: tuple[int, ...], levels: int | None) -> tuple[int, ...]:
    if levels is None:
        return sizes
    while len(sizes) < levels:
        sizes = (*sizes, 2 * sizes[-1])
    return sizes[:levels]


# Cells per period of each lattice; and sizes at which a scheme of few hops does not read boundary data in the period in
# the middle.
PERIODS = {"squares": 1, "right": 2, "cross": 4, "equilateral": 2, "cubes": 1}
LATTICE_SIZE, SIZE_IN_SPACE = 21, 9


def lattice_size(family: str) -> int:
    """Number of periods along a side of the lattice whose middle period is examined."""
    return SIZE_IN_SPACE if family in SPACE else LATTICE_SIZE


def lattice_graph(family: str, n: int | None = None) -> tuple[DualGraph, np.ndarray]:
    """The graph of a lattice with n periods a side, and the indices of the cells of the period in its middle."""
    n = lattice_size(family) if n is None else n
    graph = Levels(family, (n,)).graph(n)
    first = sum((n // 2) * n**k for k in range(graph.dimension)) * PERIODS[family]
    return graph, np.arange(first, first + PERIODS[family])


def study_graph(dimension: int = 2) -> DualGraph:
    """A small irregular mesh with non-zero boundary data, without a symmetry that could hide a term."""
    if dimension == 3:
        graph = rough_tetrahedra_graph()
        x, y, z = graph.centre[graph.interior :].T
        return eqx.tree_at(lambda g: g.value, graph, 1 + x * y + z)
    return dual(jittered(5, 0.2, 3), Dirichlet("1 + x*y"))


def default_graph(dimension: int = 2) -> DualGraph:
    """The mesh on which limits are quoted unless one is given: irregular, about 300 cells, T = 0 on its boundary.

    In space, 162 jittered tetrahedra.
    """
    if dimension == 3:
        return tetrahedra_graph(3, 0.15, 1)
    return dual(generate(kind="irregular", cells=300, seed=1, engine="builtin"))


def small_graph(dimension: int = 2) -> DualGraph:
    """The mesh for transient growth, unless one of up to 300 cells is given: 72 jittered triangles, T = 0 on the walls.

    In space, 48 jittered tetrahedra.
    """
    if dimension == 3:
        return rough_tetrahedra_graph()
    return dual(jittered(6, 0.2, 5))
