"""Plane domains bounded by one closed curve, and the edge lengths of their meshes."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from fluxforge._arguments import check_number, describe_value
from fluxforge._types import Points
from fluxforge.errors import InputError
from fluxforge.mesh._cells import cross

# For thinner domains (area over squared perimeter) a mesh of well-shaped triangles has too many cells.
LEAST_COMPACTNESS = 1e-6
# Lengths beyond this (or below its inverse) would leave the range of floats once squared.
LARGEST_LENGTH = 1e100
RANGE = (
    f"{1.0 / LARGEST_LENGTH:g} and {LARGEST_LENGTH:g}, since areas overflow or underflow otherwise: rescale the domain"
)
# The least size of a domain relative to its largest coordinate; below, coordinates have too few significant digits.
LEAST_EXTENT = 1e-7
# In a domain of area ℓ², edges are shortest up to CORE · ℓ from an attraction point, and full-length from REACH · ℓ.
CORE = 0.05
REACH = 0.4


class AbstractDomain(ABC):
    """A region inside one closed curve, which runs counter-clockwise through sides that each have a tag."""

    @property
    @abstractmethod
    def area(self) -> float:
        """The area of the region itself, not of a mesh of it."""

    @property
    @abstractmethod
    def sides(self) -> tuple[tuple[str, float], ...]:
        """Tag and length of each side, in the order of the curve. Several sides may carry one tag."""

    @property
    @abstractmethod
    def box(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The lower left and the upper right corner of the smallest upright rectangle around the region."""

    @abstractmethod
    def along(self, side: int, s: Float[np.ndarray, " k"]) -> Float[np.ndarray, "k 2"]:
        """Points of a side at the fractions s of its length, 0 ≤ s < 1."""

    @abstractmethod
    def contains(self, points: Points) -> Bool[np.ndarray, " points"]:
        """Which points lie inside."""

    @abstractmethod
    def scale_by(self, factor: float) -> "AbstractDomain":
        """The region with every coordinate multiplied by a positive factor."""


@dataclass(frozen=True)
class Sizing:
    """h(x) = size · (near + (1 − near) · clip((|x − a| − core)/(reach − core), 0, 1)), a the attractor nearest to x.

    Around each attraction point edges are `near` times as long as far away, up to the distance `core`; from there
    their length grows linearly up to the distance `reach`. Without attraction points h(x) = size.
    """

    size: float
    attractors: Points
    core: float
    reach: float
    near: float = 0.25

    def __call__(self, points: Points) -> Float[np.ndarray, " points"]:
        """The wanted length of edges at the given points."""
        distance = np.full(len(points), np.inf)
        for a in self.attractors:
            distance = np.minimum(distance, np.hypot(*(points - a).T))
        share = np.clip((distance - self.core) / (self.reach - self.core), 0.0, 1.0)
        return np.asarray(self.size * (self.near + (1.0 - self.near) * share))


def sizing(domain: AbstractDomain, size: float, attractors: Points, near: float | None = None) -> Sizing:
    """The edge lengths of regular (no attraction points) and irregular meshes of a domain of area ℓ².

    With `near` given, edges are `near` times as long at the attraction points, and grow up to the distance ℓ.
    """
    length = domain.area**0.5
    if near is not None:
        return Sizing(size, attractors, core=0.0, reach=length, near=near)
    return Sizing(size, attractors, core=CORE * length, reach=REACH * length)


@dataclass(frozen=True)
class Polygon(AbstractDomain):
    """A simple polygon. Side k runs from vertex k to the next one as given; without tags it is called `side-k`.

    Clockwise vertices are reversed, and the tags stay with their sides.
    """

    vertices: Sequence[Sequence[float]]
    tags: Sequence[str] | None = None

    def __post_init__(self) -> None:
        p = _as_vertices(self.vertices)
        if self.tags is not None and not isinstance(self.tags, Sequence):
            raise InputError(f"field 'tags': should be a list of names, got {describe_value(self.tags)}")
        names = tuple(f"side-{k}" for k in range(len(p))) if self.tags is None else tuple(self.tags)
        if len(names) != len(p) or not all(isinstance(name, str) and name for name in names):
            raise InputError(f"field 'tags': {len(p)} sides need as many tags, none of them empty; got {list(names)!r}")
        _check_simple(p)
        if _shoelace(p) < 0:
            p, names = p[::-1], names[-2::-1] + names[-1:]
        if _shoelace(p) < LEAST_COMPACTNESS * _lengths(p).sum() ** 2:
            raise InputError(f"field 'vertices': the polygon has area {_shoelace(p):.3g}, too thin to mesh; widen it")
        object.__setattr__(self, "vertices", tuple((float(x), float(y)) for x, y in p))
        object.__setattr__(self, "tags", names)

    @property
    def corners(self) -> Points:
        """The vertices as an array."""
        return np.array(self.vertices)

    @property
    def area(self) -> float:
        """½ Σ (x_k y_{k+1} − x_{k+1} y_k)."""
        return _shoelace(self.corners)

    @property
    def sides(self) -> tuple[tuple[str, float], ...]:
        """Tag and length of each side."""
        return tuple(zip(self.tags or (), _lengths(self.corners).tolist(), strict=True))

    @property
    def box(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The least and the largest coordinates."""
        low, high = self.corners.min(axis=0).tolist(), self.corners.max(axis=0).tolist()
        return (low[0], low[1]), (high[0], high[1])

    def along(self, side: int, s: Float[np.ndarray, " k"]) -> Float[np.ndarray, "k 2"]:
        """(1 − s) a + s b; a coordinate that the two ends a, b of the side have in common is exact."""
        a, b = self.corners[side], self.corners[(side + 1) % len(self.vertices)]
        return np.where(a == b, a, np.outer(1.0 - s, a) + np.outer(s, b))

    def contains(self, points: Points) -> Bool[np.ndarray, " points"]:
        """Even-odd rule: a ray to the right crosses the outline an odd number of times."""
        x, y = points.T
        inside = np.zeros(len(points), dtype=bool)
        for (ax, ay), (bx, by) in zip(self.vertices, (*self.vertices[1:], self.vertices[0]), strict=True):
            if ay != by:
                crosses = (ay > y) != (by > y)
                inside ^= crosses & (x < ax + (y - ay) * ((bx - ax) / (by - ay)))
        return inside

    def scale_by(self, factor: float) -> "Polygon":
        """Every vertex multiplied."""
        return Polygon((self.corners * factor).tolist(), self.tags)


@dataclass(frozen=True)
class Disk(AbstractDomain):
    """A disk; its one side is called `circle`. Meshes of it cover the inscribed polygon of their boundary points."""

    centre: tuple[float, float] = (0.0, 0.0)
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_number(self.radius, "field 'radius'")
        pair = self.centre if isinstance(self.centre, Sequence | np.ndarray) and len(self.centre) == 2 else ()
        if not len(pair):
            raise InputError(f"field 'centre': should be a pair of numbers, got {describe_value(self.centre)}")
        if not (np.abs([check_number(one, "field 'centre'") for one in pair]) < LARGEST_LENGTH).all():
            raise InputError(
                f"field 'centre': {self.centre} should be a pair of finite numbers below {LARGEST_LENGTH:g}"
            )
        if not 0.0 < self.radius < math.inf:
            raise InputError(f"field 'radius': {self.radius} should be positive and finite")
        if not 1.0 / LARGEST_LENGTH < self.radius < LARGEST_LENGTH:
            raise InputError(f"field 'radius': {self.radius:g} should lie between {RANGE}")
        if self.radius < LEAST_EXTENT * np.abs(self.centre).max():
            raise InputError(
                f"field 'radius': {self.radius} is too small relative to the centre {self.centre}, so that the "
                "points of the circle are rounded; move the centre towards the origin"
            )

    @property
    def area(self) -> float:
        """π r²."""
        return float(np.pi * self.radius**2)

    @property
    def sides(self) -> tuple[tuple[str, float], ...]:
        """One side, the circle."""
        return (("circle", float(2.0 * np.pi * self.radius)),)

    @property
    def box(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Centre ∓ radius."""
        (x, y), r = self.centre, self.radius
        return (x - r, y - r), (x + r, y + r)

    def along(self, side: int, s: Float[np.ndarray, " k"]) -> Float[np.ndarray, "k 2"]:
        """Centre + r (cos 2πs, sin 2πs)."""
        turn = 2.0 * np.pi * s
        return np.array(self.centre) + self.radius * np.stack([np.cos(turn), np.sin(turn)], axis=-1)

    def contains(self, points: Points) -> Bool[np.ndarray, " points"]:
        """|x − centre| < r."""
        return np.asarray(np.hypot(*(points - np.array(self.centre)).T) < self.radius)

    def scale_by(self, factor: float) -> "Disk":
        """Centre and radius multiplied."""
        return Disk((self.centre[0] * factor, self.centre[1] * factor), self.radius * factor)


def unit_square() -> Polygon:
    """The square [0, 1]² with the tags `bottom`, `right`, `top` and `left`."""
    return Polygon(((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)), ("bottom", "right", "top", "left"))


def _as_vertices(vertices: Sequence[Sequence[float]]) -> Points:
    try:
        p = np.array([[float(value) for value in vertex] for vertex in vertices])
    except (TypeError, ValueError) as error:
        raise InputError(f"field 'vertices': should be a list of pairs of numbers ({error})") from error
    if p.ndim != 2 or p.shape[1] != 2 or len(p) < 3:
        raise InputError(f"field 'vertices': should be at least three pairs of numbers, got shape {p.shape}")
    if (bad := np.flatnonzero(~(np.abs(p) < LARGEST_LENGTH).all(axis=1))).size:
        where = f"vertex {bad[0]} is {tuple(p[bad[0]].tolist())}"
        if not np.isfinite(p[bad[0]]).all():
            raise InputError(f"field 'vertices': {where}; give finite numbers")
        raise InputError(f"field 'vertices': {where}, and lengths should lie between {RANGE}")
    if np.ptp(p, axis=0).max() < 1.0 / LARGEST_LENGTH:
        extent = np.ptp(p, axis=0).max()
        raise InputError(
            f"field 'vertices': the polygon has an extent of {extent:g}; lengths should lie between {RANGE}"
        )
    if np.ptp(p, axis=0).max() < LEAST_EXTENT * np.abs(p).max():
        raise InputError(
            "field 'vertices': the polygon is too small relative to its distance from the origin, so that its "
            "vertices are rounded; move it towards the origin"
        )
    return p


def _lengths(p: Points) -> Float[np.ndarray, " points"]:
    return np.asarray(np.hypot(*(np.roll(p, -1, axis=0) - p).T))


def _shoelace(p: Points) -> float:
    x, y = (p - p[0]).T
    return float(0.5 * np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def _check_simple(p: Points) -> None:
    """Raise InputError for polygons that touch themselves: sides may share end points with their neighbours only."""
    a, b = p, np.roll(p, -1, axis=0)
    for k in range(len(p)):
        if (a[k] == b[k]).all():
            raise InputError(f"field 'vertices': vertices {k} and {(k + 1) % len(p)} coincide; give each vertex once")
        touched = _distances_to_side(p, a[k], b[k]) == 0.0
        touched[[k, (k + 1) % len(p)]] = False
        crossed = _turns(a[k], b[k], a) * _turns(a[k], b[k], b) < 0
        crossed &= _turns(a, b, a[k]) * _turns(a, b, b[k]) < 0
        if (touched | crossed).any():
            other = int(np.flatnonzero(touched | crossed)[0])
            raise InputError(
                f"field 'vertices': the polygon touches or crosses itself, at side {k} and vertex or side {other}"
            )


def _turns(
    a: Float[np.ndarray, "*#k 2"], b: Float[np.ndarray, "*#k 2"], c: Float[np.ndarray, "*#k 2"]
) -> Float[np.ndarray, " k"]:
    """The sign of the turn a → b → c: 1 to the left, −1 to the right, 0 straight on or back."""
    return np.sign(cross(*np.broadcast_arrays(b - a, c - a)))


def _distances_to_side(
    p: Points, a: Float[np.ndarray, " 2"], b: Float[np.ndarray, " 2"]
) -> Float[np.ndarray, " points"]:
    """Distance of points to a segment, as a share of its length; round-off counts as zero."""
    u, v = b - a, p - a
    t = np.clip(v @ u / (u @ u), 0.0, 1.0)
    share = np.hypot(*(v - t[:, None] * u).T) / np.hypot(*u)
    return np.where(share < 1e-12, 0.0, share)
