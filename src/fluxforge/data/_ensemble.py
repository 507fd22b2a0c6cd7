"""Random fields on unstructured meshes: ensembles of padded graphs, and problems for training and evaluation."""

from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fluxforge._types import Precision
from fluxforge.data._meshes import meshes
from fluxforge.data._model import PLAIN_HEAT, Model
from fluxforge.data._problem import (
    AbstractSource,
    Problem,
    count_substeps,
    fastest_rate,
    linearise,
    problem,
    rate_on,
    resolve_step,
    with_noise,
)
from fluxforge.graph._pad import pad_graph, stack_graphs
from fluxforge.graph._padded_graph import PaddedGraph, put
from fluxforge.mesh._build import dual
from fluxforge.mesh._conditions import Conditions
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import unit_volume
from fluxforge.pde._equation import HEAT
from fluxforge.pde._parameter import Where
from fluxforge.recipe._equation import exchange_law
from fluxforge.recipe._recipe import FIELDS, Evaluation, Meshes
from fluxforge.scheme._scheme import Hop

# The number of plane waves in a smooth field.
MODES = 8
# Folded into a problem's key for its parameters, so that other draws do not change with them.
_PARAMETERS = 2**26
# Wave numbers up to three per side.
_REACH = 6.0 * jnp.pi


def random_field(key: PRNGKeyArray, x: Float[Array, "nodes 2"], kind: Int[Array, ""]) -> Float[Array, " nodes"]:
    """A random field at points x, with values in [−1, 1]; `kind` is the number of its kind in `recipe.FIELDS`."""
    of_smooth, of_noise, of_share = jax.random.split(key, 3)
    smooth = smooth_field(of_smooth, x)
    noise = jax.random.uniform(of_noise, x.shape[:1], x.dtype, -1.0, 1.0)
    return choose_field(smooth, noise, jax.random.uniform(of_share, (), x.dtype), kind)


def choose_field(
    smooth: Float[Array, " n"], noise: Float[Array, " n"], share: Float[Array, ""], kind: Int[Array, ""]
) -> Float[Array, " n"]:
    """A smooth field, noise, or share · smooth + (1 − share) · noise, by the number of the kind in `recipe.FIELDS`."""
    mixed = share * smooth + (1.0 - share) * noise
    return jnp.stack([{"smooth": smooth, "noise": noise, "mixed": mixed}[name] for name in FIELDS])[kind]


def field_numbers(spec: Meshes) -> Int[Array, " kinds"]:
    """The numbers in `recipe.FIELDS` of the kinds of fields in a recipe's data."""
    return jnp.array([FIELDS.index(kind) for kind in spec.fields])


def smooth_field(key: PRNGKeyArray, x: Float[Array, "nodes 2"]) -> Float[Array, " nodes"]:
    """(c + Σ a_k cos(k·x + φ_k))/(|c| + Σ |a_k|), at most 1 in size; wave vectors are uniform in a square."""
    of_wave, of_phase, of_size, of_level = jax.random.split(key, 4)
    wave = jax.random.uniform(of_wave, (MODES, 2), x.dtype, -_REACH, _REACH)
    phase = jax.random.uniform(of_phase, (MODES,), x.dtype, 0.0, 2 * jnp.pi)
    size = jax.random.normal(of_size, (MODES,), x.dtype)
    level = jax.random.uniform(of_level, (), x.dtype, -1.0, 1.0)
    total = jnp.cos(x @ wave.T + phase[None, :]) @ size + level
    return total / (jnp.abs(size).sum() + jnp.abs(level))


class Ensemble(eqx.Module):
    """Meshes in units of their mean cell volume, padded to one size.

    `x` are the positions of all nodes in the unit square, ghosts at their faces. `held` are the same meshes with
    Dirichlet walls, on which the reference step is computed; None if the walls of `graph` are such walls.
    """

    graph: PaddedGraph
    x: Float[Array, "meshes nodes 2"]
    held: PaddedGraph | None = None

    @property
    def meshes(self) -> int:
        """Number of meshes."""
        return len(self.x)

    def member(self, index: Int[Array, ""] | int) -> "Ensemble":
        """One of the meshes, without the first axis."""
        return jax.tree.map(lambda leaf: leaf[index], self)


def ensemble(
    meshes: Sequence[Mesh],
    hops: Iterable[Hop] = (Hop.EDGE,),
    *,
    boundary: Conditions = None,
    dtype: Precision = "float64",
) -> Ensemble:
    """The meshes of a list as one padded batch; by default with T given (Dirichlet) on the whole boundary."""
    graphs = [dual(mesh, boundary) for mesh in meshes]
    scaled = [unit_volume(graph)[0] for graph in graphs]
    together = stack_graphs([pad_graph(graph, hops, dtype=dtype) for graph in scaled])
    cells, nodes = together.V.shape[1], together.shown["owner"].cell.shape[1]
    x = np.stack([_node_positions(graph, cells, nodes) for graph in graphs])
    if boundary is None:
        return Ensemble(together, put(x, dtype))
    # Networks are tested with steps for Dirichlet boundaries, which are shorter than those for insulated ones.
    held = stack_graphs([pad_graph(unit_volume(dual(mesh))[0], dtype=dtype) for mesh in meshes])
    return Ensemble(together, put(x, dtype), held)


def _node_positions(graph: DualGraph, cells: int, nodes: int) -> Float[np.ndarray, "nodes 2"]:
    """Centroids, then the centres of the boundary faces, in the unit square."""
    low, high = graph.centre.min(axis=0), graph.centre.max(axis=0)
    x = np.zeros((nodes, 2))
    x[: graph.cells] = graph.x
    x[cells : cells + graph.ghosts] = graph.centre[graph.interior :]
    return (x - low) / (high - low).max()


def pose(
    mesh: Ensemble,
    key: PRNGKeyArray,
    *,
    field: Int[Array, ""],
    fourier: Float[Array, ""],
    model: Model = PLAIN_HEAT,
    law: sp.Expr | None = None,
    cell_size: tuple[float, float] = (1.0, 1.0),
    jumps: float = 1.0,
) -> Problem:
    """A random problem on one mesh: T, S and g in [−1, 1], Δt = Fo Δt_ref. A law replaces the equation's own flux.

    `cell_size` and `jumps` as in `recipe.Meshes`.
    """
    of_T, of_S, of_g, of_size, of_match = jax.random.split(key, 5)
    cells = len(mesh.graph.V)
    T = random_field(of_T, mesh.x, field)
    # In half of the problems the boundary values continue the field inside, in the others they are independent of it.
    g = jnp.where(jax.random.bernoulli(of_match), T, random_field(of_g, mesh.x, field))
    S = jax.random.uniform(of_size, (), mesh.x.dtype) * random_field(of_S, mesh.x, field)
    # Only Dirichlet ghosts take g; a Neumann ghost keeps its owner's value plus q δ.
    free = mesh.graph.shown["dirichlet"].scale > 0
    held = jnp.where(free, mesh.graph.shown["dirichlet"].constant, g)
    live = mesh.graph.live
    T, S = (jnp.where(live, field[:cells], 0.0) for field in (T, S))
    drawn = draw_parameters(mesh, key, model, cell_size, jumps)
    padded_graph, parameters = model.put_on(mesh.graph.with_boundary(held.astype(mesh.x.dtype)), *drawn)
    measured = padded_graph if mesh.held is None else model.put_on(mesh.held, *drawn)[0]
    step = fourier / fastest_rate(measured, T, parameters=parameters, equation=model.equation)
    return problem(padded_graph, T, S, dt=step, parameters=parameters, equation=model.equation, law=law)


def draw_parameters(
    mesh: Ensemble, key: PRNGKeyArray, model: Model, cell_size: tuple[float, float], jumps: float
) -> tuple[Float[Array, ""] | None, dict[str, Float[Array, " cells"]]]:
    """The size of the cells (None for 1), and factors of the parameters given per cell (none if `jumps` is 1)."""
    # Separate keys, so that problems with and without them are otherwise the same.
    of_size, of_jumps = jax.random.split(jax.random.fold_in(key, _PARAMETERS))
    dtype, size = mesh.x.dtype, None
    if cell_size != (1.0, 1.0):
        low, high = np.log(cell_size)
        size = jnp.exp(jax.random.uniform(of_size, (), dtype, low, high))
    varied = [p.name for p in model.equation.parameters if p.where is Where.CELL] if jumps > 1 else []
    most = float(np.log(jumps))
    keys = jax.random.split(of_jumps, max(len(varied), 1))
    cells = mesh.graph.V.shape
    return size, {
        name: jnp.exp(jax.random.uniform(name_key, cells, dtype, -most, most))
        for name, name_key in zip(varied, keys, strict=False)
    }


class EnsembleSource(AbstractSource):
    """A source of problems on random meshes of an ensemble, with random fields."""

    ensemble: Ensemble
    spec: Meshes = eqx.field(static=True)
    model: Model = eqx.field(static=True)

    def batch(self, key: PRNGKeyArray, count: int) -> Problem:
        """`count` problems."""
        return jax.vmap(self._draw_problem)(jax.random.split(key, count))

    def _draw_problem(self, key: PRNGKeyArray) -> Problem:
        of_mesh, of_field, of_step, of_fields = jax.random.split(key, 4)
        mesh = self.ensemble.member(jax.random.randint(of_mesh, (), 0, self.ensemble.meshes))
        kinds = field_numbers(self.spec)
        dtype = self.ensemble.x.dtype
        posed = pose(
            mesh,
            of_fields,
            field=kinds[jax.random.randint(of_field, (), 0, len(kinds))],
            fourier=jax.random.uniform(of_step, (), dtype, *self.spec.fourier),
            model=self.model,
            law=exchange_law(self.spec, self.model.equation),
            cell_size=self.spec.cell_size,
            jumps=self.spec.jumps,
        )
        if self.spec.target == "resolved":
            moves = self.model.equation.velocity is not None
            substeps = count_substeps(self.spec.fourier[1], self.spec.tolerance, real=not moves)
            posed = eqx.tree_at(lambda p: p.answer, posed, resolve_step(posed, substeps))
        return with_noise(posed, of_fields, self.spec.noise)


# Added to the seed for evaluation; training draws from other seeds.
_UNSEEN = 10**6
_POWER_STEPS = 200


def unseen_meshes(
    spec: Evaluation,
    seed: int,
    *,
    hops: Iterable[Hop] = (Hop.EDGE,),
    boundary: Conditions = None,
    dtype: Precision = "float64",
) -> Ensemble:
    """The meshes of `evaluation_meshes` as one padded batch."""
    return ensemble(evaluation_meshes(spec, seed), hops, boundary=boundary, dtype=dtype)


def evaluation_meshes(spec: Evaluation, seed: int) -> list[Mesh]:
    """Alternately regular and irregular meshes of about `spec.cells` cells, from seeds that training does not use."""
    wanted = Meshes(meshes=spec.meshes, cells=(spec.cells, spec.cells), engine=spec.engine)
    return meshes(wanted, seed + _UNSEEN)


def unseen_problems(
    ensemble: Ensemble,
    seed: int,
    *,
    fourier: float | Float[Array, " meshes"],
    model: Model = PLAIN_HEAT,
    field: str = "smooth",
    size: float = 1.0,
    law: sp.Expr | None = None,
) -> Problem:
    """One problem per mesh: random fields of a kind, `size` times as large as those networks are trained on.

    Answers are without noise, by the flux of the model's equation unless a law is given (`recipe.exchange_law`).
    """
    dtype = ensemble.x.dtype
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), _UNSEEN), ensemble.meshes)
    steps = jnp.broadcast_to(jnp.asarray(fourier, dtype), (ensemble.meshes,))
    kind = jnp.asarray(FIELDS.index(field))
    return _pose_all(ensemble, keys, steps, kind, model, jnp.asarray(size, dtype), law)


@eqx.filter_jit
def _pose_all(
    ensemble: Ensemble, keys: Array, steps: Array, kind: Array, model: Model, size: Array, law: sp.Expr | None
) -> Problem:
    def one(mesh: Ensemble, key: Array, fo: Array) -> Problem:
        return _enlarge(pose(mesh, key, field=kind, fourier=fo, model=model, law=law), size)

    return jax.vmap(one)(ensemble, keys, steps)


def _enlarge(one: Problem, size: Float[Array, ""]) -> Problem:
    """The problem with T, S and boundary data multiplied by `size`, and its answer."""
    held = one.graph.with_boundary(size * one.graph.shown["dirichlet"].constant)
    T, S = size * one.T, size * one.S
    return problem(held, T, S, dt=one.dt, parameters=one.parameters, equation=one.equation, law=one.law)


@eqx.filter_jit
def stability_limits(ensemble: Ensemble) -> Float[Array, " meshes"]:
    """2/λ_max over Δt_ref: the largest stable step of the first-order scheme of heat, in reference steps.

    Power iteration approaches λ_max from below, so that the limit is too large, by less than a per cent.
    """

    def one(mesh: Ensemble) -> Float[Array, ""]:
        put, parameters = PLAIN_HEAT.put_on(mesh.graph)
        zero = jnp.zeros_like(put.V)
        L = linearise(lambda T: rate_on(put, T, zero, parameters=parameters, equation=HEAT), zero)

        def once(_: Any, v: Float[Array, " cells"]) -> Float[Array, " cells"]:
            w = jnp.where(mesh.graph.live, L(v), 0.0)
            return w / jnp.linalg.norm(w)

        start = jnp.where(mesh.graph.live, jnp.sin(jnp.arange(len(mesh.graph.V), dtype=mesh.x.dtype)), 0.0)
        v = jax.lax.fori_loop(0, _POWER_STEPS, once, start)
        fastest = jnp.linalg.norm(jnp.where(mesh.graph.live, L(v), 0.0))
        return 2.0 / fastest * fastest_rate(put, zero, parameters=parameters, equation=HEAT)

    return jax.vmap(one)(ensemble)
