"""Conservation: Vᵀ M = Vᵀ when every face is insulated."""

from dataclasses import dataclass

import numpy as np
import sympy as sp
from scipy.sparse import eye_array

from fluxforge.mesh import DualGraph, Mesh, Neumann, Settings, dual, jittered
from fluxforge.pde import Rank, Where
from fluxforge.scheme import TURNED, Hop, Scheme, linear_stages, message_symbols, symbol
from fluxforge.simulate import general_stepper, operator
from fluxforge.verify._problems import study_step
from fluxforge.verify.time_order import march

TOLERANCE = 1e-12
ROLLOUT = 200


@dataclass(frozen=True)
class Conservation:
    """`defect`: max over cells of |VᵀM − Vᵀ|/V; `cell` where it is largest; `drift`: of ΣV T, relative to ΣV|T|.

    The drift is that of a rollout; of a scheme that is not linear, the worst of `states` states after a step and of
    a rollout.

    `antisymmetric` says whether each one-hop message of the last stage changes sign when P and N are exchanged
    (None where it has no such message); `passed_on` whether cells add them up whole (None where it was not asked).
    """

    holds: bool
    defect: float | None
    cell: int | None
    drift: float
    antisymmetric: bool | None
    states: int = 1
    passed_on: bool | None = None


def conservation(scheme: Scheme, mesh: Mesh | None = None, *, parameters: Settings | None = None) -> Conservation:
    """Measured on an irregular mesh, at half the Fourier step of the same mesh with its boundary held."""
    mesh = jittered(6, 0.2, 5) if mesh is None else mesh
    graph = dual(mesh, Neumann())
    antisymmetric = messages_antisymmetric(scheme)
    if not scheme.equation.only_diffuses:
        # What flows through walls and what reacts is not conserved: the fluxes between cells are asked.
        passed_on = passes_on_fluxes(scheme)
        return Conservation(antisymmetric is True and passed_on, None, None, 0.0, antisymmetric, 0, passed_on)
    dt = 0.25 * study_step(scheme, dual(mesh), parameters)
    if linear_stages(scheme) is None:
        drift, states = _drift_of_general(scheme, graph, dt=dt, parameters=parameters)
        return Conservation(drift <= TOLERANCE * ROLLOUT, None, None, drift, antisymmetric, states)
    step = operator(scheme, graph, dt=dt, parameters=parameters)
    change = step.M - eye_array(graph.cells)
    defects = np.abs(graph.V @ change) / graph.V
    worst = int(np.argmax(defects))
    T = np.random.default_rng(0).standard_normal(graph.cells)
    after = march(step, T, np.zeros(graph.cells), ROLLOUT)
    drift = float(abs(graph.V @ (after - T)) / (graph.V @ np.abs(T)))
    # Parameters are tried as constants, where k_P and k_N are the same; of those that vary the algebra decides.
    varies = any(p.where is not Where.CONSTANT for p in scheme.equation.parameters)
    holds = bool(defects[worst] <= TOLERANCE) and not (varies and antisymmetric is False)
    return Conservation(holds, float(defects[worst]), worst, drift, antisymmetric)


def signed_states(cells: int) -> tuple[np.ndarray, ...]:
    """States of both signs and several sizes: a term that acts on negative, large or lonely values shows on one."""
    rng = np.random.default_rng(0)
    T = rng.standard_normal(cells)
    lonely = np.zeros(cells)
    lonely[cells // 2] = 1.0
    return (rng.random(cells), T, -1.0 - rng.random(cells), 1e3 * T, 1e-3 * T, 5.0 + 0.1 * T, lonely, -lonely)


def _drift_of_general(scheme: Scheme, graph: DualGraph, *, dt: float, parameters: Settings | None) -> tuple[float, int]:
    """The worst drift of a step from each state, and of a rollout from the signed one; and how many were finite.

    A step that overflows says nothing about conservation and is left out.
    """
    step = general_stepper(scheme, graph, dt=dt, parameters=parameters, source=np.zeros(graph.cells), dtype="float64")
    states = signed_states(graph.cells)
    # Half a Fourier step may be far too long for a nonlinear flux: the rollout starts from a small state.
    runs = [(T, np.asarray(step(T))) for T in states] + [
        (1e-3 * states[1], np.asarray(step.rollout(1e-3 * states[1], ROLLOUT)))
    ]
    drifts = [drift_between(graph.V, T, after) for T, after in runs if np.isfinite(after).all()]
    return (max(drifts), len(drifts)) if drifts else (float("inf"), 0)


def drift_between(V: np.ndarray, T: np.ndarray, after: np.ndarray) -> float:
    """The change of ΣV T relative to what is there, before or after."""
    return float(abs(V @ (after - T)) / (V @ np.maximum(np.abs(T), np.abs(after))))


def passes_on_fluxes(scheme: Scheme) -> bool:
    """Whether the last output is T plus what is exchanged, divided by cV alone, plus what does not depend on messages.

    What P loses N then gains, if the messages are antisymmetric; and a step of no length changes nothing.
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
            symbol(name): sp.expand(each.expression.subs(dt, 0).xreplace(start)) for name, each in stage.outputs.items()
        }
        start |= now
    return bool(sp.simplify(start[symbol("T_new")] - symbol("T")) == 0)


def messages_antisymmetric(scheme: Scheme) -> bool | None:
    """Exchange P and N (and turn n and d around): a flux must change sign."""
    last = scheme.stages[-1]
    edges = [message.expression for message in last.messages.values() if message.hop is Hop.EDGE]
    if not edges or len(edges) != len(last.messages):
        return None
    earlier = [name for stage in scheme.stages[:-1] for name in stage.outputs]
    swap = {}
    turned = {*TURNED, *(p.normal_name for p in scheme.equation.parameters if p.rank is Rank.VECTOR)}
    for name, known in message_symbols(Hop.EDGE, earlier, scheme.equation).items():
        stem, _, end = name.rpartition("_")
        if end in ("P", "N") and stem:
            swap[known] = symbol(f"{stem}_{'N' if end == 'P' else 'P'}")
        elif name in turned:
            swap[known] = -known
    return all((expression + expression.xreplace(swap)).expand() == 0 for expression in edges)
