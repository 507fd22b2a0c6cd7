"""Sources of training batches: the one of a recipe, and problems whose answers are computed by refinement.

For refined answers, cells are divided several times, stepped to the same time, and averaged back. On the divided cells
the flux is the corrected one, which converges on every mesh, if the equation diffuses, and otherwise the two-point
flux. Smooth fields are evaluated there, and the network is given their averages over its own cells; noise is constant
in each of these. Sources and the values of walls are those of the coarse mesh.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from msgspec.structs import replace
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from fluxforge._files import atomic_path, open_regular
from fluxforge._types import Precision, State
from fluxforge.data._ensemble import Ensemble, EnsembleSource, draw_parameters, ensemble, pose, smooth_field
from fluxforge.data._meshes import cache_folder, divide, meshes
from fluxforge.data._model import Model, model_of
from fluxforge.data._pairs import PairSource, two_cells
from fluxforge.data._problem import (
    AbstractSource,
    FixedSource,
    Problem,
    classical_step,
    count_substeps,
    draw_problems,
    fastest_rate,
    rate_on,
)
from fluxforge.errors import InputError, StorageError
from fluxforge.gnn._build import hops_of
from fluxforge.graph._pad import pad_graph, pad_to_size, padded_size
from fluxforge.graph._padded_graph import PaddedGraph, put
from fluxforge.graph._stages import evaluate_stages
from fluxforge.mesh._mesh import Mesh
from fluxforge.pde._document import to_document
from fluxforge.pde._equation import Equation
from fluxforge.recipe._recipe import FIELDS, Experiment, Meshes, Pairs, Recipe, Rows, Skew, TwoCells
from fluxforge.scheme._document import find
from fluxforge.scheme._scheme import Hop, Scheme

# Folded into the seed's key for data; networks fold in small numbers, so that both are independent.
_DATA = 2**30


def source(spec: Recipe, hops: Iterable[Hop] | None = None, *, dtype: Precision | None = None) -> AbstractSource:
    """The source of a recipe's training problems; reproducible from the seed in either of JAX's precision modes.

    Graphs have the hops of the recipe's network, unless others are given. Raises InputError for data without meshes.
    """
    hops = hops_of(spec.network) if hops is None else hops
    dtype = spec.training.precision if dtype is None else dtype
    with jax.enable_x64(dtype == "float64"):
        return _source(spec, hops, dtype)


def _source(spec: Recipe, hops: Iterable[Hop], dtype: Precision) -> AbstractSource:
    match spec.data:
        case TwoCells():
            key = jax.random.fold_in(jax.random.key(spec.seed), _DATA)
            return FixedSource(two_cells(spec.data, key, model=model_of(spec), dtype=dtype))
        case Pairs():
            return PairSource(spec.data, model_of(spec), dtype)
        case Meshes(target="refined"):
            coarse = _ensemble(spec.data, spec.seed, tuple(hops), dtype)
            return refined_source(
                meshes(spec.data, spec.seed), coarse, spec.data, model_of(spec), seed=spec.seed, dtype=dtype
            )
        case Meshes():
            return EnsembleSource(_ensemble(spec.data, spec.seed, tuple(hops), dtype), spec.data, model_of(spec))
        case Experiment() | Skew():
            raise InputError(f"recipe {spec.name!r}: field 'data.kind': such data have fluxes, and no meshes to step")
        case Rows():
            raise InputError(
                f"recipe {spec.name!r}: field 'data.kind': rows train limiters, and have no meshes to step"
            )


def _ensemble(data: Meshes, seed: int, hops: tuple[Hop, ...], dtype: Precision) -> Ensemble:
    if data.files:
        return ensemble(meshes(data, seed), hops, dtype=dtype)
    # Fields that do not change the meshes get one value, so that recipes which differ in them share the cache.
    bare = replace(data, fields=FIELDS, fourier=(0.5, 0.5), law=None, noise=0.0, target="step")
    return _generate_ensemble(bare, seed, hops, dtype)


@lru_cache(maxsize=4)
def _generate_ensemble(data: Meshes, seed: int, hops: tuple[Hop, ...], dtype: Precision) -> Ensemble:
    """Ensemble of generated meshes, cached: they take seconds, and one run uses the same ones many times."""
    return ensemble(meshes(data, seed), hops, dtype=dtype)


# Part of the cache's key; incremented whenever the same recipe gives other answers.
VERSION = 1
# Problems per mesh, which are solved together.
PROBLEMS = 8
_KEY = 2**25
# Largest error of any mode by the integration in time: far below the differences between levels.
_MODES = 1e-6


class RefinedSource(AbstractSource):
    """A fixed set of problems with refined answers, drawn from with replacement.

    `difference` is that of the last two levels' answers, over the change of the step, on average.
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
    """Problems on every mesh with answers by so many levels that the last two differ by at most `spec.tolerance`.

    There are at most `spec.levels`. Answers are cached. Raises InputError for cells that are not triangles.
    """
    words = json.dumps([VERSION, PROBLEMS, recipe_words(spec), seed, dtype, to_document(model.equation), model.values])
    digest = hashlib.sha256(words.encode() + b"".join(mesh.points.tobytes() for mesh in meshes)).hexdigest()
    place = cache_folder() / f"refined-{digest[:24]}.safetensors"
    posed, keys = _pose_problems(coarse, spec, model, seed)
    if (known := _load(place)) is None:
        known = _answer(meshes, coarse, spec, model, posed, keys)
        # If the cache cannot be written, the results are the same, and computed again next time.
        with suppress(InputError, StorageError, SafetensorError), atomic_path(place) as temporary:
            save_file(known, temporary)
    problems = eqx.tree_at(lambda p: (p.T, p.answer), posed, (put(known["T"], dtype), put(known["answer"], dtype)))
    return RefinedSource(problems, int(known["levels"]), float(known["difference"]))


def recipe_words(spec: Meshes) -> dict[str, object]:
    """The fields of a recipe's data that decide the answers; mesh files are identified by their points."""
    names = ("meshes", "cells", "kinds", "fields", "fourier", "tolerance", "levels", "cell_size", "jumps")
    return {name: getattr(spec, name) for name in names}


def _load(place: Path) -> dict[str, np.ndarray] | None:
    try:
        open_regular(place).close()
        arrays: dict[str, np.ndarray] = load_file(place)
    except (OSError, SafetensorError):
        return None
    return arrays if {"T", "answer", "levels", "difference"} <= set(arrays) else None


Keys = Array


@eqx.filter_jit
def _pose_problems(coarse: Ensemble, spec: Meshes, model: Model, seed: int) -> tuple[Problem, Keys]:
    """The problems of all meshes in turn, along a first axis, with the key of each."""
    kinds = jnp.array([FIELDS.index(kind) for kind in spec.fields])

    def one(mesh: Ensemble, key: PRNGKeyArray, kind: Int[Array, ""], fourier: Float[Array, ""]) -> Problem:
        return pose(mesh, key, field=kind, fourier=fourier, model=model, cell_size=spec.cell_size, jumps=spec.jumps)

    count = coarse.meshes * PROBLEMS
    of_problems, of_steps = jax.random.split(jax.random.fold_in(jax.random.key(seed), _KEY))
    keys = jax.random.split(of_problems, count)
    steps = jax.random.uniform(of_steps, (count,), coarse.x.dtype, *spec.fourier)
    repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, PROBLEMS, axis=0), coarse)
    return jax.vmap(one)(repeated, keys, kinds[jnp.arange(count) % len(kinds)], steps), keys


def _answer(
    meshes: Sequence[Mesh], coarse: Ensemble, spec: Meshes, model: Model, posed: Problem, keys: Keys
) -> dict[str, np.ndarray]:
    """T and the answers on the coarse cells, refined until two levels agree."""
    last, difference, T = None, float("inf"), np.zeros(0)
    for level in range(1, spec.levels + 1):
        by_mesh = [_answer_mesh(k, meshes, level, coarse, spec, model, posed, keys) for k in range(coarse.meshes)]
        T, answer = (np.concatenate(parts) for parts in zip(*by_mesh, strict=True))
        if last is not None:
            difference = float(np.abs(answer - last).sum() / np.abs(answer - T).sum())
        last = answer
        if difference <= spec.tolerance:
            break
    assert last is not None
    return {"T": T, "answer": last, "levels": np.array(level), "difference": np.array(difference)}


def _answer_mesh(
    k: int,
    meshes: Sequence[Mesh],
    level: int,
    coarse: Ensemble,
    spec: Meshes,
    model: Model,
    posed: Problem,
    keys: Keys,
) -> tuple[np.ndarray, np.ndarray]:
    """T and the answers of the problems of one mesh."""
    fine, dtype = divide(meshes[k], level), str(coarse.x.dtype)
    graph = pad_graph(fine.graph, dtype=dtype)  # type: ignore[arg-type]
    # Padded like the coarse graph, so that coarse cell i consists of the 4^level cells from 4^level i on.
    cells, parts = coarse.graph.V.shape[1], 4**level
    ghosts = (len(coarse.graph.shown["owner"].cell[k]) - cells) * 2**level
    graph = pad_to_size(graph, padded_size(graph)._replace(cells=cells * parts, ghosts=ghosts))
    x = np.zeros((cells * parts, 2))
    x[: fine.graph.cells] = fine.x
    wall = np.zeros(len(graph.shown["owner"].cell), np.int32)
    wall[cells * parts : cells * parts + fine.graph.ghosts] = cells + fine.wall
    mine = slice(k * PROBLEMS, (k + 1) * PROBLEMS)
    kinds = jnp.array([FIELDS.index(kind) for kind in spec.fields])
    refined = _Fine(graph, put(x, dtype), put(wall), level, model, spec)
    some = jax.tree.map(lambda leaf: leaf[mine], posed)
    which = kinds[jnp.arange(mine.start, mine.stop) % len(kinds)]
    # The largest Δt of the problems in reference steps of the divided mesh.
    fourier = float(_reference_numbers(refined, coarse.member(k), some, keys[mine]).max())
    substeps = count_substeps(fourier, _MODES, real=model.equation.velocity is None)
    T, answer = _resolve(refined, coarse.member(k), some, keys[mine], which, jnp.asarray(substeps))
    return np.asarray(T), np.asarray(answer)


class _Fine(eqx.Module):
    """One divided mesh; `wall` is the coarse node whose value each of its ghosts holds."""

    graph: PaddedGraph
    x: Float[Array, "cells 2"]
    wall: Int[Array, " nodes"]
    level: int = eqx.field(static=True)
    model: Model = eqx.field(static=True)
    spec: Meshes = eqx.field(static=True)

    def repeat(self, values: Float[Array, " coarse"]) -> Float[Array, " cells"]:
        """Values of the coarse cells in their parts."""
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
        mixed = share * smooth + (1.0 - share) * noise
        drawn = jnp.stack([{"smooth": smooth, "noise": noise, "mixed": mixed}[name] for name in FIELDS])[kind]
        return jnp.where(self.graph.live, drawn, 0.0)


@eqx.filter_jit
def _reference_numbers(fine: _Fine, mesh: Ensemble, some: Problem, keys: Keys) -> Float[Array, " problems"]:
    def one(p: Problem, key: PRNGKeyArray) -> Float[Array, ""]:
        graph, parameters = fine.put_problem(mesh, p, key)
        zero = jnp.zeros_like(graph.V)
        return p.dt * fastest_rate(graph, zero, parameters=parameters, equation=p.equation)

    return jax.vmap(one)(some, keys)


@eqx.filter_jit
def _resolve(
    fine: _Fine, mesh: Ensemble, some: Problem, keys: Keys, kinds: Int[Array, " problems"], substeps: Int[Array, ""]
) -> tuple[Float[Array, "problems cells"], Float[Array, "problems cells"]]:
    """T and u(Δt) of some problems, averaged over the coarse cells, by the classical Runge–Kutta method."""

    def one(p: Problem, key: PRNGKeyArray, kind: Int[Array, ""]) -> tuple[Array, Array]:
        graph, parameters = fine.put_problem(mesh, p, key)
        S, u, h = fine.repeat(p.S), fine.field(mesh, key, kind), p.dt / substeps
        rate = consistent_rate(p.equation, graph, S, parameters)

        def advance(_: Any, u: State) -> State:
            return jnp.where(graph.live, classical_step(rate, u, h), 0.0)

        return fine.average(u), fine.average(jax.lax.fori_loop(0, substeps, advance, u))

    averages: tuple[Array, Array] = jax.vmap(one)(some, keys, kinds)
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
    """Euler's method with the corrected flux, None where it needs what training data do not have."""
    if equation.diffusion == 0 or equation.diffusion_tensor is not None:
        return None
    return find("corrected", equation)
