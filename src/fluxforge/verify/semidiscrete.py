"""The system a scheme integrates: whether G and s are the operator and the identity they should be."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import eye_array

from fluxforge.mesh import DualGraph
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.simulate import generator
from fluxforge.verify.diffusivity import lattice_diffusivity
from fluxforge.verify.patch import PatchTest

SAME = 1e-10


@dataclass(frozen=True)
class SemiDiscrete:
    """`plain_flux`: max |G − L|/max|L|, L the plain flux α A/δ; `source`: max |s − I|; `diffusivity`: K/α on squares.

    The generator is right if it is L, or if it is another operator that keeps linear fields (a corrected flux) and
    has the right diffusivity; and the source enters as it is.
    """

    plain_flux: float
    source: float
    diffusivity: float
    linear_exact: bool

    @property
    def holds(self) -> bool:
        """Whether both are as they should be."""
        right = self.linear_exact and abs(self.diffusivity - 1.0) <= SAME
        return (self.plain_flux <= SAME or right) and self.source <= SAME


def semidiscrete(scheme: Scheme, graph: DualGraph, patch: PatchTest, *, diffusivity: float = 1.0) -> SemiDiscrete:
    """Compare with the plain flux on one mesh; `patch` is the patch test on an irregular one."""
    system = generator(scheme, graph, diffusivity=diffusivity)
    L = generator(BUILT_IN["euler"], graph, diffusivity=diffusivity).M
    apart = abs(system.M - L).max() / abs(L).max()
    source = abs(system.N - eye_array(graph.cells)).max()
    K = lattice_diffusivity(scheme, "squares")
    # The eigenvalue farthest from 1 speaks for all.
    eigenvalues = np.linalg.eigvalsh(K)
    diffusivity_on_squares = float(eigenvalues[np.abs(eigenvalues - 1.0).argmax()])
    return SemiDiscrete(float(apart), float(source), diffusivity_on_squares, patch.exact(1))
