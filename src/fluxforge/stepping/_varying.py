"""Formulas and functions of place and time: fields, walls and parameters of an equation at any time."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Bool, Float, Int

from fluxforge._types import Precision
from fluxforge.errors import InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import COORDINATES, TIME, symbol, symbols_of
from fluxforge.graph._padded_graph import put
from fluxforge.mesh._boundary import Condition, Robin, Value, depends_on_time, evaluate_at, faces_of_tags, wall_value
from fluxforge.mesh._dual import DualGraph

Time = Float[Array, ""]


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
                # JAX would wrap an exception: the field is then not finite, and the reason is looked for.
                return np.full(len(places), np.nan, dtype)

        return Varying(put(places, dtype), None, call)

    def __call__(self, time: Time) -> Float[Array, " places"]:
        """The values at one time."""
        shape = self.places.shape[:1]
        if self.function is not None:
            return jax.pure_callback(self.function, jax.ShapeDtypeStruct(shape, self.places.dtype), time)
        known = {symbol(name): self.places[:, i] for i, name in enumerate(COORDINATES[: self.places.shape[1]])}
        assert self.expression is not None
        found = evaluate(self.expression, known | {symbol(TIME): time}, jnp)
        return jnp.broadcast_to(jnp.asarray(found, self.places.dtype), shape)


class Walls(eqx.Module):
    """What ghosts show at any time: `value` and `transfer` where nothing else is said, and parts of them that vary."""

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
        """∂(ghost)/∂(owner), and what the ghost adds; `follow` is the former where no Robin wall decides."""
        value, transfer = self.value, self.transfer
        for where, part in self.values:
            value = value.at[where].set(part(time))
        for where, part in self.transfers:
            transfer = transfer.at[where].set(part(time))
        total = conductance + transfer
        share = jnp.where(total > 0, conductance / jnp.where(total > 0, total, 1.0), 1.0)
        # An exception would not leave a compiled step: nan ends the run, and the wall is then named.
        follow = jnp.where(self.robin, jnp.where(transfer < 0, jnp.nan, share), follow)
        return follow, jnp.where(self.neumann, value * self.delta, (1.0 - follow) * value)


def varying_walls(graph: DualGraph, conditions: Mapping[str, Condition], dtype: Precision) -> Walls:
    """The walls of a graph with the conditions it was made with."""
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
