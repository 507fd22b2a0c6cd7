"""The steady boundary layer of advection and diffusion on a row of cells: whether a linear scheme oscillates there."""

from dataclasses import dataclass

import numpy as np

from fluxforge.certify.riemann import rows
from fluxforge.errors import NumericalError
from fluxforge.mesh._boundary import Conditions, Dirichlet, Neumann
from fluxforge.mesh._build import dual
from fluxforge.pde._parameter import Rank
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import generator

# The row of cells, and the cell Péclet numbers tried: central differences oscillate beyond 2.
CELLS = 24
PECLET = (1.0, 1.9, 2.5, 10.0, 100.0)


@dataclass(frozen=True)
class BoundaryLayer:
    """How far u goes beyond the values of the walls, 0 and 1, per cell Péclet number |a| h/K."""

    peclet: tuple[float, ...]
    overshoot: tuple[float, ...]


def boundary_layer(scheme: Scheme) -> BoundaryLayer:
    """Solve a ∂u/∂x = K ∂²u/∂x², u = 0 on the left and 1 on the right, with flow to the right.

    Raises NumericalError where the system has no solution, or K is not made of scalars.
    """
    equation = scheme.equation
    conducting = {v.name for v in equation.diffusion.free_symbols}
    if equation.diffusion_tensor is not None or not conducting:
        raise NumericalError("asked of a scalar diffusion only")
    walls: Conditions = {"left": Dirichlet(0.0), "right": Dirichlet(1.0), "sides": Neumann()}
    graph = dual(rows(1, CELLS), walls)
    found = []
    for peclet in PECLET:
        values = dict(equation.example(2))
        for p in equation.parameters:
            if p.rank is Rank.VECTOR:
                values[p.name] = (1.0, 0.0)
            elif p.name in conducting:
                values[p.name] = 1.0 / (CELLS * peclet)
        system = generator(scheme, graph, parameters=values)
        u = np.linalg.solve(system.M.toarray(), -system.b)
        if not np.isfinite(u).all():
            raise NumericalError(f"no steady state at a cell Péclet number of {peclet:g}")
        found.append(float(max(u.max() - 1.0, -u.min(), 0.0)))
    return BoundaryLayer(PECLET, tuple(found))
