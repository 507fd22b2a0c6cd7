"""Loss terms of one step: per-cell residuals, their averages, and the weighted terms of a recipe."""

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.data._problem import Problem, linearise, reference_number
from fluxforge.errors import InputError
from fluxforge.gnn._network import AbstractNetwork, parameters
from fluxforge.recipe._recipe import Loss, Residual, Supervised

# defect(problem, values after the step) is one number per cell, zero for an ideal step.
Defect = Callable[[Problem, State], State]


def supervised_defect(spec: Supervised) -> Defect:
    """T' − F(T), F(T) being the data's answer; divided by Δt if `per_step`, by the mean |F(T) − T| if `relative`."""

    def defect(problem: Problem, new: State) -> State:
        off = new - problem.answer
        if spec.relative:
            off /= mean_defect(problem.answer - problem.T, problem, "l1")
        return off / problem.dt if spec.per_step else off

    return defect


def theta_residual(theta: float) -> Defect:
    """(u' − u)/Δt − θ f(u') − (1 − θ) f(u) with f the equation's ∂u/∂t, L u + S of heat."""

    def defect(problem: Problem, new: State) -> State:
        off = (new - problem.T) / problem.dt
        for share, at in ((theta, new), (1.0 - theta, problem.T)):
            if share:
                off -= share * problem.rate(at)
        return off

    return defect


def hermite_residual() -> Defect:
    """(u' − u)/Δt − (f₀ + f₁)/2 − Δt/12 (f₀′ f₀ − f₁′ f₁) with f the equation's ∂u/∂t, L u + S of heat: of order four.

    f′ f is ∂²u/∂t². As a rate, f is zero at a ghost of a Dirichlet face, whose value does not change.
    """

    def defect(problem: Problem, new: State) -> State:
        f0, f1 = (problem.rate(at) for at in (problem.T, new))
        if problem.equation.linear:
            # f′ is the same at both ends, so that one product is enough.
            bend = linearise(problem.rate, problem.T)(f0 - f1)
        else:
            bend = linearise(problem.rate, problem.T)(f0) - linearise(problem.rate, new)(f1)
        return (new - problem.T) / problem.dt - 0.5 * (f0 + f1) - problem.dt / 12.0 * bend

    return defect


def residual(spec: Residual) -> Defect:
    """The recipe's residual, divided by (Δt/Δt_ref)^p."""
    plain = hermite_residual() if spec.kind == "hermite" else theta_residual(spec.theta)
    if not spec.fourier_power:
        return plain

    def scaled_residual(problem: Problem, new: State) -> State:
        return plain(problem, new) / reference_number(problem) ** spec.fourier_power

    return scaled_residual


def mean_defect(defect: State, problem: Problem, norm: str) -> Float[Array, ""]:
    """The mean over the live cells (those that are not padding) of |defect|, or with norm `l2` of its square."""
    live = problem.graph.live
    size = jnp.abs(defect) if norm == "l1" else jnp.square(defect)
    return jnp.where(live, size, 0.0).sum() / live.sum()


class NetworkStep(eqx.Module):
    """problem ↦ T' by a network. A module, so that compiled code is shared by networks of one shape."""

    network: AbstractNetwork

    def __call__(self, p: Problem) -> State:
        """The unknown after the step."""
        return self.network(p.graph, p.T, p.S, dt=p.dt, parameters=p.parameters)


def step_of(network: AbstractNetwork) -> NetworkStep:
    """The network's step as a function of a problem."""
    return NetworkStep(network)


def absolute_sum(network: AbstractNetwork) -> Float[Array, ""]:
    """‖θ‖₁ over all weights and biases."""
    return jnp.abs(parameters(network)).sum()


Terms: TypeAlias = dict[str, Float[Array, ""]]
DataLoss: TypeAlias = Callable[[AbstractNetwork, Problem], Terms]


def data_loss(spec: Loss) -> DataLoss:
    """The weighted terms that depend on data, averaged over the batch; their sum is minimised.

    The sparsity term is not among them: it depends on the weights alone, and its weight on the number of the step.
    """
    defects = _data_terms(spec)

    def terms(network: AbstractNetwork, batch: Problem) -> Terms:
        def one(problem: Problem) -> Terms:
            new = step_of(network)(problem)
            return {
                name: weight * mean_defect(defect(problem, new), problem, norm)
                for name, (defect, weight, norm) in defects.items()
            }

        return {name: values.mean() for name, values in jax.vmap(one)(batch).items()}

    return terms


def _data_terms(spec: Loss) -> dict[str, tuple[Defect, float, str]]:
    """Defect, weight and norm of each data term of the loss."""
    terms: dict[str, tuple[Defect, float, str]] = {}
    if spec.supervised is not None:
        terms["supervised"] = (supervised_defect(spec.supervised), spec.supervised.weight, spec.supervised.norm)
    if spec.residual is not None:
        terms["residual"] = (residual(spec.residual), spec.residual.weight, spec.residual.norm)
    return terms


def defects(spec: Loss) -> Callable[[AbstractNetwork, Problem], Float[Array, "terms cells"]]:
    """The defects of all terms in all cells of one problem: the residual vector of a least-squares polish.

    They are weighted so that the sum of their squares is the loss with norm l2; those of padding are 0.
    """
    data_terms = _data_terms(spec)

    def vector(network: AbstractNetwork, problem: Problem) -> Float[Array, "terms cells"]:
        new, live = step_of(network)(problem), problem.graph.live
        weighted = ((defect(problem, new), jnp.sqrt(weight / live.sum())) for defect, weight, _ in data_terms.values())
        return jnp.stack([jnp.where(live, share * off, 0.0) for off, share in weighted])

    return vector


def defect_of(spec: Loss) -> Defect:
    """The defect of a loss with one data term, for a refit of constants. Raises InputError for several terms."""
    (defect, _, _) = _only_term(spec)
    return defect


def norm_of(spec: Loss) -> str:
    """The norm of a loss with one data term, `l1` or `l2`. Raises InputError for several terms."""
    return _only_term(spec)[2]


def _only_term(spec: Loss) -> tuple[Defect, float, str]:
    terms = _data_terms(spec)
    if len(terms) != 1:
        raise InputError("field 'loss': constants are refitted to one term, 'supervised' or 'residual', not to several")
    return next(iter(terms.values()))
