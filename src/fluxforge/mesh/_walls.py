"""Walls whose ghosts depend on the equation: Robin and inflow.

Their ghosts have the value `follow`·T_P + (1 − `follow`)·g, and `close_walls` finds `follow` from the equation.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.errors import InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.mesh._dual import DualGraph, ParameterFields
from fluxforge.pde._equation import Equation, differentiate

WallField = Float[np.ndarray, " boundary"]


def close_walls(graph: DualGraph, equation: Equation, fields: ParameterFields) -> DualGraph:
    """The graph with `follow`, the derivative of a ghost's value by its owner's; unchanged where no wall needs it.

    - Robin, −K ∂u/∂n = h (u − T): the flux K (u_P − u_g)/δ through the wall is h (u_g − T), so that
      u_g = (K/δ u_P + h T)/(K/δ + h) and `follow` = (K/δ)/(K/δ + h).
    - Inflow: 1 where a·n f′ ≥ 0, and 0 elsewhere. Where f is not linear that depends on the state: 0 everywhere here,
      and steppers decide at every step.
    """
    if graph.transfer is None and graph.inflow is None:
        return graph
    follow = graph.neumann.astype(float)
    if graph.transfer is not None:
        follow = np.where(np.isfinite(graph.transfer), _robin(graph, equation, fields), follow)
    if graph.inflow is not None and (slope := linear_speed(equation)) is not None:
        speed = wall_velocity(graph, equation, fields) * evaluate(slope, _symbols(fields.constants), np)
        follow = np.where(graph.inflow & (speed >= 0), 1.0, follow)
    return replace(graph, follow=follow)


def linear_speed(equation: Equation) -> sp.Expr | None:
    """f′ where it does not depend on the unknown."""
    slope = differentiate(equation.transported, equation.u)
    return None if equation.u in slope.free_symbols else slope


def wall_velocity(graph: DualGraph, equation: Equation, fields: ParameterFields) -> WallField:
    """a·n at the boundary faces, n pointing out of the domain."""
    assert equation.velocity is not None
    return _slots_to_walls(graph, fields.slots[equation.parameter(equation.velocity).normal_name])


def wall_conductance(graph: DualGraph, equation: Equation, fields: ParameterFields) -> WallField:
    """K/δ between the owners and the ghosts of the boundary faces."""
    K = np.broadcast_to(_evaluate_conductivity(graph, equation, fields), (graph.ghosts,))
    conductance: WallField = K / graph.delta[graph.interior :]
    return conductance


def _robin(graph: DualGraph, equation: Equation, fields: ParameterFields) -> WallField:
    assert graph.transfer is not None
    conductance = wall_conductance(graph, equation, fields)
    total = conductance + graph.transfer
    with np.errstate(invalid="ignore", divide="ignore"):
        # Neither conduction nor transfer: no flux, as at an insulated wall.
        return np.where(total > 0, conductance / total, 1.0)


def _evaluate_conductivity(graph: DualGraph, equation: Equation, fields: ParameterFields) -> Any:
    """K of the owners of the boundary faces, along the normal."""
    tensor = equation.diffusion_tensor
    if tensor is not None:
        return _slots_to_walls(graph, fields.slots[tensor.normal_name])
    if equation.u in equation.diffusion.free_symbols:
        raise InputError(
            f"equation {equation.name!r} has a diffusivity that depends on {equation.unknown}: a robin wall is "
            "not supported"
        )
    owner = graph.owner[graph.interior :]
    known: dict[str, Any] = {**fields.constants, **{name: value[owner] for name, value in fields.cells.items()}}
    known |= {name: _slots_to_walls(graph, value) for name, value in fields.slots.items()}
    return evaluate(equation.diffusion, _symbols(known), np)


def _symbols(values: Any) -> dict[sp.Symbol, Any]:
    return {symbol(name): value for name, value in values.items()}


def _slots_to_walls(graph: DualGraph, slots: np.ndarray) -> WallField:
    """The value of each boundary face, from the slot of its owner."""
    cell, slot = np.nonzero(graph.slot_mask & (graph.slot_face >= graph.interior))
    field = np.empty(graph.ghosts)
    field[graph.slot_face[cell, slot] - graph.interior] = slots[cell, slot]
    return field
