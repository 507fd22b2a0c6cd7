"""Problems of one step: a graph with a state, parameters and Δt, the exact answer, and sources of batches."""

import abc
from collections.abc import Callable, Mapping
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Float, PRNGKeyArray

from fluxforge._types import State
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.graph._padded_graph import PaddedGraph, Quantities
from fluxforge.graph._stages import Formulas, visit_stages
from fluxforge.mesh._parameters import cell_slopes, exchange_slopes
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.scheme._integrate import semi_discrete
from fluxforge.scheme._scheme import Ghost, Hop, Message, Stage

Parameters = Mapping[str, Float[Array, "*batch"]]
"""The parameters of an equation that are one number each, by name; what varies over a graph is part of the graph."""


@cache
def _stage(equation: Equation, law: sp.Expr | None) -> Stage:
    """The equation's semi-discrete operator, with another formula in place of its flux if a law is given."""
    stage = semi_discrete(equation)
    ((total, message),) = stage.messages.items()
    return stage if law is None else Stage({total: Message(law, message.hop)}, stage.outputs)


def rate_on(
    graph: PaddedGraph,
    T: State,
    S: State,
    *,
    parameters: Quantities,
    equation: Equation,
    law: sp.Expr | None = None,
) -> State:
    """∂u/∂t of every cell, (1/V Σ message + S + r(u))/c: `parameters` are the equation's, and Δt if a law has it."""
    stage = _stage(equation, law)
    ((name, _),) = stage.outputs.items()
    (visit,) = visit_stages([Formulas(stage)], graph, T, S, parameters=parameters)
    rate: State = visit.outputs[name]
    return rate


def linearise(rate: Callable[[State], State], T: State) -> Callable[[State], State]:
    """The map v ↦ ∂rate/∂u v in the state T; boundary data are constant, so v is 0 there."""
    return lambda v: jax.jvp(rate, (T,), (v,))[1]


def fastest_rate(graph: PaddedGraph, T: State, *, parameters: Parameters, equation: Equation) -> Float[Array, ""]:
    """1/Δt_ref, the largest (Σ A |∂F/∂u_P| + V max(0, −r′))/(c V) over the live cells.

    This is the inverse of `fluxforge.mesh.reference_step`, for graphs on the device.
    """
    edge = graph.hops[Hop.EDGE]
    nodes = graph.nodes({"T": T}, {"T": Ghost.DIRICHLET})
    own, both = (
        jnp.broadcast_to(
            jnp.abs(jnp.asarray(evaluate(formula, edge.values(formula.free_symbols, nodes, parameters), jnp))),
            edge.mask.shape,
        )
        for formula in exchange_slopes(equation)
    )
    total = jnp.where(edge.mask, jnp.where(edge.geometry["chi"] > 0, own, both), 0.0).sum(axis=1)
    cell = {symbol(name): value for name, value in {"T": T, **graph.cells, **parameters}.items()}
    capacity, decay = (evaluate(formula, cell, jnp) for formula in cell_slopes(equation))
    rates = (total / graph.V + jnp.maximum(jnp.zeros((), T.dtype), jnp.asarray(decay, T.dtype))) / capacity
    return jnp.where(graph.live, rates, 0.0).max()


# Folded into a problem's key for its noise, so that other draws, which split the key, do not change with it.
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
    def step_parameters(self) -> dict[str, Array]:
        """The parameters of a step by name, Δt included, as the evaluator of stages needs them."""
        return {"dt": self.dt, **self.parameters}

    def rate(self, T: State) -> State:
        """∂u/∂t by the equation's own flux, in the state T on the same graph."""
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
    """A problem with its answer u + Δt ∂u/∂t, by the equation's own flux unless a law is given.

    `noise` is added to the answer in units of the root mean square of u' − u over the graph's cells.
    """
    named = {**parameters, "dt": dt}
    answer = T + dt * rate_on(graph, T, S, parameters=named, equation=equation, law=law)
    if noise is not None:
        change = jnp.where(graph.live, answer - T, 0.0)
        answer += noise * jnp.sqrt(jnp.square(change).sum() / graph.live.sum())
    return Problem(graph, T, S, dt, dict(parameters), answer, noise, law, equation)


def _pose_again(
    p: Problem, T: Float[Array, " cells"], *, dt: Float[Array, ""], noise: Float[Array, " cells"] | None
) -> Problem:
    """The same problem in another state, with another step or other noise."""
    return problem(p.graph, T, p.S, dt=dt, parameters=p.parameters, equation=p.equation, law=p.law, noise=noise)


def exact_step(p: Problem, T: Float[Array, " cells"]) -> Float[Array, " cells"]:
    """One step of the problem's own law, without noise, from another state on the same graph."""
    return _pose_again(p, T, dt=p.dt, noise=None).answer


def resolve_step(p: Problem, substeps: int) -> Float[Array, " cells"]:
    """The state after Δt on the same mesh, computed by the classical Runge–Kutta method with `substeps` substeps.

    For a linear equation this is exp(Δt L) u, with source and walls.
    """
    h = p.dt / substeps
    return jax.lax.fori_loop(0, substeps, lambda _, u: classical_step(p.rate, u, h), p.T)


def classical_step(rate: Callable[[State], State], u: State, h: Float[Array, ""]) -> State:
    """One step h of the classical Runge–Kutta method."""
    k1 = rate(u)
    k2 = rate(u + 0.5 * h * k1)
    k3 = rate(u + 0.5 * h * k2)
    k4 = rate(u + h * k3)
    return u + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def count_substeps(fourier: float, tolerance: float, *, real: bool = True) -> int:
    """The number n of substeps for which |e^z − R(z/n)^n| ≤ tolerance for all eigenvalues z of Δt L, in [−2 Fo, 0].

    R(z) is the classical Runge–Kutta method's 1 + z + z²/2 + z³/6 + z⁴/24. The reference step bounds the eigenvalues of
    diffusion by Gershgorin's circles. With transport they are not `real`, and z is on the circle around −Fo.
    """
    z = -np.linspace(0.0, 2.0 * fourier, 2001)
    if not real:
        z = fourier * (np.exp(1j * np.linspace(0.0, 2.0 * np.pi, 2001)) - 1.0)
    n = 1
    while True:
        x = z / n
        if np.abs((1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4)))) ** n - np.exp(z)).max() <= tolerance:
            return n
        n = max(n + 1, int(1.25 * n))


def with_noise(p: Problem, key: PRNGKeyArray, level: float) -> Problem:
    """The same problem with normal noise of relative standard deviation `level` on its answer; unchanged at level 0."""
    if not level:
        return p
    # A separate key, so that data with and without noise are otherwise the same.
    noise = level * jax.random.normal(jax.random.fold_in(key, _NOISE), p.T.shape, p.T.dtype)
    return _pose_again(p, p.T, dt=p.dt, noise=noise)


@eqx.filter_jit
def scale_step(problems: Problem, factor: Float[Array, "*problems"]) -> Problem:
    """The same problems with Δt multiplied by `factor`, one number or one per problem; law and noise are kept."""

    def one(p: Problem, times: Float[Array, ""]) -> Problem:
        return _pose_again(p, p.T, dt=times * p.dt, noise=p.noise)

    return jax.vmap(one)(problems, jnp.broadcast_to(factor, problems.dt.shape))


def reference_number(p: Problem) -> Float[Array, ""]:
    """Δt/Δt_ref in the problem's own state: the Fourier number of diffusion, the Courant number of transport."""
    return p.dt * fastest_rate(p.graph, p.T, parameters=p.parameters, equation=p.equation)


class AbstractSource(eqx.Module):
    """A source of batches of problems, which are pure functions of a key."""

    @abc.abstractmethod
    def batch(self, key: PRNGKeyArray, count: int) -> Problem:
        """`count` problems along a first axis."""


def draw_problems(problems: Problem, key: PRNGKeyArray, count: int) -> Problem:
    """`count` of the problems along the first axis, drawn with replacement; they depend on the key alone."""
    chosen = jax.random.randint(key, (count,), 0, len(problems.dt))
    return jax.tree.map(lambda leaf: leaf[chosen], problems)


class FixedSource(AbstractSource):
    """Batches drawn with replacement from a fixed set of problems."""

    problems: Problem

    def batch(self, key: PRNGKeyArray, count: int) -> Problem:
        """`count` of the problems."""
        return draw_problems(self.problems, key, count)
