"""Norms of errors over the cells of a mesh."""

import numpy as np

from fluxforge._types import CellField


def relative_l2(u: CellField, exact: CellField, V: CellField) -> float:
    """(Σ V (u − u_exact)² / Σ V u_exact²)^½."""
    return float(np.sqrt(V @ (u - exact) ** 2 / (V @ exact**2)))


def relative_max(u: CellField, exact: CellField) -> float:
    """Largest |u − u_exact| over the largest |u_exact|."""
    return float(np.abs(u - exact).max() / np.abs(exact).max())
