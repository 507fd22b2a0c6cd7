"""Errors and conditions in every cell of every problem, and the largest with its place."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge.certify.bounds._records import Place
from fluxforge.data import Problem
from fluxforge.gnn import Network
from fluxforge.scheme import Ghost, Hop

# Below this an error is round-off: theorems speak of every ε > 0, so ε is taken to be at least this.
ROUND_OFF = 1e-12


@eqx.filter_jit
def errors(network: Network, problems: Problem) -> Float[Array, "problems cells"]:
    """|M_θ(T) − F(T)| in every cell, 0 in padding."""

    def one(p: Problem) -> Float[Array, " cells"]:
        off = network(p.graph, p.T, p.S, dt=p.dt, parameters=p.parameters) - p.answer
        return jnp.where(p.graph.live, jnp.abs(off), 0.0)

    return jax.vmap(one)(problems)


def largest_error(network: Network, problems: Problem) -> float:
    """ε: the largest error over all cells of all problems."""
    return float(np.asarray(errors(network, problems)).max())


class Conditions(NamedTuple):
    """What theorems ask about, in every cell.

    `data`: the largest of |T|, |S| and the neighbours' |T|; `fourier`: Δt/V Σ α A/δ without Neumann faces, `exchange`
    with them; `flux`: Δt/V Σ |α A/δ (T_N − T_P)|; `pace`: Δt/V; `neighbours`: how many messages arrive.
    """

    data: Float[Array, "problems cells"]
    fourier: Float[Array, "problems cells"]
    exchange: Float[Array, "problems cells"]
    flux: Float[Array, "problems cells"]
    pace: Float[Array, "problems cells"]
    neighbours: Float[Array, "problems cells"]


@eqx.filter_jit
def conditions(problems: Problem) -> Conditions:
    """All of them, 0 in padding."""
    return jax.vmap(_of_one)(problems)


def _of_one(p: Problem) -> Conditions:
    edge = p.graph.hops[Hop.EDGE]
    weight = jnp.where(edge.mask, p.parameters["alpha"] * edge.geometry["A"] / edge.geometry["delta"], 0.0)
    shown = edge.at("N", p.graph.shown[Ghost.DIRICHLET].of(p.T))
    flux = jnp.abs(weight * (shown - p.T[:, None]))
    beside = jnp.where(edge.mask, jnp.abs(shown), 0.0).max(axis=1)
    data = jnp.maximum(jnp.maximum(jnp.abs(p.T), jnp.abs(p.S)), beside)
    pace = p.dt / p.graph.V
    found = (
        data,
        pace * (edge.geometry["chi"] * weight).sum(axis=1),
        pace * weight.sum(axis=1),
        pace * flux.sum(axis=1),
        pace,
        edge.mask.sum(axis=1).astype(pace.dtype),
    )
    return Conditions(*(jnp.where(p.graph.live, each, 0.0) for each in found))


def worst(values: Mapping[str, Float[Array, "problems cells"]]) -> tuple[float, Place]:
    """The largest value over meshes, problems and cells, and where it is; a NaN counts as infinite."""
    best, where = -np.inf, Place("", 0, 0)
    for mesh, found in values.items():
        host = np.nan_to_num(np.asarray(found), nan=np.inf)
        problem, cell = np.unravel_index(int(host.argmax()), host.shape)
        if host[problem, cell] > best:
            best, where = float(host[problem, cell]), Place(mesh, int(problem), int(cell))
    return best, where
