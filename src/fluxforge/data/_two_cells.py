"""The paper's training set: equilateral pairs of side 2, V = √3, A = 2, δ = 2/√3, and the corner cases."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from fluxforge import recipe
from fluxforge.data._model import PLAIN_HEAT, Model
from fluxforge.data._pair import EQUILATERAL, pair
from fluxforge.data._problem import Problem, problem, with_noise

# G(T_1, T_2, S_1, S_2)
CORNER_CASES = (
    (0.0, 0.0, 0.0, 0.0),
    (1.0, 1.0, 0.0, 0.0),
    (0.0, 0.0, 1.0, 1.0),
    (0.0, 1.0, 0.0, 0.0),
    (1.0, 0.0, 0.0, 0.0),
)


def two_cells(
    spec: recipe.TwoCells, key: PRNGKeyArray, *, model: Model = PLAIN_HEAT, dtype: str = "float64"
) -> Problem:
    """The random graphs, then the corner cases: T, S and boundary values are uniform in [−1, 1].

    The paper draws T and S from [0, T_train] and normalises them to [−1, 1]: that is the same distribution.
    """
    return _all(spec, key, model, dtype)


@partial(jax.jit, static_argnums=(0, 2, 3))
def _all(spec: recipe.TwoCells, key: PRNGKeyArray, model: Model, dtype: str) -> Problem:
    keys = jax.random.split(key, spec.graphs)
    drawn = jax.vmap(lambda own: _random(spec, own, model, dtype))(keys)
    if not spec.corner_cases:
        return _noisy(spec, key, drawn)
    corners = jnp.array(CORNER_CASES, dtype)
    corners = jnp.concatenate([corners, -corners[1:]]) if spec.negated else corners
    fixed = jax.vmap(lambda values: graph(spec, values, model=model))(corners)
    return _noisy(spec, key, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), drawn, fixed))


def _noisy(spec: recipe.TwoCells, key: PRNGKeyArray, problems: Problem) -> Problem:
    """Each graph's answer with its own noise, corner cases included: a set is drawn once, and so is its noise."""
    keys = jax.random.split(key, len(problems.dt))
    return jax.vmap(lambda p, own: with_noise(p, own, spec.noise))(problems, keys)


def graph(spec: recipe.TwoCells, values: Float[Array, " 4"], *, model: Model = PLAIN_HEAT) -> Problem:
    """G(T_1, T_2, S_1, S_2): a pair without Dirichlet faces."""
    nothing = jnp.zeros((2, 2), values.dtype)
    return _posed(spec, values, present=nothing.astype(bool), value=nothing, model=model)


def _random(spec: recipe.TwoCells, key: PRNGKeyArray, model: Model, dtype: str) -> Problem:
    of_values, of_presence, of_faces = jax.random.split(key, 3)
    # Drawn in float32, so that they are the same graphs in any precision.
    values = jax.random.uniform(of_values, (4,), "float32", -1.0, 1.0).astype(dtype)
    present = jax.random.bernoulli(of_presence, jnp.float32(0.5), (2, 2)) & (spec.faces == "random")
    value = jax.random.uniform(of_faces, (2, 2), "float32", -1.0, 1.0).astype(dtype)
    return _posed(spec, values, present=present, value=value, model=model)


def _posed(spec: recipe.TwoCells, values: Float[Array, " 4"], *, present: Array, value: Array, model: Model) -> Problem:
    corners = jnp.asarray(EQUILATERAL, values.dtype)
    padded_graph, parameters = model.put_on(pair(corners, present=present, value=value, faces=spec.faces == "random"))
    dt, law = jnp.asarray(spec.time_step, values.dtype), recipe.exchange_law(spec, model.equation)
    return problem(padded_graph, values[:2], values[2:], dt=dt, parameters=parameters, equation=model.equation, law=law)
