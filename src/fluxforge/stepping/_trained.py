"""Networks as steppers: any network on a graph, and trained ones as methods of `simulate`."""

import os
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._arguments import check_kind, check_positive, describe_value
from fluxforge._types import CellField, Precision, State
from fluxforge.errors import InputError
from fluxforge.gnn._flux_form import FluxNetwork
from fluxforge.gnn._network import AbstractNetwork, cast
from fluxforge.graph._pad import pad_graph
from fluxforge.graph._padded_graph import PaddedGraph, put
from fluxforge.mesh._boundary import Value
from fluxforge.mesh._build import dual
from fluxforge.mesh._conditions import Conditions
from fluxforge.mesh._dual import DualGraph, check_graph, check_plain_walls
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameter_values import Setting
from fluxforge.mesh._parameters import Settings, resolve, unit_volume
from fluxforge.mesh._read import as_mesh
from fluxforge.mesh._walls import close_walls
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.stepping._build import check_64_bits, check_precision
from fluxforge.stepping._field import field_on_cells
from fluxforge.stepping._stepper import AbstractMethod, DeviceStepper


class NetworkStepper(DeviceStepper):
    """T' = M_θ(T) on one graph. Steppers of graphs padded to one size share a compilation."""

    network: AbstractNetwork
    graph: PaddedGraph
    S: Float[Array, " cells"]
    dt: Float[Array, ""]
    parameters: dict[str, Float[Array, ""]]

    def count_cells(self) -> int:
        """The number of cells that a field has."""
        return len(self.S)

    @eqx.filter_jit
    def advance(self, T: State) -> State:
        """One step."""
        return self.network(self.graph, T, self.S, dt=self.dt, parameters=self.parameters)


def network_stepper(
    network: AbstractNetwork,
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
    check_kind(network, "network", AbstractNetwork, "a network")
    check_graph(graph)
    dt, diffusivity = check_positive(dt, "dt"), check_positive(diffusivity, "diffusivity")
    check_64_bits(check_precision(precision, "precision"), "precision")
    trained = TrainedNetwork("network", network, HEAT, HEAT.settings(diffusivity=diffusivity))
    return trained.stepper(graph, dt, source=source, dtype=precision)


@dataclass(frozen=True, repr=False, eq=False)
class TrainedNetwork(AbstractMethod):
    """A network with the equation it was trained for and the values of its parameters, which its weights contain.

    `network(mesh, T, dt=1e-4)` is one step, and `ff.simulate(network, mesh, …)` runs it. Its stability limit is not
    known, so no step is refused. If all parameters are diffusivities, as in the heat equation, meshes are scaled to
    cells of unit volume, on which networks are trained. Any other equation has a length of its own (√(D/r) for a rate
    r): then the mesh is not scaled, and cells far from unit volume lie outside the trained range.

    A network in the form of a flux has only dimensionless inputs: meshes are not scaled, and parameters may have any
    values and may vary. `fourier` is the range of Δt it was trained with, in reference steps, or None.
    """

    name: str
    network: AbstractNetwork
    equation: Equation
    parameters: Settings
    fourier: tuple[float, float] | None = None

    def __repr__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.parameters.items())
        return f"TrainedNetwork({self.name}, {self.equation.name}, {values})"

    def __call__(
        self,
        mesh: Mesh | str | os.PathLike[str],
        T: Value | np.ndarray,
        *,
        dt: float,
        boundary: Conditions = None,
        source: Value | np.ndarray = 0.0,
        parameters: Settings | None = None,
    ) -> CellField:
        """T after one step Δt, in double precision. T is a value per cell, a number, or a formula in x and y.

        Raises InputError, naming the argument, for an argument that cannot be used.
        """
        graph = dual(as_mesh(mesh), boundary, equation=self.equation)
        state = field_on_cells(T, graph, "T")
        with jax.enable_x64(True):
            step = self.stepper(graph, dt, source=source, parameters=parameters)
            return np.asarray(step(state))

    def stepper(
        self,
        graph: DualGraph,
        dt: float,
        *,
        source: Value | np.ndarray = 0.0,
        parameters: Settings | None = None,
        dtype: Precision = "float64",
    ) -> NetworkStepper:
        """The network on a graph, to be called in JAX's 64-bit mode unless `dtype` is float32.

        Only networks in the form of a flux take other `parameters` than those they were trained with.
        """
        settings = self.check_settings(self.equation.settings(parameters))
        if isinstance(self.network, FluxNetwork):
            fields = resolve(self.equation, graph, settings)
            closed, length, numbers = close_walls(graph, self.equation, fields), 1.0, fields.constants
            padded = pad_graph(closed, self.network.hops, parameters=fields, dtype=dtype)
        else:
            numbers = {name: value for name, value in self.parameters.items() if isinstance(value, float | int)}
            if len(numbers) < len(self.parameters):
                raise InputError(
                    f"equation {self.equation.name!r}: trained networks support parameters that are one number only"
                )
            # After the parameters: with a velocity, walls that the user has not named are inflow walls.
            check_plain_walls(graph, f"the network {self.name!r}")
            scaled, length = unit_volume(graph) if self._has_no_length else (graph, 1.0)
            padded = pad_graph(scaled, self.network.hops, dtype=dtype)
        return NetworkStepper(
            network=cast(self.network, dtype),
            graph=padded,
            S=put(field_on_cells(source, graph, "the source") * length**2, dtype),
            dt=jnp.asarray(check_positive(dt, "dt") / length**2, dtype),
            parameters={name: jnp.asarray(value, dtype) for name, value in numbers.items()},
            dtype=dtype,
        )

    def range_notes(self, fourier: float) -> tuple[str, ...]:
        """One line where a step, in reference steps, lies outside the range that the network was trained with."""
        # Steps of a run to an end time are rounded.
        if self.fourier is None or self.fourier[0] * (1 - 1e-6) <= fourier <= self.fourier[1] * (1 + 1e-6):
            return ()
        low, high = self.fourier
        name = self.equation.words.step_name
        return (f"{self.name}: a step of {fourier:.3g} {name}s is outside the trained range, {low:g} to {high:g}",)

    @property
    def _has_no_length(self) -> bool:
        """Whether x ↦ x/ℓ, t ↦ t/ℓ² leaves every parameter unchanged."""
        units = [self.equation.parameter(name).unit for name in self.parameters]
        return all(unit is not None and unit.length + 2 * unit.time == 0 for unit in units)

    def check_settings(self, parameters: Settings) -> Settings:
        """The parameters it was trained with; raises InputError for other values, which its weights do not contain.

        A network in the form of a flux takes any.
        """
        if isinstance(self.network, FluxNetwork):
            for name in parameters:
                self.equation.parameter(name)
            return {**self.parameters, **parameters}
        for name, value in parameters.items():
            own = self.parameters[self.equation.parameter(name).name]
            if not _is_same(value, own):
                shown = f"{value!s:.60}" if isinstance(value, str | float | int) else describe_value(value)
                trained = f"this network was trained with {name} = {own} and has no other value"
                raise InputError(f"{name} = {shown}: {trained}: leave {name} out")
        return self.parameters


def _is_same(value: Setting, own: Setting) -> bool:
    """Whether the value of a parameter, which may be text, is the same number, or the same numbers."""
    try:
        return np.array_equal(np.asarray(value, float), np.asarray(own, float))
    except (TypeError, ValueError, OverflowError):
        return value is own or (isinstance(value, str) and isinstance(own, str) and value == own)
