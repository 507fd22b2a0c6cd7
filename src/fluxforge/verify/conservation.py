"""Conservation: Vᵀ M = Vᵀ when every face is insulated."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import eye_array

from fluxforge.mesh import DualGraph, Mesh, Neumann, dual, fourier_step, jittered
from fluxforge.scheme import Hop, Scheme, linear_stages, message_symbols, symbol
from fluxforge.simulate import general_stepper, operator
from fluxforge.verify.time_order import march

TOLERANCE = 1e-12
ROLLOUT = 200


@dataclass(frozen=True)
class Conservation:
    """`defect`: max over cells of |VᵀM − Vᵀ|/V; `cell` where it is largest; `drift`: of ΣV T over a rollout, relative.

    `antisymmetric` says whether each one-hop message of the last stage changes sign when P and N are exchanged
    (None where it has no such message).
    """

    holds: bool
    defect: float | None
    cell: int | None
    drift: float
    antisymmetric: bool | None


def conservation(scheme: Scheme, mesh: Mesh | None = None, *, diffusivity: float = 1.0) -> Conservation:
    """Measured on an irregular mesh, at half the Fourier step of the same mesh with its boundary held."""
    mesh = jittered(6, 0.2, 5) if mesh is None else mesh
    graph = dual(mesh, Neumann())
    dt = 0.25 * fourier_step(dual(mesh), diffusivity)
    antisymmetric = messages_antisymmetric(scheme)
    if linear_stages(scheme) is None:
        drift = _drift_of_general(scheme, graph, dt=dt, diffusivity=diffusivity)
        return Conservation(drift <= TOLERANCE * ROLLOUT, None, None, drift, antisymmetric)
    step = operator(scheme, graph, dt=dt, diffusivity=diffusivity)
    change = step.M - eye_array(graph.cells)
    defects = np.abs(graph.V @ change) / graph.V
    worst = int(np.argmax(defects))
    T = np.random.default_rng(0).standard_normal(graph.cells)
    after = march(step, T, np.zeros(graph.cells), ROLLOUT)
    drift = float(abs(graph.V @ (after - T)) / (graph.V @ np.abs(T)))
    return Conservation(bool(defects[worst] <= TOLERANCE), float(defects[worst]), worst, drift, antisymmetric)


def _drift_of_general(scheme: Scheme, graph: DualGraph, *, dt: float, diffusivity: float) -> float:
    T = np.random.default_rng(0).random(graph.cells)
    step = general_stepper(scheme, graph, dt=dt, diffusivity=diffusivity, source=np.zeros(graph.cells), dtype="float64")
    after = np.asarray(step.rollout(T, ROLLOUT))
    drift = abs(graph.V @ (after - T)) / (graph.V @ np.abs(T))
    return float(drift) if np.isfinite(drift) else float("inf")


def messages_antisymmetric(scheme: Scheme) -> bool | None:
    """Exchange P and N (and turn n and d around): a flux must change sign."""
    last = scheme.stages[-1]
    edges = [message.expression for message in last.messages.values() if message.hop is Hop.EDGE]
    if not edges or len(edges) != len(last.messages):
        return None
    earlier = [name for stage in scheme.stages[:-1] for name in stage.outputs]
    swap = {}
    for name, known in message_symbols(Hop.EDGE, earlier).items():
        stem, _, end = name.rpartition("_")
        if end in ("P", "N") and stem:
            swap[known] = symbol(f"{stem}_{'N' if end == 'P' else 'P'}")
        elif name in ("n_x", "n_y", "d_x", "d_y"):
            swap[known] = -known
    return all((expression + expression.xreplace(swap)).expand() == 0 for expression in edges)
