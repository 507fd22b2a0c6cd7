"""Any scheme, linear or not: the stages evaluated as they are written."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.graph import PaddedGraph, check_dimension, evaluate_stages, pad_graph, put
from fluxforge.mesh import DualGraph, Settings, resolve
from fluxforge.scheme import Scheme
from fluxforge.stepping._stepper import AbstractStepper, entered, repeated


class GeneralStepper(AbstractStepper):
    """Every message is evaluated in every slot at every step."""

    scheme: Scheme = eqx.field(static=True)
    dt: float = eqx.field(static=True)
    constants: tuple[tuple[str, float], ...] = eqx.field(static=True)
    dtype: Literal["float32", "float64"] = eqx.field(static=True)
    S: State
    graph: PaddedGraph

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """The mesh's order is the stepper's."""
        return entered(T, None, self.dtype)

    def leave(self, T: State) -> State:
        """The mesh's order is the stepper's."""
        return T

    def repeat(self, T: State, steps: int) -> State:
        """Many steps without leaving the device."""
        return repeated(self, T, jnp.asarray(steps))

    @eqx.filter_jit
    def advance(self, T: State) -> State:
        """One step: messages, sums, outputs, stage by stage."""
        parameters = {"dt": self.dt, **dict(self.constants)}
        return evaluate_stages(self.scheme.stages, self.graph, T, self.S, parameters=parameters)


def general_stepper(
    scheme: Scheme,
    graph: DualGraph,
    *,
    dt: float,
    parameters: Settings | None,
    source: Float[np.ndarray, " cells"],
    dtype: Literal["float32", "float64"],
) -> GeneralStepper:
    """Put a graph's neighbourhoods on the device for a scheme that may be anything."""
    check_dimension(scheme, graph)
    fields = resolve(scheme.equation, graph, parameters)
    messages = [message.expression for stage in scheme.stages for message in stage.messages.values()]
    read = {own.name for expression in messages for own in expression.free_symbols}
    return GeneralStepper(
        scheme=scheme,
        dt=dt,
        constants=tuple(fields.constants.items()),
        dtype=dtype,
        S=put(source, dtype),
        graph=pad_graph(graph, scheme.hops(), parameters=fields, symbols=read, dtype=dtype),
    )
