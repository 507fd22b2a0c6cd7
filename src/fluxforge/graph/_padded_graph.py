"""A graph on the device: values at nodes and in slots of hops, and ghosts that depend on the state."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Bool, Float, Int

from fluxforge._types import Precision, State
from fluxforge.errors import SchemeError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.mesh._dual import DualGraph, ParameterFields
from fluxforge.mesh._walls import linear_speed, wall_velocity
from fluxforge.pde._equation import Equation, differentiate
from fluxforge.scheme._scheme import Ghost

# Fields of a graph that are not arrays: the static part of the pytree.
_NAMES = ("tags", "origin", "wrapped", "regions")
_ARRAYS = tuple(field.name for field in fields(DualGraph) if field.name not in _NAMES)


def _flatten(graph: DualGraph) -> tuple[list[tuple[jax.tree_util.GetAttrKey, Any]], tuple[Any, ...]]:
    arrays = [(jax.tree_util.GetAttrKey(name), getattr(graph, name)) for name in _ARRAYS]
    return arrays, tuple(getattr(graph, name) for name in _NAMES)


def _unflatten(names: tuple[Any, ...], arrays: Iterable[Any]) -> DualGraph:
    """A graph of these leaves. JAX may pass leaves that are not arrays, so the type-checked constructor is avoided."""
    graph = object.__new__(DualGraph)
    for name, value in zip((*_ARRAYS, *_NAMES), (*arrays, *names), strict=True):
        object.__setattr__(graph, name, value)
    return graph


# Registered here and not beside the class, so that `fluxforge.mesh` does not import JAX.
jax.tree_util.register_pytree_with_keys(DualGraph, _flatten, _unflatten)


Quantities: TypeAlias = Mapping[str, ArrayLike]
"""Numbers and arrays by name: Δt, the constants of an equation and, in cells, fields and sums."""

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

    The flow leaves where neither the wave of the owner, a·n f′(u_P), nor the jump to the value g outside, of the speed
    a·n (f(g) − f(u_P))/(g − u_P), enters. `wall` marks the nodes that are such ghosts, `speed` is a·n there, `carried`
    and `slope` are f and f′ as formulas of T.
    """

    wall: Bool[Array, " nodes"]
    speed: Float[Array, " nodes"]
    carried: sp.Expr = eqx.field(static=True)
    slope: sp.Expr = eqx.field(static=True)

    def find_leaving(
        self, inside: Float[Array, " nodes"], outside: Float[Array, " nodes"], parameters: Quantities
    ) -> Bool[Array, " nodes"]:
        """Mark the ghosts that follow their owners; `inside` is the owner's value, `outside` that of the wall."""
        known = {symbol(name): value for name, value in parameters.items()}

        def of(formula: sp.Expr, u: Float[Array, " nodes"]) -> Any:
            return evaluate(
                formula,
                {variable: u if variable.name == "T" else known[variable] for variable in formula.free_symbols},
                jnp,
            )

        jump = (of(self.carried, outside) - of(self.carried, inside)) * (outside - inside)
        return self.wall & (self.speed * of(self.slope, inside) >= 0) & (self.speed * jump >= 0)


def outflow_rule(
    graph: DualGraph, equation: Equation, parameters: ParameterFields, dtype: Precision = "float64"
) -> Outflow | None:
    """The rule by which inflow ghosts follow their owners at every step; None if that does not depend on the state."""
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


class Shown(eqx.Module):
    """Node values of a field under one ghost rule:  scale · field[cell] + constant."""

    cell: Int[Array, " nodes"]
    scale: Float[Array, " nodes"]
    constant: Float[Array, " nodes"]

    def of(self, field: State) -> Float[Array, " nodes"]:
        """Values of the field at all nodes."""
        return self.scale * field[self.cell] + self.constant

    def behind_cells(self, field: State) -> Float[Array, " nodes"]:
        """`of` for a graph without padding: the value of a cell is its own, so only ghosts are computed.

        Without the barrier, XLA would recompute the choice between cells and ghosts in every gather.
        """
        n = field.shape[0]
        ghosts = self.scale[n:] * field[self.cell[n:]] + self.constant[n:]
        return jax.lax.optimization_barrier(jnp.concatenate([field, ghosts]))


class Slots(eqx.Module):
    """One hop in fixed slots: the nodes at each end, the geometric symbols, and which slots are used.

    In a ring, `middle` holds the node N of every path, and `share` the weight of a path in the mean of its slot.
    """

    ends: dict[str, Int[Array, "cells slots"]]
    geometry: dict[str, Float[Array, "cells slots"]]
    mask: Bool[Array, "cells slots"]
    middle: Int[Array, "cells paths"] | None = None
    share: Float[Array, "cells paths slots"] | None = None

    def at(self, end: str, shown: Float[Array, " nodes"]) -> Float[Array, "cells slots"]:
        """The values at one end in every slot; for the middle N of a ring, the mean over the paths of the slot."""
        if end in self.ends:
            return shown[self.ends[end]]
        assert self.middle is not None
        assert self.share is not None
        return jnp.einsum("cp,cps->cs", shown[self.middle], self.share)

    def values(self, wanted: Iterable[sp.Symbol], nodes: Nodes, parameters: Quantities) -> dict[sp.Symbol, ArrayLike]:
        """The value of each wanted symbol in every slot."""
        return _values(wanted, parameters, self.geometry, nodes, self.at)


class Columns(eqx.Module):
    """One hop with an array per slot, for evaluation slot by slot: every array is read from memory once, in order.

    An array of equal numbers is stored as one number; `mask` is None if all slots are in use.
    """

    ends: tuple[dict[str, Int[Array, " cells"]], ...]
    geometry: tuple[dict[str, Float[Array, " cells"] | Float[Array, ""]], ...]
    mask: tuple[Bool[Array, " cells"], ...] | None

    def at(self, slot: int, end: str, shown: Float[Array, " nodes"]) -> Float[Array, " cells"]:
        """The value at one end of one slot of every cell."""
        index = self.ends[slot]
        if end == "P":
            return shown[: len(index["N"])]
        return shown.at[index[end]].get(mode="promise_in_bounds", wrap_negative_indices=False)

    def values(
        self, slot: int, wanted: Iterable[sp.Symbol], nodes: Nodes, parameters: Quantities
    ) -> dict[sp.Symbol, ArrayLike]:
        """The value of each wanted symbol in one slot of every cell."""
        return _values(wanted, parameters, self.geometry[slot], nodes, partial(self.at, slot))


def _values(
    wanted: Iterable[sp.Symbol],
    parameters: Quantities,
    geometry: Mapping[str, Array],
    nodes: Nodes,
    at: Callable[[str, Array], Array],
) -> dict[sp.Symbol, ArrayLike]:
    """The value of each wanted symbol: a parameter, geometry, or a field at one end; SchemeError for any other."""
    values: dict[sp.Symbol, ArrayLike] = {}
    for variable in wanted:
        name = variable.name
        field, _, end = name.rpartition("_")
        if name in parameters:
            values[variable] = parameters[name]
        elif name in geometry:
            values[variable] = geometry[name]
        elif field in nodes:
            values[variable] = at(end, nodes[field])
        else:
            raise SchemeError(f"a message contains {name}, which this mesh does not have")
    return values


class PaddedGraph(eqx.Module):
    """A graph's cells, ghosts and hops as device arrays of fixed size.

    `cells` are the equation's parameters given per cell; those of faces are in the geometry of `hops`. Cells where
    `live` is false are padding: they have volume 1, no neighbours, and are no cell's neighbour.
    """

    V: Float[Array, " cells"]
    live: Bool[Array, " cells"]
    shown: dict[str, Shown]
    hops: dict[str, Slots]
    cells: dict[str, Float[Array, " cells"]] = eqx.field(default_factory=dict)
    outflow: Outflow | None = None
    columns: dict[str, Columns] = eqx.field(default_factory=dict)

    def with_outflow(self, T: State, parameters: Quantities) -> "PaddedGraph":
        """The graph with ghosts that follow their owners where the flow leaves; T is the state at the step's beginning.

        The choice is made once per step, so that all stages of a method have the same boundary conditions.
        """
        if self.outflow is None:
            return self
        held = self.shown[str(Ghost.DIRICHLET)]
        leaving = self.outflow.find_leaving(T[held.cell], held.constant, parameters)
        shown = {
            rule: Shown(each.cell, jnp.where(leaving, 1.0, each.scale), jnp.where(leaving, 0.0, each.constant))
            for rule, each in self.shown.items()
        }
        return replace(self, shown=shown, outflow=None)

    def nodes(self, fields: Mapping[str, State], rules: Mapping[str, Ghost]) -> dict[str, Float[Array, " nodes"]]:
        """Node values of every field under its ghost rule."""
        if self.columns:
            return {name: self.shown[rules[name]].behind_cells(value) for name, value in fields.items()}
        return {name: self.shown[rules[name]].of(value) for name, value in fields.items()}

    def with_boundary(self, value: Float[Array, " nodes"]) -> "PaddedGraph":
        """The same graph with other boundary data: g at Dirichlet ghosts, q δ at Neumann ghosts, 0 at cells."""
        rule = str(Ghost.DIRICHLET)
        held = eqx.tree_at(lambda shown: shown.constant, self.shown[rule], value)
        return replace(self, shown={**self.shown, rule: held})
