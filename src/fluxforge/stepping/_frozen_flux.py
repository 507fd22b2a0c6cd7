"""Networks in the form of a flux on one mesh, for linear equations: their coefficients are evaluated once.

The coefficients of faces depend on the mesh and Δt, and on the state only where the equation is not linear. What is
left is a few sparse products a step: k_j = k_0 + Z_j D_j with Z_j the two-point operator, times Δt, whose faces are
weighted by the coefficients of stage j.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array

from fluxforge._types import CellField, SlotField
from fluxforge.errors import InputError
from fluxforge.expression import evaluate
from fluxforge.gnn import FluxNetwork, cast
from fluxforge.graph import Formulas, PaddedGraph, pad_graph, visit_stages
from fluxforge.mesh import DualGraph, Settings, close_walls, exchange_weights, resolve
from fluxforge.pde import Equation
from fluxforge.scheme import Ghost, Hop, Tableau, face_invariants, find, local_number_stage
from fluxforge.stepping._assemble import operator


@dataclass(frozen=True)
class FrozenFlux:
    """One step T' of a tableau with weighted faces: `rate` T + `constant` is Δt k_0, `later` are the Z_j."""

    tableau: Tableau
    rate: csr_array
    constant: CellField
    later: tuple[csr_array, ...]

    def __call__(self, T: CellField) -> CellField:
        """One step."""
        first = self.rate @ T + self.constant
        increments, rates = [np.zeros_like(T)], [first]
        for i, row in enumerate(self.tableau.rows):
            if i > 0:
                rates.append(first + self.later[i - 1] @ increments[i])
            states = sum((float(w) * increments[j] for j, w in row.states.items()), np.zeros_like(T))
            increments.append(states + sum(float(w) * rates[j] for j, w in row.rates.items()))
        return T + increments[-1]

    def repeat(self, T: CellField, steps: int) -> CellField:
        """Many steps."""
        for _ in range(steps):
            T = self(T)
        return T


def freeze_flux(
    tableau: Tableau,
    equation: Equation,
    graph: DualGraph,
    dt: float,
    coefficients: Sequence[SlotField | float],
    *,
    parameters: Settings | None = None,
    source: CellField | None = None,
) -> FrozenFlux:
    """The step with these coefficients of the stages after the first, per slot or one number each."""
    if not equation.linear:
        raise InputError(f"equation {equation.name!r} is not linear: coefficients of faces depend on the state")
    fields = resolve(equation, graph, parameters)
    euler = operator(find("euler", equation), graph, dt=dt, parameters=parameters)
    rate = csr_array(euler.M - eye_array(graph.cells, format="csr"))
    constant = euler.b if source is None else euler.b + euler.N @ source
    closed = close_walls(graph, equation, fields)
    weights = _slot_weights(equation, closed, dt, parameters)
    later = tuple(_weighted_operator(closed, weights * np.asarray(c)) for c in coefficients)
    return FrozenFlux(tableau, rate, constant, later)


def _slot_weights(equation: Equation, graph: DualGraph, dt: float, parameters: Settings | None) -> SlotField:
    """Δt A |∂F/∂u_P|/(c V) in every slot: the two-point flux of diffusion is that times u_P − u_N."""
    if equation.velocity is not None or equation.capacity != 1 or equation.reaction != 0:
        raise InputError(f"equation {equation.name!r}: only pure diffusion with c = 1 is supported here")
    return np.where(graph.slot_mask, exchange_weights(equation, graph, parameters), 0.0) * dt / graph.V[:, None]


def _weighted_operator(graph: DualGraph, weights: SlotField) -> csr_array:
    """Σ weights (u_N − u_P), of values that vanish where walls hold them."""
    n = graph.cells
    inside = graph.slot_mask & (graph.slot_node < n)
    rows = np.broadcast_to(np.arange(n)[:, None], inside.shape)[inside]
    off = csr_array((weights[inside], (rows, graph.slot_node[inside])), shape=(n, n))
    free = np.concatenate([np.ones(graph.interior), 1.0 - graph.following])[graph.slot_face]
    return csr_array(off - diags_array((weights * np.where(graph.slot_mask, free, 0.0)).sum(axis=1), format="csr"))


def face_coefficients(
    network: FluxNetwork, graph: DualGraph, dt: float, *, parameters: Settings | None = None
) -> list[SlotField]:
    """The coefficients of the stages after the first on one mesh, in every slot."""
    fields = resolve(network.equation, graph, parameters)
    closed = close_walls(graph, network.equation, fields)
    with jax.enable_x64(True):
        padded = pad_graph(closed, (Hop.EDGE,), parameters=fields)
        found = _coefficients(cast(network, "float64"), padded, {"dt": jnp.asarray(dt), **fields.constants})
    return [np.asarray(each) for each in found]


def face_numbers(
    equation: Equation, graph: DualGraph, dt: float, *, parameters: Settings | None = None
) -> dict[str, SlotField]:
    """The dimensionless numbers of every slot that coefficients are functions of, by name; 0 in unused slots."""
    fields = resolve(equation, graph, parameters)
    closed = close_walls(graph, equation, fields)
    given = {"dt": dt, **fields.constants}
    with jax.enable_x64(True):
        padded = pad_graph(closed, (Hop.EDGE,), parameters=fields)
        zero = jnp.zeros_like(padded.V)
        (local,) = visit_stages([Formulas(local_number_stage(equation))], padded, zero, zero, parameters=given)
        nodes = padded.nodes({**local.outputs, "T": zero}, {**local.round.ghosts, "T": Ghost.DIRICHLET})
        hop, found = padded.hops[Hop.EDGE], {}
        for name, formula in face_invariants(equation).items():
            value = evaluate(formula, hop.values(formula.free_symbols, nodes, given), jnp)
            found[name] = np.asarray(jnp.where(hop.mask, jnp.broadcast_to(value, hop.mask.shape), 0.0))
    return found


@eqx.filter_jit
def _coefficients(
    network: FluxNetwork, graph: PaddedGraph, parameters: dict[str, float | jax.Array]
) -> list[jax.Array]:
    zero = jnp.zeros_like(graph.V)
    visits = list(visit_stages(network.rounds, graph, zero, zero, parameters=parameters))
    return [
        each.coefficients(graph, visit.nodes, parameters)
        for each, visit in zip(network.weighted, visits[len(network.first) :], strict=True)
    ]


def freeze_network(
    network: FluxNetwork,
    graph: DualGraph,
    dt: float,
    *,
    parameters: Settings | None = None,
    source: CellField | None = None,
) -> FrozenFlux:
    """A network on one mesh with its coefficients evaluated once; raises InputError for an equation not linear."""
    found = face_coefficients(network, graph, dt, parameters=parameters)
    return freeze_flux(network.tableau, network.equation, graph, dt, found, parameters=parameters, source=source)
