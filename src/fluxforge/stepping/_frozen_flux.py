"""Networks in the form of a flux on one mesh, for linear fluxes: the coefficients are evaluated once.

The coefficients of faces depend on the mesh and Δt, and on the state only if the flux is not linear. A step then
consists of a few sparse products: k_j = k_0 + Z_j D_j + r(u + D_j) − r(u), Z_j being Δt times the two-point operator
with its faces weighted by the coefficients of stage j.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from scipy.sparse import csr_array, diags_array, eye_array

from fluxforge._types import CellField, SlotField
from fluxforge.errors import InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._flux_form import FluxNetwork
from fluxforge.gnn._network import cast
from fluxforge.graph._neighbourhoods import view
from fluxforge.graph._pad import pad_graph
from fluxforge.graph._padded_graph import PaddedGraph
from fluxforge.graph._stages import Formulas, visit_stages
from fluxforge.mesh._dual import DualGraph, ParameterFields
from fluxforge.mesh._parameters import Settings, flux_slopes, resolve
from fluxforge.mesh._walls import close_walls
from fluxforge.pde._equation import Equation
from fluxforge.scheme._document import find
from fluxforge.scheme._scheme import Ghost, Hop
from fluxforge.scheme._tableau import Tableau
from fluxforge.scheme._weighted import face_invariants, local_number_stage, refuse_flux_form
from fluxforge.stepping._assemble import operator
from fluxforge.stepping._field import cell_capacity

Reaction = Callable[[CellField], CellField]


@dataclass(frozen=True)
class FrozenFlux:
    """One step u' of a tableau with weighted faces.

    `rate` u + `constant` + `reaction`(u) is Δt k_0, and `later` are the Z_j; `reaction`, None without one, is
    Δt r(u)/c. With `constants`, one per stage, there are as many Z_j as stages, and Δt k_j = Z_j (u + D_j) +
    constants[j] + reaction: the ablation in which every flux is weighted.
    """

    tableau: Tableau
    rate: csr_array
    constant: CellField
    later: tuple[csr_array, ...]
    reaction: Reaction | None = None
    constants: tuple[CellField, ...] = ()

    def __call__(self, T: CellField) -> CellField:
        """One step."""
        first = self.rate @ T + self.constant
        increments: list[CellField] = [np.zeros_like(T)]
        rates: list[CellField] = []
        for i, row in enumerate(self.tableau.rows):
            now = T + increments[i]
            if self.constants:
                exchanged = self.later[i] @ now + self.constants[i]
            else:
                exchanged = first + self.later[i - 1] @ increments[i] if i > 0 else first
            rates.append(exchanged + self._react(now))
            states = sum((float(w) * increments[j] for j, w in row.states.items()), np.zeros_like(T))
            increments.append(states + sum(float(w) * rates[j] for j, w in row.rates.items()))
        return T + increments[-1]

    def _react(self, T: CellField) -> CellField | float:
        return 0.0 if self.reaction is None else self.reaction(T)

    def repeat(self, T: CellField, steps: int) -> CellField:
        """The field after `steps` steps."""
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
    free: bool = False,
) -> FrozenFlux:
    """The step with given coefficients of the stages after the first or, with `free`, of all stages.

    A coefficient is an array over slots or one number. Raises InputError for an equation whose flux is not linear.
    """
    if (why := refuse_flux_form(equation)) is not None:
        raise InputError(f"{why}: its coefficients of faces depend on the state")
    still = replace(equation, reaction=sp.S.Zero)
    fields = resolve(equation, graph, parameters)
    euler = operator(find("euler", still), graph, dt=dt, parameters=parameters)
    rate = csr_array(euler.M - eye_array(graph.cells, format="csr"))
    constant = euler.b if source is None else euler.b + euler.N @ source
    closed = close_walls(graph, equation, fields)
    scale = dt / (graph.V * cell_capacity(equation, graph, parameters))[:, None]
    own, other = (-np.where(graph.slot_mask, A * scale, 0.0) for A in flux_slopes(still, graph, parameters))
    weights = [np.asarray(c) for c in coefficients]
    later = tuple(_weighted_operator(closed, own * c, other * c) for c in weights)
    react = _reaction(equation, graph, fields, dt, parameters)
    if not free:
        return FrozenFlux(tableau, rate, constant, later, react)
    held = view(closed, Ghost.DIRICHLET).constant[graph.slot_node]
    supply = 0.0 if source is None else euler.N @ source
    constants = tuple(np.where(graph.slot_mask, other * c * held, 0.0).sum(axis=1) + supply for c in weights)
    return FrozenFlux(tableau, rate, constant, later, react, constants)


def _reaction(
    equation: Equation, graph: DualGraph, fields: ParameterFields, dt: float, parameters: Settings | None
) -> Reaction | None:
    if equation.reaction == 0:
        return None
    formula = equation.at_cell(equation.reaction, symbol("T"))
    known = {symbol(name): value for name, value in {**fields.constants, **fields.cells}.items()}
    scale = dt / cell_capacity(equation, graph, parameters)

    def react(T: CellField) -> CellField:
        change: CellField = scale * np.broadcast_to(evaluate(formula, {**known, symbol("T"): T}, np), T.shape)
        return change

    return react


def _weighted_operator(graph: DualGraph, own: SlotField, other: SlotField) -> csr_array:
    """The matrix of Σ own u_P + other u_N over the slots, with u_N of a ghost replaced by `following` times u_P."""
    n = graph.cells
    inside = graph.slot_mask & (graph.slot_node < n)
    rows = np.broadcast_to(np.arange(n)[:, None], inside.shape)[inside]
    off = csr_array((other[inside], (rows, graph.slot_node[inside])), shape=(n, n))
    follow = np.concatenate([np.zeros(graph.interior), graph.following])[graph.slot_face]
    diagonal = np.where(graph.slot_mask, own + follow * other, 0.0).sum(axis=1)
    return csr_array(off + diags_array(diagonal, format="csr"))


def face_coefficients(
    network: FluxNetwork, graph: DualGraph, dt: float, *, parameters: Settings | None = None
) -> list[SlotField]:
    """The coefficients of the stages after the first on one mesh, in every slot."""
    fields = resolve(network.equation, graph, parameters)
    closed = close_walls(graph, network.equation, fields)
    with jax.enable_x64(True):
        padded = pad_graph(closed, (Hop.EDGE,), parameters=fields)
        coefficients = _coefficients(cast(network, "float64"), padded, {"dt": jnp.asarray(dt), **fields.constants})
    return [np.asarray(each) for each in coefficients]


def face_numbers(
    equation: Equation, graph: DualGraph, dt: float, *, parameters: Settings | None = None
) -> dict[str, SlotField]:
    """The dimensionless numbers of which coefficients are functions, by name, in every slot; 0 in unused slots."""
    fields = resolve(equation, graph, parameters)
    closed = close_walls(graph, equation, fields)
    parameter_values = {"dt": dt, **fields.constants}
    with jax.enable_x64(True):
        padded = pad_graph(closed, (Hop.EDGE,), parameters=fields)
        zero = jnp.zeros_like(padded.V)
        (local,) = visit_stages(
            [Formulas(local_number_stage(equation))], padded, zero, zero, parameters=parameter_values
        )
        nodes = padded.nodes({**local.outputs, "T": zero}, {**local.round.ghosts, "T": Ghost.DIRICHLET})
        hop, numbers = padded.hops[Hop.EDGE], {}
        for name, formula in face_invariants(equation).items():
            value = evaluate(formula, hop.values(formula.free_symbols, nodes, parameter_values), jnp)
            numbers[name] = np.asarray(jnp.where(hop.mask, jnp.broadcast_to(value, hop.mask.shape), 0.0))
    return numbers


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
    """A network on one mesh with its coefficients evaluated once; raises InputError where the flux is not linear."""
    coefficients = face_coefficients(network, graph, dt, parameters=parameters)
    return freeze_flux(
        network.tableau,
        network.equation,
        graph,
        dt,
        coefficients,
        parameters=parameters,
        source=source,
        free=network.free,
    )
