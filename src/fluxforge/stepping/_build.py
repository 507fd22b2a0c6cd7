"""The stepper of a scheme on a graph with a time step: explicit or implicit, compiled by XLA or by numba."""

import importlib
import math
import os
from typing import Any, Literal, get_args

import jax
import numpy as np

from fluxforge._arguments import check_choice, check_flag, check_positive
from fluxforge._types import Precision
from fluxforge.errors import InputError
from fluxforge.mesh._boundary import Value
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings
from fluxforge.mesh._read import as_mesh
from fluxforge.pde._equation import Equation
from fluxforge.scheme._document import find
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import Operator, assemble, operator, symmetric_system
from fluxforge.stepping._field import cell_capacity, field_on_cells
from fluxforge.stepping._implicit import (
    condition_bound,
    direct_stepper,
    iterative_stepper,
    krylov_solver,
    multigrid_solver,
)
from fluxforge.stepping._linear import conjugate_gradient_stepper, linear_stepper
from fluxforge.stepping._solvers import Solver
from fluxforge.stepping._stepper import AbstractStepper, general_stepper, local_order, scheme_for_cells

# With `auto`, implicit systems of up to this many cells are solved by sparse LU.
DIRECT_MOST_CELLS = 100_000
# Multigrid takes about twenty cycles whatever the step, diagonal CG iterations in proportion to the root of the
# condition number. On two cores and 10⁶ cells they take the same time at about 70, 2.4 times more with CG at 700.
AMG_LEAST_CONDITION = 100.0


@np.errstate(all="ignore")
def stepper(
    scheme: str | os.PathLike[str] | Scheme,
    graph: DualGraph | Mesh | str | os.PathLike[str],
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

    `scheme` is a scheme, a built-in name or a path to a `scheme.json`; `graph` is a dual graph, or a mesh or the path
    of its file for T = 0 on the whole boundary. `source` is S: a number, a formula in x and y, a function of them or an
    array over cells. `equation` is the equation to solve, by default the scheme's own, and `parameters` are its
    parameters by name; `diffusivity` is α of the heat equation. float64 needs JAX's 64-bit mode.

    `solver` is for implicit schemes. By default it is sparse LU (`direct`) up to 10⁵ cells; beyond, conjugate
    gradients, preconditioned by algebraic multigrid (`amg`) on the CPU if the step is long, and otherwise by the
    diagonal (`cg`). Systems that are not symmetric, such as that of `corrected-implicit`, are solved by `bicgstab` (or
    `gmres`), preconditioned by multigrid for the equation's two-point flux.

    Raises InputError, naming the argument, for an argument that cannot be used; a step raises NumericalError if its
    system is not solved to 1e-13 of its right-hand side.
    """
    mesh = None if isinstance(graph, DualGraph) else as_mesh(graph, "graph")
    scheme = find(scheme, equation, dimension=graph.dimension if isinstance(graph, DualGraph) else 2)
    if mesh is not None:
        graph = dual(mesh, equation=scheme.equation)
    assert isinstance(graph, DualGraph)
    scheme = scheme_for_cells(scheme, graph)
    dt, diffusivity = check_positive(dt, "dt"), check_diffusivity(diffusivity)
    parameters = scheme.equation.settings(parameters, diffusivity=diffusivity)
    check_64_bits(check_precision(dtype))
    check_choice(solver, "solver", get_args(Solver))
    check_flag(renumber, "renumber")
    S = field_on_cells(source, graph, "the source")
    order = local_order(graph) if renumber else None
    if scheme.implicit:
        return _implicit_stepper(
            scheme, graph, dt=dt, parameters=parameters, S=S, dtype=dtype, solver=solver, order=order
        )
    if linear_stages(scheme) is None:
        return general_stepper(scheme, graph, dt=dt, parameters=parameters, source=S, dtype=dtype)
    stages = assemble(scheme, graph, dt=dt, parameters=parameters)
    return linear_stepper(stages, source=S, order=order, dtype=dtype)


@np.errstate(all="ignore")
def run_stepper(
    scheme: Scheme,
    graph: DualGraph,
    dt: float,
    *,
    steps: int,
    parameters: Settings | None = None,
    source: np.ndarray | None = None,
    dtype: Precision = "float64",
    solver: Solver = "auto",
) -> AbstractStepper:
    """The fastest stepper for a run of `steps` steps; the arguments have been checked.

    On the CPU, explicit linear schemes are stepped by a compiled kernel if the run is long enough to save more time
    than its compilation takes. JAX cannot trace that kernel; it can trace the steppers that `stepper`
    returns for explicit schemes.
    """
    S = np.zeros(graph.cells) if source is None else source
    rounds = 0 if scheme.implicit or linear_stages(scheme) is None else len(scheme.stages)
    if jax.default_backend() == "cpu" and kernel_pays(rounds, graph.cells, steps):
        # Imported here, since importing numba, which compiles the kernel, takes a second.
        from fluxforge.stepping._kernel import kernel_stepper

        return kernel_stepper(assemble(scheme, graph, dt=dt, parameters=parameters), source=S, dtype=dtype)
    return stepper(scheme, graph, dt, parameters=parameters, source=S, dtype=dtype, solver=solver)


def _implicit_stepper(
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
    check_linear(scheme)
    step = operator(scheme, graph, dt=dt, parameters=parameters)
    # Rows times c V are those of a conservative two-point flux: symmetric.
    weight = graph.V * cell_capacity(scheme.equation, graph, parameters)
    if solver == "auto":
        solver = choose_solver(step, weight)
    if solver == "direct":
        return direct_stepper(step, S)
    if solver == "cg":
        return conjugate_gradient_stepper(step, V=weight, source=S, order=order, dtype=dtype, name=scheme.name)
    chosen = (
        multigrid_solver(step, weight, scheme.name)
        if solver == "amg"
        else krylov_solver(step, scheme.equation, graph, dt=dt, parameters=parameters, weight=weight, method=solver)
    )
    return iterative_stepper(step, chosen, weight=weight, source=S, dtype=dtype)


def check_linear(scheme: Scheme) -> None:
    """Raise InputError for an implicit scheme that is not linear."""
    if linear_stages(scheme) is None:
        raise InputError(
            f"scheme {scheme.name!r} is implicit and not linear, and only linear systems are solved: use an "
            "explicit scheme"
        )


def choose_solver(step: Operator, weight: np.ndarray) -> Literal["direct", "amg", "cg", "bicgstab"]:
    """The fastest solver of an implicit step, by the number of cells, the device and the system."""
    if step.M.shape[0] <= DIRECT_MOST_CELLS:
        return "direct"
    if symmetric_system(step, weight) is None:
        return "bicgstab"
    long = AMG_LEAST_CONDITION <= condition_bound(step) < math.inf
    return "amg" if long and jax.default_backend() == "cpu" else "cg"


def check_diffusivity(diffusivity: float | None) -> float | None:
    """The diffusivity as a positive float, or None if it is None; raises InputError for anything else."""
    return None if diffusivity is None else check_positive(diffusivity, "diffusivity")


def check_precision(dtype: Any, name: str = "dtype") -> str:
    """The dtype, `float32` or `float64`; raises InputError, naming the argument, for anything else."""
    return check_choice(dtype, name, ("float32", "float64"))


def check_64_bits(dtype: str, name: str = "dtype") -> None:
    """Refuse float64 where JAX would silently compute in float32."""
    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise InputError(
            "float64 needs JAX's 64-bit mode: call jax.config.update('jax_enable_x64', True) first, "
            f"or pass {name}='float32'"
        )


# The kernel's threads are started at every call and wait for each other: on fewer cells that takes longer than a step.
LEAST_CELLS = 20_000


# Compiling takes about two seconds; on two cores the kernel saves about a nanosecond per cell and round of messages.
LEAST_UPDATES = 2_000_000_000


def kernel_pays(rounds: int, cells: int, steps: int) -> bool:
    """Whether the kernel saves more time in `steps` steps of `rounds` rounds of messages than its compilation takes."""
    # Waiting threads call sched_yield, which only POSIX systems have.
    has_numba = hasattr(os, "sched_yield") and importlib.util.find_spec("numba") is not None
    return has_numba and cells >= LEAST_CELLS and rounds * cells * steps >= LEAST_UPDATES
