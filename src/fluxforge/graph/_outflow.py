"""Arrays on the device, and ghosts that depend on the state: where a nonlinear flow leaves the domain."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Bool, Float

from fluxforge._types import Precision
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.mesh._close_walls import linear_speed, wall_velocity
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import ParameterFields
from fluxforge.pde._equation import Equation, differentiate

Quantities: TypeAlias = Mapping[str, ArrayLike]
"""Numbers and arrays by name: Δt, the constants of an equation, and in cells also fields and sums."""

Nodes: TypeAlias = Mapping[str, Float[Array, " nodes"]]
"""Values of fields at all nodes, cells first, then ghosts."""


def put(values: np.ndarray | np.generic, dtype: DTypeLike | None = None) -> Array:
    """Copy an array to the device, in `dtype` if given; unlike `jnp.asarray`, it compiles nothing per shape.

    The array is copied first: on a CPU `device_put` shares the memory of an array that happens to be aligned, so that
    a later change of the argument would change the result.
    """
    return jax.device_put(np.array(values, dtype))


class Outflow(eqx.Module):
    """Ghosts of inflow walls where f is not linear: whether the flow leaves depends on the state.

    It leaves where neither the wave of the owner, a·n f′(u_P), nor the jump to the value g outside, of the speed
    a·n (f(g) − f(u_P))/(g − u_P), enters. `wall` says which nodes are such ghosts, `speed` is a·n there, and `carried`
    and `slope` are f and f′ as formulas of T.
    """

    wall: Bool[Array, " nodes"]
    speed: Float[Array, " nodes"]
    carried: sp.Expr = eqx.field(static=True)
    slope: sp.Expr = eqx.field(static=True)

    def find_leaving(
        self, inside: Float[Array, " nodes"], outside: Float[Array, " nodes"], parameters: Quantities
    ) -> Bool[Array, " nodes"]:
        """Which ghosts follow their owners; `inside` is the owner's value, `outside` that of the wall."""
        known = {symbol(name): value for name, value in parameters.items()}

        def of(formula: sp.Expr, u: Float[Array, " nodes"]) -> Any:
            return evaluate(formula, {own: u if own.name == "T" else known[own] for own in formula.free_symbols}, jnp)

        jump = (of(self.carried, outside) - of(self.carried, inside)) * (outside - inside)
        return self.wall & (self.speed * of(self.slope, inside) >= 0) & (self.speed * jump >= 0)


def outflow_rule(
    graph: DualGraph, equation: Equation, parameters: ParameterFields, dtype: Precision = "float64"
) -> Outflow | None:
    """The rule by which inflow ghosts follow their owners at every step; None where it does not depend on the state."""
    if graph.inflow is None or linear_speed(equation) is not None:
        return None
    nothing = np.zeros(graph.cells)
    carried = equation.at_cell(equation.transported, symbol("T"))
    return Outflow(
        wall=put(np.concatenate([nothing.astype(bool), graph.inflow])),
        speed=put(np.concatenate([nothing, wall_velocity(graph, equation, parameters)]), dtype),
        carried=carried,
        slope=differentiate(carried, symbol("T")),
    )
