"""One question put to a network: a graph, a state on it, a step, and the first-order scheme's answer."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.neighbourhood import Surroundings
from fluxforge.scheme import Ghost, Hop


class Problem(eqx.Module):
    """A graph with T and S on its cells, Δt, α, and `answer` = F(T) of the first-order scheme.

    Stacked along a first axis, problems are a data set or a batch.
    """

    around: Surroundings
    T: Float[Array, "*batch cells"]
    S: Float[Array, "*batch cells"]
    dt: Float[Array, "*batch"]
    diffusivity: Float[Array, "*batch"]
    answer: Float[Array, "*batch cells"]


def exchange(
    around: Surroundings, T: State, diffusivity: Float[Array, ""], ghost: Ghost = Ghost.DIRICHLET
) -> Float[Array, " cells"]:
    """(L T)_P = 1/V_P Σ_N α A/δ (T_N − T_P); of a rate instead of a temperature with `Ghost.ZERO`."""
    edge = around.hops[Hop.EDGE]
    across = edge.at("N", around.shown[ghost].of(T)) - T[:, None]
    flux = jnp.where(edge.mask, edge.geometry["A"] / edge.geometry["delta"] * across, 0.0)
    return diffusivity * flux.sum(axis=1) / around.V


def problem(
    around: Surroundings,
    T: Float[Array, " cells"],
    S: Float[Array, " cells"],
    *,
    dt: Float[Array, ""],
    diffusivity: Float[Array, ""],
) -> Problem:
    """F(T) = T + Δt (L T + S), answered."""
    answer = T + dt * (exchange(around, T, diffusivity) + S)
    return Problem(around, T, S, dt, diffusivity, answer)


@eqx.filter_jit
def restepped(problems: Problem, factor: Float[Array, "*problems"]) -> Problem:
    """The same questions with Δt so many times as long: one number, or one for each."""

    def one(p: Problem, times: Float[Array, ""]) -> Problem:
        return problem(p.around, p.T, p.S, dt=times * p.dt, diffusivity=p.diffusivity)

    return jax.vmap(one)(problems, jnp.broadcast_to(factor, problems.dt.shape))
