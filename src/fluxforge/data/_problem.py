"""One question put to a network: a graph, a state on it, a step, and the answer of an exchange law."""

import equinox as eqx
import jax
import jax.numpy as jnp
import sympy as sp
from jaxtyping import Array, Float, PRNGKeyArray

from fluxforge._types import State
from fluxforge.expression import evaluate
from fluxforge.neighbourhood import Surroundings
from fluxforge.scheme import Ghost, Hop

# Folded into a problem's key for its noise; what else is drawn splits the key.
_NOISE = 2**27


class Problem(eqx.Module):
    """A graph with T and S on its cells, Δt, α, and `answer` = T + Δt (1/V Σ law + S), perhaps with noise.

    Without a `law` that is F(T) of the first-order scheme. `noise` is what was added to the answer, in units of the
    root mean square of its change. Stacked along a first axis, problems are a data set or a batch.
    """

    around: Surroundings
    T: Float[Array, "*batch cells"]
    S: Float[Array, "*batch cells"]
    dt: Float[Array, "*batch"]
    diffusivity: Float[Array, "*batch"]
    answer: Float[Array, "*batch cells"]
    noise: Float[Array, "*batch cells"] | None = None
    law: sp.Expr | None = eqx.field(static=True, default=None)


def exchange(
    around: Surroundings, T: State, diffusivity: Float[Array, ""], ghost: Ghost = Ghost.DIRICHLET
) -> Float[Array, " cells"]:
    """(L T)_P = 1/V_P Σ_N α A/δ (T_N − T_P); of a rate instead of a temperature with `Ghost.ZERO`."""
    edge = around.hops[Hop.EDGE]
    across = edge.at("N", around.shown[ghost].of(T)) - T[:, None]
    flux = jnp.where(edge.mask, edge.geometry["A"] / edge.geometry["delta"] * across, 0.0)
    return diffusivity * flux.sum(axis=1) / around.V


def exchange_by(
    law: sp.Expr, around: Surroundings, T: State, S: State, *, dt: Float[Array, ""], diffusivity: Float[Array, ""]
) -> Float[Array, " cells"]:
    """1/V_P Σ_N law, the law being the formula of a message over an edge."""
    edge = around.hops[Hop.EDGE]
    nodes = around.nodes({"T": T, "S": S}, {"T": Ghost.DIRICHLET, "S": Ghost.ZERO})
    values = edge.values(law.free_symbols, nodes, {"dt": dt, "alpha": diffusivity})
    sent = jnp.broadcast_to(jnp.asarray(evaluate(law, values, jnp), T.dtype), edge.mask.shape)
    return jnp.where(edge.mask, sent, 0.0).sum(axis=1) / around.V


def problem(
    around: Surroundings,
    T: Float[Array, " cells"],
    S: Float[Array, " cells"],
    *,
    dt: Float[Array, ""],
    diffusivity: Float[Array, ""],
    law: sp.Expr | None = None,
    noise: Float[Array, " cells"] | None = None,
) -> Problem:
    """A question with its answer T + Δt (1/V Σ law + S); the law of heat unless another is given.

    `noise` is added to the answer in units of the root mean square of T' − T over the graph's cells.
    """
    if law is None:
        rate = exchange(around, T, diffusivity)
    else:
        rate = exchange_by(law, around, T, S, dt=dt, diffusivity=diffusivity)
    answer = T + dt * (rate + S)
    if noise is not None:
        change = jnp.where(around.live, answer - T, 0.0)
        answer += noise * jnp.sqrt(jnp.square(change).sum() / around.live.sum())
    return Problem(around, T, S, dt, diffusivity, answer, noise, law)


def exact_step(p: Problem, T: Float[Array, " cells"]) -> Float[Array, " cells"]:
    """One step of the problem's own law, without noise, from another state on the same graph."""
    return problem(p.around, T, p.S, dt=p.dt, diffusivity=p.diffusivity, law=p.law).answer


def with_noise(p: Problem, key: PRNGKeyArray, level: float) -> Problem:
    """The same question with normal noise of this relative standard deviation on its answer; at level 0 as it is."""
    if not level:
        return p
    # A key of its own: data with and without noise are otherwise the same.
    noise = level * jax.random.normal(jax.random.fold_in(key, _NOISE), p.T.shape, p.T.dtype)
    return problem(p.around, p.T, p.S, dt=p.dt, diffusivity=p.diffusivity, law=p.law, noise=noise)


@eqx.filter_jit
def restepped(problems: Problem, factor: Float[Array, "*problems"]) -> Problem:
    """The same questions with Δt so many times as long: one number, or one for each. Law and noise stay the same."""

    def one(p: Problem, times: Float[Array, ""]) -> Problem:
        return problem(p.around, p.T, p.S, dt=times * p.dt, diffusivity=p.diffusivity, law=p.law, noise=p.noise)

    return jax.vmap(one)(problems, jnp.broadcast_to(factor, problems.dt.shape))
