"""A recipe's training section → an Optax optimiser and its schedule."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import optax

from fluxforge import recipe

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


def learning_rate(spec: recipe.Training) -> Callable[[Any], Any]:
    """Rises linearly over `warm_up`, holds until `decay_from`, then falls to zero along a line or a cosine.

    A decay never begins before the warm-up has ended.
    """
    held = max(spec.decay_from, spec.warm_up)

    def rate(step: Any) -> Any:
        done = step / spec.steps
        rise = jnp.minimum(1.0, (done + 1.0 / spec.steps) / spec.warm_up) if spec.warm_up else 1.0
        late = jnp.clip((done - held) / max(1.0 - held, 1e-9), 0.0, 1.0)
        falls: dict[str, Any] = {"linear": 1.0 - late, "cosine": 0.5 * (1.0 + jnp.cos(jnp.pi * late))}
        fall = falls.get(spec.schedule, 1.0)
        return spec.learning_rate * rise * fall

    return rate


def optimiser(spec: recipe.Training) -> optax.GradientTransformation:
    """Clipped gradients into the optimiser of that name."""
    chosen = OPTIMISERS[spec.optimizer](learning_rate(spec))
    return optax.chain(optax.clip_by_global_norm(spec.clip), chosen) if spec.clip else chosen
