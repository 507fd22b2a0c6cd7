"""A trained network as a method of its own: on a mesh and a field, and in `simulate`."""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from fluxforge._types import CellField, Precision
from fluxforge.errors import InputError
from fluxforge.gnn import Network
from fluxforge.mesh import Conditions, Mesh, Settings, Value, as_mesh, dual, unit_volume
from fluxforge.mesh import DualGraph as Graph
from fluxforge.pde import Equation, Parameter, Rank, Where
from fluxforge.stepping._field import field_on_cells
from fluxforge.stepping._network import NetworkStepper, network_stepper


@dataclass(frozen=True, repr=False, eq=False)
class TrainedNetwork:
    """A network with the equation it was trained for and the values of its parameters.

    `network(mesh, T, dt=1e-4)` is one step, and `ff.simulate(network, mesh, …)` runs it. Its stability limit is not
    known, so that no step is refused.
    """

    name: str
    network: Network
    equation: Equation
    parameters: Settings
    implicit: ClassVar[bool] = False

    def __repr__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.parameters.items())
        return f"TrainedNetwork({self.name}, {self.equation.name}, {values})"

    def __call__(
        self,
        mesh: Mesh,
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
        graph = dual(as_mesh(mesh), boundary)
        state = field_on_cells(T, graph, "T")
        with jax.enable_x64(True):
            step = self.stepper(graph, dt, parameters=parameters, source=source)
            return np.asarray(step.leave(step.advance(step.enter(state))))

    def stepper(
        self,
        graph: Graph,
        dt: float,
        *,
        parameters: Settings | None = None,
        source: Value | np.ndarray = 0.0,
        dtype: Precision = "float64",
    ) -> NetworkStepper:
        """The network on a graph; `parameters` replace the values it was trained with."""
        S = field_on_cells(source, graph, "the source")
        step = network_stepper(self.network, graph, dt, source=S, precision=dtype)
        _, length = unit_volume(graph)
        values = {**self.parameters, **self.equation.settings(parameters)}
        scaled = {name: _scale(self.equation.parameter(name), value, length) for name, value in values.items()}
        return replace(step, parameters={name: jnp.asarray(value, dtype) for name, value in scaled.items()})


def _scale(parameter: Parameter, value: object, length: float) -> float:
    """A parameter in the units networks are trained in: lengths in ℓ, times in ℓ², which leaves diffusivities alone."""
    if parameter.rank is not Rank.SCALAR or parameter.where is not Where.CONSTANT or not isinstance(value, float | int):
        raise InputError(f"parameter {parameter.name!r}: a trained network takes parameters that are one number only")
    if parameter.unit is None:
        raise InputError(f"parameter {parameter.name!r} has no unit, so that it cannot be scaled to a mesh")
    return float(value) * length ** -float(parameter.unit.length + 2 * parameter.unit.time)
