"""An equation on a mesh: its parameters as fields, the reference time step they give, and unit mean cell volume."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

from fluxforge._arguments import check_number
from fluxforge._types import CellField, SlotField
from fluxforge.errors import EquationError, InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.mesh._dual import DualGraph, OnDemand, ParameterFields, check_graph, normal_part, tangential_length
from fluxforge.mesh._face_values import face_conormals, face_velocities
from fluxforge.mesh._parameter_values import (
    AtTime,
    Setting,
    cell_sites,
    face_sites,
    parameter_depends_on_time,
    read_number,
    scalars_at,
)
from fluxforge.mesh._walls import close_walls, linear_speed
from fluxforge.pde._equation import HEAT, Equation, differentiate
from fluxforge.pde._parameter import Parameter, Rank, Where

Settings: TypeAlias = Mapping[str, Setting]
"""The parameters of an equation by name; those left out take their defaults."""


def resolve(
    equation: Equation, graph: DualGraph, values: Settings | None, time: float | None = None
) -> ParameterFields:
    """Evaluate an equation's parameters on a graph, at a time; those left out take their defaults.

    Without a `time`, formulas and functions of t are refused. Raises EquationError for a parameter that the equation
    does not have and for one without a value; InputError, which names the first such place, for a value of another
    size, not finite, of an unknown region or of the wrong sign, and for a tensor that is not symmetric and positive
    definite.
    """
    values = values or {}
    check_graph(graph)
    for name in values:
        equation.parameter(name)
    constants: dict[str, float] = {}
    cells: dict[str, CellField] = {}
    slots: dict[str, SlotField] = {}
    across: dict[str, Callable[[], SlotField]] = {}
    for p in equation.parameters:
        setting = values.get(p.name, p.default_in(graph.dimension))
        what = f"parameter {p.name!r}"
        if setting is None:
            raise EquationError(f"equation {equation.name!r}: {what} has no value: give one (--set {p.name}=VALUE)")
        at = time
        if isinstance(setting, AtTime):
            setting, at = setting.value, setting.time
        if p.rank is Rank.SCALAR and p.where is Where.CONSTANT:
            constants[p.name] = read_number(setting, what, at)
        elif p.in_cells:
            cells[p.name] = scalars_at(setting, cell_sites(graph, at), what)
        elif p.rank is Rank.SCALAR:
            slots[p.name] = scalars_at(setting, face_sites(graph, at), f"{what}, given per face,")[graph.slot_face]
        else:
            slots[p.normal_name], apart = _split_at_faces(p, setting, graph, what, at)
            across |= apart
    fields = ParameterFields(constants, cells, slots, OnDemand(across))
    _check_signs(equation, graph, fields)
    return fields


def varies_in_time(equation: Equation, values: Settings | None, dimension: int = 2) -> frozenset[str]:
    """The parameters whose values are formulas of t, or functions that take the time after the coordinates."""
    settings = {p.name: (values or {}).get(p.name) for p in equation.parameters}
    return frozenset(name for name, value in settings.items() if parameter_depends_on_time(value, dimension))


def settings_at(equation: Equation, values: Settings | None, time: float, dimension: int = 2) -> dict[str, Setting]:
    """The parameters with those that depend on time evaluated at one time, for functions that take values without t."""
    timed = varies_in_time(equation, values, dimension)
    return {name: AtTime(value, time) if name in timed else value for name, value in (values or {}).items()}


def _check_signs(equation: Equation, graph: DualGraph, fields: ParameterFields) -> None:
    """Raise InputError unless c > 0 and K > 0 wherever they are known; K may be 0 beside transport or a reaction."""
    for what, formula in (("capacity", equation.capacity), ("diffusion", equation.diffusion)):
        may_vanish = what == "diffusion" and not equation.only_diffuses
        _check_sign(formula, what, graph, fields, may_vanish=may_vanish)


def check_diffusion(equation: Equation, graph: DualGraph, values: Settings | None, state: np.ndarray) -> None:
    """Raise InputError, naming a place, where a K that depends on the unknown is negative at the initial `state`."""
    if equation.u in equation.diffusion.free_symbols:
        fields = resolve(equation, graph, values)
        _check_sign(equation.diffusion, "diffusion", graph, fields, may_vanish=True, at=(equation.u, state))


def _check_sign(
    formula: sp.Expr,
    what: str,
    graph: DualGraph,
    fields: ParameterFields,
    *,
    may_vanish: bool,
    at: tuple[sp.Symbol, np.ndarray] | None = None,
) -> None:
    # The second axis broadcasts values of cells against those of slots.
    cells = {name: value[:, None] for name, value in fields.cells.items()}
    known = {symbol(name): value for name, value in {**fields.constants, **cells, **fields.slots}.items()}
    if at is not None:
        known[at[0]] = at[1][:, None]
    if not formula.free_symbols or formula.free_symbols - set(known):
        return
    coefficient = np.asarray(evaluate(formula, known, np), float)
    least = float(coefficient.min())
    if least < 0 or (least == 0 and not may_vanish):
        parameters = sorted(each.name for each in formula.free_symbols if at is None or each != at[0])
        subjects = [f"parameter {', '.join(parameters)}"] if parameters else []
        subjects += [] if at is None else [f"the initial {at[0].name}"]
        where = ""
        if coefficient.ndim:
            cell = int(np.argmin(coefficient.reshape(len(coefficient), -1).min(axis=1)))
            where = f" in {cell_sites(graph).describe(cell)}"
        raise InputError(f"{' and '.join(subjects)}: the {what} should be positive, got {least:g}{where}")


Apart: TypeAlias = dict[str, Callable[[], SlotField]]


def _split_at_faces(
    p: Parameter, setting: Setting, graph: DualGraph, what: str, time: float | None
) -> tuple[SlotField, Apart]:
    """A vector a, or K n of a tensor, in the slots of cells: the part along n, and functions for the others by name.

    n points away from the cell. Seen from the other side, a·n and the components of K n change sign; n·K n and lengths
    do not.
    """
    face, sign = graph.slot_face, graph.slot_sign
    (length,) = p.tangential_names
    if p.rank is Rank.VECTOR:
        a_n, a_t = face_velocities(setting, graph, what, time)
        return a_n[face] * sign, {} if a_t is None else {length: lambda: a_t()[face]}
    conormal = face_conormals(p, setting, graph, what, time)
    apart: Apart = {length: lambda: tangential_length(conormal, graph.n)[face]}

    def component(i: int) -> Callable[[], SlotField]:
        return lambda: conormal[face, i] * sign

    names = p.conormal_names[: graph.dimension]
    normal = normal_part(conormal, graph.n)[face]
    return normal, apart | {name: component(i) for i, name in enumerate(names)}


_P, _N = symbol("T_P"), symbol("T_N")


def reference_step(
    equation: Equation,
    graph: DualGraph,
    values: Settings | None = None,
    state: np.ndarray | None = None,
) -> float:
    """The reference time step: the least c V / (Σ A |∂F/∂u_P| + V max(0, −r′)) of the cells.

    It is inf where nothing is exchanged and nothing decays. F is the equation's two-point flux. The value of a Neumann
    ghost follows its owner's, so that diffusion through a Neumann face does not count, but outflow does. If the flux or
    the reaction is not linear, the derivatives are taken at `state`; InputError without it.
    """
    return _least_step(_SlotValues(equation, graph, values, state))


# Constant fields at which the range of the data is tried.
_CONSTANT_FIELDS = 33


def speed_varies(equation: Equation) -> bool:
    """Whether the equation carries its unknown at a speed that depends on it."""
    return equation.velocity is not None and linear_speed(equation) is None


def reference_step_over(equation: Equation, graph: DualGraph, values: Settings | None, state: np.ndarray) -> float:
    """The reference step in a problem that begins at `state`.

    Where the speed of transport depends on the unknown, values that enter at walls may travel faster than those of
    the first field. The step is then the least of that at `state` and those at constant fields between the least and
    the largest value of `state` and of the walls: without sources, solutions stay between these.
    """
    values_on = _SlotValues(equation, graph, values, state)
    step = _least_step(values_on)
    if not speed_varies(equation):
        return step
    graph = values_on.graph
    known = np.concatenate([state, graph.value[~graph.neumann]])
    with np.errstate(all="ignore"):
        for u in np.unique(np.linspace(known.min(), known.max(), _CONSTANT_FIELDS)):
            # The ghosts take the constant too, so that walls have no jumps.
            values_on.graph = replace(graph, value=np.where(graph.neumann, 0.0, u))
            values_on.state = np.full(graph.cells, u)
            step = min(step, _least_step(values_on))
    return step


def _least_step(values_on: "_SlotValues") -> float:
    graph = values_on.graph
    own, both = exchange_slopes(values_on.equation)
    per_slot = np.abs(values_on(own))
    if graph.neumann.any():
        per_slot = np.where(graph.moving[graph.slot_face], per_slot, np.abs(values_on(both)))
    if graph.follow is not None:
        # The value of a Robin ghost follows that of its owner by the factor `follow`.
        part = np.concatenate([np.zeros(graph.interior), np.where(graph.neumann, 0.0, graph.follow)])[graph.slot_face]
        per_slot = np.where(part > 0, np.abs((1 - part) * values_on(own) + part * values_on(both)), per_slot)
    total = np.where(graph.slot_mask, per_slot, 0.0).sum(axis=1)
    capacity, decay = (values_on.in_cells(part) for part in cell_slopes(values_on.equation))
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = capacity * graph.V / (total + graph.V * np.maximum(0.0, decay))
    return float(steps.min())


def exchange_weights(
    equation: Equation, graph: DualGraph, values: Settings | None = None, state: np.ndarray | None = None
) -> SlotField:
    """A |∂F/∂u_P| in each cell's slots, including walls of any kind; for heat this is α A/δ."""
    own, _ = exchange_slopes(equation)
    return np.abs(_SlotValues(equation, graph, values, state)(own))


def flux_slopes(
    equation: Equation, graph: DualGraph, values: Settings | None = None, state: np.ndarray | None = None
) -> tuple[SlotField, SlotField]:
    """A ∂F/∂u_P and A ∂F/∂u_N in each cell's slots, walls included; where F is not linear, at the given `state`."""
    own, both = exchange_slopes(equation)
    values_on = _SlotValues(equation, graph, values, state)
    here = values_on(own)
    return here, values_on(both) - here


def fourier_step(graph: DualGraph, diffusivity: float = 1.0) -> float:
    """The reference time step of heat, min_P V_P / Σ_N α A/δ, with Dirichlet faces in the sum, not Neumann faces."""
    check_graph(graph), check_number(diffusivity, "diffusivity")
    return reference_step(HEAT, graph, {"alpha": diffusivity})


@cache
def exchange_slopes(equation: Equation) -> tuple[sp.Expr, sp.Expr]:
    """A ∂F/∂u_P and A (∂F/∂u_P + ∂F/∂u_N) as formulas of a message's symbols."""
    own, both = equation.slopes(_P, _N)
    return symbol("A") * own, symbol("A") * both


@cache
def cell_slopes(equation: Equation) -> tuple[sp.Expr, sp.Expr]:
    """The capacity c and the decay rate −r′ as formulas of a cell's symbols."""
    T = symbol("T")
    reaction = equation.at_cell(equation.reaction, T)
    return equation.at_cell(equation.capacity, T), -differentiate(reaction, T)


class _SlotValues:
    """Evaluates formulas of an equation in the slots of cells; only the symbols that occur in a formula are gathered.

    `graph` is the given graph with `follow` set for this equation (see `close_walls`).
    """

    def __init__(self, equation: Equation, graph: DualGraph, values: Settings | None, state: np.ndarray | None) -> None:
        self.fields = resolve(equation, graph, values)
        self.graph = close_walls(graph, equation, self.fields)
        self.state, self.equation = state, equation

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
            shown = g.value if g.follow is None else g.follow * behind + (1 - g.follow) * g.value
            behind = np.where(g.neumann, behind + g.value * g.delta[g.interior :], shown)
        return np.concatenate([held, behind])[g.slot_node]

    def _state(self) -> np.ndarray:
        if self.state is None:
            raise InputError(
                f"equation {self.equation.name!r} is not linear: its reference step depends on the state, "
                "give the state"
            )
        return self.state


def unit_volume(graph: DualGraph) -> tuple[DualGraph, float]:
    """The graph in units of ℓ, the d-th root of the mean cell volume, and ℓ: the units of the networks.

    The heat equation keeps its form, and α its value, if time is measured in units of ℓ²: Δt ↦ Δt/ℓ², S ↦ S ℓ².
    """
    d = check_graph(graph).dimension
    mean = graph.V.mean()
    length = float(np.sqrt(mean) if d == 2 else mean ** (1 / d))
    return replace(
        graph,
        V=graph.V / length**d,
        x=graph.x / length,
        A=graph.A / length ** (d - 1),
        d=graph.d / length,
        delta=graph.delta / length,
        centre=graph.centre / length,
        # q is a gradient: temperature over length.
        value=np.where(graph.neumann, graph.value * length, graph.value),
        # h of a Robin wall is K over a length, and K does not change.
        transfer=None if graph.transfer is None else graph.transfer * length,
    ), length
