"""Optimisers: first-order with a schedule for training, second-order in float64 to polish a trained network."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from fluxforge.data._problem import Problem
from fluxforge.errors import InputError
from fluxforge.gnn._network import AbstractNetwork, cast
from fluxforge.loss._loss import data_loss, defects
from fluxforge.recipe._recipe import Loss, Polish, Training

OPTIMISERS: Mapping[str, Callable[..., optax.GradientTransformation]] = MappingProxyType(
    {
        "adam": optax.adam,
        "adamw": optax.adamw,
        "nadam": optax.nadam,
        "radam": optax.radam,
        "lion": optax.lion,
        "rmsprop": optax.rmsprop,
        "sgd": optax.sgd,
    }
)


def learning_rate(spec: Training) -> Callable[[Any], Any]:
    """The rate as a function of the step: linear growth over `warm_up`, constant up to `decay_from`, then decay to 0.

    The decay is linear or a cosine, and begins after the warm-up.
    """
    held = max(spec.decay_from, spec.warm_up)

    def rate(step: Any) -> Any:
        done = step / spec.steps
        rise = jnp.minimum(1.0, (done + 1.0 / spec.steps) / spec.warm_up) if spec.warm_up else 1.0
        late = jnp.clip((done - held) / max(1.0 - held, 1e-9), 0.0, 1.0)
        falls = {"linear": 1.0 - late, "cosine": 0.5 * (1.0 + jnp.cos(jnp.pi * late))}
        fall = falls.get(spec.schedule, 1.0)
        return spec.learning_rate * rise * fall

    return rate


def optimiser(spec: Training) -> optax.GradientTransformation:
    """The optimiser of a recipe, with gradient clipping if the recipe has a limit for it."""
    chosen = OPTIMISERS[spec.optimizer](learning_rate(spec))
    return optax.chain(optax.clip_by_global_norm(spec.clip), chosen) if spec.clip else chosen


Vector: TypeAlias = Float[Array, " parameters"]
Residual: TypeAlias = Callable[[Vector], Float[Array, " rows"]]

# The factors of the damping after a successful step, and after one that would raise ‖r‖.
_DAMPING_DECREASE, _DAMPING_INCREASE = 0.2, 4.0
_LEAST_DAMPING = 1e-14


def levenberg_marquardt(residual: Residual, start: Vector, *, steps: int) -> Vector:
    """Minimise ‖r(θ)‖² by `steps` damped Gauss–Newton steps from `start`; a step that raises ‖r‖ is not taken.

    The number of steps is fixed, so that many fits run together under `vmap`: a general solver iterates until the
    slowest of the batch has converged, with a QR factorisation per step. Here a step is one Cholesky solve, which is
    enough for tens of parameters and a residual that can vanish.
    """

    def once(_: Any, held: tuple[Vector, Float[Array, ""], Float[Array, ""]]) -> tuple[Vector, Array, Array]:
        theta, cost, damping = held
        r, J = residual(theta), jax.jacfwd(residual)(theta)
        H, g = J.T @ J, J.T @ r
        # Positive even for parameters without effect on the residual, so that the system is definite.
        scale = jnp.diag(H) + 1e-12 * jnp.trace(H) / len(theta) + 1e-30
        move = jax.scipy.linalg.solve(H + damping * jnp.diag(scale), -g, assume_a="pos")
        tried = theta + move
        there = jnp.square(residual(tried)).sum()
        better = there < cost
        return (
            jnp.where(better, tried, theta),
            jnp.where(better, there, cost),
            jnp.maximum(jnp.where(better, _DAMPING_DECREASE, _DAMPING_INCREASE) * damping, _LEAST_DAMPING),
        )

    cost = jnp.square(residual(start)).sum()
    return jax.lax.fori_loop(0, steps, once, (start, cost, jnp.full_like(cost, 1e-3)))[0]


# 1.6 GB in float64: a larger dense Jacobian might not fit in memory.
MOST_ENTRIES = 2 * 10**8


def polish(network: AbstractNetwork, problems: Problem, spec: Loss, how: Polish) -> AbstractNetwork:
    """The network after `how.steps` steps of a second-order method in float64; the given weights if the loss rises."""
    with jax.enable_x64(True):
        before = cast(network, "float64")
        after = _polish_weights(before, problems, spec, how)
        # Gauss–Newton minimises squares, so a loss of absolute values may rise.
        total_loss = eqx.filter_jit(lambda one: jnp.stack(list(data_loss(spec)(one, problems).values())).sum())
        return after if total_loss(after) < total_loss(before) else before


def _polish_weights(network: AbstractNetwork, problems: Problem, spec: Loss, how: Polish) -> AbstractNetwork:
    arrays, static = eqx.partition(network, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(arrays)

    def with_weights(v: Vector) -> AbstractNetwork:
        return eqx.combine(unravel(v), static)

    if how.method == "lbfgs":
        return with_weights(
            _minimise_by_lbfgs(lambda v: sum(data_loss(spec)(with_weights(v), problems).values()), flat, how.steps)
        )
    refuse_large_jacobian(how, rows=problems.T.size, parameters=len(flat))

    def residual(v: Vector) -> Float[Array, " rows"]:
        return jax.vmap(lambda p: defects(spec)(with_weights(v), p))(problems).ravel()

    return with_weights(levenberg_marquardt(residual, flat, steps=how.steps))


def refuse_large_jacobian(how: Polish, *, rows: int, parameters: int) -> None:
    """Raise InputError for Gauss–Newton with a dense Jacobian (rows × parameters) beyond `MOST_ENTRIES`."""
    if how.method == "gauss-newton" and rows * parameters > MOST_ENTRIES:
        raise InputError(
            f"field 'training.polish.method': gauss-newton on {parameters} parameters and {rows} values needs too "
            f"much memory; use 'lbfgs', or fewer 'training.polish.graphs'"
        )


def _minimise_by_lbfgs(
    loss: Callable[[Any], Any], start: Float[Array, " parameters"], steps: int
) -> Float[Array, " parameters"]:
    import optimistix as optx  # half a second of importing, which only this method needs

    solver: Any = optx.BestSoFarMinimiser(optx.LBFGS(rtol=1e-12, atol=1e-14))
    return optx.minimise(lambda v, _: loss(v), solver, start, max_steps=steps, throw=False).value
