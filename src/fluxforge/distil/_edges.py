"""Problems as plain arrays per edge and per cell, and the stage that a formula without a network makes of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Bool, Float

from fluxforge.data import Problem
from fluxforge.graph import evaluate_stages
from fluxforge.scheme import Ghost, Hop, Stage, symbol

EDGE_NAMES = ("T_P", "T_N", "A", "delta", "V_P", "S_P", "dt")


@dataclass(frozen=True, eq=False)
class Edges:
    """The values of `EDGE_NAMES` in every slot of every cell, and T' − T and Δt of every cell, in float64."""

    values: Mapping[sp.Symbol, Float[np.ndarray, "cells slots"]]
    mask: Bool[np.ndarray, "cells slots"]
    change: Float[np.ndarray, " cells"]
    dt: Float[np.ndarray, " cells"]

    @property
    def single(self) -> Bool[np.ndarray, " cells"]:
        """The cells with exactly one neighbour."""
        return cast("np.ndarray", self.mask.sum(axis=1) == 1)


def edges_of(problems: Problem) -> Edges:
    """The edges of a batch of problems; padding is left out."""
    values, mask, change, dt = (jax.tree.map(np.asarray, each) for each in _edges(problems))
    live = np.asarray(problems.graph.live).ravel()
    flat = {symbol(name): value.reshape(len(live), -1)[live].astype(float) for name, value in values.items()}
    return Edges(flat, mask.reshape(len(live), -1)[live], change.ravel()[live].astype(float), dt.ravel()[live])


@eqx.filter_jit
def _edges(problems: Problem) -> tuple[dict[str, jax.Array], jax.Array, jax.Array, jax.Array]:
    def one(p: Problem) -> tuple[dict[str, jax.Array], jax.Array, jax.Array, jax.Array]:
        edge = p.graph.hops[Hop.EDGE]
        nodes = p.graph.nodes({"T": p.T, "S": p.S}, {"T": Ghost.DIRICHLET, "S": Ghost.ZERO})
        found = edge.values(map(symbol, EDGE_NAMES), nodes, {"dt": p.dt})
        full = {each.name: jnp.broadcast_to(value, edge.mask.shape) for each, value in found.items()}
        return full, edge.mask, p.answer - p.T, jnp.broadcast_to(p.dt, p.T.shape)

    return jax.vmap(one)(problems)


def held_out_error(stage: Stage, problems: Problem) -> float:
    """rms(formula − answer)/rms(answer − T) over the cells of problems; infinite where the formula is not finite."""

    @eqx.filter_jit
    def errors(problems: Problem) -> tuple[jax.Array, jax.Array]:
        def one(p: Problem) -> tuple[jax.Array, jax.Array]:
            new = evaluate_stages((stage,), p.graph, p.T, p.S, parameters=p.named)
            live = p.graph.live
            return jnp.where(live, new - p.answer, 0.0), jnp.where(live, p.answer - p.T, 0.0)

        return jax.vmap(one)(problems)

    off, change = (np.asarray(each, float) for each in errors(problems))
    error = float(np.linalg.norm(off) / np.linalg.norm(change))
    return error if np.isfinite(error) else float("inf")
