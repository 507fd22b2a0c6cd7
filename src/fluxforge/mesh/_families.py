"""Structured families of meshes for refinement studies, built without a mesh generator or loops over cells."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from jaxtyping import Float, Int

from fluxforge._arguments import check_number, check_whole
from fluxforge._types import Corners, Points
from fluxforge.errors import InputError
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
    moves = _moves(n, np.random.default_rng(seed)) * (jitter / n)
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


def _moves(n: int, rng: np.random.Generator) -> Points:
    """Random vectors of length at most 1: in a disk inside, along the side on the boundary, none at corners."""
    shape = (n + 1, n + 1)
    radius, angle = np.sqrt(rng.random(shape)), 2.0 * np.pi * rng.random(shape)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    x[[0, -1], :] = 2.0 * rng.random((2, n + 1)) - 1.0
    y[:, [0, -1]] = 2.0 * rng.random((n + 1, 2)) - 1.0
    x[:, [0, -1]] = 0.0
    y[[0, -1], :] = 0.0
    return np.stack([x, y], axis=-1).reshape(-1, 2)
