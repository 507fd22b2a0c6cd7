"""The meshes of the set-up: spreads of their cell sizes, sample meshes, and patches of cells for figures."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fluxforge.mesh._build import cell_quality, dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import squares
from fluxforge.mesh._hops import Paths, Ring, paths, ring
from fluxforge.mesh._mesh import Mesh

KINDS = ("regular", "irregular")
# A cell is small if its area is at most the share SMALL of the largest, so that its edges have a third of the length.
# A connected area of small cells counts if it has the share LEAST_SHARE of all cells, and at least LEAST_CELLS.
SMALL, LEAST_SHARE, LEAST_CELLS = 1 / 8, 0.02, 3


class Spread(Struct, frozen=True):
    """Standard deviation over mean on one mesh: of cell volumes, and of A and δ of the faces between cells."""

    V: float
    A: float
    delta: float


class Spreads(Struct, frozen=True):
    """[least, median, largest] spread over the meshes of a kind."""

    V: list[float]
    A: list[float]
    delta: list[float]


class Facts(Struct, frozen=True):
    """A mesh: cells, spread, mean quality (1 is equilateral), and the number of connected areas of small cells."""

    cells: int
    spread: Spread
    quality: float
    areas: int


class Kind(Struct, frozen=True):
    """The meshes of a kind: spreads and mean quality as [least, median, largest], and the numbers of areas.

    `areas` counts the meshes by their number of connected areas of small cells.
    """

    meshes: int
    spread: Spreads
    quality: list[float]
    areas: dict[str, int]


class Ensemble(Struct, frozen=True):
    """All meshes: their number, least and largest number of cells, facts by kind, and the generator."""

    meshes: int
    cells: list[int]
    by_kind: dict[str, Kind]
    engine: str


class Sample(Struct, frozen=True):
    """A mesh for a figure: corners, cells, and 2 V of each cell over the largest of the irregular sample."""

    points: list[list[float]]
    cells: list[list[int]]
    size: list[float]
    spread: Spread
    quality: float
    areas: int


class Patch(Struct, frozen=True):
    """The cells within two hops of a centre and those that touch them, renumbered so that the centre is cell 0.

    `hop` is the distance of each cell, 3 for those that only touch; `paths` are N and Q of the directed paths
    0 → N → Q, of which `returning` end at 0.
    """

    mesh: str
    points: list[list[float]]
    cells: list[list[int]]
    centroids: list[list[float]]
    hop: list[int]
    edges: list[list[int]]
    paths: list[list[int]]
    returning: int
    one_hop: int
    two_hop: int
    reached_twice: int


def describe_ensemble(meshes: Sequence[Mesh], engine: str) -> Ensemble:
    """Spreads and areas of small cells by kind; `meshes` alternate regular and irregular."""
    rows = {kind: [_measure_mesh(mesh) for mesh in meshes[k :: len(KINDS)]] for k, kind in enumerate(KINDS)}
    counts = [row.cells for kind in KINDS for row in rows[kind]]
    return Ensemble(
        len(meshes), [min(counts), max(counts)], {kind: _describe_kind(rows[kind]) for kind in KINDS}, engine
    )


def choose_samples(meshes: Sequence[Mesh], middle: float) -> dict[str, Sample]:
    """For each kind the mesh whose number of cells is nearest to `middle`, with one scale of cell sizes.

    The size of a cell is its determinant, 2 V, over the largest on the irregular sample, as in the paper's caption.
    """
    chosen = {
        kind: min(meshes[k :: len(KINDS)], key=lambda mesh: abs(len(mesh.cells) - middle))
        for k, kind in enumerate(KINDS)
    }
    largest = 2 * float(dual(chosen["irregular"]).V.max())
    return {kind: _make_sample(mesh, largest) for kind, mesh in chosen.items()}


def _make_sample(mesh: Mesh, largest: float) -> Sample:
    facts = _measure_mesh(mesh)
    return Sample(
        points=np.round(mesh.points, 5).tolist(),
        cells=mesh.cells.tolist(),
        size=np.round(2 * dual(mesh).V / largest, 5).tolist(),
        spread=facts.spread,
        quality=facts.quality,
        areas=facts.areas,
    )


def _measure_mesh(mesh: Mesh) -> Facts:
    graph = dual(mesh)
    inside = slice(graph.interior)
    spread = Spread(_relative_spread(graph.V), _relative_spread(graph.A[inside]), _relative_spread(graph.delta[inside]))
    return Facts(graph.cells, spread, float(cell_quality(mesh).mean()), count_small_areas(graph))


def _relative_spread(values: np.ndarray) -> float:
    return float(values.std() / values.mean())


def count_small_areas(graph: DualGraph) -> int:
    """The number of connected areas of small cells."""
    small = SMALL * graph.V.max() >= graph.V
    owner, neighbour = graph.owner[: graph.interior], graph.neighbour[: graph.interior]
    both = small[owner] & small[neighbour]
    links = coo_array((np.ones(both.sum()), (owner[both], neighbour[both])), shape=(graph.cells, graph.cells))
    _, label = connected_components(links, directed=False)
    return int((np.bincount(label[small]) >= max(LEAST_CELLS, LEAST_SHARE * graph.cells)).sum())


def _describe_kind(rows: Sequence[Facts]) -> Kind:
    """Least, median and largest spreads and quality over the meshes of a kind, and meshes by number of areas."""
    spreads = Spreads(*(_range_and_median([getattr(row.spread, name) for row in rows]) for name in ("V", "A", "delta")))
    areas = [row.areas for row in rows]
    counts = {str(count): areas.count(count) for count in sorted(set(areas))}
    return Kind(len(rows), spreads, _range_and_median([row.quality for row in rows]), counts)


def _range_and_median(values: Sequence[float]) -> list[float]:
    return [float(np.min(values)), float(np.median(values)), float(np.max(values))]


def choose_patches(meshes: Sequence[Mesh]) -> dict[str, Patch]:
    """A patch around a triangle from which two paths lead to one cell, if there is one, and one around a square."""
    return {"triangles": _choose_patch(meshes), "squares": make_patch(squares(7), 24)}


def _choose_patch(meshes: Sequence[Mesh]) -> Patch:
    """The patch whose worst cell has the best quality, among inner cells from which two paths lead to the same cell.

    It is in the first mesh with such cells; without any, all inner cells of the first mesh are candidates.
    """
    for mesh in meshes:
        graph = dual(mesh)
        around = ring(graph)
        twice = _find_inner_cells(graph) & (around.multiplicity > 1).any(axis=1)
        if twice.any():
            return make_patch(mesh, _choose_centre(mesh, around, twice))
    graph = dual(meshes[0])
    return make_patch(meshes[0], _choose_centre(meshes[0], ring(graph), _find_inner_cells(graph)))


def _find_inner_cells(graph: DualGraph) -> np.ndarray:
    """Mask of the cells without wall whose neighbours have none either, so that no path from them ends in a ghost."""
    inner: np.ndarray = np.all(graph.slot_node < graph.cells, axis=1)
    return np.asarray(inner & inner[np.where(graph.slot_node < graph.cells, graph.slot_node, 0)].all(axis=1))


def _choose_centre(mesh: Mesh, around: Ring, allowed: np.ndarray) -> int:
    quality = cell_quality(mesh)
    worst = np.minimum(quality, np.where(around.mask, quality[around.node], np.inf).min(axis=1))
    return int(np.argmax(np.where(allowed, worst, -1.0)))


def make_patch(mesh: Mesh, centre: int) -> Patch:
    """The patch of the cells within two hops of a cell, and those that touch them."""
    graph = dual(mesh)
    steps, around = paths(graph), ring(graph)
    near = graph.slot_node[centre][graph.slot_mask[centre]]
    far = around.node[centre][around.mask[centre]]
    touched = np.isin(mesh.cells, mesh.cells[np.concatenate([[centre], near, far])]) & (mesh.cells >= 0)
    rest = np.setdiff1d(np.flatnonzero(touched.any(axis=1)), np.concatenate([[centre], near, far]))
    cells = np.concatenate([[centre], near, far, rest])
    points, corners = np.unique(mesh.cells[cells], return_inverse=True)
    ways = _list_paths(steps, centre, cells)
    return Patch(
        mesh=mesh.origin,
        points=np.round(mesh.points[points], 5).tolist(),
        cells=corners.reshape(len(cells), -1).tolist(),
        centroids=np.round(graph.x[cells], 5).tolist(),
        hop=[0] + [1] * len(near) + [2] * len(far) + [3] * len(rest),
        edges=_list_edges(graph, cells),
        paths=ways,
        returning=sum(end == 0 for _, end in ways),
        one_hop=len(near),
        two_hop=len(far),
        reached_twice=int((around.multiplicity[centre] > 1).sum()),
    )


def _list_paths(steps: Paths, centre: int, cells: np.ndarray) -> list[list[int]]:
    """[middle, end] of every directed path from the centre, in the numbers of the patch."""
    there = steps.mask[centre]
    place = {int(cell): k for k, cell in enumerate(cells)}
    return [
        [place[int(middle)], place[int(end)]]
        for middle, end in zip(steps.middle[centre][there], steps.end[centre][there], strict=True)
    ]


def _list_edges(graph: DualGraph, cells: np.ndarray) -> list[list[int]]:
    """The faces between cells of the patch, as pairs of cells in its numbers."""
    place = np.full(graph.cells, -1)
    place[cells] = np.arange(len(cells))
    pairs = np.stack([place[graph.owner[: graph.interior]], place[graph.neighbour[: graph.interior]]], axis=1)
    return pairs[(pairs >= 0).all(axis=1)].tolist()
