"""A second phase in float64 on a fixed set of problems: L-BFGS on the loss, or Gauss–Newton on its squares."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge.data import Problem
from fluxforge.errors import InputError
from fluxforge.gnn import Network, cast
from fluxforge.loss import data_loss, defects

# A dense Jacobian of more entries than this would not fit in a small machine's memory.
MOST_ENTRIES = 2 * 10**8


def polish(network: Network, problems: Problem, spec: recipe.Loss, how: recipe.Polish) -> Network:
    """The network after so many steps of a second-order method; one that raises the loss is not taken."""
    with jax.enable_x64(True):
        before = cast(network, "float64")
        after = _polished(before, problems, spec, how)
        # Gauss–Newton lowers squares: a loss of absolute values may rise by it.
        worth = eqx.filter_jit(lambda one: jnp.stack(list(data_loss(spec)(one, problems).values())).sum())
        return after if worth(after) < worth(before) else before


def _polished(network: Network, problems: Problem, spec: recipe.Loss, how: recipe.Polish) -> Network:
    arrays, static = eqx.partition(network, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(arrays)
    if how.method == "lbfgs":
        found = _lbfgs(
            lambda v: sum(data_loss(spec)(eqx.combine(unravel(v), static), problems).values()), flat, how.steps
        )
    else:
        refuse_large_jacobian(how, rows=problems.T.size, parameters=len(flat))
        found = _gauss_newton(
            lambda v: jax.vmap(lambda p: defects(spec)(eqx.combine(unravel(v), static), p))(problems).ravel(),
            flat,
            how.steps,
        )
    return eqx.combine(unravel(found), static)


def refuse_large_jacobian(how: recipe.Polish, *, rows: int, parameters: int) -> None:
    """Refuse Gauss–Newton whose dense Jacobian, of so many values by so many parameters, would not fit."""
    if how.method == "gauss-newton" and rows * parameters > MOST_ENTRIES:
        raise InputError(
            f"field 'training.polish.method': gauss-newton on {parameters} parameters and {rows} values needs too "
            f"much memory; use 'lbfgs', or fewer 'training.polish.graphs'"
        )


def _lbfgs(loss: Callable[[Any], Any], start: Float[Array, " parameters"], steps: int) -> Float[Array, " parameters"]:
    solver: Any = optx.BestSoFarMinimiser(optx.LBFGS(rtol=1e-12, atol=1e-14))
    return optx.minimise(lambda v, _: loss(v), solver, start, max_steps=steps, throw=False).value


def _gauss_newton(
    defect: Callable[[Any], Any], start: Float[Array, " parameters"], steps: int
) -> Float[Array, " parameters"]:
    solver: Any = optx.BestSoFarLeastSquares(optx.LevenbergMarquardt(rtol=1e-12, atol=1e-14))
    return optx.least_squares(lambda v, _: defect(v), solver, start, max_steps=steps, throw=False).value
