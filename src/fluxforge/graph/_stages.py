"""The evaluator of stages: formulas of a scheme and layers of a network are evaluated by the same loop."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from fluxforge._types import State
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.graph._padded_graph import Columns, Nodes, PaddedGraph, Quantities
from fluxforge.scheme._scheme import ALL_ENDS, NEXT, STEP, Ghost, Message, Reduction, Stage


@runtime_checkable
class AbstractRound(Protocol):
    """One round of message passing: sums over neighbours, then outputs of every cell."""

    @property
    def ghosts(self) -> Mapping[str, Ghost]:
        """Ghost rule of each output, for later rounds."""
        ...

    def sums(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> dict[str, State]:
        """Sums over the neighbours of every cell, by name; `nodes` are the node values of all fields."""
        ...

    def outputs(self, graph: PaddedGraph, cell: Quantities) -> dict[str, State]:
        """The outputs of every cell; `cell` holds its parameters, V, fields, earlier outputs and sums by name."""
        ...


class Formulas(NamedTuple):
    """A stage of a scheme as a round: its formulas evaluated as they are written.

    `known` are the values of sums that do not depend on fields and were computed before.
    """

    stage: Stage
    known: Mapping[str, State] = MappingProxyType({})

    @property
    def ghosts(self) -> Mapping[str, Ghost]:
        """The rules of the stage's outputs."""
        return {name: output.ghost for name, output in self.stage.outputs.items()}

    def sums(self, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> dict[str, State]:
        """Each message summed over the slots of its hop, or its least or largest value over them."""
        messages = {name: message for name, message in self.stage.messages.items() if name not in self.known}
        sums = {**self.known}
        for hop in dict.fromkeys(message.hop for message in messages.values()):
            here = {name: message for name, message in messages.items() if message.hop is hop}
            if hop in graph.columns:
                sums |= _reduce_columns(here, graph.columns[hop], graph.V, nodes, parameters)
            else:
                sums |= {name: _reduce(message, graph, nodes, parameters) for name, message in here.items()}
        return sums

    def outputs(self, graph: PaddedGraph, cell: Quantities) -> dict[str, State]:
        """The stage's outputs."""
        values = {symbol(name): value for name, value in cell.items()}
        outputs = {name: evaluate(output.expression, values, jnp) for name, output in self.stage.outputs.items()}
        return {
            name: jnp.broadcast_to(jnp.asarray(value, graph.V.dtype), graph.V.shape) for name, value in outputs.items()
        }


class Visit(NamedTuple):
    """An evaluated round: `nodes` are the inputs of its messages, `cell` those of its outputs, sums included."""

    round: AbstractRound
    nodes: Nodes
    cell: Quantities
    outputs: Mapping[str, State]


class Moment(NamedTuple):
    """A problem at one time: `graph` with its ghosts and parameters of cells and faces, the source, and constants."""

    graph: PaddedGraph
    S: State
    parameters: Quantities


def visit_stages(
    rounds: Iterable[AbstractRound], graph: PaddedGraph, T: State, S: State, *, parameters: Quantities
) -> Iterator[Visit]:
    """Evaluate rounds one after the other; `parameters` are dt, the equation's constants and others in the formulas."""
    return visit_stages_in_time(((each, Moment(graph, S, parameters)) for each in rounds), T)


def visit_stages_in_time(rounds: Iterable[tuple[AbstractRound, Moment]], T: State) -> Iterator[Visit]:
    """Evaluate rounds one after the other, each with the graph, source and parameters of its own time."""
    fields, rules = {"T": T}, {"T": Ghost.DIRICHLET, "S": Ghost.ZERO}
    for each, (bare, S, parameters) in rounds:
        graph = bare.with_outflow(T, parameters)
        fields["S"] = S
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
    parameters: Quantities,
) -> State:
    """T' of explicit stages or layers, evaluated one after the other: the output `T_new` of the last."""
    rounds = (Formulas(stage) if isinstance(stage, Stage) else stage for stage in stages)
    *_, last = visit_stages(rounds, graph, T, S, parameters=parameters)
    return last.outputs[NEXT]


def _reduce(message: Message, graph: PaddedGraph, nodes: Nodes, parameters: Quantities) -> State:
    """A message reduced over the slots in use by its `reduction`; 0 in cells of padding, which have no slot in use."""
    hop = graph.hops[message.hop]
    values = hop.values(message.expression.free_symbols, nodes, parameters)
    value = jnp.asarray(evaluate(message.expression, values, jnp), graph.V.dtype)
    reduce, _, neutral = _REDUCTIONS[message.reduction]
    reduced = reduce(jnp.where(hop.mask, jnp.broadcast_to(value, hop.mask.shape), neutral), axis=1)
    return reduced if message.reduction is Reduction.SUM else jnp.where(hop.mask.any(axis=1), reduced, 0.0)


# For each reduction: the function of all slots at once, the one of two slots, and the value of a slot that is not used.
_REDUCTIONS: Mapping[Reduction, tuple[Callable[..., State], Callable[..., State], float]] = {
    Reduction.SUM: (jnp.sum, jnp.add, 0.0),
    Reduction.MIN: (jnp.min, jnp.minimum, jnp.inf),
    Reduction.MAX: (jnp.max, jnp.maximum, -jnp.inf),
}


def _reduce_columns(
    messages: Mapping[str, Message], hop: Columns, V: State, nodes: Nodes, parameters: Quantities
) -> dict[str, State]:
    """Like `_reduce` for all messages of a hop, slot by slot."""
    total: dict[str, State] = {
        name: jnp.full_like(V, _REDUCTIONS[message.reduction][2]) for name, message in messages.items()
    }
    wanted = {variable for message in messages.values() for variable in message.expression.free_symbols}
    for slot in range(len(hop.ends)):
        values = hop.values(slot, wanted, nodes, parameters)
        # The barrier separates gathers from arithmetic: XLA does not vectorise a loop that contains a gather, and would
        # repeat the gather for every message.
        values = dict(zip(values, jax.lax.optimization_barrier(list(values.values())), strict=True))
        for name, message in messages.items():
            _, combine, neutral = _REDUCTIONS[message.reduction]
            value = jnp.broadcast_to(jnp.asarray(evaluate(message.expression, values, jnp), V.dtype), V.shape)
            total[name] = combine(total[name], value if hop.mask is None else jnp.where(hop.mask[slot], value, neutral))
    return total


def fixed_sums(stages: Iterable[Stage], graph: PaddedGraph, parameters: Quantities) -> tuple[dict[str, State], ...]:
    """Per stage, the sums of messages that contain neither a field nor Δt, and so are the same at every step."""
    sums, varying = [], {"T", "S"}
    for stage in stages:
        ends = {symbol(f"{name}_{end}") for name in varying for end in ALL_ENDS} | {symbol(STEP)}
        fixed = {name: m for name, m in stage.messages.items() if not m.expression.free_symbols & ends}
        sums.append(Formulas(Stage(fixed, outputs={})).sums(graph, {}, parameters))
        varying |= set(stage.outputs)
    return tuple(sums)
