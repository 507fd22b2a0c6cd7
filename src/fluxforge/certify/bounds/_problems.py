"""Problems to try a theorem on: fields in [−1, 1], half of them at its ends, on meshes that meet its conditions."""

from collections.abc import Mapping
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from fluxforge import recipe
from fluxforge.data import CORNER_CASES, EQUILATERAL, PLAIN_HEAT, Parameters, Problem, pair, problem, two_cells
from fluxforge.graph import PaddedGraph, pad_graph, stack_graphs
from fluxforge.mesh import Conditions, DualGraph, Mesh, dual, fourier_step
from fluxforge.scheme import Ghost

READINGS = ("corners", "negated", "positive", "signed", "faces")


def problems_on(graph: DualGraph, key: PRNGKeyArray, *, count: int, dt: float, diffusivity: float = 1.0) -> Problem:
    """`count` problems on one graph: T, S and g at Dirichlet faces drawn, Neumann data as the graph has it."""
    return _posed(pad_graph(graph), jax.random.split(key, count), jnp.asarray(dt), {"alpha": jnp.asarray(diffusivity)})


@eqx.filter_jit
def _posed(around: PaddedGraph, keys: Key[Array, " problems"], dt: Float[Array, ""], parameters: Parameters) -> Problem:
    cells, shown = len(around.V), around.shown[Ghost.DIRICHLET]
    held = (shown.scale == 0) & (jnp.arange(len(shown.scale)) >= cells)

    def one(own: PRNGKeyArray) -> Problem:
        of_fields, of_wall = jax.random.split(own)
        T, S = jnp.where(around.live[None, :], _drawn(of_fields, (2, cells)), 0.0)
        g = jnp.where(held, _drawn(of_wall, held.shape), shown.constant)
        return problem(around.holding(g), T, S, dt=dt, parameters=parameters)

    return jax.vmap(one)(keys)


def _drawn(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Uniform in [−1, 1] half of the time, −1 or 1 otherwise: errors are largest at the ends."""
    of_kind, of_values = jax.random.split(key)
    values = jax.random.uniform(of_values, shape, minval=-1.0, maxval=1.0)
    return jnp.where(jax.random.bernoulli(of_kind), values, jnp.sign(values))


def roomy(mesh: Mesh, *, dt: float, volume: float, boundary: Conditions = None) -> DualGraph:
    """The mesh enlarged until every V ≥ `volume` and Δt meets the Fourier condition: both grow with the area."""
    graph = dual(mesh, boundary)
    factor = max(volume / graph.V.min(), dt / fourier_step(graph))
    return dual(replace(mesh, points=mesh.points * np.sqrt(factor * (1.0 + 1e-12))), boundary)


def roomy_problems(
    meshes: Mapping[str, Mesh], key: PRNGKeyArray, *, count: int, dt: float, volume: float = 3.0**0.5
) -> dict[str, Problem]:
    """Problems on each mesh, enlarged to meet the conditions that theorems put on volumes and steps.

    All are padded to one size, so that what is compiled for one of them serves for all.
    """
    together = stack_graphs([pad_graph(roomy(mesh, dt=dt, volume=volume)) for mesh in meshes.values()])
    keys = jax.random.split(key, (len(meshes), count))
    return {
        name: _posed(
            jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], together),
            keys[k],
            jnp.asarray(dt),
            {"alpha": jnp.asarray(1.0)},
        )
        for k, name in enumerate(meshes)
    }


def readings(key: PRNGKeyArray, *, dt: float = 0.1, graphs: int = 100) -> dict[str, Problem]:
    """What the paper's training set may be taken to be, from the weakest to the strongest.

    - `corners`: the corner cases alone;
    - `negated`: those and their negatives;
    - `positive`: those, and samples of T and S divided by T_train, hence in [0, 1];
    - `signed`: those, their negatives, and samples in [−1, 1];
    - `faces`: the same, with Dirichlet faces present or not, and a pair at 0 with all its faces at 0.
    """
    found = _readings(key, float(dt), graphs)
    return {name: found[name] for name in READINGS}


@eqx.filter_jit
def _readings(key: PRNGKeyArray, dt: float, graphs: int) -> dict[str, Problem]:
    signed = two_cells(recipe.TwoCells(graphs=graphs, time_step=dt, negated=True), key)
    with_faces = two_cells(recipe.TwoCells(graphs=graphs, time_step=dt, negated=True, faces="random"), key)
    corners = _part(signed, slice(graphs, graphs + len(CORNER_CASES)))
    return {
        "corners": corners,
        "negated": _part(signed, slice(graphs, None)),
        "positive": _joined(_positive(_part(signed, slice(graphs))), corners),
        "signed": signed,
        "faces": _joined(with_faces, zero_pair(dt)),
    }


def zero_pair(dt: float) -> Problem:
    """The corner case that the linear theorem lacks: T = S = 0, and g = 0 on all four outer faces, as a batch of one.

    Each cell then sums three messages: with |Δt/V W₂ b_agg + b_u| ≤ ε and |3 Δt/V W₂ b_agg + b_u| ≤ ε, neither bias can
    hide behind the other.
    """
    nothing = jnp.zeros((2, 2))
    around = pair(jnp.asarray(EQUILATERAL, nothing.dtype), present=nothing == 0, value=nothing, faces=True)
    posed = problem(around, nothing[0], nothing[0], dt=jnp.asarray(dt), parameters=PLAIN_HEAT.put_on(around)[1])
    return jax.tree.map(lambda leaf: leaf[None], posed)


def _positive(problems: Problem) -> Problem:
    """The same problems with |T| and |S|."""
    T, S = jnp.abs(problems.T), jnp.abs(problems.S)

    def one(p: Problem, T: Float[Array, " cells"], S: Float[Array, " cells"]) -> Problem:
        return problem(p.graph, T, S, dt=p.dt, parameters=p.parameters)

    return jax.vmap(one)(problems, T, S)


def _part(problems: Problem, which: slice) -> Problem:
    return jax.tree.map(lambda leaf: leaf[which], problems)


def _joined(first: Problem, second: Problem) -> Problem:
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first, second)
