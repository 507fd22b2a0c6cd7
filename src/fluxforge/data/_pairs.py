"""Problems on two triangles that share a face: random pairs, and the paper's training set with its corner cases."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fluxforge.data._model import PLAIN_HEAT, Model
from fluxforge.data._problem import AbstractSource, Problem, problem, with_noise
from fluxforge.graph._padded_graph import PaddedGraph, Shown, Slots
from fluxforge.recipe._equation import exchange_law
from fluxforge.recipe._recipe import Pairs, TwoCells
from fluxforge.scheme._scheme import Ghost, Hop

# Corners: the shared face from 0 to 1, the apex of the first cell 2, of the second 3. Each cell's faces, the shared one
# first, run counter-clockwise around it. These are NumPy arrays, whose digits do not depend on JAX's mode at import.
EQUILATERAL = np.array([[0.0, -1.0], [0.0, 1.0], [-(3.0**0.5), 0.0], [3.0**0.5, 0.0]])
_START = np.array([[0, 1, 2], [1, 0, 3]], np.int32)
_END = np.array([[1, 2, 0], [0, 3, 1]], np.int32)
# Slot 0 leads to the other cell, slots 1 and 2 to ghosts 2–5.
_NODE = np.array([[1, 2, 3], [0, 4, 5]], np.int32)


def pair(
    corners: Float[Array, "4 2"], *, present: Bool[Array, "2 2"], value: Float[Array, "2 2"], faces: bool
) -> PaddedGraph:
    """The graph of a pair; `present` and `value` describe the two outer faces of each cell.

    Without `faces` there are no ghosts and only one slot. An outer face that is not present has no edge: it is
    insulated.
    """
    slots = 3 if faces else 1
    p, q = corners[_START], corners[_END]
    along, centre = q - p, 0.5 * (p + q)
    x = jnp.stack([corners[jnp.array([0, 1, 2])].mean(axis=0), corners[jnp.array([0, 1, 3])].mean(axis=0)])
    A = jnp.hypot(along[..., 0], along[..., 1])
    n = jnp.stack([along[..., 1], -along[..., 0]], axis=-1) / A[..., None]
    inner = jnp.arange(3) == 0
    d = jnp.where(inner[None, :, None], (x[::-1] - x)[:, None, :], centre - x[:, None, :])
    d_n = jnp.einsum("...i,...i->...", d, n)
    V = volumes(corners)
    geometry = {
        "A": A,
        "delta": jnp.hypot(d[..., 0], d[..., 1]),
        "n_x": n[..., 0],
        "n_y": n[..., 1],
        "d_x": d[..., 0],
        "d_y": d[..., 1],
        **{f"p_{axis}": (centre - x[:, None, :])[..., i] for i, axis in enumerate("xy")},
        "d_n": d_n,
        "d_t": jnp.linalg.norm(d - d_n[..., None] * n, axis=-1),
        "chi": jnp.ones_like(A),
        "V_P": jnp.broadcast_to(V[:, None], (2, 3)),
        "V_N": jnp.where(inner[None, :], V[::-1][:, None], jnp.inf),
    }
    mask = jnp.concatenate([jnp.ones((2, 1), bool), present], axis=1)
    cell = jnp.broadcast_to(jnp.arange(2, dtype=jnp.int32)[:, None], (2, 3))
    edge = Slots(
        ends={"P": cell[:, :slots], "N": jnp.asarray(_NODE[:, :slots])},
        geometry={name: entry[:, :slots] for name, entry in geometry.items()},
        mask=mask[:, :slots],
    )
    return PaddedGraph(V, jnp.ones(2, bool), _shown_values(value, ghosts=4 if faces else 0), {str(Hop.EDGE): edge})


def volumes(corners: Float[Array, "4 2"]) -> Float[Array, " 2"]:
    """V = ½ |e × r| with e the shared face and r from its start to the apex of each cell."""
    e, r = corners[1] - corners[0], corners[2:] - corners[:1]
    return 0.5 * jnp.abs(e[0] * r[:, 1] - e[1] * r[:, 0])


def _shown_values(value: Float[Array, "2 2"], ghosts: int) -> dict[str, Shown]:
    """Node values by ghost rule: a cell has its own value, a ghost g, its owner's value, or 0."""
    cell = jnp.array([0, 1, 0, 0, 1, 1], jnp.int32)[: 2 + ghosts]
    in_cells = jnp.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0], value.dtype)[: 2 + ghosts]
    g = jnp.concatenate([jnp.zeros(2, value.dtype), value.ravel()])[: 2 + ghosts]
    nothing = jnp.zeros_like(g)
    return {
        str(Ghost.DIRICHLET): Shown(cell, in_cells, g),
        str(Ghost.OWNER): Shown(cell, jnp.ones_like(in_cells), nothing),
        str(Ghost.ZERO): Shown(cell, in_cells, nothing),
    }


# The equilateral pair with V = 1.
_UNIT = EQUILATERAL / 3.0**0.25
_SIDE = 2.0 / 3.0**0.25


def random_pair(spec: Pairs, key: PRNGKeyArray, *, model: Model = PLAIN_HEAT, dtype: str = "float32") -> Problem:
    """One pair: the corners of an equilateral one, each moved within a disk, turned, and scaled to a mean volume.

    A corner moves by at most `stretch` ≤ 0.35 sides, so that no triangle flips: its apex is 0.866 sides from a face
    whose ends move by as much. T, S and boundary values are uniform in [−1, 1].
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
    # `common` shifts all values together and shrinks their differences, whose distribution keeps its shape.
    level = spec.common * jax.random.uniform(keys[8], (), dtype, -1.0, 1.0)
    T, value = ((1.0 - spec.common) * part + level for part in (values[:2], value))
    corners = jnp.sqrt(volume / volumes(corners).mean()) * corners @ rotation.T
    padded_graph = pair(corners, present=present, value=value, faces=spec.faces == "random")
    padded_graph, parameters = model.put_on(padded_graph)
    law = exchange_law(spec, model.equation)
    posed = problem(padded_graph, T, values[2:], dt=dt, parameters=parameters, equation=model.equation, law=law)
    return with_noise(posed, key, spec.noise)


class PairSource(AbstractSource):
    """Random pairs of triangles, new ones in every batch."""

    spec: Pairs = eqx.field(static=True)
    model: Model = eqx.field(static=True)
    dtype: str = eqx.field(static=True)

    def batch(self, key: PRNGKeyArray, count: int) -> Problem:
        """`count` new pairs."""
        keys = jax.random.split(key, count)
        return jax.vmap(lambda each: random_pair(self.spec, each, model=self.model, dtype=self.dtype))(keys)


# The paper's graphs G(T_1, T_2, S_1, S_2).
CORNER_CASES = (
    (0.0, 0.0, 0.0, 0.0),
    (1.0, 1.0, 0.0, 0.0),
    (0.0, 0.0, 1.0, 1.0),
    (0.0, 1.0, 0.0, 0.0),
    (1.0, 0.0, 0.0, 0.0),
)


def two_cells(spec: TwoCells, key: PRNGKeyArray, *, model: Model = PLAIN_HEAT, dtype: str = "float64") -> Problem:
    """The random graphs, then the corner cases: T, S and boundary values are uniform in [−1, 1].

    The paper draws T and S from [0, T_train] and normalises them to [−1, 1]: that is the same distribution.
    """
    return _draw_set(spec, key, model, dtype)


@partial(jax.jit, static_argnums=(0, 2, 3))
def _draw_set(spec: TwoCells, key: PRNGKeyArray, model: Model, dtype: str) -> Problem:
    keys = jax.random.split(key, spec.graphs)
    drawn = jax.vmap(lambda each: _random_graph(spec, each, model, dtype))(keys)
    if not spec.corner_cases:
        return _add_noise(spec, key, drawn)
    corners = jnp.array(CORNER_CASES, dtype)
    corners = jnp.concatenate([corners, -corners[1:]]) if spec.negated else corners
    fixed = jax.vmap(lambda values: corner_problem(spec, values, model=model))(corners)
    return _add_noise(spec, key, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), drawn, fixed))


def _add_noise(spec: TwoCells, key: PRNGKeyArray, problems: Problem) -> Problem:
    """Every answer with noise of its own, corner cases included; like the set, the noise is drawn once."""
    keys = jax.random.split(key, len(problems.dt))
    return jax.vmap(lambda p, each: with_noise(p, each, spec.noise))(problems, keys)


def corner_problem(spec: TwoCells, values: Float[Array, " 4"], *, model: Model) -> Problem:
    """The paper's graph G(T_1, T_2, S_1, S_2): a pair without Dirichlet faces."""
    nothing = jnp.zeros((2, 2), values.dtype)
    return _pose_pair(spec, values, present=nothing.astype(bool), value=nothing, model=model)


def _random_graph(spec: TwoCells, key: PRNGKeyArray, model: Model, dtype: str) -> Problem:
    of_values, of_presence, of_faces = jax.random.split(key, 3)
    # Drawn in float32, so that they are the same graphs in any precision.
    values = jax.random.uniform(of_values, (4,), "float32", -1.0, 1.0).astype(dtype)
    present = jax.random.bernoulli(of_presence, jnp.float32(0.5), (2, 2)) & (spec.faces == "random")
    value = jax.random.uniform(of_faces, (2, 2), "float32", -1.0, 1.0).astype(dtype)
    return _pose_pair(spec, values, present=present, value=value, model=model)


def _pose_pair(spec: TwoCells, values: Float[Array, " 4"], *, present: Array, value: Array, model: Model) -> Problem:
    corners = jnp.asarray(EQUILATERAL, values.dtype)
    padded_graph, parameters = model.put_on(pair(corners, present=present, value=value, faces=spec.faces == "random"))
    dt, law = jnp.asarray(spec.time_step, values.dtype), exchange_law(spec, model.equation)
    return problem(padded_graph, values[:2], values[2:], dt=dt, parameters=parameters, equation=model.equation, law=law)
