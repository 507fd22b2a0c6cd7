"""Reasons to doubt a simulation, one line each, from quick tests of its schemes on its mesh."""

from collections.abc import Sequence

import jax
import numpy as np

from fluxforge.certify._evidence import NUMERICAL_FAILURES
from fluxforge.certify._problems import has_varying_parameters
from fluxforge.certify.patch import alignment, linear_field_defect
from fluxforge.certify.semidiscrete import other_equation
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._face_values import relative_divergence
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings, resolve
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._document import find, split_name
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._scheme import Scheme

# Defects of linear fields below this share of the fluxes are round-off.
ROUND_OFF = 1e-8
# A divergence below this share of what flows through a cell is round-off.
DIVERGENCE_ROUND_OFF = 1e-12
# Beyond this many cells the patch test takes longer than a short run.
MOST_CELLS = 200_000


def list_doubts(schemes: Sequence[Scheme], mesh: Mesh, parameters: Settings | None = None) -> list[str]:
    """One line per reason to doubt results of these schemes on a mesh: consistency, equation, divergence of the flow.

    Numerical failures of the tests become lines; other errors are raised.
    """
    if not schemes:
        return []
    graph, settings = dual(mesh), parameters or {}
    about: dict[str, list[str]] = {}
    for scheme in schemes:
        doubt = _doubt_of_tensor(scheme, graph, settings) or _doubt(scheme, graph, settings)
        if doubt is not None:
            about.setdefault(doubt, []).append(scheme.name)
    flow = _describe_divergence(schemes[0].equation, graph, settings)
    return [*(f"{', '.join(names)}: {doubt}" for doubt, names in about.items()), *([flow] if flow else [])]


def _doubt_of_tensor(scheme: Scheme, graph: DualGraph, parameters: Settings) -> str | None:
    """A sentence on the faces where the two-point flux of a tensor cannot be consistent; None if there are none."""
    angles = alignment(scheme, graph, parameters=parameters)
    return None if angles is None or angles.holds else str(angles)


def _doubt(scheme: Scheme, graph: DualGraph, parameters: Settings) -> str | None:
    derived = split_name(scheme.name) is not None and scheme == find(scheme.name, scheme.equation)
    if derived and (linear_stages(scheme) is None or not scheme.equation.only_diffuses):
        return None
    if linear_stages(scheme) is None:
        return f"nonlinear: whether it solves the {scheme.equation.name} equation is not established"
    with jax.enable_x64(True), np.errstate(all="ignore"):
        try:
            wrong = other_equation(scheme)
            if wrong is not None:
                return f"solves another equation: {wrong}"
            return _doubt_on_mesh(scheme, graph, parameters) if scheme.equation.only_diffuses else None
        except NUMERICAL_FAILURES as error:
            reason = " ".join(str(error).split())
            return f"whether it solves the {scheme.equation.name} equation is not established ({reason})"


def _doubt_on_mesh(scheme: Scheme, graph: DualGraph, parameters: Settings) -> str | None:
    # Where parameters vary, a linear field is not a solution.
    if graph.cells > MOST_CELLS or has_varying_parameters(scheme.equation):
        return None
    defect = linear_field_defect(scheme, graph, parameters=parameters)
    if defect <= ROUND_OFF:
        return None
    remedy = "" if scheme.name == "corrected" or scheme.equation != HEAT else "; `corrected` is exact for them"
    return f"not consistent on this mesh: linear fields are off by up to {defect:.1%} of a cell's fluxes{remedy}"


def _describe_divergence(equation: Equation, graph: DualGraph, parameters: Settings) -> str | None:
    """A sentence on the imbalance of the flow through the faces of cells; None for an equation without transport."""
    if equation.velocity is None:
        return None
    name = equation.parameter(equation.velocity).normal_name
    share = relative_divergence(graph, resolve(equation, graph, parameters, time=0.0).slots[name])
    sentence = f"the discrete divergence of {equation.velocity} is {share:.1e} of the flow through a cell"
    return f"{sentence}: constants are {'preserved' if share <= DIVERGENCE_ROUND_OFF else 'not preserved'}"
