"""Generated meshes: structured families of the unit square, and unstructured meshes of a domain.

Unstructured ones are regular, or irregular with two attraction points, as in the paper.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import floor, log2
from types import MappingProxyType
from typing import TypedDict, Unpack

import numpy as np
from jaxtyping import Float, Int

from fluxforge._arguments import check_kind, check_number, check_text, check_whole
from fluxforge._types import Corners, Points
from fluxforge.errors import InputError, MeshError
from fluxforge.mesh._cells import cell_areas
from fluxforge.mesh._domain import AbstractDomain, Disk, Polygon, sizing, unit_square
from fluxforge.mesh._generate_gmsh import gmsh_problem, mesh_with_gmsh
from fluxforge.mesh._mesh import Mesh

# The largest mesh of a family, and the largest jitter, for which see `jittered`.
MAX_FAMILY_CELLS = 10**8
MAX_JITTER = 0.3


def squares(n: int) -> Mesh:
    """The unit square as n × n squares."""
    _check_size(n, 1)
    return Mesh(_lattice(n), _quads(n), _sides(n), origin=f"squares({n})")


def right_triangles(n: int) -> Mesh:
    """The unit square as n × n squares, each cut along (1, 1): 2n² right triangles."""
    _check_size(n, 2)
    return Mesh(_lattice(n), _cut_along_rising_diagonal(n), _sides(n), origin=f"right_triangles({n})")


def cross_triangles(n: int) -> Mesh:
    """The unit square as n × n squares, each cut by both diagonals: 4n² right triangles."""
    _check_size(n, 4)
    corners = _lattice(n)
    ticks = (np.arange(n) + 0.5) / n
    centres = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    quads = _quads(n)
    middle = len(corners) + np.arange(n * n)
    cells = np.stack([quads, np.roll(quads, -1, axis=1), np.broadcast_to(middle[:, None], quads.shape)], axis=-1)
    return Mesh(np.concatenate([corners, centres]), cells.reshape(-1, 3), _sides(n), origin=f"cross_triangles({n})")


def equilateral(n: int) -> Mesh:
    """The parallelogram of (1, 0) and (1/2, √3/2) as 2n² equilateral triangles of side 1/n, none of them clipped.

    The tags name the sides of the parallelogram: `left` and `right` are the slanted ones.
    """
    _check_size(n, 2)
    i, j = _grid(n)
    points = np.stack([(i + 0.5 * j) / n, j * (0.5 * np.sqrt(3.0)) / n], axis=-1)
    a, b, c, d = _quads(n).T
    cells = np.stack([a, b, d, b, c, d], axis=-1).reshape(-1, 3)
    return Mesh(points, cells, _sides(n), origin=f"equilateral({n})")


def jittered(n: int, jitter: float = 0.2, seed: int = 0) -> Mesh:
    """Right triangles whose points are moved at random, each by at most `jitter` · h with h = 1/n.

    Interior points move anywhere in a disk, boundary points slide along their side, corners stay. Every triangle keeps
    a smallest altitude of at least (1/√2 − 2 jitter) h, for every seed. Proof: the smallest altitude of a triangle is
    its width, the least width of a strip that holds it, and is h/√2 before the move. A strip of width w that holds the
    moved triangle, widened by jitter · h on both sides, holds the unmoved one, so w + 2 jitter h ≥ h/√2. Hence for
    jitter < √2/4 no triangle degenerates on the way from the unmoved to the moved mesh, and none can turn over.
    We stop at jitter = 0.3, where altitudes are at least h/10.
    """
    _check_size(n, 2)
    if not 0.0 <= check_number(jitter, "field 'jitter'") <= MAX_JITTER:
        raise InputError(
            f"field 'jitter': {jitter} is not between 0 and {MAX_JITTER}; larger moves could fold the mesh"
        )
    check_seed(seed)
    points = _lattice(n)
    moves = _draw_moves(n, np.random.default_rng(seed)) * (jitter / n)
    origin = f"jittered({n}, jitter={jitter}, seed={seed})"
    return Mesh(points + moves, _cut_along_rising_diagonal(n), _sides(n), origin=origin)


def two_cells() -> Mesh:
    """Two equilateral triangles of side 2 that share an edge: V = √3, A = 2, δ = 2/√3."""
    height = np.sqrt(3.0)
    points = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, height], [1.0, -height]])
    cells = np.array([[0, 1, 2], [1, 0, 3]])
    boundary = {"boundary": np.array([[1, 2], [2, 0], [0, 3], [3, 1]])}
    return Mesh(points, cells, boundary, origin="two_cells()")


FAMILIES: Mapping[str, Callable[[int, int], Mesh]] = MappingProxyType(
    {
        "squares": lambda n, seed: squares(n),
        "right": lambda n, seed: right_triangles(n),
        "cross": lambda n, seed: cross_triangles(n),
        "equilateral": lambda n, seed: equilateral(n),
        "jittered": lambda n, seed: jittered(n, seed=seed),
    }
)


def _check_size(n: int, per_square: int) -> None:
    if check_whole(n, "field 'n'") < 1:
        raise InputError(f"field 'n': {n} is not a number of squares per side; it should be at least 1")
    if per_square * n * n > MAX_FAMILY_CELLS:
        raise InputError(
            f"field 'n': {n} would make {per_square * n * n} cells; at most {MAX_FAMILY_CELLS} are allowed"
        )


def check_seed(seed: int) -> None:
    """Raise InputError unless the seed is a whole number, 0 or more."""
    if check_whole(seed, "field 'seed'") < 0:
        raise InputError(f"field 'seed': {seed} should not be negative")


def _grid(n: int) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """Column and row of every lattice point, row by row."""
    steps = np.arange(n + 1.0)
    i, j = np.meshgrid(steps, steps)
    return i.ravel(), j.ravel()


def _lattice(n: int) -> Points:
    """(i, j)/n: divided, not multiplied by 1/n, so that the far sides lie at exactly 1."""
    return np.stack(_grid(n), axis=-1) / n


def _quads(n: int) -> Int[np.ndarray, "cells 4"]:
    """Corners of the n × n squares, counter-clockwise from the lower left, row by row."""
    columns = np.arange(n)
    lower_left = (columns[:, None] * (n + 1) + columns).ravel()
    return np.asarray(lower_left[:, None] + np.array([0, 1, n + 2, n + 1]))


def _cut_along_rising_diagonal(n: int) -> Corners:
    a, b, c, d = _quads(n).T
    return np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)


def _sides(n: int) -> dict[str, Int[np.ndarray, "n 2"]]:
    """Edges of the four sides, each with the domain on its left."""
    k = np.arange(n)
    row = n + 1
    bottom = np.stack([k, k + 1], axis=-1)
    right = np.stack([k * row + n, (k + 1) * row + n], axis=-1)
    top = (bottom + n * row)[::-1, ::-1].copy()
    left = (right - n)[::-1, ::-1].copy()
    return {"left": left, "right": right, "bottom": bottom, "top": top}


def _draw_moves(n: int, rng: np.random.Generator) -> Points:
    """Random vectors of length at most 1: in a disk inside, along the side on the boundary, none at corners."""
    shape = (n + 1, n + 1)
    # The square root makes the moves uniform in the disk.
    radius, angle = np.sqrt(rng.random(shape)), 2.0 * np.pi * rng.random(shape)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    x[[0, -1], :] = 2.0 * rng.random((2, n + 1)) - 1.0
    y[:, [0, -1]] = 2.0 * rng.random((n + 1, 2)) - 1.0
    x[:, [0, -1]] = 0.0
    y[[0, -1], :] = 0.0
    return np.stack([x, y], axis=-1).reshape(-1, 2)


MAX_CELLS = 10**7
DEFAULT_CELLS = 300
# The number of attraction points of each kind of mesh.
KINDS: Mapping[str, int] = MappingProxyType({"regular": 0, "irregular": 2})
ENGINES = ("auto", "gmsh", "builtin")
# A mesh whose cell count is within COUNT_TOLERANCE of the wanted one is accepted, otherwise the closest of a few
# tries; a note says so if it is off by more than LARGEST_COUNT_ERROR.
COUNT_TOLERANCE = 0.03
LARGEST_COUNT_ERROR = 0.05
# The size is rescaled six times (None) by the resulting number of cells. That number jumps where a side gets one more
# edge, so this may not converge: then these multiples of the best size are tried.
SIZE_FACTORS = (None,) * 6 + (0.99, 1.01, 0.98, 1.02, 0.97, 1.03, 0.96, 1.04)
# The size of a large mesh is estimated from a mesh of about this many cells, and a count within LARGEST_COUNT_ERROR is
# accepted, since each try takes long.
PILOT = 4000


def generate(
    domain: AbstractDomain | None = None,
    *,
    kind: str = "regular",
    cells: int | None = None,
    size: float | None = None,
    seed: int = 0,
    engine: str = "auto",
) -> Mesh:
    """Mesh a domain (the unit square by default) with triangles; the same arguments give the same mesh.

    Two such meshes agree bit for bit on one kind of processor, with the same versions of gmsh, NumPy and SciPy.

    A `regular` mesh has one size everywhere; an `irregular` one is four times finer around two random attraction points
    inside the domain. Give either `cells`, the wanted number of cells (300 by default; the mesh has about as many), or
    `size`, the wanted length of edges far from attraction points. The seed chooses the attraction points; a regular
    mesh has none, and there the seed rotates and shifts the lattice of the built-in engine, and with gmsh (unless it is
    0) makes the size undulate by a few per cent. The engine `auto` is gmsh if it can be loaded, and otherwise the
    built-in one, with a note. Raises InputError for arguments out of range, MeshError where the engine fails.
    """
    domain = unit_square() if domain is None else domain
    wanted = "a domain (such as fluxforge.mesh.Disk())"
    check_kind(domain, "field 'domain'", AbstractDomain, wanted)
    _check_options(kind, engine, cells, size)
    check_seed(seed)
    if engine == "auto" and (problem := gmsh_problem()) is not None:
        mesh = generate(domain, kind=kind, cells=cells, size=size, seed=seed, engine="builtin")
        return replace(mesh, notes=(f"meshed by the built-in engine: {problem}", *mesh.notes))
    # A power of two rescales without rounding, and the engines' tolerances then suit domains of every extent.
    scale = 2.0 ** -floor(log2(_extent(domain)))
    scaled = domain.scale_by(scale)
    attractors = _draw_attractors(scaled, KINDS[kind], seed)
    make = partial(_find_mesher(engine), scaled, attractors=attractors, seed=seed)
    load = _cells_times_size_squared(scaled, attractors)
    if size is None:
        cells = DEFAULT_CELLS if cells is None else cells
        mesh, wanted = _match_cell_count(make, load, cells), f"{cells} cells"
    else:
        smallest = (load / MAX_CELLS) ** 0.5 / scale
        if size < smallest:
            raise InputError(
                f"field 'size': {size:g} would make more than {MAX_CELLS} cells; use at least {smallest:.3g}"
            )
        mesh, wanted = make(size=min(size * scale, _extent(scaled))), f"size {size:g}"
    mesh = _check_cover(mesh, scaled)
    return replace(mesh, points=mesh.points / scale, origin=f"{kind} mesh, {wanted}, seed {seed}")


def graded(*, cells: int = DEFAULT_CELLS, ratio: float = 100.0, seed: int = 0, engine: str = "auto") -> Mesh:
    """The unit square with edges that grow from a point inside it, up to `ratio` times as long at the distance 1.

    The seed chooses the point; the mesh has about as many cells as wanted.
    """
    domain = unit_square()
    _check_options("irregular", engine, cells, None)
    check_seed(seed)
    if not 1.0 < check_number(ratio, "field 'ratio'") <= 1e4:
        raise InputError(f"field 'ratio': {ratio} is not between 1 and 1e4")
    if engine == "auto" and gmsh_problem() is not None:
        engine = "builtin"
    near = 1.0 / ratio
    # In [0.3, 0.7]², away from the walls.
    point = 0.3 + 0.4 * _draw_attractors(domain, 1, seed)
    make = partial(_find_mesher(engine), domain, attractors=point, seed=seed, near=near)
    mesh = _match_cell_count(make, _cells_times_size_squared(domain, point, near), cells)
    return replace(_check_cover(mesh, domain), origin=f"graded mesh 1:{ratio:g}, {cells} cells, seed {seed}")


def _find_mesher(engine: str) -> Callable[..., Mesh]:
    if engine != "builtin":
        return mesh_with_gmsh
    # SciPy's triangulations take long to import, and reading a mesh does without them.
    from fluxforge.mesh._generate_delaunay import mesh_with_scipy

    return mesh_with_scipy


def _check_options(kind: str, engine: str, cells: int | None, size: float | None) -> None:
    if check_text(kind, "field 'kind'") not in KINDS:
        raise InputError(f"field 'kind': {kind!r} is unknown; use one of {', '.join(KINDS)}")
    if check_text(engine, "field 'engine'") not in ENGINES:
        raise InputError(f"field 'engine': {engine!r} is unknown; use one of {', '.join(ENGINES)}")
    if cells is not None and size is not None:
        raise InputError("fields 'cells' and 'size': give one of them, not both")
    if cells is not None and not 2 <= check_whole(cells, "field 'cells'") <= MAX_CELLS:
        raise InputError(f"field 'cells': {cells} is not between 2 and {MAX_CELLS}")
    if size is not None and not 0.0 < check_number(size, "field 'size'") < np.inf:
        raise InputError(f"field 'size': {size} is not a length; it should be positive and finite")


def _extent(domain: AbstractDomain) -> float:
    (x0, y0), (x1, y1) = domain.box
    return max(x1 - x0, y1 - y0)


def _draw_attractors(domain: AbstractDomain, count: int, seed: int) -> Points:
    """Points uniformly distributed in the domain."""
    rng = np.random.default_rng(seed)
    points = np.zeros((0, 2))
    while len(points) < count:
        candidates = rng.uniform(*domain.box, size=(64, 2))
        points = np.concatenate([points, candidates[domain.contains(candidates)]])
    return points[:count]


def _cells_times_size_squared(domain: AbstractDomain, attractors: Points, near: float | None = None) -> float:
    """4/√3 ∫ (size/h)² dA: size² times the number of equilateral triangles of edge h that fill the domain."""
    (x0, y0), (x1, y1) = domain.box
    ticks = (np.arange(128) + 0.5) / 128
    grid = np.stack(np.meshgrid(x0 + ticks * (x1 - x0), y0 + ticks * (y1 - y0)), axis=-1).reshape(-1, 2)
    inside = grid[domain.contains(grid)]
    fineness = np.mean(sizing(domain, 1.0, attractors, near)(inside) ** -2.0) if len(inside) else 1.0
    return float(4.0 / np.sqrt(3.0) * domain.area * fineness)


def _match_cell_count(make: Callable[..., Mesh], load: float, cells: int) -> Mesh:
    """Mesh with several sizes until the number of cells is close; the closest mesh gets a note if it is not close.

    `load` is the number of cells times the size squared; `make(size=…)` meshes the domain.
    """
    close = COUNT_TOLERANCE
    if cells > 4 * PILOT:
        close = LARGEST_COUNT_ERROR
        load *= len(make(size=(load / PILOT) ** 0.5).cells) / PILOT
    size, fine, coarse = (load / cells) ** 0.5, 0.0, np.inf
    best_size, best = size, make(size=size)
    count = len(best.cells)
    for nudge in SIZE_FACTORS:
        if abs(len(best.cells) - cells) <= close * cells:
            return best
        fine, coarse = (max(fine, size), coarse) if count > cells else (fine, min(coarse, size))
        if nudge:
            size = best_size * nudge
        else:
            rescaled = size * (count / cells) ** 0.5
            # Outside the sizes known to be too fine and too coarse, their geometric mean is taken instead.
            size = rescaled if fine < rescaled < coarse else (fine * coarse) ** 0.5
        mesh = make(size=size)
        count = len(mesh.cells)
        if abs(count - cells) < abs(len(best.cells) - cells):
            best_size, best = size, mesh
    if abs(len(best.cells) - cells) <= LARGEST_COUNT_ERROR * cells:
        return best
    note = f"{cells} cells were wanted, the closest mesh found has {len(best.cells)}"
    return replace(best, notes=(*best.notes, note))


def _check_cover(mesh: Mesh, domain: AbstractDomain) -> Mesh:
    """Return the mesh (for a disk with a note: it covers a polygon); raise MeshError unless it fills the domain."""
    areas = cell_areas(mesh.points, mesh.cells)
    edges = np.concatenate(list(mesh.boundary.values()))
    (ax, ay), (bx, by) = (mesh.points[edges] - mesh.points[0]).transpose(1, 2, 0)
    outline = 0.5 * float(np.sum(ax * by - bx * ay))
    wanted = outline if isinstance(domain, Disk) else domain.area
    if not (areas.min() > 0 and np.allclose([areas.sum(), outline], wanted, rtol=1e-8, atol=0)):
        raise MeshError("the mesh generated does not fill the domain: try another size, seed or engine")
    if not isinstance(domain, Disk):
        return mesh
    note = (
        f"the mesh covers a polygon of {len(edges)} sides inscribed in the disk, {wanted / domain.area:.4%} of its area"
    )
    return replace(mesh, notes=(*mesh.notes, note))


ALL_FAMILIES: Mapping[str, Callable[[int, int], Mesh]] = MappingProxyType(
    {
        **FAMILIES,
        "regular": lambda n, seed: generate(kind="regular", cells=2 * n * n, seed=seed),
        "irregular": lambda n, seed: generate(kind="irregular", cells=2 * n * n, seed=seed),
    }
)


class GenerateOptions(TypedDict, total=False):
    """The options of `generate` except the domain; see its docstring."""

    kind: str
    cells: int | None
    size: float | None
    seed: int
    engine: str


def square(**options: Unpack[GenerateOptions]) -> Mesh:
    """The unit square, meshed with triangles: `square(cells=300, kind="irregular", seed=3)`."""
    return generate(unit_square(), **options)


def disk(radius: float = 1.0, centre: tuple[float, float] = (0.0, 0.0), **options: Unpack[GenerateOptions]) -> Mesh:
    """A disk, as the polygon through points of its circle."""
    return generate(Disk(centre, radius), **options)


def polygon(vertices: Sequence[tuple[float, float]], **options: Unpack[GenerateOptions]) -> Mesh:
    """The polygon with these vertices, meshed with triangles."""
    return generate(Polygon(vertices), **options)
