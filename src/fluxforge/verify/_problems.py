"""Manufactured problems: −α∇²u = S with u known, on walls that hold u or its normal gradient."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import equinox as eqx
import numpy as np
import sympy as sp

from fluxforge.errors import InputError
from fluxforge.expression import COORDINATES, field, parse, symbols_of, to_text
from fluxforge.mesh import DualGraph, Mesh, dual

Function = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Problem:
    """A steady problem with the known solution `exact`, a formula of x and y.

    With `mixed` walls, those that face right or down (n_x > ½ or n_y < −¾) prescribe ∂u/∂n, the others u; otherwise
    every wall holds u.
    """

    name: str
    exact: str
    diffusivity: float = 1.0
    mixed: bool = False

    def graph(self, mesh: Mesh) -> DualGraph:
        """The mesh's graph with this problem's boundary data."""
        graph = dual(mesh)
        wall = graph.centre[graph.interior :]
        held = with_walls(graph, value=functions(self.exact).u(*wall.T))
        return held if not self.mixed else with_mixed_walls(held, functions(self.exact).gradient)

    def solution(self, graph: DualGraph) -> np.ndarray:
        """The solution u at the centroids."""
        return functions(self.exact).u(*graph.x.T)

    def source(self, graph: DualGraph) -> np.ndarray:
        """The source S = −α∇²u at the centroids."""
        return -self.diffusivity * functions(self.exact).laplacian(*graph.x.T)


@dataclass(frozen=True)
class Functions:
    """A solution, its gradient and its Laplacian, as functions of arrays x and y."""

    u: Function
    gradient: tuple[Function, Function]
    laplacian: Function


@cache
def functions(exact: str) -> Functions:
    """Differentiate a formula symbolically; a formula without second derivatives is refused."""
    symbols = symbols_of(COORDINATES[:2])
    u = parse(exact, symbols)
    x, y = symbols["x"], symbols["y"]
    if u.atoms(sp.Abs, sp.sign, sp.Min, sp.Max):
        raise InputError(f"the exact solution {exact!r:.60} is not smooth: its Laplacian is the source")
    parts = [sp.diff(u, x), sp.diff(u, y), sp.diff(u, x, 2) + sp.diff(u, y, 2)]
    along_x, along_y, laplacian = (field(to_text(part)) for part in parts)
    return Functions(field(exact), (along_x, along_y), laplacian)


# Neither is symmetric under exchange of x and y, both are non-zero on all walls, and every second derivative of both
# is non-zero: an operator with another diffusivity tensor has another solution. Different diffusivities, neither 1.
HELD = Problem("held walls", "1 + exp(x)*sin(2*y + 1/2) + x*y/2", 0.7)
MIXED = Problem("mixed walls", "2 + exp(3*y/4)*cos(2*x + 3/10) - x*y**2/2", 2.5, mixed=True)
PROBLEMS = (HELD, MIXED)

# The solution whose errors are published: symmetric, and zero on the walls of the unit square.
SINES = Problem("sines", "sin(pi*x)*sin(pi*y)")


def with_walls(graph: DualGraph, *, value: np.ndarray) -> DualGraph:
    """The graph with other boundary values, of the same kind."""
    return eqx.tree_at(lambda g: g.value, graph, np.asarray(value, float))


def with_mixed_walls(graph: DualGraph, gradient: tuple[Function, Function]) -> DualGraph:
    """The graph with its right and lower walls turned into Neumann walls with q = n·gradient.

    A Neumann ghost is the mirror image of its owner, as `dual` makes it.
    """
    walls = slice(graph.interior, None)
    n, centre = graph.n[walls], graph.centre[walls]
    neumann = (n[:, 0] > 0.5) | (n[:, 1] < -0.75)
    height = np.einsum("fe,fe->f", centre - graph.x[graph.owner[walls]], n)
    d = graph.d.copy()
    d[walls][neumann] = (2.0 * height[:, None] * n)[neumann]
    slope = n[:, 0] * gradient[0](*centre.T) + n[:, 1] * gradient[1](*centre.T)
    value = np.where(neumann, slope, graph.value)
    return eqx.tree_at(
        lambda g: (g.d, g.delta, g.neumann, g.value), graph, (d, np.hypot(d[:, 0], d[:, 1]), neumann, value)
    )


def scaled_to(problem: Problem, mesh: Mesh) -> Problem:
    """The problem in the coordinates of the mesh's bounding box, its longer side taken as 1."""
    low = mesh.points.min(axis=0)
    size = float((mesh.points.max(axis=0) - low).max())
    x, y = (f"((v - ({float(corner)!r}))/{size!r})".replace("v", name) for name, corner in zip("xy", low, strict=True))
    symbols = symbols_of(COORDINATES[:2])
    moved = parse(problem.exact, symbols).xreplace({symbols["x"]: parse(x, symbols), symbols["y"]: parse(y, symbols)})
    return Problem(problem.name, to_text(moved), problem.diffusivity, problem.mixed)
