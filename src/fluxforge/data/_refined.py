"""Problems whose answers are computed by refinement.

Cells are divided several times, stepped to the same time, and averaged back. On the divided cells the flux is the
corrected one, which converges on every mesh, if the equation diffuses, and otherwise the two-point flux. Smooth fields
are evaluated on the divided cells, and the network is given their averages over the coarse cells; noise is constant in
each coarse cell. Sources and the values at walls are those of the coarse mesh.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fluxforge._types import Precision, State
from fluxforge.data._cache import cache_path, write_cached
from fluxforge.data._ensemble import Ensemble, choose_field, draw_parameters, field_numbers, pose, smooth_field
from fluxforge.data._meshes import divide
from fluxforge.data._model import Model
from fluxforge.data._problem import (
    AbstractSource,
    Problem,
    classical_step,
    count_substeps,
    draw_problems,
    fastest_rate,
    rate_on,
)
from fluxforge.graph._pad import pad_graph, pad_to_size, padded_size
from fluxforge.graph._padded_graph import PaddedGraph, put
from fluxforge.graph._stages import evaluate_stages
from fluxforge.mesh._mesh import Mesh
from fluxforge.pde._document import to_document
from fluxforge.pde._equation import Equation
from fluxforge.recipe._recipe import Meshes
from fluxforge.run._arrays import read_arrays
from fluxforge.scheme._document import find
from fluxforge.scheme._scheme import Scheme

# Part of the cache's key; incremented whenever the same recipe gives other answers.
VERSION = 1
# The arrays of a file of answers.
_NAMES = {"T", "answer", "levels", "difference"}
# The number of problems per mesh, which are solved together.
PROBLEMS = 8
# Folded into the seed's key for these problems.
_KEY = 2**25
# The largest error of any mode by the integration in time: far below the differences between levels.
_MODES = 1e-6


class RefinedSource(AbstractSource):
    """A fixed set of problems with refined answers; batches are drawn with replacement.

    `difference` is the mean difference between the answers of the last two levels, relative to the mean change of a
    step.
    """

    problems: Problem
    levels: int = eqx.field(static=True)
    difference: float = eqx.field(static=True)

    def batch(self, key: PRNGKeyArray, count: int) -> Problem:
        """`count` of the problems."""
        return draw_problems(self.problems, key, count)


def refined_source(
    meshes: Sequence[Mesh], coarse: Ensemble, spec: Meshes, model: Model, *, seed: int, dtype: Precision
) -> RefinedSource:
    """Problems on every mesh, refined until the answers of two levels differ by at most `spec.tolerance`.

    There are at most `spec.levels` levels. Answers are cached. Raises InputError for cells that are not triangles.
    """
    words = json.dumps([VERSION, PROBLEMS, recipe_words(spec), seed, dtype, to_document(model.equation), model.values])
    parts = (array.tobytes() for mesh in meshes for array in (mesh.points, mesh.cells))
    place = cache_path("refined", words.encode(), *parts)
    drawn = _pose_problems(coarse, spec, model, seed)
    if (cached := read_arrays(place)) is not None and cached.arrays.keys() >= _NAMES:
        known = cached.arrays
    else:
        known = _compute_answers(meshes, coarse, spec, model, drawn)
        write_cached(place, known)
    answers = (put(known["T"], dtype), put(known["answer"], dtype))
    problems = eqx.tree_at(lambda p: (p.T, p.answer), drawn.problems, answers)
    return RefinedSource(problems, int(known["levels"]), float(known["difference"]))


def recipe_words(spec: Meshes) -> dict[str, object]:
    """The fields of a recipe's data that determine the answers; mesh files are identified by points and cells."""
    names = ("meshes", "cells", "kinds", "fields", "fourier", "tolerance", "levels", "cell_size", "jumps")
    return {name: getattr(spec, name) for name in names}


class _Drawn(NamedTuple):
    """Problems of all meshes along a first axis, mesh by mesh, each with its key and the kind of its field."""

    problems: Problem
    keys: Array
    kinds: Int[Array, " problems"]

    def of_mesh(self, k: int) -> "_Drawn":
        """The problems of mesh k, with their keys and kinds."""
        return jax.tree.map(lambda leaf: leaf[k * PROBLEMS : (k + 1) * PROBLEMS], self)


@eqx.filter_jit
def _pose_problems(coarse: Ensemble, spec: Meshes, model: Model, seed: int) -> _Drawn:
    """`PROBLEMS` random problems of every mesh."""

    def one(mesh: Ensemble, key: PRNGKeyArray, kind: Int[Array, ""], fourier: Float[Array, ""]) -> Problem:
        return pose(mesh, key, field=kind, fourier=fourier, model=model, cell_size=spec.cell_size, jumps=spec.jumps)

    count = coarse.meshes * PROBLEMS
    of_problems, of_steps = jax.random.split(jax.random.fold_in(jax.random.key(seed), _KEY))
    keys = jax.random.split(of_problems, count)
    steps = jax.random.uniform(of_steps, (count,), coarse.x.dtype, *spec.fourier)
    repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, PROBLEMS, axis=0), coarse)
    numbers = field_numbers(spec)
    kinds = numbers[jnp.arange(count) % len(numbers)]
    return _Drawn(jax.vmap(one)(repeated, keys, kinds, steps), keys, kinds)


def _compute_answers(
    meshes: Sequence[Mesh], coarse: Ensemble, spec: Meshes, model: Model, drawn: _Drawn
) -> dict[str, np.ndarray]:
    """T and the answers on the coarse cells, refined until two levels agree."""
    last, difference, T = None, float("inf"), np.zeros(0)
    for level in range(1, spec.levels + 1):
        by_mesh = [
            _answer_mesh(mesh, coarse.member(k), level, spec, model, drawn.of_mesh(k)) for k, mesh in enumerate(meshes)
        ]
        T, answer = (np.concatenate(parts) for parts in zip(*by_mesh, strict=True))
        if last is not None:
            difference = float(np.abs(answer - last).sum() / np.abs(answer - T).sum())
        last = answer
        if difference <= spec.tolerance:
            break
    assert last is not None
    return {"T": T, "answer": last, "levels": np.array(level), "difference": np.array(difference)}


def _answer_mesh(
    mesh: Mesh, coarse: Ensemble, level: int, spec: Meshes, model: Model, drawn: _Drawn
) -> tuple[np.ndarray, np.ndarray]:
    """T and the answers of one mesh's problems, divided `level` times; `coarse` is the mesh that networks see."""
    fine, dtype = divide(mesh, level), str(coarse.x.dtype)
    graph = pad_graph(fine.graph, dtype=dtype)  # type: ignore[arg-type]
    # Padded like the coarse graph, so that coarse cell i consists of the 4^level cells from 4^level i on.
    cells, parts = len(coarse.graph.V), 4**level
    ghosts = (len(coarse.graph.shown["owner"].cell) - cells) * 2**level
    graph = pad_to_size(graph, padded_size(graph)._replace(cells=cells * parts, ghosts=ghosts))
    x = np.zeros((cells * parts, 2))
    x[: fine.graph.cells] = fine.x
    wall = np.zeros(len(graph.shown["owner"].cell), np.int32)
    wall[cells * parts : cells * parts + fine.graph.ghosts] = cells + fine.wall
    refined = _Fine(graph, put(x, dtype), put(wall), level, model, spec)
    fourier = float(_reference_numbers(refined, coarse, drawn).max())
    substeps = count_substeps(fourier, _MODES, real=model.equation.velocity is None)
    T, answer = _step_in_time(refined, coarse, drawn, jnp.asarray(substeps))
    return np.asarray(T), np.asarray(answer)


class _Fine(eqx.Module):
    """One divided mesh; `wall` is the coarse node whose value each of its ghosts has."""

    graph: PaddedGraph
    x: Float[Array, "cells 2"]
    wall: Int[Array, " nodes"]
    level: int = eqx.field(static=True)
    model: Model = eqx.field(static=True)
    spec: Meshes = eqx.field(static=True)

    def repeat(self, values: Float[Array, " coarse"]) -> Float[Array, " cells"]:
        """Values of coarse cells, repeated for the parts of each cell."""
        return jnp.repeat(values, 4**self.level)

    def average(self, values: Float[Array, " cells"]) -> Float[Array, " coarse"]:
        """The mean over the parts of each coarse cell, which have equal volumes."""
        return values.reshape(-1, 4**self.level).mean(axis=1)

    def put_problem(self, mesh: Ensemble, p: Problem, key: PRNGKeyArray) -> tuple[PaddedGraph, dict[str, Array]]:
        """The divided mesh with the walls and parameters of a coarse problem."""
        held = jnp.where(jnp.arange(len(self.wall)) < len(self.x), 0.0, p.graph.shown["dirichlet"].constant[self.wall])
        length, jumps = draw_parameters(mesh, key, self.model, self.spec.cell_size, self.spec.jumps)
        fine = {name: self.repeat(factor) for name, factor in jumps.items()}
        return self.model.put_on(self.graph.with_boundary(held), length, fine)

    def field(self, mesh: Ensemble, key: PRNGKeyArray, kind: Int[Array, ""]) -> Float[Array, " cells"]:
        """The field of `random_field`: smooth parts at the fine centroids, noise constant in the coarse cells."""
        of_smooth, of_noise, of_share = jax.random.split(jax.random.split(key, 5)[0], 3)
        dtype, cells = self.x.dtype, mesh.graph.V.shape[0]
        smooth = smooth_field(of_smooth, self.x)
        noise = self.repeat(jax.random.uniform(of_noise, mesh.x.shape[:1], dtype, -1.0, 1.0)[:cells])
        share = jax.random.uniform(of_share, (), dtype)
        return jnp.where(self.graph.live, choose_field(smooth, noise, share, kind), 0.0)


@eqx.filter_jit
def _reference_numbers(fine: _Fine, mesh: Ensemble, drawn: _Drawn) -> Float[Array, " problems"]:
    """Δt of the problems in reference steps of the divided mesh."""

    def one(p: Problem, key: PRNGKeyArray) -> Float[Array, ""]:
        graph, parameters = fine.put_problem(mesh, p, key)
        zero = jnp.zeros_like(graph.V)
        return p.dt * fastest_rate(graph, zero, parameters=parameters, equation=p.equation)

    return jax.vmap(one)(drawn.problems, drawn.keys)


@eqx.filter_jit
def _step_in_time(
    fine: _Fine, mesh: Ensemble, drawn: _Drawn, substeps: Int[Array, ""]
) -> tuple[Float[Array, "problems cells"], Float[Array, "problems cells"]]:
    """T and u(Δt) of some problems, averaged over the coarse cells, by the classical Runge–Kutta method."""

    def one(p: Problem, key: PRNGKeyArray, kind: Int[Array, ""]) -> tuple[Array, Array]:
        graph, parameters = fine.put_problem(mesh, p, key)
        S, u, h = fine.repeat(p.S), fine.field(mesh, key, kind), p.dt / substeps
        rate = consistent_rate(p.equation, graph, S, parameters)

        def advance(_: Any, u: State) -> State:
            return jnp.where(graph.live, classical_step(rate, u, h), 0.0)

        return fine.average(u), fine.average(jax.lax.fori_loop(0, substeps, advance, u))

    averages: tuple[Array, Array] = jax.vmap(one)(*drawn)
    return averages


def consistent_rate(
    equation: Equation, graph: PaddedGraph, S: State, parameters: dict[str, Array]
) -> Callable[[State], State]:
    """∂u/∂t by the corrected flux, or by the two-point flux where the equation does not diffuse or K is a tensor."""
    scheme = corrected_scheme(equation)
    if scheme is None:
        return lambda u: rate_on(graph, u, S, parameters=parameters, equation=equation)
    one = {**parameters, "dt": jnp.ones((), graph.V.dtype)}
    # Cells of padding have no neighbours, and no gradient.
    return lambda u: jnp.where(graph.live, evaluate_stages(scheme.stages, graph, u, S, parameters=one) - u, 0.0)


@cache
def corrected_scheme(equation: Equation) -> Scheme | None:
    """Euler's method with the corrected flux; None without diffusion and for a tensor, whose K n training data lack."""
    if equation.diffusion == 0 or equation.diffusion_tensor is not None:
        return None
    return find("corrected", equation)
