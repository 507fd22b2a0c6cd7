"""The step that every explicit scheme is measured by: Fourier's of diffusion, Courant's of transport, and both."""

from functools import cache
from typing import Any

import numpy as np
import sympy as sp

from fluxforge._arguments import check_number
from fluxforge._types import SlotField
from fluxforge.errors import InputError
from fluxforge.expression import evaluate, symbol
from fluxforge.mesh._dual import DualGraph, check_graph
from fluxforge.mesh._parameters import ParameterFields, Settings, resolve
from fluxforge.pde import HEAT, Equation, differentiate

_P, _N = symbol("T_P"), symbol("T_N")


def reference_step(
    equation: Equation,
    graph: DualGraph,
    values: Settings | None = None,
    state: np.ndarray | None = None,
) -> float:
    """The least c V / (Σ A |∂F/∂u_P| + V max(0, −r′)) over the cells; infinite where nothing is exchanged.

    F is the equation's two-point flux. The ghost behind a Neumann face moves with its owner: diffusion through it does
    not count, and outflow does. An equation whose flux or reaction is not linear needs the `state` it is taken at.
    """
    fields = resolve(equation, graph, values)
    own, both = exchange_slopes(equation)
    values_on = _SlotValues(graph, fields, state, equation)
    per_slot = np.abs(values_on(own))
    if graph.neumann.any():
        per_slot = np.where(graph.moving[graph.slot_face], per_slot, np.abs(values_on(both)))
    total = np.where(graph.slot_mask, per_slot, 0.0).sum(axis=1)
    capacity, decay = (values_on.in_cells(part) for part in cell_slopes(equation))
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = capacity * graph.V / (total + graph.V * np.maximum(0.0, decay))
    return float(steps.min())


def exchange_weights(
    equation: Equation, graph: DualGraph, values: Settings | None = None, state: np.ndarray | None = None
) -> SlotField:
    """A |∂F/∂u_P| in each cell's slots, walls of any kind included: α A/δ of heat."""
    own, _ = exchange_slopes(equation)
    return np.abs(_SlotValues(graph, resolve(equation, graph, values), state, equation)(own))


def fourier_step(graph: DualGraph, diffusivity: float = 1.0) -> float:
    """The reference step of heat: min_P V_P / Σ_N α A/δ, Dirichlet faces in the sum."""
    check_graph(graph), check_number(diffusivity, "diffusivity")
    return reference_step(HEAT, graph, {"alpha": diffusivity})


@cache
def exchange_slopes(equation: Equation) -> tuple[sp.Expr, sp.Expr]:
    """A ∂F/∂u_P and A (∂F/∂u_P + ∂F/∂u_N) in the symbols of a message."""
    own, both = equation.slopes(_P, _N)
    return symbol("A") * own, symbol("A") * both


@cache
def cell_slopes(equation: Equation) -> tuple[sp.Expr, sp.Expr]:
    """C and −r′ in the symbols of a cell."""
    T = symbol("T")
    reaction = equation.at_cell(equation.reaction, T)
    return equation.at_cell(equation.capacity, T), -differentiate(reaction, T)


class _SlotValues:
    """Evaluates formulas of a face as each cell sees it, gathering only what they contain."""

    def __init__(self, graph: DualGraph, fields: ParameterFields, state: np.ndarray | None, equation: Equation) -> None:
        self.graph, self.fields, self.state, self.name = graph, fields, state, equation.name

    def __call__(self, formula: sp.Expr) -> np.ndarray:
        values = {each: self._value(each.name) for each in formula.free_symbols}
        return np.broadcast_to(np.asarray(evaluate(formula, values, np)), self.graph.slot_mask.shape)

    def in_cells(self, formula: sp.Expr) -> np.ndarray:
        known: dict[str, Any] = {**self.fields.constants, **self.fields.cells}
        values = {each: self._state() if each.name == "T" else known[each.name] for each in formula.free_symbols}
        return np.broadcast_to(np.asarray(evaluate(formula, values, np)), (self.graph.cells,))

    def _value(self, name: str) -> Any:
        g = self.graph
        if name in ("A", "delta"):
            return getattr(g, name)[g.slot_face]
        if name in self.fields.constants:
            return self.fields.constants[name]
        if name in self.fields.slots:
            return self.fields.slots[name]
        base, _, end = name.rpartition("_")
        held = self._state() if base == "T" else self.fields.cells[base]
        if end == "P":
            return held[:, None]
        behind = held[g.owner[g.interior :]]
        if base == "T":
            behind = np.where(g.neumann, behind + g.value * g.delta[g.interior :], g.value)
        return np.concatenate([held, behind])[g.slot_node]

    def _state(self) -> np.ndarray:
        if self.state is None:
            raise InputError(f"equation {self.name!r} is not linear: its reference step depends on the state, give one")
        return self.state
