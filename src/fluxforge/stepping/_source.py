"""Sources S(x, t, u) that contain the unknown: they are reactions of an equation made for them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from fluxforge.errors import ExpressionError, InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import COORDINATES, TIME, symbol, symbols_of
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings, resolve
from fluxforge.pde._equation import Equation
from fluxforge.pde._parameter import Parameter, Where

# Parameters of the equation that is made: the coordinates of cells, and the time.
CLOCK = "sourcet"


def unknown_in_source(source: object, equation: Equation, dimension: int) -> sp.Expr | None:
    """The formula of a source that contains the unknown of the equation; None for any other source.

    Raises ExpressionError for text that is no formula of the coordinates, the time and the unknown.
    """
    if not isinstance(source, str):
        return None
    known = symbols_of((*COORDINATES[:dimension], TIME, equation.unknown))
    try:
        found = parse(source, known)
    except ExpressionError as error:
        raise ExpressionError(f"the source: {error}") from error
    return found if equation.u in found.free_symbols else None


def with_source(equation: Equation, source: sp.Expr, dimension: int) -> Equation:
    """The equation with the source among its reactions: the coordinates and the time are parameters of it.

    Its parameters have no units, since numbers in a formula have none.
    """
    axes = COORDINATES[:dimension]
    names = {symbol(axis): symbol(f"source{axis}") for axis in axes} | {symbol(TIME): symbol(CLOCK)}
    used = source.free_symbols
    added = [Parameter(f"source{axis}", where=Where.CELL) for axis in axes if symbol(axis) in used]
    added += [Parameter(CLOCK, default=0.0)] if symbol(TIME) in used else []
    return replace(
        equation,
        parameters=(*(replace(p, unit=None) for p in equation.parameters), *added),
        reaction=equation.reaction + source.xreplace(names),
    )


def source_settings(equation: Equation, graph: DualGraph, time: float) -> dict[str, Any]:
    """The parameters that `with_source` has added."""
    places = {
        f"source{axis}": np.ascontiguousarray(graph.x[:, i]) for i, axis in enumerate(COORDINATES[: graph.dimension])
    }
    return {p.name: places.get(p.name, time) for p in equation.parameters if p.name in (*places, CLOCK)}


def check_source(source: sp.Expr, equation: Equation, graph: DualGraph, *, time: float, state: np.ndarray) -> None:
    """Raise InputError, naming a place and the time, where the source is not finite in a state."""
    known = {symbol(axis): graph.x[:, i] for i, axis in enumerate(COORDINATES[: graph.dimension])}
    known |= {symbol(TIME): np.asarray(time), equation.u: state}
    _check_finite(source, known, graph, "the source", f" at time {time:g}")


def check_reaction(equation: Equation, graph: DualGraph, parameters: Settings, state: np.ndarray) -> None:
    """Raise InputError, naming a place, where the reaction r(u) of an equation is not finite in the initial state."""
    if equation.u not in equation.reaction.free_symbols:
        return
    fields = resolve(equation, graph, parameters)
    known = {symbol(name): np.asarray(value) for name, value in {**fields.constants, **fields.cells}.items()}
    if not equation.reaction.free_symbols - {*known, equation.u}:
        _check_finite(equation.reaction, {**known, equation.u: state}, graph, "the reaction", " of the initial field")


def _check_finite(
    formula: sp.Expr, known: Mapping[sp.Symbol, np.ndarray], graph: DualGraph, what: str, when: str
) -> None:
    with np.errstate(all="ignore"):
        found = np.broadcast_to(evaluate(formula, known, np), (graph.cells,))
    if not np.isfinite(found).all():
        k = int(np.flatnonzero(~np.isfinite(found))[0])
        place = ", ".join(f"{value:g}" for value in graph.x[k])
        raise InputError(f"{what} is {found[k]} at ({place}){when}; it should be finite")
