"""T' = M_θ(T): layers of message passing, the last of which gives the new temperature."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.gnn._gradient import Gradient
from fluxforge.gnn._layer import Layer
from fluxforge.graph import AbstractRound, PaddedGraph, evaluate_stages
from fluxforge.scheme import Hop


class Network(eqx.Module):
    """A message-passing network on a graph: the twin of a scheme, layer for stage.

    Lengths are in units where the mean cell volume is 1; `fluxforge.stepping.network_stepper` sees to that.
    """

    layers: tuple[Layer, ...]
    gradient: Gradient | None = None
    """What is evaluated before the first layer, if messages contain the correction by gradients."""

    @property
    def rounds(self) -> tuple[AbstractRound, ...]:
        """The gradient, if there is one, and the layers."""
        return (*self.before, *self.layers)

    @property
    def before(self) -> tuple[Gradient, ...]:
        """The rounds without weights."""
        return () if self.gradient is None else (self.gradient,)

    def __call__(
        self,
        graph: PaddedGraph,
        T: State,
        S: State,
        *,
        dt: float | Float[Array, ""],
        parameters: Mapping[str, Any],
    ) -> State:
        """One step on any graph, of any size; `parameters` are those of the equation, by name."""
        return evaluate_stages(self.rounds, graph, T, S, parameters={"dt": dt, **parameters})

    @property
    def hops(self) -> frozenset[Hop]:
        """The kinds of neighbourhood its messages are summed over."""
        return frozenset(messages.hop for layer in self.layers for messages in layer.messages)
