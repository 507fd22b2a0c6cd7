"""Meshes of several families, fields with known gradients, and steady problems with known solutions.

Problems have k = 1, a tensor K, or k that jumps along x = ½.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fluxforge._types import CellField
from fluxforge.errors import InputError
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import ALL_FAMILIES, generate
from fluxforge.mesh._mesh import Mesh

FAMILIES = ("squares", "right", "jittered", "regular", "irregular", "quadrilaterals")
"""Squares, right triangles, the same with moved points, two kinds of unstructured triangles, and squares with moved
points."""

LINE_FAMILIES = ("squares", "right", "jittered", "quadrilaterals")
"""The families with points on x = ½ for even n, whose faces can follow a jump."""
KINDS = ("right", "jittered", "irregular", "quadrilaterals")
"""The kinds that random meshes are stretched from."""
# The largest move of a point, relative to the width of a square; with larger ones squares could become concave.
_LARGEST_MOVE = 0.25
WAVES, SINES = "waves", "sines"
"""The kinds of steady problems: waves and harmonic functions, and sums of sines, which vanish at the walls."""
_JUMP, _MAJOR, _ANGLE = 100.0, 10.0, 0.25 * np.pi
Tensor = Float[np.ndarray, "2 2"]


def make_mesh(family: str, n: int, seed: int) -> Mesh:
    """A mesh of a family with as many cells as squares or triangles of width 1/n; InputError for an unknown family.

    It is the same on every machine: unstructured meshes come from the built-in generator.
    """
    if family in ("regular", "irregular"):
        return generate(kind=family, cells=2 * n * n, seed=seed, engine="builtin")
    if family == "quadrilaterals":
        return _move_squares(n, seed)
    if family not in ALL_FAMILIES:
        raise InputError(f"unknown mesh family {family!r:.60}; known: {', '.join(FAMILIES)}")
    return ALL_FAMILIES[family](n, seed)


def _move_squares(n: int, seed: int) -> Mesh:
    """Squares whose inner points are moved by at most a quarter of the width: every cell stays convex."""
    mesh = ALL_FAMILIES["squares"](n, seed)
    rng = np.random.default_rng(seed)
    inside = np.asarray(((mesh.points > 0.0) & (mesh.points < 1.0)).all(axis=1))
    radius, angle = np.sqrt(rng.random(len(inside))), 2.0 * np.pi * rng.random(len(inside))
    moves = _LARGEST_MOVE / n * radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
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
        """Its dual graph, with Dirichlet conditions on all walls."""
        return dual(self.mesh)


def stretch_mesh(family: str, n: int, seed: int, aspect: float, shear: float) -> Stretched:
    """A mesh of the unit square squeezed in y by the aspect ratio, and sheared along y by `shear`."""
    mesh = make_mesh(family, n, seed)
    move: Float[np.ndarray, "2 2"] = np.array([[1.0, shear], [0.0, 1.0 / aspect]])
    origin = f"{family}({n}, seed={seed}), aspect {aspect:.3g}, shear {shear:.3g}"
    squeezed = Mesh(mesh.points @ move, mesh.cells, mesh.boundary, origin=origin)
    return Stretched(squeezed, family, aspect, 1.0 / (aspect * float(np.hypot(1.0, shear))))


def random_meshes(count: int, n: int, seed: int, most: float) -> tuple[Stretched, ...]:
    """`count` stretched meshes; kinds alternate; aspect ratios are log-uniform up to `most`, the last ones `most`."""
    rng = np.random.default_rng(seed)
    aspects = np.exp(rng.random(count) * np.log(most))
    aspects[-len(KINDS) :] = most
    shears = rng.uniform(-0.5, 0.5, count)
    return tuple(
        stretch_mesh(KINDS[k % len(KINDS)], n, seed + k, float(aspects[k]), float(shears[k])) for k in range(count)
    )


@dataclass(frozen=True)
class Field:
    """A function of the plane, its gradient and its Laplacian at points; `kind` is that of the problem it solves."""

    value: Callable[[np.ndarray], np.ndarray]
    gradient: Callable[[np.ndarray], np.ndarray]
    laplacian: Callable[[np.ndarray], np.ndarray]
    kind: str = WAVES


def random_polynomial(rng: np.random.Generator, degree: int = 3) -> Field:
    """A polynomial about (½, ½) whose coefficients are normal numbers."""
    powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i)]
    c = dict(zip(powers, rng.normal(size=len(powers)), strict=True))

    def term(x: np.ndarray, i: int, j: int) -> np.ndarray:
        X, Y = x[..., 0] - 0.5, x[..., 1] - 0.5
        return np.asarray(X**i * Y**j) if i >= 0 and j >= 0 else np.zeros(x.shape[:-1])

    def total(x: np.ndarray, a: int, b: int) -> np.ndarray:
        """∂ᵃ/∂xᵃ ∂ᵇ/∂yᵇ."""
        derivative = np.zeros(x.shape[:-1])
        for (i, j), weight in c.items():
            factor = float(np.prod(np.arange(i, i - a, -1)) * np.prod(np.arange(j, j - b, -1)))
            derivative = derivative + weight * factor * term(x, i - a, j - b)
        return derivative

    return Field(
        lambda x: total(x, 0, 0),
        lambda x: np.stack([total(x, 1, 0), total(x, 0, 1)], axis=-1),
        lambda x: total(x, 2, 0) + total(x, 0, 2),
    )


def random_harmonic(rng: np.random.Generator) -> Field:
    """Re(c exp(k z)) with random complex c and k, |k| up to 3."""
    c, k = (complex(*rng.normal(size=2)) for _ in range(2))
    k *= 3.0 * rng.random() / abs(k)

    def exponential(x: np.ndarray) -> np.ndarray:
        return c * np.exp(k * ((x[..., 0] - 0.5) + 1j * (x[..., 1] - 0.5)))

    def gradient(x: np.ndarray) -> np.ndarray:
        slope = k * exponential(x)
        return np.stack([slope.real, -slope.imag], axis=-1)

    return Field(lambda x: exponential(x).real, gradient, lambda x: np.zeros(x.shape[:-1]))


def random_wave(rng: np.random.Generator) -> Field:
    """cos(a·x + b) cos(c·x + e), with random vectors a and c of lengths between 1 and 6."""
    lengths, angles = rng.uniform(1.0, 6.0, 2), rng.uniform(0.0, 2.0 * np.pi, 2)
    a, c = (length * np.array([np.cos(t), np.sin(t)]) for length, t in zip(lengths, angles, strict=True))
    b, e = rng.uniform(0.0, 2.0 * np.pi, 2)

    def parts(x: np.ndarray) -> tuple[np.ndarray, ...]:
        first, second = x @ a + b, x @ c + e
        return np.cos(first), np.sin(first), np.cos(second), np.sin(second)

    def gradient(x: np.ndarray) -> np.ndarray:
        cos1, sin1, cos2, sin2 = parts(x)
        return np.asarray(-(sin1 * cos2)[..., None] * a - (cos1 * sin2)[..., None] * c)

    def laplacian(x: np.ndarray) -> np.ndarray:
        cos1, sin1, cos2, sin2 = parts(x)
        return np.asarray(-(a @ a + c @ c) * cos1 * cos2 + 2.0 * (a @ c) * sin1 * sin2)

    return Field(lambda x: parts(x)[0] * parts(x)[2], gradient, laplacian)


def random_sines(rng: np.random.Generator, K: Tensor | None = None, *, even: bool = False) -> Field:
    """All products sin(pπx) sin(qπy) with p and q up to 2 or 3, with normal factors; `even`: p is 2 or 4.

    It vanishes on the walls of the unit square; `laplacian` is ∇·K∇T. It is never a single product: on squares, with
    means of the source, the corrected flux is exact for p = q, and a ratio to its error would mean nothing.
    """
    K = np.eye(2) if K is None else K
    upto = np.arange(1, int(rng.integers(3, 5)))
    p, q = (np.pi * each.ravel() for each in np.meshgrid(np.array([2, 4]) if even else upto, upto))
    c = rng.normal(size=p.size)

    def parts(x: np.ndarray) -> tuple[np.ndarray, ...]:
        X, Y = x[..., :1] * p, x[..., 1:] * q
        return np.sin(X), np.cos(X), np.sin(Y), np.cos(Y)

    def value(x: np.ndarray) -> np.ndarray:
        sin1, _, sin2, _ = parts(x)
        return np.asarray((sin1 * sin2) @ c)

    def gradient(x: np.ndarray) -> np.ndarray:
        sin1, cos1, sin2, cos2 = parts(x)
        return np.stack([(cos1 * sin2) @ (c * p), (sin1 * cos2) @ (c * q)], axis=-1)

    def laplacian(x: np.ndarray) -> np.ndarray:
        sin1, cos1, sin2, cos2 = parts(x)
        straight = (sin1 * sin2) @ (c * (K[0, 0] * p**2 + K[1, 1] * q**2))
        return np.asarray(2.0 * K[0, 1] * (cos1 * cos2) @ (c * p * q) - straight)

    return Field(value, gradient, laplacian, SINES)


def manufactured_problems(seed: int | tuple[int, ...], count: int, K: Tensor | None = None) -> tuple[Field, ...]:
    """Solutions of steady problems, T on all walls and −∇·K∇T as the source, K being 1 by default.

    The two kinds alternate: waves, every third of them a harmonic function, and sums of sines, which vanish at the
    walls.
    """
    rng = np.random.default_rng(seed)

    def draw(k: int) -> Field:
        if k % 2:
            return random_sines(rng, K)
        field = random_harmonic(rng) if k % 6 == 4 else random_wave(rng)
        return field if K is None else _map_field(field, K)

    return tuple(draw(k) for k in range(count))


@dataclass(frozen=True, eq=False)
class Conductivity:
    """K in the plane: one tensor, or the unit one times k, which is 1 left of x = ½ and `right` right of it.

    With `weighted`, cos θ is that of the plane mapped by K^(−½), where conduction is the same in all directions.
    """

    name: str = "scalar"
    tensor: Tensor | None = None
    right: float = 1.0
    weighted: bool = False

    @property
    def families(self) -> tuple[str, ...]:
        """The families of meshes on which problems with this conductivity are solved."""
        return FAMILIES if self.right == 1.0 else LINE_FAMILIES

    @property
    def on_random_meshes(self) -> "Conductivity":
        """The conductivity itself, or k = 1 if it jumps: no line of faces of a random mesh could follow the jump."""
        return self if self.right == 1.0 else SCALAR

    def on_cells(self, graph: DualGraph) -> CellField:
        """The factor k in the cells; 1 if K is a tensor."""
        return np.where(graph.x[:, 0] < 0.5, 1.0, self.right)

    def mesh(self, family: str, n: int, seed: int) -> Mesh:
        """A mesh of a family; where k jumps, n is rounded up to an even number, and points of x = ½ stay there."""
        if self.right == 1.0:
            return make_mesh(family, n, seed)
        n += n % 2
        mesh = make_mesh(family, n, seed)
        on_line = np.isclose(make_mesh("squares", n, 0).points[:, 0], 0.5)
        points = mesh.points.copy()
        points[on_line, 0] = 0.5
        return Mesh(points, mesh.cells, mesh.boundary, origin=f"{mesh.origin}, a line of faces at x = 1/2")

    def problems(self, seed: int | tuple[int, ...], count: int) -> tuple[Field, ...]:
        """Solutions T of steady problems, the two kinds alternating; `laplacian` is ∇·K∇T."""
        if self.right == 1.0:
            return manufactured_problems(seed, count, self.tensor)
        rng = np.random.default_rng(seed)
        fields = (random_sines(rng, even=True) if k % 2 else random_wave(rng) for k in range(count))
        return tuple(_break_field(each, self.right) for each in fields)


def _map_field(field: Field, K: Tensor) -> Field:
    """T(x) = U(K^(−½) x), of which ∇·K∇T = ΔU."""
    values, vectors = np.linalg.eigh(K)
    B = vectors @ np.diag(values**-0.5) @ vectors.T

    def at(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: function((x - 0.5) @ B + 0.5)

    return Field(at(field.value), lambda x: at(field.gradient)(x) @ B, at(field.laplacian))


def _break_field(field: Field, right: float) -> Field:
    """T = w/k with w = U(x, y) − U(1 − x, y) of a field U: w = 0 and k ∂T/∂x is continuous at x = ½; k ΔT = Δw."""

    def odd(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: function(x) - function(x * [-1.0, 1.0] + [1.0, 0.0])

    def k(x: np.ndarray) -> np.ndarray:
        return np.where(x[..., 0] < 0.5, 1.0, right)

    def gradient(x: np.ndarray) -> np.ndarray:
        there = field.gradient(x * [-1.0, 1.0] + [1.0, 0.0])
        return (field.gradient(x) - there * [-1.0, 1.0]) / k(x)[..., None]

    return Field(lambda x: odd(field.value)(x) / k(x), gradient, odd(field.laplacian), field.kind)


def _turned_tensor() -> Tensor:
    """diag(√10, 1/√10) turned by 45°: conducts ten times better along the diagonal than across it."""
    c, s = np.cos(_ANGLE), np.sin(_ANGLE)
    turn = np.array([[c, -s], [s, c]])
    return turn @ np.diag([_MAJOR**0.5, _MAJOR**-0.5]) @ turn.T


SCALAR = Conductivity()
CONDUCTIVITIES = {
    each.name: each
    for each in (
        SCALAR,
        Conductivity("tensor", tensor=_turned_tensor()),
        Conductivity("weighted-tensor", tensor=_turned_tensor(), weighted=True),
        Conductivity("jump", right=_JUMP),
    )
}
"""The conductivities for which ψ is searched, by name."""
