"""Conservation: Wᵀ M = Wᵀ with W = c V when every face is insulated."""

from dataclasses import replace

import numpy as np
import sympy as sp
from scipy.sparse import eye_array

from fluxforge.certify._enclose import compare_formulas
from fluxforge.certify._evidence import Line, verdict_of
from fluxforge.certify._problems import as_graph, has_varying_parameters, varying_settings, with_neumann_walls
from fluxforge.certify._properties import Conservation
from fluxforge.certify._systems import march, study_step
from fluxforge.certify.transport import Identity
from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.mesh._boundary import Neumann
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import jittered
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._parameter import Where
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._scheme import Hop, Message, Scheme, message_symbols, turned_names
from fluxforge.stepping._assemble import operator
from fluxforge.stepping._field import cell_capacity
from fluxforge.stepping._stepper import general_stepper

# Round-off of a column sum, and of each of the steps of a rollout.
TOLERANCE = 1e-12
ROLLOUT = 200
# The cells on a line through a face, seen from its other side.
EXCHANGED_CELLS = {"P": "N", "N": "P", "B": "F", "F": "B"}


def measure_conservation(
    scheme: Scheme, mesh: Mesh | DualGraph | None = None, *, parameters: Settings | None = None
) -> Conservation:
    """Measure conservation on `mesh`, by default an irregular one, with all walls insulated.

    Δt is a quarter of the reference step of the same mesh with Dirichlet walls. For an equation with transport or a
    reaction, only the formulas of the fluxes are examined.
    """
    mesh = jittered(6, 0.2, 5) if mesh is None else mesh
    held = as_graph(mesh)
    graph = dual(mesh, Neumann()) if isinstance(mesh, Mesh) else insulate(held)
    exchanged = exchange_of_messages(scheme)
    antisymmetric = None if exchanged is None else exchanged.holds
    if scheme.equation.only_diffuses and exchanged is not None:
        antisymmetric = exchanged.by == "algebra"
    if not scheme.equation.only_diffuses:
        # Flow through walls and reactions change the total: then only the fluxes between cells are checked.
        passed_on = passes_on_fluxes(scheme)
        by = "" if exchanged is None else exchanged.by
        return Conservation(antisymmetric is True and passed_on, None, None, 0.0, antisymmetric, 0, passed_on, by=by)
    # With constant parameters, a scheme that exchanges k_P and k_N would pass: those that may vary are varied, too.
    tried = [parameters]
    if has_varying_parameters(scheme.equation):
        tried.append(varying_settings(scheme.equation, graph.dimension))
    measure = _measure_general if linear_stages(scheme) is None else _measure_linear
    results = [
        measure(scheme, graph, dt=0.25 * study_step(scheme, held, values), parameters=values) for values in tried
    ]
    worst = max(results, key=lambda one: (not one.holds, one.drift))
    return replace(worst, antisymmetric=antisymmetric, weight="V" if scheme.equation.capacity == 1 else "cV")


def insulate(graph: DualGraph) -> DualGraph:
    """The graph with q = 0, a homogeneous Neumann condition, on every wall."""
    return with_neumann_walls(graph, np.ones(graph.ghosts, bool), np.zeros(graph.ghosts))


def _measure_linear(scheme: Scheme, graph: DualGraph, *, dt: float, parameters: Settings | None) -> Conservation:
    step = operator(scheme, graph, dt=dt, parameters=parameters)
    weight = cell_capacity(scheme.equation, graph, parameters) * graph.V
    change = step.M - eye_array(graph.cells)
    defects = np.abs(weight @ change) / weight
    worst = int(np.argmax(defects))
    T = np.random.default_rng(0).standard_normal(graph.cells)
    after = march(step, T, np.zeros(graph.cells), ROLLOUT)
    drift = float(abs(weight @ (after - T)) / (weight @ np.abs(T)))
    return Conservation(bool(defects[worst] <= TOLERANCE), float(defects[worst]), worst, drift, None)


def signed_states(cells: int) -> tuple[np.ndarray, ...]:
    """States of both signs and several sizes, so that terms acting on negative, large or isolated values are seen."""
    rng = np.random.default_rng(0)
    T = rng.standard_normal(cells)
    single = np.zeros(cells)
    single[cells // 2] = 1.0
    return (rng.random(cells), T, -1.0 - rng.random(cells), 1e3 * T, 1e-3 * T, 5.0 + 0.1 * T, single, -single)


def _measure_general(scheme: Scheme, graph: DualGraph, *, dt: float, parameters: Settings | None) -> Conservation:
    """The worst drift of a step from each of `signed_states`, and of a rollout; `states` counts the finite runs.

    A step that overflows says nothing about conservation and is left out.
    """
    step = general_stepper(scheme, graph, dt=dt, parameters=parameters, source=np.zeros(graph.cells), dtype="float64")
    states = signed_states(graph.cells)
    # This step may be far too long for a nonlinear flux: the rollout starts from a small state.
    small = 1e-3 * states[1]
    runs = [(T, np.asarray(step(T))) for T in states] + [(small, np.asarray(step.rollout(small, ROLLOUT)))]
    weight = cell_capacity(scheme.equation, graph, parameters) * graph.V
    drifts = [drift_between(weight, T, after) for T, after in runs if np.isfinite(after).all()]
    drift = max(drifts, default=float("inf"))
    return Conservation(drift <= TOLERANCE * ROLLOUT, None, None, drift, None, len(drifts))


def drift_between(V: np.ndarray, T: np.ndarray, after: np.ndarray) -> float:
    """The change of ΣV T relative to ΣV max(|T|, |T'|)."""
    return float(abs(V @ (after - T)) / (V @ np.maximum(np.abs(T), np.abs(after))))


def passes_on_fluxes(scheme: Scheme) -> bool:
    """Whether T_new is T plus the sums of the last messages over cV, plus terms without messages, and T at Δt = 0.

    With antisymmetric messages, N then gains what P loses.
    """
    last = scheme.stages[-1]
    output, dt, volume = last.outputs["T_new"].expression, symbol("dt"), symbol("V")
    constants = {symbol(p.name) for p in scheme.equation.parameters if p.where is Where.CONSTANT}
    for name in last.messages:
        weight = sp.cancel(sp.diff(output, symbol(name)) * volume * scheme.equation.capacity)
        if not weight.free_symbols <= {dt, *constants}:
            return False
    start: dict[sp.Symbol, sp.Expr] = {}
    for stage in scheme.stages:
        now = {
            symbol(name): sp.expand(output_stage.expression.subs(dt, 0).xreplace(start))
            for name, output_stage in stage.outputs.items()
        }
        start |= now
    return bool(sp.simplify(start[symbol("T_new")] - symbol("T")) == 0)


def exchange_of_messages(scheme: Scheme) -> Identity | None:
    """Whether messages change sign when P and N, and the cells behind them, are exchanged and n and d reversed.

    None where the last stage has other messages than those of two cells or of a line of cells.
    """
    last = scheme.stages[-1]
    if not last.messages or any(message.hop not in (Hop.EDGE, Hop.LINE) for message in last.messages.values()):
        return None
    identities = [_compare_exchanged(scheme, message) for message in last.messages.values()]
    return min(identities, key=lambda one: (one.holds, one.by == "algebra"))


def _compare_exchanged(scheme: Scheme, message: Message) -> Identity:
    earlier = [name for stage in scheme.stages[:-1] for name in stage.outputs]
    swap, turned = {}, set(turned_names(scheme.equation))
    for name, known in message_symbols(message.hop, earlier, scheme.equation).items():
        stem, _, end = name.rpartition("_")
        if end in EXCHANGED_CELLS and stem:
            swap[known] = symbol(f"{stem}_{EXCHANGED_CELLS[end]}")
        elif name in turned:
            swap[known] = -known
        elif stem == "p" and end in COORDINATES:
            # From the centre of the other cell to the face.
            swap[known] = known - symbol(f"d_{end}")
    states = {symbol(f"{name}_{end}") for name in ("T", *earlier) for end in EXCHANGED_CELLS}

    def domain(v: sp.Symbol) -> tuple[float, float]:
        return (-1.0, 1.0) if v in states or v.name in turned else (0.25, 2.0)

    # With transport, only fluxes between cells are compared, where χ = 1; those through walls differ.
    between = {symbol("chi"): sp.S.One} if scheme.equation.velocity is not None else {}
    flux = message.expression.xreplace(between)
    return compare_formulas(flux, -flux.xreplace(swap), domain, by_points=message.hop is Hop.LINE)


def conservation_line(conservation: Conservation, where: str) -> Line:
    """The line on conservation under insulation."""
    name, verdict = "conservative", verdict_of(conservation.holds)
    if not conservation.states:
        kept = "antisymmetric" if conservation.antisymmetric else "not antisymmetric"
        kept += "" if conservation.passed_on else ", and a cell does not add each of them in full"
        evidence = f"fluxes between cells are {kept}; fluxes through walls and reactions are not considered"
        how = "from the algebra" if conservation.by in ("", "algebra") else f"by {conservation.by}"
        return Line(name, verdict, evidence, f"{how}: F changes sign with its cells")
    W, parts = conservation.weight, []
    if conservation.defect is not None:
        row = "Vᵀ" if W == "V" else f"({W})ᵀ"
        parts.append(f"max |{row}M − {row}|/{W} = {conservation.defect:.1e} at cell {conservation.cell}")
    over = f" in {ROLLOUT} steps"
    if conservation.states > 1:
        over = f", the worst of {conservation.states} states, signed and large"
    parts.append(f"Σ{W}·T drifts by {conservation.drift:.1e}{over}")
    if conservation.antisymmetric is not None:
        parts.append("fluxes antisymmetric" if conservation.antisymmetric else "fluxes not antisymmetric")
    return Line(name, verdict, "; ".join([*parts, f"{where}, insulated"]), "matrix and rollout")
