"""Approximations of exp(A)T for diffusion, A = ΔtL: polynomials, a Krylov space, and implicit methods of second order.

Polynomials p(z) near e^z on [−β, 0] of the negative axis are sums Σ a_k T_k(1 + 2z/β) of Chebyshev polynomials, found
by linear programs. Two kinds: the polynomial of degree s and order two with the largest β such that |p| ≤ 1, by
bisection over β as in Ketcheson and Ahmadia, Comm. App. Math. Comp. Sci. 7 (2012) 247-271; and, for a given β, the one
nearest to e^z. The truncated Chebyshev series of e^z, whose coefficients are Bessel functions, is the third.

Crank–Nicolson and TR-BDF2 solve by conjugate gradients with algebraic multigrid. `fluxforge bench time` compares them
with explicit steps, so the work of every solve is counted in applications of A: one product per iteration, and for each
multigrid level a residual and two sweeps, in proportion to its entries.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg import eigh_tridiagonal
from scipy.optimize import linprog
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.special import ive

from fluxforge._types import CellField
from fluxforge.errors import InputError, NumericalError
from fluxforge.scheme._tableau import Tableau
from fluxforge.stepping._solvers import Multigrid, conjugate_gradients, dot

MOST_STAGES = 32
# Points per degree at which |p| is bounded: between two of them it may exceed the bound by (π/(2·200))²/2 ≈ 3e-5.
_POINTS = 200
# How far above 1 the least bound of |p| may be: the programs are solved to about 1e-9.
_FEASIBILITY_TOLERANCE = 1e-8
_BISECTIONS = 40


@dataclass(frozen=True)
class Polynomial:
    """p(z) = Σ a_k T_k(1 + 2z/reach)."""

    coefficients: tuple[float, ...]
    reach: float

    @property
    def degree(self) -> int:
        """The degree of p, which is the number of operator applications that p(ΔtL)T takes."""
        return len(self.coefficients) - 1

    def value(self, z: np.ndarray) -> np.ndarray:
        """p(z)."""
        return chebyshev.chebval(1.0 + 2.0 * z / self.reach, self.coefficients)

    def apply(self, A: csr_array, T: CellField) -> CellField:
        """p(A)T by the recurrence of the Chebyshev polynomials, A having its spectrum in [−reach, 0]."""
        a, scale = self.coefficients, 2.0 / self.reach
        last, now = T, T + scale * (A @ T)
        total = a[0] * last + a[1] * now
        for weight in a[2:]:
            last, now = now, 2.0 * (now + scale * (A @ now)) - last
            total += weight * now
        return total


def amplification(tableau: Tableau, z: np.ndarray, coefficients: Sequence[np.ndarray | float]) -> np.ndarray:
    """R(z) of a tableau with k_j = k_0 + c_j z D_j, one c_j per stage after the first; c_j = 1 is the tableau's."""
    increments, rates = [np.zeros_like(z)], [z]
    for i, row in enumerate(tableau.rows):
        if i > 0:
            rates.append(z + coefficients[i - 1] * z * increments[i])
        states = sum((float(w) * increments[j] for j, w in row.states.items()), np.zeros_like(z))
        increments.append(states + sum(float(w) * rates[j] for j, w in row.rates.items()))
    return np.asarray(1.0 + increments[-1])


def chebyshev_exponential(degree: int, reach: float) -> Polynomial:
    """The Chebyshev series of e^z on [−reach, 0] up to a degree: a_k = (2 − δ_k0) e^(−r) I_k(r), r = reach/2."""
    a = 2.0 * ive(np.arange(degree + 1), 0.5 * reach)
    a[0] *= 0.5
    return Polynomial(tuple(float(each) for each in a), reach)


@cache
def optimal_polynomial(stages: int) -> Polynomial:
    """The polynomial 1 + z + z²/2 + … of degree `stages` with |p| ≤ 1 on the longest interval, `reach`; no damping."""
    if not 2 <= stages <= MOST_STAGES:
        raise InputError(f"stages: should be 2 to {MOST_STAGES}, got {stages}")
    if stages == 2:
        return _least_bound(2, 2.0)[1]
    # RKL2 has this interval, and no polynomial of first order a longer one than 2s².
    low, high = (stages**2 + stages - 2) / 2, 2.0 * stages**2
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _least_bound(stages, middle)[0] <= 1.0 + _FEASIBILITY_TOLERANCE else (low, middle)
        if high - low <= 1e-8 * high:
            break
    return _least_bound(stages, low)[1]


@cache
def nearest_polynomial(degree: int, reach: float) -> Polynomial:
    """The polynomial 1 + z + … that minimises the largest |p − e^z|/(1 − e^z) on [−reach, 0].

    That is the error of a step relative to the change of the mode, for the worst mode. Steps with one coefficient per
    stage for all faces have these polynomials. Raises NumericalError if the error would be below the resolution of
    linear programs, about 1e-10.
    """
    x = np.cos(np.pi * np.arange(1, _POINTS * degree + 1) / (_POINTS * degree))
    z = 0.5 * reach * (x - 1.0)
    weight = -1.0 / np.expm1(z)
    # e^z − 1 − z; near 0, where the difference would lose its digits, by its series.
    rest = np.where(z > -1e-3, z**2 * (0.5 + z / 6 + z**2 / 24), np.expm1(z) - z)
    values = chebyshev.chebvander(x, degree - 2) * (z**2 * weight)[:, None]
    _, a = _minimise_largest(values, rest * weight, None)
    return corrected_euler(a, reach)


def corrected_euler(weights: Sequence[float] | np.ndarray, reach: float) -> Polynomial:
    """The polynomial 1 + z + z² Σ w_k T_k(x), x = 1 + 2z/reach."""
    z = np.array([-0.5 * reach, 0.5 * reach])
    correction = chebyshev.chebmul(chebyshev.chebmul(z, z), np.asarray(weights))
    coefficients = chebyshev.chebadd(chebyshev.chebadd(np.ones(1), z), correction)
    return Polynomial(tuple(float(each) for each in coefficients), reach)


def _least_bound(degree: int, reach: float) -> tuple[float, Polynomial]:
    """The least max |p| on [−reach, 0] among the polynomials of degree `degree` and order two, and a minimiser."""
    x = np.cos(np.pi * np.arange(_POINTS * degree + 1) / (_POINTS * degree))
    values = chebyshev.chebvander(x, degree)
    bound, a = _minimise_largest(values, np.zeros(len(x)), _conditions_at_zero(degree, reach))
    return bound, Polynomial(tuple(a), reach)


def _conditions_at_zero(degree: int, reach: float) -> np.ndarray:
    """Rows that map coefficients to p(0), p'(0) and p''(0), each of which is 1 for order two."""
    k = np.arange(degree + 1.0)
    slope = 2.0 / reach
    return np.stack([np.ones_like(k), slope * k**2, slope**2 * k**2 * (k**2 - 1.0) / 3.0])


def _minimise_largest(
    values: np.ndarray, wanted: np.ndarray, conditions: np.ndarray | None
) -> tuple[float, list[float]]:
    """The least t and its a with |values a − wanted| ≤ t and, if there are conditions, conditions a = 1."""
    one = np.ones((len(values), 1))
    above, below = np.hstack([values, -one]), np.hstack([-values, -one])
    degree = values.shape[1]
    equal = right = None
    if conditions is not None:
        # The solver does not reach its tolerance if the sizes of the rows are very different.
        size = np.abs(conditions).max(axis=1)
        equal, right = np.hstack([conditions / size[:, None], np.zeros((len(conditions), 1))]), 1.0 / size
    program = linprog(
        np.eye(degree + 1)[-1],
        A_ub=np.vstack([above, below]),
        b_ub=np.concatenate([wanted, -wanted]),
        A_eq=equal,
        b_eq=right,
        bounds=(None, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if not program.success:
        raise NumericalError(f"a polynomial with {degree} coefficients was not found: {program.message}")
    return float(program.fun), [float(each) for each in program.x[:-1]]


def krylov_exponential(A: csr_array, V: CellField, T: CellField, size: int) -> CellField:
    """exp(A)T projected on span{T, AT, …, A^(size−1)T}: `size` applications of A.

    The basis is computed by Lanczos' three-term recurrence in the inner product weighted by the volumes. The last
    application gives the last diagonal entry of the tridiagonal matrix. If A maps the space into itself, the recurrence
    ends early, and the result is exact.
    """
    norm = np.sqrt(dot(V * T, T))
    if norm == 0.0:
        return T.copy()
    basis = [T / norm]
    alpha: list[float] = []
    beta: list[float] = []
    for k in range(size):
        w = A @ basis[-1]
        alpha.append(dot(V * w, basis[-1]))
        w -= alpha[-1] * basis[-1]
        if k:
            w -= beta[-1] * basis[-2]
        length = np.sqrt(dot(V * w, w))
        # Below round-off of the largest entries the next vector has no correct digits.
        if k == size - 1 or length <= 1e-14 * max(map(abs, alpha)):
            break
        beta.append(length)
        basis.append(w / length)
    values, vectors = eigh_tridiagonal(np.array(alpha), np.array(beta))
    weights = norm * (vectors @ (np.exp(values) * vectors[0]))
    return np.asarray(sum(weight * vector for weight, vector in zip(weights, basis, strict=True)))


GAMMA = 2.0 - np.sqrt(2.0)


_MOST_SOLVER_ITERATIONS = 200


@dataclass
class ImplicitStep:
    """One step of `method`, "crank-nicolson" or "tr-bdf2"; A is Δt times the operator.

    `tolerance` is that of a solve, relative to its right-hand side. `applications` counts the applications of A of all
    steps.

    TR-BDF2 is the trapezoidal rule up to γΔt, γ = 2 − √2, and then the backward difference formula of second order
    through u, the result of the first and u': both solve with I − γ/2 A.
    """

    method: str
    A: csr_array
    V: CellField
    tolerance: float = 1e-5
    applications: float = 0.0

    @cached_property
    def solver(self) -> Multigrid:
        """The multigrid hierarchy of V (I − θA)."""
        theta = 0.5 if self.method == "crank-nicolson" else 0.5 * GAMMA
        system = diags_array(self.V) @ (eye_array(len(self.V), format="csr") - theta * self.A)
        return Multigrid(csr_array(0.5 * (system + system.T)))

    @cached_property
    def work_per_iteration(self) -> float:
        """Applications of A per iteration: one product, and on every level a residual and two sweeps."""
        entries = sum(level.A.nnz for level in self.solver.levels) + self.solver.coarsest.size / 3.0
        return 1.0 + 3.0 * entries / self.A.nnz

    def __call__(self, T: CellField) -> CellField:
        """One step."""
        rate = self.A @ T
        self.applications += 1.0
        if self.method == "crank-nicolson":
            return T + self._solve(rate)
        first = self._solve(GAMMA * rate)
        return T + self._solve(first / (GAMMA * (2.0 - GAMMA)) + 0.5 * GAMMA * rate)

    def _solve(self, right: CellField) -> CellField:
        """Solve (I − θA) x = right by conjugate gradients on the system multiplied by V."""
        r = self.V * right
        size = _norm(r, self.V)
        if not math.isfinite(size):
            raise NumericalError("the right-hand side of a linear system is not finite: the field has overflowed")

        def apply(p: CellField) -> CellField:
            self.applications += self.work_per_iteration
            return np.asarray(self.solver.A @ p)

        x, solved = conjugate_gradients(
            apply,
            self.solver.cycle,
            r,
            is_solved=lambda rest: _norm(rest, self.V) <= self.tolerance * size,
            most=_MOST_SOLVER_ITERATIONS,
        )
        if not solved:
            raise NumericalError(
                f"a linear system is not solved to a relative residual of {self.tolerance:g}: it is not positive "
                "definite, or round-off prevents it; use a shorter time step"
            )
        return x


def _norm(r: CellField, V: CellField) -> float:
    """√(Σ r²/V) of a residual that was multiplied by V."""
    return float(np.sqrt(dot(r, r / V)))
