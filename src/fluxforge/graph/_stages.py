"""The evaluator of stages: formulas of a scheme and layers of a network go through the same rounds."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.expression import evaluate, symbol
from fluxforge.graph._padded_graph import PaddedGraph
from fluxforge.scheme import NEXT, Ghost, Message, Reduction, Stage

Nodes = Mapping[str, Float[Array, " nodes"]]


@runtime_checkable
class AbstractRound(Protocol):
    """One round of message passing: sums over neighbours, then outputs of every cell."""

    @property
    def ghosts(self) -> Mapping[str, Ghost]:
        """Ghost rule of each output, for later rounds."""
        ...

    def sums(self, graph: PaddedGraph, nodes: Nodes, parameters: Mapping[str, Any]) -> dict[str, State]:
        """Sums over the neighbours of every cell, by name; `nodes` are the node values of all fields."""
        ...

    def outputs(self, graph: PaddedGraph, cell: Mapping[str, Any]) -> dict[str, State]:
        """The outputs of every cell from what it holds: parameters, V, fields, earlier outputs and sums."""
        ...


class Formulas(NamedTuple):
    """A stage of a scheme as a round: its formulas evaluated as they are written."""

    stage: Stage

    @property
    def ghosts(self) -> Mapping[str, Ghost]:
        """The rules of the stage's outputs."""
        return {name: output.ghost for name, output in self.stage.outputs.items()}

    def sums(self, graph: PaddedGraph, nodes: Nodes, parameters: Mapping[str, Any]) -> dict[str, State]:
        """Σ over the slots of each message's hop, or the least or largest."""
        return {name: _reduce(message, graph, nodes, parameters) for name, message in self.stage.messages.items()}

    def outputs(self, graph: PaddedGraph, cell: Mapping[str, Any]) -> dict[str, State]:
        """The stage's outputs."""
        values = {symbol(name): value for name, value in cell.items()}
        found = {name: evaluate(output.expression, values, jnp) for name, output in self.stage.outputs.items()}
        return {
            name: jnp.broadcast_to(jnp.asarray(value, graph.V.dtype), graph.V.shape) for name, value in found.items()
        }


class Visit(NamedTuple):
    """A round with what it was given: `nodes` for its messages, `cell`, sums included, for its outputs."""

    round: AbstractRound
    nodes: Nodes
    cell: Mapping[str, Any]
    outputs: Mapping[str, State]


def visit_stages(
    rounds: Iterable[AbstractRound], graph: PaddedGraph, T: State, S: State, *, parameters: Mapping[str, Any]
) -> Iterator[Visit]:
    """Evaluate rounds in turn; `parameters` are dt, the equation's constants, and whatever else the formulas name."""
    fields, rules = {"T": T, "S": S}, {"T": Ghost.DIRICHLET, "S": Ghost.ZERO}
    graph = graph.facing(T, parameters)
    for each in rounds:
        nodes = graph.nodes(fields, rules)
        cell = {**fields, **graph.cells, **parameters, "V": graph.V}
        cell |= each.sums(graph, nodes, parameters)
        outputs = each.outputs(graph, cell)
        yield Visit(each, nodes, cell, outputs)
        fields |= outputs
        rules |= each.ghosts


def evaluate_stages(
    stages: Iterable[Stage | AbstractRound],
    graph: PaddedGraph,
    T: State,
    S: State,
    *,
    parameters: Mapping[str, Any],
) -> State:
    """T' of explicit stages or layers, in turn: the output `T_new` of the last."""
    rounds = (Formulas(stage) if isinstance(stage, Stage) else stage for stage in stages)
    *_, last = visit_stages(rounds, graph, T, S, parameters=parameters)
    return last.outputs[NEXT]


def _reduce(message: Message, graph: PaddedGraph, nodes: Nodes, parameters: Mapping[str, Any]) -> State:
    """The sum over the slots in use, or the least or largest; 0 in a cell of padding, which has no slot in use."""
    hop = graph.hops[message.hop]
    values = hop.values(message.expression.free_symbols, nodes, parameters)
    value = jnp.asarray(evaluate(message.expression, values, jnp), graph.V.dtype)
    value = jnp.broadcast_to(value, hop.mask.shape)
    if message.reduction is Reduction.SUM:
        return jnp.where(hop.mask, value, 0.0).sum(axis=1)
    if message.reduction is Reduction.MIN:
        found = jnp.where(hop.mask, value, jnp.inf).min(axis=1)
    else:
        found = jnp.where(hop.mask, value, -jnp.inf).max(axis=1)
    return jnp.where(hop.mask.any(axis=1), found, 0.0)
