"""From a scheme or a network, a graph and a time step to the stepper that suits them."""

import math
import os
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._arguments import check_choice, check_flag, check_kind, check_positive
from fluxforge._types import Precision, State
from fluxforge.errors import InputError
from fluxforge.gnn._build import cast
from fluxforge.gnn._network import AbstractNetwork
from fluxforge.graph._pad import pad_graph
from fluxforge.graph._padded_graph import PaddedGraph, put
from fluxforge.mesh._boundary import Value
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph, check_graph
from fluxforge.mesh._hops import has_lines
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings, unit_volume
from fluxforge.mesh._read import as_mesh
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._document import bounded_scheme, find
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._scheme import Hop, Scheme
from fluxforge.stepping._assemble import Operator, assemble, operator
from fluxforge.stepping._field import cell_capacity, field_on_cells
from fluxforge.stepping._implicit import conjugate_gradient_stepper, direct_stepper, symmetric_system
from fluxforge.stepping._kernel_stepper import KernelStepper, kernel_pays, kernel_stepper
from fluxforge.stepping._krylov import krylov_stepper
from fluxforge.stepping._linear import LinearStepper, linear_stepper, stage_bytes
from fluxforge.stepping._multigrid import condition_bound, multigrid_stepper
from fluxforge.stepping._stepper import AbstractStepper, general_stepper, local_order, repeat_steps, to_stepper_order

Solver = Literal["auto", "direct", "amg", "cg", "bicgstab", "gmres"]
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

    `scheme` is a scheme, a built-in name or a path to a `scheme.json`; `graph` is what `dual` returns, or a mesh or the
    path of its file, for T = 0 on the whole boundary. `source` is S: a number, a formula in x and y,
    a function of them or an array over cells. `equation` is the one the scheme serves, its own unless given, and
    `parameters` are its parameters by name; `diffusivity` is the word for heat's α. `solver` is for implicit schemes:
    sparse LU (`direct`) up to 10⁵ cells; beyond, conjugate gradients, preconditioned by algebraic multigrid (`amg`) on
    the CPU where the step is long, and otherwise by the diagonal (`cg`), unless said otherwise. Systems that are not
    symmetric, as that of `corrected-implicit`, are solved by `bicgstab` or `gmres` there, preconditioned by multigrid
    for the equation's two-point flux. float64 needs JAX's 64-bit mode. Raises InputError, naming the argument, for an
    argument that cannot be used; a step raises NumericalError where a system is not solved to 1e-13 of its right side.
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
        return _implicit(scheme, graph, dt=dt, parameters=parameters, S=S, dtype=dtype, solver=solver, order=order)
    if linear_stages(scheme) is None:
        return general_stepper(scheme, graph, dt=dt, parameters=parameters, source=S, dtype=dtype)
    stages = assemble(scheme, graph, dt=dt, parameters=parameters)
    return linear_stepper(stages, source=S, order=order, dtype=dtype)


def scheme_for_cells(scheme: Scheme, graph: DualGraph) -> Scheme:
    """The scheme, or where it needs lines of cells that the mesh does not have, the same limiter in any cells.

    A scheme with formulas of its own along lines stays as it is, and is refused where its neighbourhoods are made.
    """
    if Hop.LINE not in scheme.hops() or has_lines(graph):
        return scheme
    return bounded_scheme(scheme, graph.dimension) or scheme


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
    """The fastest stepper for a run of that many steps, from arguments that were checked.

    On the CPU, explicit linear schemes are stepped by a compiled kernel where the run is long enough to pay for its
    compilation. It is no function that JAX can trace; `stepper` always returns one that is.
    """
    S = np.zeros(graph.cells) if source is None else source
    rounds = 0 if scheme.implicit or linear_stages(scheme) is None else len(scheme.stages)
    if jax.default_backend() == "cpu" and kernel_pays(rounds, graph.cells, steps):
        return kernel_stepper(assemble(scheme, graph, dt=dt, parameters=parameters), source=S, dtype=dtype)
    return stepper(scheme, graph, dt, parameters=parameters, source=S, dtype=dtype, solver=solver)


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
    # Rows times c V are those of a conservative two-point flux: symmetric.
    weight = graph.V * cell_capacity(scheme.equation, graph, parameters)
    if solver == "auto":
        solver = choose_solver(step, weight)
    if solver == "direct":
        return direct_stepper(step, S)
    if solver == "amg":
        return multigrid_stepper(step, V=weight, source=S, dtype=dtype, name=scheme.name)
    if solver == "cg":
        return conjugate_gradient_stepper(step, V=weight, source=S, order=order, dtype=dtype, name=scheme.name)
    return krylov_stepper(
        step, scheme, graph, dt=dt, parameters=parameters, weight=weight, source=S, dtype=dtype, method=solver
    )


def choose_solver(step: Operator, weight: np.ndarray) -> Literal["direct", "amg", "cg", "bicgstab"]:
    """The solver of an implicit step that takes the least time, by the number of cells, the device and the system."""
    if step.M.shape[0] <= DIRECT_MOST_CELLS:
        return "direct"
    if symmetric_system(step, weight) is None:
        return "bicgstab"
    long = AMG_LEAST_CONDITION <= condition_bound(step) < math.inf
    return "amg" if long and jax.default_backend() == "cpu" else "cg"


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


class NetworkStepper(AbstractStepper):
    """T' = M_θ(T) on one graph. Steppers of graphs padded to one size share a compilation."""

    network: AbstractNetwork
    graph: PaddedGraph
    S: Float[Array, " cells"]
    dt: Float[Array, ""]
    parameters: dict[str, Float[Array, ""]]

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """The mesh's order is the stepper's."""
        return to_stepper_order(T, None, str(self.S.dtype))

    def leave(self, T: State) -> State:
        """The mesh's order is the stepper's."""
        return T

    @eqx.filter_jit
    def advance(self, T: State) -> State:
        """One step."""
        return self.network(self.graph, T, self.S, dt=self.dt, parameters=self.parameters)

    def repeat(self, T: State, steps: int) -> State:
        """Many steps without leaving the device."""
        return repeat_steps(self, T, jnp.asarray(steps))


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


def bytes_per_cell(step: AbstractStepper, cells: int) -> float | None:
    """Every coefficient and index read once, each field read once by each stage that uses it, each output written once.

    None for an implicit scheme, whose solver decides how often it reads them. The kernel on the host holds several
    steps in the cache and moves less than this from memory.
    """
    if isinstance(step, KernelStepper):
        return float(step.work.program.bytes_per_cell(step.work.dtype.itemsize))
    if not isinstance(step, LinearStepper):
        return None
    return sum(stage_bytes(stage, cells, np.dtype(step.dtype).itemsize) for stage in step.stages) / cells
