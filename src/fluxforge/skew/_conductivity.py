"""Conductivities other than 1: a tensor K, and k that jumps along x = ½; steady problems with known solutions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fluxforge._types import CellField
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.skew._fields import Field, manufactured_problems, random_wave
from fluxforge.skew._meshes import FAMILIES, make_mesh

Tensor = Float[np.ndarray, "2 2"]
JUMP = 100.0
LINE_FAMILIES = ("squares", "right", "jittered", "quadrilaterals")
"""The families with points on x = ½ for even n, whose faces can follow a jump."""
_MAJOR, _ANGLE = 10.0, 0.25 * np.pi


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
        """The families that problems with it are solved on."""
        return FAMILIES if self.right == 1.0 else LINE_FAMILIES

    @property
    def on_random_meshes(self) -> "Conductivity":
        """Itself, or k = 1 where it jumps: no line of faces of a random mesh could follow the jump."""
        return self if self.right == 1.0 else SCALAR

    def on_cells(self, graph: DualGraph) -> CellField:
        """K in the cells; 1 where K is a tensor."""
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
        """Solutions T of steady problems; `laplacian` is ∇·K∇T."""
        if self.right != 1.0:
            rng = np.random.default_rng(seed)
            return tuple(_broken_wave(rng, self.right) for _ in range(count))
        fields = manufactured_problems(seed, count)
        return fields if self.tensor is None else tuple(_map_field(each, self.tensor) for each in fields)


def _map_field(field: Field, K: Tensor) -> Field:
    """T(x) = U(K^(−½) x), of which ∇·K∇T = ΔU."""
    values, vectors = np.linalg.eigh(K)
    B = vectors @ np.diag(values**-0.5) @ vectors.T

    def at(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: function((x - 0.5) @ B + 0.5)

    return Field(at(field.value), lambda x: at(field.gradient)(x) @ B, at(field.laplacian))


def _broken_wave(rng: np.random.Generator, right: float) -> Field:
    """T = w/k with w = U(x, y) − U(1 − x, y) of a wave U: w = 0 and k ∂T/∂x is continuous at x = ½; k ΔT = Δw."""
    wave = random_wave(rng)

    def odd(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: function(x) - function(x * [-1.0, 1.0] + [1.0, 0.0])

    def k(x: np.ndarray) -> np.ndarray:
        return np.where(x[..., 0] < 0.5, 1.0, right)

    def gradient(x: np.ndarray) -> np.ndarray:
        there = wave.gradient(x * [-1.0, 1.0] + [1.0, 0.0])
        return (wave.gradient(x) - there * [-1.0, 1.0]) / k(x)[..., None]

    return Field(lambda x: odd(wave.value)(x) / k(x), gradient, odd(wave.laplacian))


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
        Conductivity("jump", right=JUMP),
    )
}
"""What ψ is searched for, by name."""
