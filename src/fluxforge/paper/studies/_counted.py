"""The bytes a stepper holds, counted from its arrays."""

import jax
import numpy as np

from fluxforge.certify.cost import cost
from fluxforge.mesh import DualGraph, fourier_step
from fluxforge.scheme import Scheme
from fluxforge.stepping import stepper

# Beside T and the right side, conjugate gradients hold x, r, p, A p and the preconditioned residual.
CG_FIELDS = 7


def counted_bytes(scheme: Scheme, graph: DualGraph, solver: str | None) -> float:
    """Coefficients, indices and fields, as certificates count them for explicit schemes and LU; for CG, here."""
    if solver != "cg":
        return cost(scheme, graph).memory * graph.cells
    step = stepper(scheme, graph, 0.5 * fourier_step(graph), source=np.ones(graph.cells), solver="cg", renumber=False)
    held = sum(array.nbytes for array in jax.tree.leaves(step) if isinstance(array, jax.Array))
    return float(held + CG_FIELDS * graph.cells * 8)
