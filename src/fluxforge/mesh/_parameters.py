"""An equation on a mesh: its parameters as fields, the reference time step they give, and unit mean cell volume."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

from fluxforge._arguments import check_number, describe_value
from fluxforge._types import CellField, FaceVectors, SlotField
from fluxforge.errors import EquationError, InputError
from fluxforge.expression import evaluate, symbol
from fluxforge.mesh._boundary import Value, evaluate_at
from fluxforge.mesh._dual import DualGraph, OnDemand, check_graph
from fluxforge.mesh._mesh import normal_part, tangential_length
from fluxforge.pde import HEAT, Equation, Parameter, Rank, Where, differentiate

Setting: TypeAlias = Value | np.ndarray | Sequence[Any]
"""A number, a formula in the coordinates, a function of them, an array; one of these per component of a vector."""


Settings: TypeAlias = Mapping[str, Setting]
"""The parameters of an equation by name; those left out take their defaults."""


@dataclass(frozen=True)
class ParameterFields:
    """What the symbols of an equation's parameters stand for on one graph.

    `constants` by name; `cells` of scalars given per cell; `slots` of what a face has, as the cell that receives sees
    it: a scalar given per face, `a_n` = a·n, `K_nn` = n·K n; `tangential`, made on demand, of `a_t` = |a − (a·n) n|,
    `K_nt` = |K n − (n·K n) n| and the components `K_n_x`, … of K n.
    """

    constants: Mapping[str, float]
    cells: Mapping[str, CellField]
    slots: Mapping[str, SlotField]
    tangential: Mapping[str, SlotField] = field(default_factory=lambda: OnDemand({}))


NO_PARAMETERS = ParameterFields({}, {}, {})


def resolve(equation: Equation, graph: DualGraph, values: Settings | None) -> ParameterFields:
    """Evaluate an equation's parameters on a graph; those left out take their defaults.

    Raises EquationError for a parameter the equation does not have and for one without a value, InputError for a value
    of another size, that is not finite, or a tensor that is not symmetric and positive definite.
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
        given = values.get(p.name, p.default)
        what = f"parameter {p.name!r}"
        if given is None:
            raise EquationError(f"equation {equation.name!r}: {what} has no value: give one (--set {p.name}=VALUE)")
        if p.rank is Rank.SCALAR and p.where is Where.CONSTANT:
            constants[p.name] = _number(given, what)
        elif p.where is Where.CELL:
            cells[p.name] = _field(given, graph.x, what)
        elif p.rank is Rank.SCALAR:
            slots[p.name] = _field(given, graph.centre, f"{what}, given per face,")[graph.slot_face]
        else:
            slots[p.normal_name], apart = _split_at_faces(p, given, graph, what)
            across |= apart
    fields = ParameterFields(constants, cells, slots, OnDemand(across))
    _check_signs(equation, fields)
    return fields


def _check_signs(equation: Equation, fields: ParameterFields) -> None:
    """C and K are positive where they are numbers of the cells; K may vanish beside transport or a reaction."""
    # A cell's value beside those of its slots.
    cells = {name: value[:, None] for name, value in fields.cells.items()}
    known = {symbol(name): value for name, value in {**fields.constants, **cells, **fields.slots}.items()}
    for what, formula in (("capacity", equation.capacity), ("diffusion", equation.diffusion)):
        if not formula.free_symbols or formula.free_symbols - set(known):
            continue
        least = float(np.min(evaluate(formula, known, np)))
        if least < 0 or (least == 0 and (what == "capacity" or equation.only_diffuses)):
            names = ", ".join(sorted(found.name for found in formula.free_symbols))
            raise InputError(f"parameter {names}: the {what} should be positive, got {least:g}")


def _split_at_faces(
    p: Parameter, given: Setting, graph: DualGraph, what: str
) -> tuple[SlotField, dict[str, Callable[[], SlotField]]]:
    """What each cell sees of a vector a or of K n: the part along n, which points away from the cell, and the rest.

    Of these, a·n and the components of K n have another sign from the other side; n·K n and lengths have none.
    """
    face, sign = graph.slot_face, graph.slot_sign
    (length,) = p.tangential_names
    if p.rank is Rank.VECTOR:
        a: FaceVectors = _vectors(given, graph, what)
        return normal_part(a, graph.n)[face] * sign, {length: lambda: tangential_length(a, graph.n)[face]}
    K = _tensor(given, graph.dimension, what)
    normal = np.einsum("fi,ij,fj->f", graph.n, K, graph.n)[face]
    conormal = graph.n @ K  # K is symmetric.
    apart = {length: lambda: tangential_length(conormal, graph.n)[face]}

    def component(i: int) -> Callable[[], SlotField]:
        return lambda: conormal[face, i] * sign

    names = p.conormal_names[: graph.dimension]
    return normal, apart | {name: component(i) for i, name in enumerate(names)}


def _number(given: Setting, what: str) -> float:
    try:
        number = np.nan if isinstance(given, bool) else float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"{what} should be a finite number, got {describe_value(given)}")
    return number


def _field(given: Setting, places: np.ndarray, what: str) -> np.ndarray:
    if not isinstance(given, np.ndarray):
        return evaluate_at(given, places, what)  # type: ignore[arg-type]
    if given.dtype.kind not in "fiu" or given.shape != (len(places),) or not np.isfinite(given).all():
        raise InputError(f"{what} should be {len(places)} finite numbers, got an array of shape {given.shape}")
    return given.astype(float)


def _vectors(given: Setting, graph: DualGraph, what: str) -> np.ndarray:
    """A vector per face: from one number, formula or function per coordinate, or from an array."""
    shape = graph.n.shape
    if isinstance(given, np.ndarray) and given.shape == shape:
        return np.stack([_field(given[:, i], graph.centre, what) for i in range(shape[1])], axis=1)
    parts = split_tuple(given) if isinstance(given, str) else given
    if not isinstance(parts, Sequence | np.ndarray) or isinstance(parts, str) or len(parts) != shape[1]:
        raise InputError(f"{what} should have {shape[1]} components, such as (1, 0); got {given!r:.60}")
    columns = (part.item() if isinstance(part, np.generic) else part for part in parts)
    fields = [_field(column, graph.centre, f"{what}, component {i + 1},") for i, column in enumerate(columns)]
    return np.stack(fields, axis=1)


def split_tuple(text: str) -> list[str]:
    """`(-y, x)` → its components; commas inside inner brackets belong to a formula, or to a row of a tensor."""
    whole = text.strip()
    depths = list(itertools.accumulate((character == "(") - (character == ")") for character in whole))
    # The first bracket is closed by the last character, and not before, as it is in "(x), (y)".
    enclosed = whole.startswith("(") and whole.endswith(")") and 0 not in depths[:-1]
    inner = list(zip(whole, depths, strict=True))
    parts = [""]
    for character, depth in inner[1:-1] if enclosed else inner:
        if character == "," and depth == enclosed:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _tensor(given: Setting, dimension: int, what: str) -> np.ndarray:
    rows = [split_tuple(row) for row in split_tuple(given)] if isinstance(given, str) else given
    try:
        K = np.asarray(rows, float)
    except (TypeError, ValueError):
        K = np.empty(0)
    wanted = f"{what} should be {dimension} rows of {dimension} numbers, such as ((2, 1), (1, 3))"
    if K.shape != (dimension, dimension) or not np.isfinite(K).all():
        raise InputError(f"{wanted}, got {given!r:.60}")
    if not np.allclose(K, K.T, rtol=1e-12, atol=0.0) or not (np.linalg.eigvalsh(K) > 0).all():
        raise InputError(f"{wanted}, symmetric and positive definite; got {given!r:.60}")
    return K


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
    ), length
