"""What a step is blamed for: each term is a number per problem, logged by itself."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.data import Problem, exchange
from fluxforge.gnn import Network, parameters
from fluxforge.scheme import Ghost

# From a problem and the step's result to one number per cell, zero at an ideal step.
Defect = Callable[[Problem, State], State]


def supervised(spec: recipe.Supervised) -> Defect:
    """T' − F(T), divided by Δt if asked for."""

    def defect(problem: Problem, new: State) -> State:
        off = new - problem.answer
        return off / problem.dt if spec.per_step else off

    return defect


def theta_residual(theta: float) -> Defect:
    """(T' − T)/Δt − θ (L T' + S) − (1 − θ)(L T + S)."""

    def defect(problem: Problem, new: State) -> State:
        rate = (new - problem.T) / problem.dt - problem.S
        for share, at in ((theta, new), (1.0 - theta, problem.T)):
            if share:
                rate -= share * exchange(problem.around, at, problem.diffusivity)
        return rate

    return defect


def hermite_residual() -> Defect:
    """(T' − T)/Δt − (f₀ + f₁)/2 − Δt/12 (L f₀ − L f₁) with f = L T + S: of order four.

    f is a rate: it vanishes at a Dirichlet face, whose temperature is held.
    """

    def defect(problem: Problem, new: State) -> State:
        f0, f1 = (exchange(problem.around, at, problem.diffusivity) + problem.S for at in (problem.T, new))
        bend = exchange(problem.around, f0 - f1, problem.diffusivity, Ghost.ZERO)
        return (new - problem.T) / problem.dt - 0.5 * (f0 + f1) - problem.dt / 12.0 * bend

    return defect


def residual(spec: recipe.Residual) -> Defect:
    """The recipe's residual, divided by Fo^p."""
    plain = hermite_residual() if spec.kind == "hermite" else theta_residual(spec.theta)
    if not spec.fourier_power:
        return plain

    def weighted(problem: Problem, new: State) -> State:
        return plain(problem, new) / fourier_number(problem) ** spec.fourier_power

    return weighted


def fourier_number(problem: Problem) -> Float[Array, ""]:
    """Fo = Δt / Δt_Fourier = Δt max_P Σ_N α A/δ / V_P over the live cells."""
    edge = problem.around.hops["edge"]
    w = jnp.where(edge.mask, edge.geometry["chi"] * edge.geometry["A"] / edge.geometry["delta"], 0.0).sum(axis=1)
    return problem.dt * problem.diffusivity * jnp.where(problem.around.live, w / problem.around.V, 0.0).max()


def averaged(defect: State, problem: Problem, norm: str) -> Float[Array, ""]:
    """The mean over the live cells of |defect|, or of its square."""
    live = problem.around.live
    size = jnp.abs(defect) if norm == "l1" else jnp.square(defect)
    return jnp.where(live, size, 0.0).sum() / live.sum()


class NetworkStep(eqx.Module):
    """T' of a problem by a network. A module, so that what is compiled for one network serves all of its shape."""

    network: Network

    def __call__(self, p: Problem) -> State:
        """The temperatures after the step."""
        return self.network(p.around, p.T, p.S, dt=p.dt, diffusivity=p.diffusivity)


def step_of(network: Network) -> NetworkStep:
    """The network's step as a function of a problem."""
    return NetworkStep(network)


def absolute_sum(network: Network) -> Float[Array, ""]:
    """‖θ‖₁ over all weights and biases."""
    return jnp.abs(parameters(network)).sum()
