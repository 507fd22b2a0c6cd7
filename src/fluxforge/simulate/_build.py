"""From a scheme, a graph and a time step to the stepper that suits them."""

import os
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from fluxforge._arguments import check_choice, check_flag, check_positive
from fluxforge.errors import InputError
from fluxforge.mesh import DualGraph, Settings, Value, check_graph
from fluxforge.pde import Equation
from fluxforge.scheme import Scheme, find, linear_stages
from fluxforge.simulate._assemble import assemble, operator
from fluxforge.simulate._field import field_on_cells
from fluxforge.simulate._general import general_stepper
from fluxforge.simulate._implicit import conjugate_gradient_stepper, direct_stepper
from fluxforge.simulate._renumber import local_order
from fluxforge.simulate._rows import stage_rows
from fluxforge.simulate._stepper import AbstractStepper, LinearStepper, Order

Precision = Literal["float32", "float64"]
Solver = Literal["auto", "direct", "cg"]
DIRECT_MOST_CELLS = 100_000


@np.errstate(all="ignore")
def stepper(
    scheme: str | os.PathLike[str] | Scheme,
    graph: DualGraph,
    dt: float,
    *,
    equation: str | os.PathLike[str] | Equation | None = None,
    diffusivity: float | None = None,
    parameters: Settings | None = None,
    source: Value | np.ndarray = 0.0,
    dtype: Precision = "float64",
    solver: Solver = "auto",
    renumber: bool = True,
) -> AbstractStepper:
    """T' = step(T), with everything that does not depend on T evaluated once.

    `scheme` is a scheme, a built-in name or a path to a `scheme.json`. `source` is S: a number, a formula in x and y,
    a function of them or an array over cells. `equation` is the one the scheme serves, its own unless given, and
    `parameters` are its parameters by name; `diffusivity` is the word for heat's α. `solver` is for implicit schemes:
    sparse LU (`direct`) up to 10⁵ cells and conjugate gradients (`cg`) beyond, unless said otherwise. float64 needs
    JAX's 64-bit mode. Raises InputError, naming the argument, for an argument that cannot be used.
    """
    scheme, graph = find(scheme, equation), check_graph(graph)
    dt, diffusivity = check_positive(dt, "dt"), check_diffusivity(diffusivity)
    parameters = scheme.equation.settings(parameters, diffusivity=diffusivity)
    check_64_bits(check_precision(dtype))
    check_choice(solver, "solver", ("auto", "direct", "cg"))
    check_flag(renumber, "renumber")
    S = field_on_cells(source, graph, "the source")
    order = local_order(graph) if renumber else None
    if scheme.implicit:
        return _implicit(scheme, graph, dt=dt, parameters=parameters, S=S, dtype=dtype, solver=solver, order=order)
    if linear_stages(scheme) is None:
        return general_stepper(scheme, graph, dt=dt, parameters=parameters, source=S, dtype=dtype)
    stages = assemble(scheme, graph, dt=dt, parameters=parameters)
    return LinearStepper(
        stages=tuple(stage_rows(stage, source=S, order=order, dtype=np.dtype(dtype)) for stage in stages if stage),
        order=Order.of(order),
        always=jnp.asarray(True),
        dtype=dtype,
    )


def _implicit(
    scheme: Scheme,
    graph: DualGraph,
    *,
    dt: float,
    parameters: Settings,
    S: np.ndarray,
    dtype: Precision,
    solver: Solver,
    order: np.ndarray | None,
) -> AbstractStepper:
    if linear_stages(scheme) is None:
        raise InputError(f"scheme {scheme.name!r} is implicit and not linear: no solver here takes it")
    step = operator(scheme, graph, dt=dt, parameters=parameters)
    if solver == "direct" or (solver == "auto" and graph.cells <= DIRECT_MOST_CELLS):
        return direct_stepper(step, S)
    return conjugate_gradient_stepper(step, V=graph.V, source=S, order=order, dtype=dtype, name=scheme.name)


def check_diffusivity(diffusivity: float | None) -> float | None:
    """A diffusivity that is given as a positive number; InputError for any other."""
    return None if diffusivity is None else check_positive(diffusivity, "diffusivity")


def check_precision(dtype: Any, name: str = "dtype") -> str:
    """`float32` or `float64`."""
    return check_choice(dtype, name, ("float32", "float64"))


def check_64_bits(dtype: str, name: str = "dtype") -> None:
    """Refuse float64 where JAX would silently compute in float32."""
    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise InputError(
            "float64 needs JAX's 64-bit mode: call jax.config.update('jax_enable_x64', True) first, "
            f"or pass {name}='float32'"
        )
