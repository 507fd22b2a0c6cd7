"""Random fields on the unit square: smooth, white noise, or a mixture, always within [−1, 1]."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fluxforge.recipe import FIELDS

MODES = 8
# Wave numbers up to three per side.
_REACH = 6.0 * jnp.pi


def random_field(key: PRNGKeyArray, x: Float[Array, "nodes 2"], kind: Int[Array, ""]) -> Float[Array, " nodes"]:
    """A field of one of the kinds of `recipe.FIELDS`, by number."""
    of_smooth, of_noise, of_share = jax.random.split(key, 3)
    smooth = smooth_field(of_smooth, x)
    noise = jax.random.uniform(of_noise, x.shape[:1], x.dtype, -1.0, 1.0)
    share = jax.random.uniform(of_share, (), x.dtype)
    mixed = share * smooth + (1.0 - share) * noise
    return jnp.stack([{"smooth": smooth, "noise": noise, "mixed": mixed}[name] for name in FIELDS])[kind]


def smooth_field(key: PRNGKeyArray, x: Float[Array, "nodes 2"]) -> Float[Array, " nodes"]:
    """C + Σ a_k cos(k·x + φ), wave vectors uniform in a square, divided by what it cannot exceed."""
    of_wave, of_phase, of_size, of_level = jax.random.split(key, 4)
    wave = jax.random.uniform(of_wave, (MODES, 2), x.dtype, -_REACH, _REACH)
    phase = jax.random.uniform(of_phase, (MODES,), x.dtype, 0.0, 2 * jnp.pi)
    size = jax.random.normal(of_size, (MODES,), x.dtype)
    level = jax.random.uniform(of_level, (), x.dtype, -1.0, 1.0)
    total = jnp.cos(x @ wave.T + phase[None, :]) @ size + level
    return total / (jnp.abs(size).sum() + jnp.abs(level))
