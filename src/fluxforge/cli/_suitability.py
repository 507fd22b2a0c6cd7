"""What a run should be told about its scheme: whether it suits the mesh, and which equation it solves."""

import jax
import numpy as np

from fluxforge.errors import FluxforgeError
from fluxforge.mesh import Mesh, dual
from fluxforge.scheme import Scheme, linear_stages
from fluxforge.verify import linear_field_defect, other_equation

# Linear fields that are off by less than this share of the fluxes are kept to round-off.
KEPT = 1e-8
# Beyond this many cells the patch test takes longer than a short run.
MOST_CELLS = 200_000


def notes(scheme: Scheme, mesh: Mesh) -> list[str]:
    """A line with the reason for doubt; none for a scheme that suits the mesh and solves the heat equation."""
    if linear_stages(scheme) is None:
        return [f"scheme {scheme.name!r} is nonlinear: that it solves the heat equation is not established"]
    with jax.enable_x64(True), np.errstate(all="ignore"):
        try:
            wrong = other_equation(scheme)
            if wrong is not None:
                return [f"scheme {scheme.name!r} solves another equation: {wrong}"]
            return _on_mesh(scheme, mesh)
        except (FluxforgeError, ArithmeticError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            return [f"scheme {scheme.name!r}: that it solves the heat equation is not established ({reason})"]


def _on_mesh(scheme: Scheme, mesh: Mesh) -> list[str]:
    if len(mesh.cells) > MOST_CELLS:
        return []
    off = linear_field_defect(scheme, dual(mesh))
    if off <= KEPT:
        return []
    remedy = "" if scheme.name == "corrected" else "; `corrected` keeps them"
    return [
        f"scheme {scheme.name!r} is not consistent on this mesh: linear fields are off by up to {off:.1%} of a cell's "
        f"fluxes{remedy}"
    ]
