"""Crank–Nicolson and TR-BDF2 for u' = Au, A symmetric in the volumes: conjugate gradients with algebraic multigrid.

They are rivals of explicit steps in `fluxforge bench time`, so that the work of every solve is counted, in applications
of A: a product a iteration, and of each multigrid level a residual and two sweeps, in proportion to its entries.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array

from fluxforge._types import CellField
from fluxforge.errors import NumericalError
from fluxforge.stepping._multigrid import Multigrid

GAMMA = 2.0 - np.sqrt(2.0)
_MOST_ITERATIONS = 200


@dataclass
class Work:
    """Applications of A, counted up."""

    applications: float = 0.0


@dataclass(frozen=True)
class ImplicitStep:
    """One step of `method`, "crank-nicolson" or "tr-bdf2"; A is Δt times the operator, `tolerance` of the change.

    TR-BDF2 is the trapezoidal rule up to γΔt, γ = 2 − √2, and the backward difference formula of second order through
    u, that and u': both solve with 1 − γ/2 A.
    """

    method: str
    A: csr_array
    V: CellField
    tolerance: float = 1e-5
    work: Work = field(default_factory=Work)

    @cached_property
    def solver(self) -> Multigrid:
        """The hierarchy of V (1 − θA)."""
        theta = 0.5 if self.method == "crank-nicolson" else 0.5 * GAMMA
        system = diags_array(self.V) @ (eye_array(len(self.V), format="csr") - theta * self.A)
        return Multigrid(csr_array(0.5 * (system + system.T)))

    @cached_property
    def work_per_iteration(self) -> float:
        """A product, and three of every level."""
        entries = sum(level.A.nnz for level in self.solver.levels) + self.solver.coarsest.size / 3.0
        return 1.0 + 3.0 * entries / self.A.nnz

    def __call__(self, T: CellField) -> CellField:
        """One step."""
        rate = self.A @ T
        self.work.applications += 1.0
        if self.method == "crank-nicolson":
            return T + self._solve(rate)
        first = self._solve(GAMMA * rate)
        return T + self._solve(first / (GAMMA * (2.0 - GAMMA)) + 0.5 * GAMMA * rate)

    def _solve(self, right: CellField) -> CellField:
        """Solve (1 − θA) x = right by conjugate gradients on V times it."""
        x, r = np.zeros_like(right), self.V * right
        size = _norm(r, self.V)
        z = self.solver.cycle(r)
        p, product = z.copy(), _dot(r, z)
        for _ in range(_MOST_ITERATIONS):
            self.work.applications += self.work_per_iteration
            Ap = self.solver.A @ p
            length = product / _dot(p, Ap)
            x += length * p
            r -= length * Ap
            if _norm(r, self.V) <= self.tolerance * size:
                return x
            z = self.solver.cycle(r)
            product, last = _dot(r, z), product
            p = z + (product / last) * p
        raise NumericalError(f"a linear system is not solved in {_MOST_ITERATIONS} iterations of conjugate gradients")


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    """The product a · b without BLAS, whose threads wait for each other where cores are shared."""
    return float(np.einsum("i,i->", a, b))


def _norm(r: CellField, V: CellField) -> float:
    """√(Σ r²/V) of a residual that was multiplied by V."""
    return float(np.sqrt(_dot(r, r / V)))
