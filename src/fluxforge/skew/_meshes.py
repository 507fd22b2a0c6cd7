"""Meshes that fluxes are judged on: families of the unit square, and random meshes stretched up to an aspect ratio."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fluxforge.errors import InputError
from fluxforge.mesh import FAMILIES as STRUCTURED
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import generate
from fluxforge.mesh._mesh import Mesh

FAMILIES = ("squares", "right", "jittered", "regular", "irregular", "quadrilaterals")
"""Squares, right triangles, the same with moved points, two kinds of unstructured triangles, and squares with moved
points."""

_MOVED = 0.25
KINDS = ("right", "jittered", "irregular", "quadrilaterals")
"""The kinds that random meshes are stretched from."""


def make_mesh(family: str, n: int, seed: int) -> Mesh:
    """A mesh of a family with as many cells as squares or triangles of width 1/n; raises InputError for another name.

    The same on every machine: unstructured meshes come from the built-in generator.
    """
    if family in ("regular", "irregular"):
        return generate(kind=family, cells=2 * n * n, seed=seed, engine="builtin")
    if family == "quadrilaterals":
        return _moved_squares(n, seed)
    if family not in STRUCTURED:
        raise InputError(f"unknown mesh family {family!r:.60}; known: {', '.join(FAMILIES)}")
    return STRUCTURED[family](n, seed)


def _moved_squares(n: int, seed: int) -> Mesh:
    """Squares whose inner points are moved by at most a quarter of the width: every cell stays convex."""
    mesh = STRUCTURED["squares"](n, seed)
    rng = np.random.default_rng(seed)
    inside = np.asarray(((mesh.points > 0.0) & (mesh.points < 1.0)).all(axis=1))
    radius, angle = np.sqrt(rng.random(len(inside))), 2.0 * np.pi * rng.random(len(inside))
    moves = _MOVED / n * radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = mesh.points + np.where(inside[:, None], moves, 0.0)
    return Mesh(points, mesh.cells, mesh.boundary, origin=f"quadrilaterals({n}, seed={seed})")


@dataclass(frozen=True)
class Stretched:
    """A mesh of a parallelogram: how far it was stretched, and the distance `width` of its long sides."""

    mesh: Mesh
    family: str
    aspect: float
    width: float

    @property
    def graph(self) -> DualGraph:
        """Its dual graph, held at a value on all walls."""
        return dual(self.mesh)


def stretch_mesh(family: str, n: int, seed: int, aspect: float, shear: float) -> Stretched:
    """A mesh of the unit square squeezed in y by the aspect ratio, and sheared along y by `shear`."""
    mesh = make_mesh(family, n, seed)
    move: Float[np.ndarray, "2 2"] = np.array([[1.0, shear], [0.0, 1.0 / aspect]])
    origin = f"{family}({n}, seed={seed}), aspect {aspect:.3g}, shear {shear:.3g}"
    squeezed = Mesh(mesh.points @ move, mesh.cells, mesh.boundary, origin=origin)
    return Stretched(squeezed, family, aspect, 1.0 / (aspect * float(np.hypot(1.0, shear))))


def random_meshes(count: int, n: int, seed: int, most: float) -> tuple[Stretched, ...]:
    """So many stretched meshes, the kinds in turn, aspect ratios log-uniform from 1 to `most`, the last one `most`."""
    rng = np.random.default_rng(seed)
    aspects = np.exp(rng.random(count) * np.log(most))
    aspects[-len(KINDS) :] = most
    shears = rng.uniform(-0.5, 0.5, count)
    return tuple(
        stretch_mesh(KINDS[k % len(KINDS)], n, seed + k, float(aspects[k]), float(shears[k])) for k in range(count)
    )
