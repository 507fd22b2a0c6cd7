"""Patch tests: what the scheme's generator makes of polynomials, far from and at the boundary."""

from dataclasses import dataclass

import numpy as np

from fluxforge.mesh import Dirichlet, Mesh, dual
from fluxforge.scheme import Scheme
from fluxforge.simulate import generator

EXACT = 1e-10

# Name, function, Laplacian.
POLYNOMIALS = {
    0: (("1", 0.0),),
    1: (("x", 0.0), ("y", 0.0)),
    2: (("x*x", 2.0), ("x*y", 0.0), ("y*y", 2.0)),
}


@dataclass(frozen=True)
class PatchTest:
    """max |G p + r − α∇²p| over cells and polynomials of each degree, times h²/(α max|p|); 0 is exact.

    `cell` is where the worst of degree 1 sits: a linear field the scheme does not keep is a counterexample.
    """

    residual: dict[int, float]
    cell: int
    polynomial: str

    def exact(self, degree: int) -> bool:
        """Whether all polynomials up to that degree are kept to round-off."""
        return all(self.residual[k] <= EXACT for k in range(degree + 1))


def patch_test(scheme: Scheme, mesh: Mesh, *, diffusivity: float = 1.0) -> PatchTest:
    """Polynomials given at the centroids and, by the boundary condition, at the face centres."""
    residual: dict[int, float] = {}
    worst = (-1.0, 0, "x")
    for degree, family in POLYNOMIALS.items():
        residual[degree] = 0.0
        for text, laplacian in family:
            graph = dual(mesh, Dirichlet(text))
            system = generator(scheme, graph, diffusivity=diffusivity)
            p = _value(text, graph.x)
            scale = graph.V.mean() / (diffusivity * np.abs(p).max())
            left = np.abs(system.M @ p + system.b - diffusivity * laplacian) * scale
            residual[degree] = max(residual[degree], float(left.max()))
            if degree == 1 and left.max() > worst[0]:
                worst = (float(left.max()), int(left.argmax()), text)
    return PatchTest(residual, worst[1], worst[2])


def _value(text: str, x: np.ndarray) -> np.ndarray:
    factors = {"1": np.ones(len(x)), "x": x[:, 0], "y": x[:, 1]}
    return np.prod([factors[name] for name in text.split("*")], axis=0)
