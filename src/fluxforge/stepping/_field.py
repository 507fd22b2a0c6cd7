"""Fields over cells from values and files; reactions and sources on cells; bounds on the size of solutions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from fluxforge._arguments import check_text, check_whole
from fluxforge._files import SpecialFileError, open_regular
from fluxforge._types import CellField
from fluxforge.errors import ExpressionError, InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import COORDINATES, TIME, symbol, symbols_of
from fluxforge.mesh._boundary import Value, evaluate_at
from fluxforge.mesh._dual import DualGraph, ParameterFields
from fluxforge.mesh._parameters import Settings, exchange_weights, resolve
from fluxforge.mesh._read import read_cell_data
from fluxforge.mesh._walls import close_walls
from fluxforge.pde._equation import Equation, differentiate
from fluxforge.pde._parameter import Parameter, Where


def field_on_cells(value: Value | np.ndarray, graph: DualGraph, what: str, *, time: float | None = None) -> np.ndarray:
    """One finite number per cell from an array, a number, a formula or a function; `what` names it in messages.

    With a `time`, formulas may contain t, and functions may take it after the coordinates. Raises InputError
    (ExpressionError for a formula) for anything else.
    """
    if not isinstance(value, np.ndarray) or not value.ndim:
        return evaluate_at(value.item() if isinstance(value, np.ndarray) else value, graph.x, what, time)
    if value.dtype.kind not in "fiu" or value.shape != (graph.cells,):
        kind = "" if value.dtype.kind in "fiu" else f"{value.dtype} "
        shown = f"an array of {kind}shape {value.shape}"
        raise InputError(f"{what} should be {graph.cells} finite numbers, got {shown}")
    if not np.isfinite(value).all():
        bad = int(np.flatnonzero(~np.isfinite(value))[0])
        raise InputError(f"{what} should be finite, and is {value[bad]} in cell {bad}")
    return value.astype(float)


CELL = "cell"


def read_field(spec: str, cells: int) -> np.ndarray:
    """Read one finite number per cell from `spec`: field.npy, or a mesh file with cell data, run.vtu:T.

    Raises InputError, naming the file, if it cannot be read or does not match the mesh.
    """
    check_text(spec, "spec"), check_whole(cells, "cells", least=1)
    values, (path, _) = read_array(spec, "T"), _split_spec(spec)
    if values.shape != (cells,):
        raise InputError(f"{path}: holds values of shape {values.shape}, and the mesh has {cells} cells")
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"{path}: the value of cell {bad} is {values[bad]}; it should be finite")
    return values


def read_array(spec: str, name: str) -> np.ndarray:
    """Numbers of any shape from `spec`: field.npy, or one per cell from a mesh file with cell data, run.vtu:ARRAY.

    Without ARRAY, the cell data are those called `name`, or T. Raises InputError, naming the file, if it cannot be
    read.
    """
    path, array = _split_spec(spec)
    if Path(path).suffix == ".npy":
        return _read_array_file(path)
    fields = read_cell_data(path)
    return _order_cells(fields, array or ("T" if name not in fields and "T" in fields else name), path)


def _split_spec(spec: str) -> tuple[str, str]:
    """The path, and the name of the array behind it, which may be empty."""
    path, _, array = spec.rpartition(":") if ":" in Path(spec).name else (spec, "", "")
    return path, array


def _read_array_file(path: str) -> np.ndarray:
    try:
        open_regular(path).close()
        # Memory-mapped, so that no memory is allocated if the header announces more than the file holds.
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            raise ValueError("it is an archive of several arrays (.npz)")
        if loaded.dtype.kind not in "fiu":
            raise ValueError(f"it holds {loaded.dtype}")
        return np.array(loaded, dtype=float)
    except FileNotFoundError as error:
        raise InputError(f"{path}: does not exist") from error
    except SpecialFileError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise InputError(f"{path}: is not a readable .npy array of numbers ({error})") from error


def _order_cells(fields: Mapping[str, np.ndarray], name: str, path: str) -> np.ndarray:
    """The cell data of that name in the order of the mesh's cells."""
    if name not in fields:
        raise InputError(f"{path}: has no cell data {name!r}; it has: {', '.join(sorted(fields)) or 'none'}")
    values = fields[name]
    if CELL not in fields:
        return values
    # A format that lists triangles before quadrilaterals stores the number of each entry's cell in the mesh.
    order = fields[CELL].astype(np.int64)
    if not np.array_equal(np.sort(order), np.arange(len(values))):
        raise InputError(f"{path}: its cell data {CELL!r} should contain the numbers of the cells from 0, each once")
    placed = np.empty_like(values)
    placed[order] = values
    return placed


@dataclass(frozen=True)
class Reaction:
    """The reaction in every cell: the `capacity` c, and r(u)/c = `slope` u + `constant`."""

    capacity: CellField
    slope: CellField
    constant: CellField

    @property
    def growth(self) -> float:
        """The largest rate at which the reaction makes a field grow; 0 if it decays everywhere."""
        return float(np.maximum(self.slope, 0.0).max(initial=0.0))


def cell_capacity(equation: Equation, graph: DualGraph, parameters: Settings | None) -> CellField:
    """The capacity c in each cell of a graph."""
    return _evaluate_in_cells(equation.capacity, graph, resolve(equation, graph, parameters))


def _evaluate_in_cells(formula: sp.Expr, graph: DualGraph, fields: ParameterFields) -> CellField:
    """A formula of parameters in each cell."""
    known = {symbol(name): value for name, value in (*fields.constants.items(), *fields.cells.items())}
    return np.broadcast_to(np.asarray(evaluate(formula, known, np), float), (graph.cells,))


def linear_reaction(equation: Equation, graph: DualGraph, parameters: Settings | None) -> Reaction | None:
    """The reaction in the cells of a graph; None where r is not linear in the unknown."""
    slope = differentiate(equation.reaction, equation.u)
    # The slope of a step such as sign(u) or u > 1/2 is taken as 0, but SymPy's second derivative of it is not 0.
    if equation.u in slope.free_symbols or sp.diff(equation.reaction, equation.u, 2) != 0:
        return None
    fields = resolve(equation, graph, parameters)
    formulas = (equation.capacity, slope, equation.reaction.xreplace({equation.u: sp.Integer(0)}))
    capacity, slopes, constant = (_evaluate_in_cells(each, graph, fields) for each in formulas)
    return Reaction(capacity, slopes / capacity, constant / capacity)


# A field this many times larger than the data allow has blown up.
BLOW_UP_RATIO = 1e8


@dataclass(frozen=True)
class Envelope:
    """|T(t)| ≤ `start` + `rate` t for the exact solution of the semi-discrete system of the plain flux.

    `start` is the largest of |initial| and of |g| on Dirichlet walls; `rate` the largest over cells of
    (|S| + |r(0)| + Σ A|∂F/∂u| |q|δ/V)/c (for heat, α|q|A/V), the sum over the cell's Neumann faces.
    """

    start: float
    rate: float

    def bound(self, time: float) -> float:
        """The |T| above which a run has blown up at that time; the largest float if it would overflow."""
        with np.errstate(over="ignore"):
            limit = np.float64(BLOW_UP_RATIO) * (
                1.0 + np.float64(self.start) + np.float64(self.rate) * np.float64(time)
            )
        return float(np.nan_to_num(limit, nan=np.finfo(float).max, posinf=np.finfo(float).max))


def data_envelope(
    equation: Equation, graph: DualGraph, parameters: Settings | None, *, initial: np.ndarray, source: np.ndarray
) -> Envelope:
    """The envelope of a problem's data; unlimited if a reaction may make the field grow, or is not linear."""
    reaction = linear_reaction(equation, graph, parameters)
    if reaction is None or reaction.growth > 0:
        return Envelope(np.inf, 0.0)
    graph = close_walls(graph, equation, resolve(equation, graph, parameters))
    held = np.abs(graph.value[~graph.neumann])
    start = max(float(np.abs(initial).max()), float(held.max(initial=0.0)))
    with np.errstate(over="ignore", invalid="ignore"):
        entering = np.abs(source).astype(float)
        slope = np.concatenate([np.zeros(graph.interior), np.where(graph.neumann, np.abs(graph.value), 0.0)])
        across = (slope * graph.delta)[graph.slot_face] * graph.slot_mask
        entering += (across * exchange_weights(equation, graph, parameters, initial)).sum(axis=1) / graph.V
        rate = float((entering / reaction.capacity + np.abs(reaction.constant)).max())
    return Envelope(start, rate)


# Names of the parameters that `with_source` adds: the coordinates of cells, and the time.
CLOCK = "sourcet"


def unknown_in_source(source: object, equation: Equation, dimension: int) -> sp.Expr | None:
    """The formula of a source that contains the unknown of the equation; None for any other source.

    Raises ExpressionError for text that is no formula of the coordinates, the time and the unknown.
    """
    if not isinstance(source, str):
        return None
    known = symbols_of((*COORDINATES[:dimension], TIME, equation.unknown))
    try:
        formula = parse(source, known)
    except ExpressionError as error:
        raise ExpressionError(f"the source: {error}") from error
    return formula if equation.u in formula.free_symbols else None


def with_source(equation: Equation, source: sp.Expr, dimension: int) -> Equation:
    """The equation with the source added to its reaction; the coordinates and the time become parameters of it.

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
    """Values of the parameters that `with_source` adds, by name."""
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
        values = np.broadcast_to(evaluate(formula, known, np), (graph.cells,))
    if not np.isfinite(values).all():
        k = int(np.flatnonzero(~np.isfinite(values))[0])
        place = ", ".join(f"{value:g}" for value in graph.x[k])
        raise InputError(f"{what} is {values[k]} at ({place}){when}; it should be finite")
