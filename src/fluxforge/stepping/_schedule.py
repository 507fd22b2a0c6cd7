"""A problem's data at any time, inside a compiled step: sources, walls and parameters.

Formulas are evaluated by JAX; Python functions, and parameters that change in time, are evaluated on the host.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Bool, Float, Int

from fluxforge._types import Precision, State
from fluxforge.errors import InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import COORDINATES, TIME, symbol, symbols_of
from fluxforge.graph._neighbourhoods import Neighbourhoods
from fluxforge.graph._pad import pad_graph
from fluxforge.graph._padded_graph import PaddedGraph, Shown, outflow_rule, put
from fluxforge.graph._stages import Moment
from fluxforge.mesh._boundary import Condition, Robin, Value, depends_on_time, evaluate_at, faces_of_tags, wall_value
from fluxforge.mesh._dual import DualGraph, ParameterFields
from fluxforge.mesh._parameters import Settings, resolve, settings_at, varies_in_time
from fluxforge.mesh._walls import close_walls, wall_conductance
from fluxforge.pde._equation import Equation
from fluxforge.scheme._scheme import Ghost, Scheme

Time = Float[Array, ""]


def _call_host(function: Callable[[np.ndarray], Any], shapes: Any, time: Time) -> Any:
    """Call a function of the time on the host from a compiled step; returns a tree of arrays of the given shapes.

    Doubles are passed as pairs of 32-bit words. JAX runs callbacks in threads of its own, where `jax.enable_x64` of the
    caller does not apply: unless 64-bit numbers are switched on for the whole process, doubles would be rounded there.
    """

    def call(words: Any) -> Any:
        content = np.asarray(words)
        return jax.tree.map(_to_words, function(content.view(np.float64)[0] if content.ndim else content))

    words = jax.tree.map(_describe_words, shapes)
    received = jax.pure_callback(
        call, words, jax.lax.bitcast_convert_type(time, jnp.uint32) if _is_wide(time) else time
    )
    return jax.tree.map(
        lambda each, shape: jax.lax.bitcast_convert_type(each, shape.dtype) if _is_wide(shape) else each,
        received,
        shapes,
    )


def _is_wide(numbers: Any) -> bool:
    return bool(numbers.dtype == np.float64)


def _describe_words(shape: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((*shape.shape, 2), np.uint32) if _is_wide(shape) else shape


def _to_words(values: np.ndarray) -> np.ndarray:
    """Doubles as pairs of words along a new last axis; other numbers as they are."""
    return np.ascontiguousarray(values[..., None]).view(np.uint32) if _is_wide(values) else values


class Varying(eqx.Module):
    """A formula or function of place and time at fixed places."""

    places: Float[Array, "places dimension"]
    expression: sp.Expr | None = eqx.field(static=True)
    function: Callable[[Any], np.ndarray] | None = eqx.field(static=True)

    @staticmethod
    def of(value: Value, places: np.ndarray, what: str, dtype: Precision) -> "Varying":
        """Parse a formula, or wrap a function; `what` names it in messages."""
        d = places.shape[1]
        if isinstance(value, str):
            return Varying(put(places, dtype), parse(value, symbols_of((*COORDINATES[:d], TIME))), None)

        def call(time: Any) -> np.ndarray:
            try:
                return evaluate_at(value, places, what, float(time)).astype(dtype)
            except InputError:
                # An exception would not leave a compiled step: nan ends the run, and the cause is determined
                # afterwards.
                return np.full(len(places), np.nan, dtype)

        return Varying(put(places, dtype), None, call)

    def __call__(self, time: Time) -> Float[Array, " places"]:
        """The values at one time."""
        shape = self.places.shape[:1]
        if self.function is not None:
            return _call_host(self.function, jax.ShapeDtypeStruct(shape, self.places.dtype), time)
        known = {symbol(name): self.places[:, i] for i, name in enumerate(COORDINATES[: self.places.shape[1]])}
        assert self.expression is not None
        values = evaluate(self.expression, known | {symbol(TIME): time}, jnp)
        return jnp.broadcast_to(jnp.asarray(values, self.places.dtype), shape)


class Walls(eqx.Module):
    """The values of ghosts at any time: constant `value` and `transfer`, and the parts of them that vary."""

    neumann: Bool[Array, " boundary"]
    robin: Bool[Array, " boundary"]
    delta: Float[Array, " boundary"]
    value: Float[Array, " boundary"]
    transfer: Float[Array, " boundary"]
    values: tuple[tuple[Int[Array, " n"], Varying], ...]
    transfers: tuple[tuple[Int[Array, " n"], Varying], ...]

    def at(
        self, time: Time, follow: Float[Array, " boundary"], conductance: Float[Array, " boundary"]
    ) -> tuple[Float[Array, " boundary"], Float[Array, " boundary"]]:
        """∂(ghost)/∂(owner) of every ghost, and its constant part; `follow` is the former except at Robin walls."""
        value, transfer = self.value, self.transfer
        for where, part in self.values:
            value = value.at[where].set(part(time))
        for where, part in self.transfers:
            transfer = transfer.at[where].set(part(time))
        total = conductance + transfer
        share = jnp.where(total > 0, conductance / jnp.where(total > 0, total, 1.0), 1.0)
        # An exception would not leave a compiled step: nan ends the run, and the wall is named afterwards.
        follow = jnp.where(self.robin, jnp.where(transfer < 0, jnp.nan, share), follow)
        return follow, jnp.where(self.neumann, value * self.delta, (1.0 - follow) * value)


def varying_walls(graph: DualGraph, conditions: Mapping[str, Condition], dtype: Precision) -> Walls:
    """The walls of a graph that was built with these conditions, ready to be evaluated at any time."""
    walls = slice(graph.interior, None)
    foot = graph.x[graph.owner[walls]] + graph.d[walls]
    values, transfers = [], []
    for name, here in zip(graph.tags, faces_of_tags(graph.tags, graph.tag), strict=True):
        condition = conditions[name]
        at, what = (foot if isinstance(condition, Robin) else graph.centre[walls])[here], f"the condition of {name!r}"
        if len(here) and depends_on_time(wall_value(condition), graph.dimension):
            values.append((put(here), Varying.of(wall_value(condition), at, what, dtype)))
        if len(here) and isinstance(condition, Robin) and depends_on_time(condition.h, graph.dimension):
            transfers.append((put(here), Varying.of(condition.h, at, f"h of {what}", dtype)))
    robin = np.zeros(graph.ghosts, bool) if graph.transfer is None else np.isfinite(graph.transfer)
    transfer = np.zeros(graph.ghosts) if graph.transfer is None else np.where(robin, graph.transfer, 0.0)
    return Walls(
        neumann=put(graph.neumann),
        robin=put(robin),
        delta=put(graph.delta[walls], dtype),
        value=put(graph.value, dtype),
        transfer=put(transfer, dtype),
        values=tuple(values),
        transfers=tuple(transfers),
    )


class HostParameters:
    """Parameters that change in time, evaluated on the host; compared by identity so that it can be static."""

    def __init__(self, scheme: Scheme, graph: DualGraph, settings: Settings, *, time: float, dtype: Precision) -> None:
        self.scheme, self.graph, self.settings, self.dtype = scheme, graph, settings, dtype
        self.shapes = jax.tree.map(lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype), self(time))

    def try_at(self, time: Any) -> dict[str, dict[str, np.ndarray]]:
        """The values at a time; nan if one is refused, since an exception would not leave a compiled step."""
        try:
            return self(time)
        except InputError:
            return jax.tree.map(lambda each: np.full(each.shape, np.nan, each.dtype), self.shapes)

    def __call__(self, time: Any) -> dict[str, dict[str, np.ndarray]]:
        """Constants, values of cells, geometry by `hop name`, the walls' `follow` and `conductance`, at one time."""
        equation, graph = self.scheme.equation, self.graph
        fields = resolve(equation, graph, settings_at(equation, self.settings, float(time), graph.dimension))
        closed = close_walls(graph, equation, fields)
        hoods = Neighbourhoods(closed, fields)
        read = self.scheme.symbols_in_messages()
        geometry = {
            f"{hop} {own.name}": hoods[hop].geometry[own]
            for hop in self.scheme.hops()
            for own in sorted(hoods[hop].geometry, key=str)
            if own.name in read
        }
        walls = {"follow": closed.following, "conductance": _conductance(closed, equation, fields)}
        data = {"constants": fields.constants, "cells": fields.cells, "geometry": geometry, "walls": walls}
        return {name: {key: np.asarray(v, self.dtype) for key, v in part.items()} for name, part in data.items()}


def _conductance(graph: DualGraph, equation: Equation, fields: ParameterFields) -> np.ndarray:
    return np.ones(graph.ghosts) if graph.transfer is None else wall_conductance(graph, equation, fields)


class Schedule(eqx.Module):
    """A problem's data at any time; `clock` is the name of the constant parameter that is the time, or None."""

    graph: PaddedGraph
    walls: Walls
    source: Varying | State
    follow: Float[Array, " boundary"]
    conductance: Float[Array, " boundary"]
    constants: dict[str, Float[Array, ""]]
    host: HostParameters | None = eqx.field(static=True)
    clock: str | None = eqx.field(static=True)
    dt: Float[Array, ""]

    def at(self, time: Time) -> Moment:
        """The ghosts, source and parameters at one time."""
        parameters: dict[str, Any] = {"dt": self.dt, **self.constants}
        if self.clock is not None:
            parameters[self.clock] = time
        graph, follow, conductance = self.graph, self.follow, self.conductance
        if self.host is not None:
            data = _call_host(self.host.try_at, self.host.shapes, time)
            parameters |= {name: value for name, value in data["constants"].items() if name != self.clock}
            graph = _set_parameters(graph, data["cells"], data["geometry"])
            follow, conductance = data["walls"]["follow"], data["walls"]["conductance"]
        graph = _set_walls(graph, *self.walls.at(time, follow, conductance))
        S = self.source(time) if isinstance(self.source, Varying) else self.source
        return Moment(graph, S, parameters)


def _set_parameters(graph: PaddedGraph, cells: Mapping[str, Array], geometry: Mapping[str, Array]) -> PaddedGraph:
    hops = {}
    for name, hop in graph.hops.items():
        own = {key.removeprefix(f"{name} "): v for key, v in geometry.items() if key.startswith(f"{name} ")}
        hops[name] = replace(hop, geometry=hop.geometry | own)
    return replace(graph, hops=hops, cells={**graph.cells, **cells})


def _set_walls(
    graph: PaddedGraph, follow: Float[Array, " boundary"], constant: Float[Array, " boundary"]
) -> PaddedGraph:
    """The graph whose ghosts have `follow` times their owners' values, and for a state `constant` in addition."""
    cells = len(graph.V)
    shown = dict(graph.shown)
    for rule in (Ghost.DIRICHLET, Ghost.ZERO):
        held = shown[str(rule)]
        added = constant if rule is Ghost.DIRICHLET else jnp.zeros_like(constant)
        shown[str(rule)] = Shown(held.cell, held.scale.at[cells:].set(follow), held.constant.at[cells:].set(added))
    return replace(graph, shown=shown)


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
    """The data of a problem as a function of time, on a graph that was built with `conditions` at the start `time`."""
    equation = scheme.equation
    fields = resolve(equation, graph, settings_at(equation, parameters, time, graph.dimension))
    closed = close_walls(graph, equation, fields)
    outflow, read = outflow_rule(graph, equation, fields, dtype), scheme.symbols_in_messages()
    return Schedule(
        graph=pad_graph(closed, scheme.hops(), parameters=fields, symbols=read, outflow=outflow, dtype=dtype),
        walls=varying_walls(graph, conditions, dtype),
        source=_source(source, graph, dtype),
        follow=put(closed.following, dtype),
        conductance=put(_conductance(closed, equation, fields), dtype),
        constants={name: put(np.asarray(value), dtype) for name, value in fields.constants.items()},
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
