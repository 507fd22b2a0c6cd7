"""What a run should be told about its scheme: whether it suits the mesh, and which equation it solves."""

from collections.abc import Sequence

import jax
import numpy as np

from fluxforge.mesh import Mesh, dual
from fluxforge.scheme import TABLEAUX, Scheme, find, linear_stages
from fluxforge.verify import NUMERICAL_FAILURES, linear_field_defect, other_equation

# Linear fields that are off by less than this share of the fluxes are kept to round-off.
KEPT = 1e-8
# Beyond this many cells the patch test takes longer than a short run.
MOST_CELLS = 200_000


def notes(schemes: Sequence[Scheme], mesh: Mesh) -> list[str]:
    """A line per reason for doubt, with the schemes it is about; none where all suit the mesh and solve heat."""
    about: dict[str, list[str]] = {}
    for scheme in schemes:
        doubt = _doubt(scheme, mesh)
        if doubt is not None:
            about.setdefault(doubt, []).append(scheme.name)
    return [f"{', '.join(names)}: {doubt}" for doubt, names in about.items()]


def _doubt(scheme: Scheme, mesh: Mesh) -> str | None:
    if linear_stages(scheme) is None or not scheme.equation.only_diffuses:
        if scheme.name in TABLEAUX and scheme == find(scheme.name, scheme.equation):
            return None  # Made from the equation itself.
        nonlinear = "nonlinear; " if linear_stages(scheme) is None else ""
        return f"{nonlinear}that it solves the {scheme.equation.name} equation is not established"
    with jax.enable_x64(True), np.errstate(all="ignore"):
        try:
            wrong = other_equation(scheme)
            return _doubt_on_mesh(scheme, mesh) if wrong is None else f"solves another equation: {wrong}"
        except NUMERICAL_FAILURES as error:
            reason = " ".join(str(error).split())
            return f"that it solves the {scheme.equation.name} equation is not established ({reason})"


def _doubt_on_mesh(scheme: Scheme, mesh: Mesh) -> str | None:
    if len(mesh.cells) > MOST_CELLS:
        return None
    off = linear_field_defect(scheme, dual(mesh))
    if off <= KEPT:
        return None
    remedy = "" if scheme.name == "corrected" else "; `corrected` keeps them"
    return f"not consistent on this mesh: linear fields are off by up to {off:.1%} of a cell's fluxes{remedy}"
