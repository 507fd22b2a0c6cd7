"""Observed order in space: errors of steady states on manufactured solutions, family by family."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fluxforge.mesh import Dirichlet, Mesh, dual
from fluxforge.scheme import Scheme
from fluxforge.verify._families import Levels
from fluxforge.verify._rates import Rates
from fluxforge.verify._steady import steady_state

EXACT = "sin(pi*x)*sin(pi*y)"


@dataclass(frozen=True)
class SpaceStudy:
    """Relative errors of the steady state of −α∇²u = S, u = sin πx sin πy, T = u on the boundary.

    The error is against u at the centroids: L2 is volume-weighted, both are relative to the norm of u. On random
    families it is the root mean square over several meshes of each size.
    """

    family: str
    cells: tuple[int, ...]
    l2: Rates
    linf: Rates


def space_order(
    scheme: Scheme, levels: Levels, *, diffusivity: float = 1.0, progress: Callable[[str], None] | None = None
) -> SpaceStudy:
    """Refine one family."""
    cells, h, l2, linf = [], [], [], []
    for n in levels.sizes:
        if progress is not None:
            progress(f"space order, {levels.family}, n = {n}")
        meshes = [levels.mesh(n, seed) for seed in levels.seeds]
        errors = np.array([steady_errors(scheme, mesh, diffusivity=diffusivity) for mesh in meshes])
        cells.append(round(float(np.mean([len(mesh.cells) for mesh in meshes]))))
        h.append(float(np.sqrt(1.0 / cells[-1])))
        together = np.sqrt(np.mean(errors**2, axis=0))
        l2.append(float(together[0]))
        linf.append(float(together[1]))
    return SpaceStudy(levels.family, tuple(cells), Rates(tuple(h), tuple(l2)), Rates(tuple(h), tuple(linf)))


def steady_errors(scheme: Scheme, mesh: Mesh, *, diffusivity: float = 1.0) -> tuple[float, float]:
    """Relative L2 and L∞ error of the steady state on one mesh."""
    graph = dual(mesh, Dirichlet(EXACT))
    u = np.sin(np.pi * graph.x[:, 0]) * np.sin(np.pi * graph.x[:, 1])
    T = steady_state(scheme, graph, 2 * np.pi**2 * diffusivity * u, diffusivity=diffusivity)
    apart, V = T - u, graph.V
    return float(np.sqrt(V @ apart**2 / (V @ u**2))), float(np.abs(apart).max() / np.abs(u).max())
