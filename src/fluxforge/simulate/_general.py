"""Any scheme, linear or not: the stages evaluated as they are written."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Bool, Float, Int

from fluxforge._types import State
from fluxforge.expression import evaluate
from fluxforge.mesh import DualGraph
from fluxforge.scheme import Ghost, Hop, Scheme, symbol
from fluxforge.simulate._ghosts import view
from fluxforge.simulate._neighbourhood import Neighbourhood, Neighbourhoods
from fluxforge.simulate._stepper import AbstractStepper, repeated


class _Shown(eqx.Module):
    """What nodes show of a field under one ghost rule."""

    cell: Int[Array, " nodes"]
    scale: Float[Array, " nodes"]
    constant: Float[Array, " nodes"]

    def of(self, field: State) -> Float[Array, " nodes"]:
        return self.scale * field[self.cell] + self.constant


class _Slots(eqx.Module):
    """A neighbourhood on the device."""

    ends: dict[str, Int[Array, "cells slots"]]
    geometry: dict[str, Float[Array, "cells slots"]]
    mask: Bool[Array, "cells slots"]
    middle: Int[Array, "cells paths"] | None
    share: Float[Array, "cells paths slots"] | None

    def at(self, end: str, shown: Float[Array, " nodes"]) -> Float[Array, "cells slots"]:
        if end in self.ends:
            return shown[self.ends[end]]
        assert self.middle is not None
        assert self.share is not None
        return jnp.einsum("cp,cps->cs", shown[self.middle], self.share)


class GeneralStepper(AbstractStepper):
    """Every message is evaluated in every slot at every step."""

    scheme: Scheme = eqx.field(static=True)
    dt: float = eqx.field(static=True)
    diffusivity: float = eqx.field(static=True)
    dtype: Literal["float32", "float64"] = eqx.field(static=True)
    V: State
    S: State
    shown: dict[str, _Shown]
    hops: dict[str, _Slots]

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """The mesh's order is the stepper's."""
        return jnp.asarray(T, self.dtype)

    def leave(self, T: State) -> State:
        """The mesh's order is the stepper's."""
        return T

    def repeat(self, T: State, steps: int) -> State:
        """Many steps without leaving the device."""
        return repeated(self, T, jnp.asarray(steps))

    @eqx.filter_jit
    def advance(self, T: State) -> State:
        """One step: messages, sums, outputs, stage by stage."""
        rules = self.scheme.ghost_rules() | {"S": Ghost.ZERO}
        fields = {"T": T, "S": self.S}
        parameters = {symbol("dt"): self.dt, symbol("alpha"): self.diffusivity}
        for stage in self.scheme.stages:
            node: dict[sp.Symbol, Any] = {symbol(name): value for name, value in fields.items()}
            node |= parameters | {symbol("V"): self.V}
            nodes = {name: self.shown[rules[name]].of(value) for name, value in fields.items()}
            for name, message in stage.messages.items():
                hop = self.hops[message.hop]
                node[symbol(name)] = self._sum(message.expression, hop, parameters, nodes)
            fields |= {
                name: jnp.broadcast_to(jnp.asarray(evaluate(output.expression, node, jnp), self.dtype), T.shape)
                for name, output in stage.outputs.items()
            }
        return fields["T_new"]

    def _sum(
        self,
        expression: sp.Expr,
        hop: _Slots,
        parameters: dict[sp.Symbol, Any],
        nodes: dict[str, Float[Array, " nodes"]],
    ) -> State:
        values: dict[sp.Symbol, Any] = {symbol(name): value for name, value in hop.geometry.items()} | parameters
        for variable in expression.free_symbols - set(values):
            name, _, end = variable.name.rpartition("_")
            values[variable] = hop.at(end, nodes[name])
        value = jnp.broadcast_to(jnp.asarray(evaluate(expression, values, jnp), self.dtype), hop.mask.shape)
        return jnp.where(hop.mask, value, 0.0).sum(axis=1)


def general_stepper(
    scheme: Scheme,
    graph: DualGraph,
    *,
    dt: float,
    diffusivity: float,
    source: Float[np.ndarray, " cells"],
    dtype: Literal["float32", "float64"],
) -> GeneralStepper:
    """Put a graph's neighbourhoods on the device for a scheme that may be anything."""
    around = Neighbourhoods(graph)
    return GeneralStepper(
        scheme=scheme,
        dt=dt,
        diffusivity=diffusivity,
        dtype=dtype,
        V=jnp.asarray(graph.V, dtype),
        S=jnp.asarray(source, dtype),
        shown={str(rule): _shown(graph, rule, dtype) for rule in Ghost},
        hops={str(hop): _slots(around[hop], dtype) for hop in Hop if hop in scheme.hops()},
    )


def _shown(graph: DualGraph, rule: Ghost, dtype: str) -> _Shown:
    seen = view(graph, rule)
    return _Shown(jnp.asarray(seen.cell), jnp.asarray(seen.scale, dtype), jnp.asarray(seen.constant, dtype))


def _slots(around: Neighbourhood, dtype: str) -> _Slots:
    middle = share = None
    if (average := around.over_paths) is not None:
        one = average.slot_of_path[..., None] == np.arange(around.mask.shape[1])
        share = jnp.asarray(one / np.maximum(average.multiplicity, 1)[:, None, :], dtype)
        middle = jnp.asarray(average.middle)
    return _Slots(
        ends={end: jnp.asarray(node) for end, node in around.ends.items()},
        geometry={name.name: jnp.asarray(value, dtype) for name, value in around.geometry.items()},
        mask=jnp.asarray(around.mask),
        middle=middle,
        share=share,
    )
