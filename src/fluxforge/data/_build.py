"""Problems of a recipe: the source of its training batches, and problems on meshes that training does not see."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import sympy as sp
from jaxtyping import Array, Float
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge._types import Precision
from fluxforge.data._ensemble import Ensemble, EnsembleSource, ensemble, pose
from fluxforge.data._meshes import meshes
from fluxforge.data._model import PLAIN_HEAT, Model, model_of
from fluxforge.data._pairs import PairSource, two_cells
from fluxforge.data._problem import (
    AbstractSource,
    FixedSource,
    Problem,
    fastest_rate,
    linearise,
    problem,
    rate_on,
)
from fluxforge.data._refined import refined_source
from fluxforge.errors import InputError
from fluxforge.mesh._boundary import Conditions
from fluxforge.mesh._mesh import Mesh
from fluxforge.scheme._scheme import Hop

# Folded into the seed's key for data; networks fold in small numbers, so that both are independent.
_DATA = 2**30


def hops_of(spec: recipe.Network) -> tuple[Hop, ...]:
    """The hops over which a network's messages are summed."""
    return (Hop.EDGE, Hop(spec.two_hop)) if spec.hops == 2 else (Hop.EDGE,)


def source(spec: recipe.Recipe, hops: Iterable[Hop] | None = None, *, dtype: Precision | None = None) -> AbstractSource:
    """The source of a recipe's training problems; reproducible from the seed in either of JAX's precision modes.

    Graphs have the hops of the recipe's network, unless others are given. Raises InputError for data without meshes.
    """
    hops = hops_of(spec.network) if hops is None else hops
    dtype = spec.training.precision if dtype is None else dtype
    with jax.enable_x64(dtype == "float64"):
        return _source(spec, hops, dtype)


def _source(spec: recipe.Recipe, hops: Iterable[Hop], dtype: Precision) -> AbstractSource:
    match spec.data:
        case recipe.TwoCells():
            key = jax.random.fold_in(jax.random.key(spec.seed), _DATA)
            return FixedSource(two_cells(spec.data, key, model=model_of(spec), dtype=dtype))
        case recipe.Pairs():
            return PairSource(spec.data, model_of(spec), dtype)
        case recipe.Meshes(target="refined"):
            coarse = _ensemble(spec.data, spec.seed, tuple(hops), dtype)
            own = meshes(spec.data, spec.seed)
            return refined_source(own, coarse, spec.data, model_of(spec), seed=spec.seed, dtype=dtype)
        case recipe.Meshes():
            return EnsembleSource(_ensemble(spec.data, spec.seed, tuple(hops), dtype), spec.data, model_of(spec))
        case recipe.Experiment() | recipe.Skew():
            raise InputError(f"recipe {spec.name!r}: field 'data.kind': such data have fluxes, and no meshes to step")
        case recipe.Rows():
            raise InputError(
                f"recipe {spec.name!r}: field 'data.kind': rows train limiters, and have no meshes to step"
            )


def _ensemble(data: recipe.Meshes, seed: int, hops: tuple[Hop, ...], dtype: Precision) -> Ensemble:
    if data.files:
        return ensemble(meshes(data, seed), hops, dtype=dtype)
    # Fields that do not change the meshes get one value, so that recipes which differ in them share the cache.
    bare = replace(data, fields=recipe.FIELDS, fourier=(0.5, 0.5), law=None, noise=0.0, target="step")
    return _generate_ensemble(bare, seed, hops, dtype)


@lru_cache(maxsize=4)
def _generate_ensemble(data: recipe.Meshes, seed: int, hops: tuple[Hop, ...], dtype: Precision) -> Ensemble:
    """Ensemble of generated meshes, cached: they take seconds, and one run uses the same ones many times."""
    return ensemble(meshes(data, seed), hops, dtype=dtype)


# Added to the seed for evaluation; training draws from other seeds.
_UNSEEN = 10**6
_POWER_STEPS = 200


def unseen_meshes(
    spec: recipe.Evaluation,
    seed: int,
    *,
    hops: Iterable[Hop] = (Hop.EDGE,),
    boundary: Conditions = None,
    dtype: Precision = "float64",
) -> Ensemble:
    """The meshes of `evaluation_meshes` as one padded batch."""
    return ensemble(evaluation_meshes(spec, seed), hops, boundary=boundary, dtype=dtype)


def evaluation_meshes(spec: recipe.Evaluation, seed: int) -> list[Mesh]:
    """Alternately regular and irregular meshes of about `spec.cells` cells, from seeds that training does not use."""
    wanted = recipe.Meshes(meshes=spec.meshes, cells=(spec.cells, spec.cells), engine=spec.engine)
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
    kind = jnp.asarray(recipe.FIELDS.index(field))
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
def stability_limits(ensemble: Ensemble, model: Model = PLAIN_HEAT) -> Float[Array, " meshes"]:
    """2/λ_max over Δt_ref: the largest stable step of the first-order scheme of a linear diffusion, in reference steps.

    Power iteration approaches λ_max from below, so that the limit is too large, by less than a per cent.
    """

    def one(mesh: Ensemble) -> Float[Array, ""]:
        put, parameters = model.put_on(mesh.graph)
        zero = jnp.zeros_like(put.V)
        L = linearise(lambda T: rate_on(put, T, zero, parameters=parameters, equation=model.equation), zero)

        def once(_: Any, v: Float[Array, " cells"]) -> Float[Array, " cells"]:
            w = jnp.where(mesh.graph.live, L(v), 0.0)
            return w / jnp.linalg.norm(w)

        start = jnp.where(mesh.graph.live, jnp.sin(jnp.arange(len(mesh.graph.V), dtype=mesh.x.dtype)), 0.0)
        v = jax.lax.fori_loop(0, _POWER_STEPS, once, start)
        fastest = jnp.linalg.norm(jnp.where(mesh.graph.live, L(v), 0.0))
        return 2.0 / fastest * fastest_rate(put, zero, parameters=parameters, equation=model.equation)

    return jax.vmap(one)(ensemble)
