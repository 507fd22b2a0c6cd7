"""One question put to a network: a graph, a state on it, a step, and the answer of an equation or an exchange law."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import sympy as sp
from jaxtyping import Array, Float, PRNGKeyArray

from fluxforge._types import State
from fluxforge.data._model import Parameters, fastest_rate, rate_on
from fluxforge.graph import PaddedGraph
from fluxforge.pde import HEAT, Equation

# Folded into a problem's key for its noise; what else is drawn splits the key.
_NOISE = 2**27


class Problem(eqx.Module):
    """A graph with u and S on its cells, Δt, parameters, and `answer` = u + Δt ∂u/∂t, perhaps with noise.

    ∂u/∂t is (1/V Σ m + S + r(u))/c with m the two-point flux of the equation, or the formula of a `law` in its place.
    `noise` is what was added to the answer, in units of the root mean square of its change. Stacked along a first axis,
    problems are a data set or a batch. The unknown is called T, whatever the equation calls it.
    """

    graph: PaddedGraph
    T: Float[Array, "*batch cells"]
    S: Float[Array, "*batch cells"]
    dt: Float[Array, "*batch"]
    parameters: dict[str, Float[Array, "*batch"]]
    answer: Float[Array, "*batch cells"]
    noise: Float[Array, "*batch cells"] | None = None
    law: sp.Expr | None = eqx.field(static=True, default=None)
    equation: Equation = eqx.field(static=True, default=HEAT)

    @property
    def named(self) -> dict[str, Any]:
        """The parameters of a step by name, Δt among them: what the evaluator of stages is given."""
        return {"dt": self.dt, **self.parameters}

    def rate(self, T: State) -> State:
        """∂u/∂t by the equation's own flux, in another state of the same graph."""
        return rate_on(self.graph, T, self.S, parameters=self.parameters, equation=self.equation)


def problem(
    graph: PaddedGraph,
    T: Float[Array, " cells"],
    S: Float[Array, " cells"],
    *,
    dt: Float[Array, ""],
    parameters: Parameters,
    equation: Equation = HEAT,
    law: sp.Expr | None = None,
    noise: Float[Array, " cells"] | None = None,
) -> Problem:
    """A question with its answer u + Δt ∂u/∂t, by the equation's own flux unless a law is given.

    `noise` is added to the answer in units of the root mean square of u' − u over the graph's cells.
    """
    named = {**parameters, "dt": dt}
    answer = T + dt * rate_on(graph, T, S, parameters=named, equation=equation, law=law)
    if noise is not None:
        change = jnp.where(graph.live, answer - T, 0.0)
        answer += noise * jnp.sqrt(jnp.square(change).sum() / graph.live.sum())
    return Problem(graph, T, S, dt, dict(parameters), answer, noise, law, equation)


def _again(
    p: Problem, T: Float[Array, " cells"], *, dt: Float[Array, ""], noise: Float[Array, " cells"] | None
) -> Problem:
    """The same question about another state, with another step or other noise."""
    return problem(p.graph, T, p.S, dt=dt, parameters=p.parameters, equation=p.equation, law=p.law, noise=noise)


def exact_step(p: Problem, T: Float[Array, " cells"]) -> Float[Array, " cells"]:
    """One step of the problem's own law, without noise, from another state on the same graph."""
    return _again(p, T, dt=p.dt, noise=None).answer


def with_noise(p: Problem, key: PRNGKeyArray, level: float) -> Problem:
    """The same question with normal noise of this relative standard deviation on its answer; at level 0 as it is."""
    if not level:
        return p
    # A key of its own: data with and without noise are otherwise the same.
    noise = level * jax.random.normal(jax.random.fold_in(key, _NOISE), p.T.shape, p.T.dtype)
    return _again(p, p.T, dt=p.dt, noise=noise)


@eqx.filter_jit
def restepped(problems: Problem, factor: Float[Array, "*problems"]) -> Problem:
    """The same questions with Δt so many times as long: one number, or one for each. Law and noise stay the same."""

    def one(p: Problem, times: Float[Array, ""]) -> Problem:
        return _again(p, p.T, dt=times * p.dt, noise=p.noise)

    return jax.vmap(one)(problems, jnp.broadcast_to(factor, problems.dt.shape))


def reference_number(p: Problem) -> Float[Array, ""]:
    """Δt/Δt_ref in the problem's own state: the Fourier number of diffusion, the Courant number of transport."""
    return p.dt * fastest_rate(p.graph, p.T, parameters=p.parameters, equation=p.equation)
