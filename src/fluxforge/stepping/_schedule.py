"""A problem's data at any time, inside a compiled step.

Formulas are evaluated by JAX; functions of the user's are called on the host, as are parameters that change in time.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._types import Precision, State
from fluxforge.errors import InputError
from fluxforge.graph._neighbourhoods import Neighbourhoods
from fluxforge.graph._pad import pad_graph
from fluxforge.graph._padded_graph import PaddedGraph, Shown, Slots, outflow_rule, put
from fluxforge.graph._stages import Moment
from fluxforge.mesh._boundary import Condition, Value, depends_on_time, evaluate_at
from fluxforge.mesh._dual import DualGraph, ParameterFields, close_walls, wall_conductance
from fluxforge.mesh._parameters import Settings, resolve, settings_at, varies_in_time
from fluxforge.pde._equation import Equation
from fluxforge.scheme._scheme import Ghost, Scheme
from fluxforge.stepping._varying import Time, Varying, Walls, varying_walls


class HostParameters:
    """Parameters that change in time, evaluated on the host; compared by identity so that it can be static."""

    def __init__(self, scheme: Scheme, graph: DualGraph, settings: Settings, *, time: float, dtype: Precision) -> None:
        self.scheme, self.graph, self.settings, self.dtype = scheme, graph, settings, dtype
        self.shapes = jax.tree.map(lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype), self(time))

    def try_at(self, time: Any) -> dict[str, dict[str, np.ndarray]]:
        """The values at a time; nan where they are refused, since an exception would not leave a compiled step."""
        try:
            return self(time)
        except InputError:
            return jax.tree.map(lambda each: np.full(each.shape, np.nan, each.dtype), self.shapes)

    def __call__(self, time: Any) -> dict[str, dict[str, np.ndarray]]:
        """Constants, values of cells, geometry of hops by `hop name`, and what walls take from parameters."""
        equation, graph = self.scheme.equation, self.graph
        fields = resolve(equation, graph, settings_at(equation, self.settings, float(time), graph.dimension))
        closed = close_walls(graph, equation, fields)
        hoods = Neighbourhoods(closed, fields)
        read = {
            own for stage in self.scheme.stages for m in stage.messages.values() for own in m.expression.free_symbols
        }
        geometry = {
            f"{hop} {own.name}": hoods[hop].geometry[own]
            for hop in self.scheme.hops()
            for own in sorted(read, key=str)
            if own in hoods[hop].geometry
        }
        walls = {"follow": closed.following, "conductance": _conductance(closed, equation, fields)}
        found = {"constants": fields.constants, "cells": fields.cells, "geometry": geometry, "walls": walls}
        return {name: {key: np.asarray(v, self.dtype) for key, v in part.items()} for name, part in found.items()}


def _conductance(graph: DualGraph, equation: Equation, fields: ParameterFields) -> np.ndarray:
    return np.ones(graph.ghosts) if graph.transfer is None else wall_conductance(graph, equation, fields)


class Schedule(eqx.Module):
    """A problem's data at any time. `clock` is the name of the constant parameter that is the time, if there is one."""

    graph: PaddedGraph
    walls: Walls
    source: Varying | State
    follow: Float[Array, " boundary"]
    conductance: Float[Array, " boundary"]
    constants: tuple[tuple[str, float], ...] = eqx.field(static=True)
    host: HostParameters | None = eqx.field(static=True)
    clock: str | None = eqx.field(static=True)
    dt: Float[Array, ""]

    def at(self, time: Time) -> Moment:
        """The ghosts, source and parameters at one time."""
        parameters: dict[str, Any] = {"dt": self.dt, **dict(self.constants)}
        if self.clock is not None:
            parameters[self.clock] = time
        graph, follow, conductance = self.graph, self.follow, self.conductance
        if self.host is not None:
            found = jax.pure_callback(self.host.try_at, self.host.shapes, time)
            parameters |= {name: value for name, value in found["constants"].items() if name != self.clock}
            graph = _with_parameters(graph, found["cells"], found["geometry"])
            follow, conductance = found["walls"]["follow"], found["walls"]["conductance"]
        graph = _with_walls(graph, *self.walls.at(time, follow, conductance))
        S = self.source(time) if isinstance(self.source, Varying) else self.source
        return Moment(graph, S, parameters)


def _with_parameters(graph: PaddedGraph, cells: Mapping[str, Array], geometry: Mapping[str, Array]) -> PaddedGraph:
    hops = {
        name: Slots(
            hop.ends,
            hop.geometry
            | {key.removeprefix(f"{name} "): v for key, v in geometry.items() if key.startswith(f"{name} ")},
            hop.mask,
            hop.middle,
            hop.share,
        )
        for name, hop in graph.hops.items()
    }
    return PaddedGraph(graph.V, graph.live, graph.shown, hops, {**graph.cells, **cells}, graph.outflow, graph.columns)


def _with_walls(
    graph: PaddedGraph, follow: Float[Array, " boundary"], constant: Float[Array, " boundary"]
) -> PaddedGraph:
    """The graph whose ghosts show `follow` of their owners, and of a state that plus `constant`."""
    cells = len(graph.V)
    shown = dict(graph.shown)
    for rule in (Ghost.DIRICHLET, Ghost.ZERO):
        held = shown[str(rule)]
        added = constant if rule is Ghost.DIRICHLET else jnp.zeros_like(constant)
        shown[str(rule)] = Shown(held.cell, held.scale.at[cells:].set(follow), held.constant.at[cells:].set(added))
    return PaddedGraph(graph.V, graph.live, shown, graph.hops, graph.cells, graph.outflow, graph.columns)


def make_schedule(
    scheme: Scheme,
    graph: DualGraph,
    *,
    conditions: Mapping[str, Condition],
    parameters: Settings,
    source: Value | np.ndarray,
    dt: float,
    time: float,
    clock: str | None,
    dtype: Precision,
) -> Schedule:
    """The data of a problem on a graph that was made with `conditions` at `time`, the beginning."""
    equation = scheme.equation
    fields = resolve(equation, graph, settings_at(equation, parameters, time, graph.dimension))
    closed = close_walls(graph, equation, fields)
    read = {own.name for stage in scheme.stages for m in stage.messages.values() for own in m.expression.free_symbols}
    outflow = outflow_rule(graph, equation, fields, dtype)
    return Schedule(
        graph=pad_graph(closed, scheme.hops(), parameters=fields, symbols=read, outflow=outflow, dtype=dtype),
        walls=varying_walls(graph, conditions, dtype),
        source=_source(source, graph, dtype),
        follow=put(closed.following, dtype),
        conductance=put(_conductance(closed, equation, fields), dtype),
        constants=tuple(fields.constants.items()),
        host=HostParameters(scheme, graph, parameters, time=time, dtype=dtype)
        if varies_in_time(equation, parameters, graph.dimension)
        else None,
        clock=clock,
        dt=put(np.asarray(dt), dtype),
    )


def _source(source: Value | np.ndarray, graph: DualGraph, dtype: Precision) -> Varying | State:
    if isinstance(source, np.ndarray):
        return put(source, dtype)
    if depends_on_time(source, graph.dimension):
        return Varying.of(source, graph.x, "the source", dtype)
    return put(evaluate_at(source, graph.x, "the source"), dtype)
