"""A trained network on a mesh, with the interface of a scheme's stepper."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._arguments import check_kind, check_positive
from fluxforge._types import Precision, State
from fluxforge.gnn import Network, cast
from fluxforge.graph import PaddedGraph, pad_graph, put
from fluxforge.mesh import DualGraph, check_graph, unit_volume
from fluxforge.pde import HEAT
from fluxforge.stepping._build import check_64_bits, check_precision
from fluxforge.stepping._field import field_on_cells
from fluxforge.stepping._stepper import AbstractStepper, entered, repeated


class NetworkStepper(AbstractStepper):
    """T' = M_θ(T) on one graph. Steppers of graphs padded to one size share a compilation."""

    network: Network
    graph: PaddedGraph
    S: Float[Array, " cells"]
    dt: Float[Array, ""]
    parameters: dict[str, Float[Array, ""]]

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """The mesh's order is the stepper's."""
        return entered(T, None, str(self.S.dtype))

    def leave(self, T: State) -> State:
        """The mesh's order is the stepper's."""
        return T

    @eqx.filter_jit
    def advance(self, T: State) -> State:
        """One step."""
        return self.network(self.graph, T, self.S, dt=self.dt, parameters=self.parameters)

    def repeat(self, T: State, steps: int) -> State:
        """Many steps without leaving the device."""
        return repeated(self, T, jnp.asarray(steps))


def network_stepper(
    network: Network,
    graph: DualGraph,
    dt: float,
    *,
    diffusivity: float = 1.0,
    source: float | str | Float[np.ndarray, " cells"] = 0.0,
    precision: Precision = "float64",
) -> NetworkStepper:
    """Put a network on a graph. Lengths and times are scaled to the units networks are trained in; T is not.

    With x ↦ x/ℓ, Δt ↦ Δt/ℓ², S ↦ S ℓ² and ℓ² the mean cell volume, the heat equation and α stay as they are.
    """
    check_kind(network, "network", Network, "a network")
    check_graph(graph)
    dt, diffusivity = check_positive(dt, "dt"), check_positive(diffusivity, "diffusivity")
    check_64_bits(check_precision(precision, "precision"), "precision")
    given = HEAT.settings(diffusivity=diffusivity)
    scaled, length = unit_volume(graph)
    S = field_on_cells(source, graph, "the source") * length**2
    return NetworkStepper(
        network=cast(network, precision),
        graph=pad_graph(scaled, network.hops, dtype=precision),
        S=put(S, precision),
        dt=jnp.asarray(dt / length**2, precision),
        parameters={name: jnp.asarray(value, precision) for name, value in given.items()},
    )
