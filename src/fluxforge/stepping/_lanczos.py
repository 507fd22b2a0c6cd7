"""exp(A)T on a Krylov space, for A that is symmetric in the inner product Σ V u v, as diffusion is."""

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.sparse import csr_array

from fluxforge._types import CellField


def krylov_exponential(A: csr_array, V: CellField, T: CellField, size: int) -> CellField:
    """exp(A)T projected on span{T, AT, …, A^(size−1)T}: `size` applications of A.

    By Lanczos' three-term recurrence in the inner product of the volumes. The last application gives the last diagonal
    entry of the tridiagonal matrix. A space that A does not leave ends the recurrence: the result is then exact.
    """
    norm = np.sqrt(_product(V, T, T))
    if norm == 0.0:
        return T.copy()
    basis = [T / norm]
    alpha: list[float] = []
    beta: list[float] = []
    for k in range(size):
        w = A @ basis[-1]
        alpha.append(_product(V, w, basis[-1]))
        w -= alpha[-1] * basis[-1]
        if k:
            w -= beta[-1] * basis[-2]
        length = np.sqrt(_product(V, w, w))
        # Below round-off of the largest entries the next vector has no digits.
        if k == size - 1 or length <= 1e-14 * max(map(abs, alpha)):
            break
        beta.append(length)
        basis.append(w / length)
    values, vectors = eigh_tridiagonal(np.array(alpha), np.array(beta))
    weights = norm * (vectors @ (np.exp(values) * vectors[0]))
    return np.asarray(sum(weight * vector for weight, vector in zip(weights, basis, strict=True)))


def _product(V: CellField, u: CellField, v: CellField) -> float:
    """Σ V u v without BLAS, whose threads wait for each other where cores are shared."""
    return float(np.einsum("i,i,i->", V, u, v))
