"""Random fields on unstructured meshes: an ensemble of padded graphs, and the problems posed on them."""

from collections.abc import Iterable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fluxforge import recipe
from fluxforge._types import Precision
from fluxforge.data._model import PLAIN_HEAT, Model
from fluxforge.data._problem import (
    AbstractSource,
    Problem,
    count_substeps,
    fastest_rate,
    problem,
    resolve_step,
    with_noise,
)
from fluxforge.graph._pad import pad_graph, stack_graphs
from fluxforge.graph._padded_graph import PaddedGraph, put
from fluxforge.mesh._boundary import Conditions
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import unit_volume
from fluxforge.pde._parameter import Where
from fluxforge.recipe._data import FIELDS
from fluxforge.scheme._scheme import Hop

# Plane waves in a smooth field.
MODES = 8
# Folded into a problem's key for its parameters, so that other draws do not change with them.
_PARAMETERS = 2**26
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
    Dirichlet walls, where those of `graph` are others: the reference step is computed on them.
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
    """The meshes of a list as one padded batch; Dirichlet on the whole boundary unless `boundary` is given."""
    graphs = [dual(mesh, boundary) for mesh in meshes]
    scaled = [unit_volume(graph)[0] for graph in graphs]
    together = stack_graphs([pad_graph(graph, hops, dtype=dtype) for graph in scaled])
    cells, nodes = together.V.shape[1], together.shown["owner"].cell.shape[1]
    x = np.stack([_places(graph, cells, nodes) for graph in graphs])
    if boundary is None:
        return Ensemble(together, put(x, dtype))
    # Networks are tested with steps for Dirichlet boundaries, which are shorter than those for insulated ones.
    held = stack_graphs([pad_graph(unit_volume(dual(mesh))[0], dtype=dtype) for mesh in meshes])
    return Ensemble(together, put(x, dtype), held)


def _places(graph: DualGraph, cells: int, nodes: int) -> Float[np.ndarray, "nodes 2"]:
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
    """A random problem on one mesh: T, S and g in [−1, 1], Δt = Fo Δt_ref; a law replaces the equation's own flux.

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
    given = draw_parameters(mesh, key, model, cell_size, jumps)
    padded_graph, parameters = model.put_on(mesh.graph.with_boundary(held.astype(mesh.x.dtype)), *given)
    measured = padded_graph if mesh.held is None else model.put_on(mesh.held, *given)[0]
    step = fourier / fastest_rate(measured, T, parameters=parameters, equation=model.equation)
    return problem(padded_graph, T, S, dt=step, parameters=parameters, equation=model.equation, law=law)


def draw_parameters(
    mesh: Ensemble, key: PRNGKeyArray, model: Model, cell_size: tuple[float, float], jumps: float
) -> tuple[Float[Array, ""] | None, dict[str, Float[Array, " cells"]]]:
    """The size of the cells (None for 1), and factors of parameters given per cell (none without jumps)."""
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
        name: jnp.exp(jax.random.uniform(own, cells, dtype, -most, most))
        for name, own in zip(varied, keys, strict=False)
    }


class EnsembleSource(AbstractSource):
    """Source of problems on a random mesh with random fields."""

    ensemble: Ensemble
    spec: recipe.Meshes = eqx.field(static=True)
    model: Model = eqx.field(static=True)

    def batch(self, key: PRNGKeyArray, count: int) -> Problem:
        """`count` problems."""
        return jax.vmap(self._one)(jax.random.split(key, count))

    def _one(self, key: PRNGKeyArray) -> Problem:
        of_mesh, of_field, of_step, own = jax.random.split(key, 4)
        mesh = self.ensemble.member(jax.random.randint(of_mesh, (), 0, self.ensemble.meshes))
        kinds = jnp.array([recipe.FIELDS.index(kind) for kind in self.spec.fields])
        dtype = self.ensemble.x.dtype
        posed = pose(
            mesh,
            own,
            field=kinds[jax.random.randint(of_field, (), 0, len(kinds))],
            fourier=jax.random.uniform(of_step, (), dtype, *self.spec.fourier),
            model=self.model,
            law=recipe.exchange_law(self.spec, self.model.equation),
            cell_size=self.spec.cell_size,
            jumps=self.spec.jumps,
        )
        if self.spec.target == "resolved":
            moves = self.model.equation.velocity is not None
            substeps = count_substeps(self.spec.fourier[1], self.spec.tolerance, real=not moves)
            posed = eqx.tree_at(lambda p: p.answer, posed, resolve_step(posed, substeps))
        return with_noise(posed, own, self.spec.noise)
