"""What a run should be told about its scheme: whether it suits the mesh, and which equation it solves."""

from collections.abc import Sequence

import jax
import numpy as np

from fluxforge.mesh import Mesh, Settings, dual
from fluxforge.pde import HEAT, Where
from fluxforge.scheme import TABLEAUX, Scheme, find, linear_stages
from fluxforge.verify import NUMERICAL_FAILURES, alignment, linear_field_defect, other_equation

# Linear fields that are off by less than this share of the fluxes are kept to round-off.
KEPT = 1e-8
# Beyond this many cells the patch test takes longer than a short run.
MOST_CELLS = 200_000


def notes(schemes: Sequence[Scheme], mesh: Mesh, parameters: Settings | None = None) -> list[str]:
    """A line per reason for doubt, with the schemes it is about; none where all suit the mesh and their equation."""
    about: dict[str, list[str]] = {}
    for scheme in schemes:
        doubt = _doubt_of_tensor(scheme, mesh, parameters or {}) or _doubt(scheme, mesh, parameters or {})
        if doubt is not None:
            about.setdefault(doubt, []).append(scheme.name)
    return [f"{', '.join(names)}: {doubt}" for doubt, names in about.items()]


def _doubt_of_tensor(scheme: Scheme, mesh: Mesh, parameters: Settings) -> str | None:
    """On how many faces the two-point flux of a tensor cannot be consistent."""
    if scheme.equation.diffusion_tensor is None:
        return None
    found = alignment(scheme, dual(mesh), parameters=parameters)
    return None if found is None or found.holds else str(found)


def _doubt(scheme: Scheme, mesh: Mesh, parameters: Settings) -> str | None:
    made = scheme.name in TABLEAUX and scheme == find(scheme.name, scheme.equation)
    if made and (linear_stages(scheme) is None or not scheme.equation.only_diffuses):
        return None  # Made from the equation itself.
    if linear_stages(scheme) is None:
        return f"nonlinear; that it solves the {scheme.equation.name} equation is not established"
    with jax.enable_x64(True), np.errstate(all="ignore"):
        try:
            wrong = other_equation(scheme)
            if wrong is not None:
                return f"solves another equation: {wrong}"
            return _doubt_on_mesh(scheme, mesh, parameters) if scheme.equation.only_diffuses else None
        except NUMERICAL_FAILURES as error:
            reason = " ".join(str(error).split())
            return f"that it solves the {scheme.equation.name} equation is not established ({reason})"


def _doubt_on_mesh(scheme: Scheme, mesh: Mesh, parameters: Settings) -> str | None:
    # A linear field is no solution where parameters vary.
    if len(mesh.cells) > MOST_CELLS or any(p.where is not Where.CONSTANT for p in scheme.equation.parameters):
        return None
    off = linear_field_defect(scheme, dual(mesh), parameters=parameters)
    if off <= KEPT:
        return None
    remedy = "" if scheme.name == "corrected" or scheme.equation != HEAT else "; `corrected` keeps them"
    return f"not consistent on this mesh: linear fields are off by up to {off:.1%} of a cell's fluxes{remedy}"
