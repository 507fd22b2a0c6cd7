"""Random triangle pairs with random Dirichlet faces and random Δt: what identifies A/δ, Δt/V and additivity."""

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from fluxforge import recipe
from fluxforge.data._model import PLAIN_HEAT, Model
from fluxforge.data._pair import EQUILATERAL, pair, volumes
from fluxforge.data._problem import Problem, problem, with_noise

# The equilateral pair with V = 1.
_UNIT = EQUILATERAL / 3.0**0.25
_SIDE = 2.0 / 3.0**0.25


def random_pair(spec: recipe.Pairs, key: PRNGKeyArray, *, model: Model = PLAIN_HEAT, dtype: str = "float32") -> Problem:
    """One pair: the corners of an equilateral one, each moved within a disk, turned, and scaled to a mean volume.

    A corner strays by at most `stretch` sides, 0.35 at most, so that no triangle flips: its apex is 0.866 sides from
    a face whose ends stray as far. T, S and boundary values are uniform in [−1, 1].
    """
    keys = jax.random.split(key, 9)
    reach = _SIDE * spec.stretch
    radius = reach * jnp.sqrt(jax.random.uniform(keys[0], (4,), dtype))
    angle = 2 * jnp.pi * jax.random.uniform(keys[1], (4,), dtype)
    corners = jnp.asarray(_UNIT, dtype) + radius[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)
    low, high = spec.size
    volume = jnp.exp(jax.random.uniform(keys[2], (), dtype, jnp.log(low), jnp.log(high)))
    turn = 2 * jnp.pi * jax.random.uniform(keys[3], (), dtype)
    rotation = jnp.stack([jnp.stack([jnp.cos(turn), -jnp.sin(turn)]), jnp.stack([jnp.sin(turn), jnp.cos(turn)])])
    present = jax.random.bernoulli(keys[4], spec.presence, (2, 2)) & (spec.faces == "random")
    values = jax.random.uniform(keys[5], (4,), dtype, -1.0, 1.0)
    value = jax.random.uniform(keys[6], (2, 2), dtype, -1.0, 1.0)
    dt = jax.random.uniform(keys[7], (), dtype, *spec.time_step)
    # The differences keep their distribution, up to their size; the level is the same everywhere.
    level = spec.common * jax.random.uniform(keys[8], (), dtype, -1.0, 1.0)
    T, value = ((1.0 - spec.common) * part + level for part in (values[:2], value))
    corners = jnp.sqrt(volume / volumes(corners).mean()) * corners @ rotation.T
    graph = pair(corners, present=present, value=value, faces=spec.faces == "random")
    graph, parameters = model.put_on(graph)
    law = recipe.exchange_law(spec, model.equation)
    posed = problem(graph, T, values[2:], dt=dt, parameters=parameters, equation=model.equation, law=law)
    return with_noise(posed, key, spec.noise)
