"""Stages evaluated as they are written: messages, sums, outputs, in turn."""

from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import sympy as sp
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.expression import evaluate
from fluxforge.neighbourhood import Surroundings
from fluxforge.scheme import Ghost, Message, Stage, symbol


def staged(
    stages: Iterable[Stage], around: Surroundings, T: State, S: State, *, parameters: Mapping[str, Any]
) -> State:
    """T' of explicit stages; `parameters` are dt, alpha, and whatever else the formulas name."""
    rules = {"T": Ghost.DIRICHLET, "S": Ghost.ZERO}
    fields: dict[str, State] = {"T": T, "S": S}
    for stage in stages:
        node: dict[sp.Symbol, Any] = {symbol(name): value for name, value in {**fields, **parameters}.items()}
        node[symbol("V")] = around.V
        nodes = around.nodes(fields, rules)
        for name, message in stage.messages.items():
            node[symbol(name)] = _sum(message, around, nodes, parameters)
        for name, output in stage.outputs.items():
            value = jnp.asarray(evaluate(output.expression, node, jnp), around.V.dtype)
            fields[name] = jnp.broadcast_to(value, around.V.shape)
            rules[name] = output.ghost
    return fields["T_new"]


def _sum(
    message: Message,
    around: Surroundings,
    nodes: Mapping[str, Float[Array, " nodes"]],
    parameters: Mapping[str, Any],
) -> State:
    hop = around.hops[message.hop]
    values = hop.values(message.expression.free_symbols, nodes, parameters)
    value = jnp.asarray(evaluate(message.expression, values, jnp), around.V.dtype)
    return jnp.where(hop.mask, jnp.broadcast_to(value, hop.mask.shape), 0.0).sum(axis=1)
