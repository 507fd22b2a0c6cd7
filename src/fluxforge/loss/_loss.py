"""A recipe's loss section → named terms of a network on a batch."""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge.data import Problem
from fluxforge.errors import InputError
from fluxforge.gnn import Network
from fluxforge.loss._terms import Defect, averaged, residual, step_of, supervised

Terms: TypeAlias = dict[str, Float[Array, ""]]
DataLoss: TypeAlias = Callable[[Network, Problem], Terms]


def data_loss(spec: recipe.Loss) -> DataLoss:
    """The weighted terms that look at data, averaged over the batch; their sum is what is minimised.

    The sparsity term is not among them: it looks at the weights alone, and grows with the step.
    """
    defects = _defects(spec)

    def terms(network: Network, batch: Problem) -> Terms:
        def one(problem: Problem) -> Terms:
            new = step_of(network)(problem)
            return {
                name: weight * averaged(defect(problem, new), problem, norm)
                for name, (defect, weight, norm) in defects.items()
            }

        return {name: values.mean() for name, values in jax.vmap(one)(batch).items()}

    return terms


def _defects(spec: recipe.Loss) -> dict[str, tuple[Defect, float, str]]:
    found: dict[str, tuple[Defect, float, str]] = {}
    if spec.supervised is not None:
        found["supervised"] = (supervised(spec.supervised), spec.supervised.weight, spec.supervised.norm)
    if spec.residual is not None:
        found["residual"] = (residual(spec.residual), spec.residual.weight, spec.residual.norm)
    return found


def defects(spec: recipe.Loss) -> Callable[[Network, Problem], Float[Array, "terms cells"]]:
    """Every defect in every cell of one problem: the residual vector of a least-squares polish.

    Each is weighted so that the sum of the squares is the loss of norm l2; padding has none.
    """
    chosen = _defects(spec)

    def vector(network: Network, problem: Problem) -> Float[Array, "terms cells"]:
        new, live = step_of(network)(problem), problem.graph.live
        found = ((defect(problem, new), jnp.sqrt(weight / live.sum())) for defect, weight, _ in chosen.values())
        return jnp.stack([jnp.where(live, share * off, 0.0) for off, share in found])

    return vector


def defect_of(spec: recipe.Loss) -> Defect:
    """The one defect of a loss that has a single data term: what a refit of constants minimises."""
    (defect, _, _) = _only(spec)
    return defect


def norm_of(spec: recipe.Loss) -> str:
    """Whether that term is of absolute values or of squares."""
    return _only(spec)[2]


def _only(spec: recipe.Loss) -> tuple[Defect, float, str]:
    found = _defects(spec)
    if len(found) != 1:
        raise InputError("field 'loss': constants are refitted to one term, 'supervised' or 'residual', not to several")
    return next(iter(found.values()))
