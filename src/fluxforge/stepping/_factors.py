"""Sparse LU factors, or a NumericalError that says why there are none."""

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import SuperLU, splu

from fluxforge.errors import NumericalError


def factorise(matrix: csr_array | csc_array, *, symmetric_pattern: bool = False) -> SuperLU:
    """Sparse LU. With a symmetric pattern an ordering of A + Aᵀ fills in less than one for columns alone.

    Raises NumericalError for a matrix that is singular or not finite.
    """
    if not np.isfinite(matrix.data).all():
        raise NumericalError("a linear system has coefficients that are not finite")
    options = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}} if symmetric_pattern else {}
    try:
        return splu(csc_array(matrix), **options)
    except RuntimeError as error:
        raise NumericalError(f"a linear system cannot be solved ({error})") from error
