"""What a linear reaction does in each cell: c ∂u/∂t = … + r′ u + r(0)."""

from dataclasses import dataclass

import numpy as np
import sympy as sp

from fluxforge._types import CellField
from fluxforge.expression import evaluate, symbol
from fluxforge.mesh import DualGraph, Settings, resolve
from fluxforge.pde import Equation, differentiate


@dataclass(frozen=True)
class Reaction:
    """Over the cells: the `capacity` c, and r(u)/c = `slope` u + `constant`."""

    capacity: CellField
    slope: CellField
    constant: CellField

    @property
    def growth(self) -> float:
        """The fastest rate at which the reaction lets a field grow; 0 where it decays everywhere."""
        return float(np.maximum(self.slope, 0.0).max(initial=0.0))


def cell_capacity(equation: Equation, graph: DualGraph, parameters: Settings | None) -> CellField:
    """The capacity c in each cell of a graph."""
    fields = resolve(equation, graph, parameters)
    known = {symbol(name): value for name, value in (*fields.constants.items(), *fields.cells.items())}
    return np.broadcast_to(np.asarray(evaluate(equation.capacity, known, np), float), (graph.cells,))


def linear_reaction(equation: Equation, graph: DualGraph, parameters: Settings | None) -> Reaction | None:
    """The reaction in the cells of a graph; None where r is not linear in the unknown."""
    slope = differentiate(equation.reaction, equation.u)
    if equation.u in slope.free_symbols:
        return None
    fields = resolve(equation, graph, parameters)
    known = {symbol(name): value for name, value in (*fields.constants.items(), *fields.cells.items())}

    def in_cells(formula: sp.Expr) -> CellField:
        return np.broadcast_to(np.asarray(evaluate(formula, known, np), float), (graph.cells,))

    capacity = in_cells(equation.capacity)
    constant = equation.reaction.xreplace({equation.u: sp.Integer(0)})
    return Reaction(capacity, in_cells(slope) / capacity, in_cells(constant) / capacity)
