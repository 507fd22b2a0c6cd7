"""Problems on meshes no network has seen."""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import sympy as sp
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge._types import Precision
from fluxforge.data._ensemble import Ensemble, ensemble, pose
from fluxforge.data._meshes import meshes
from fluxforge.data._model import PLAIN_HEAT, Model, fastest_rate, linearised, rate_on
from fluxforge.data._problem import Problem
from fluxforge.data._problem import problem as posed
from fluxforge.mesh import Conditions, Mesh
from fluxforge.scheme import Hop

# Far from the seeds that training draws.
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
    """Regular and irregular meshes of about the wanted number of cells, in turn."""
    wanted = recipe.Meshes(meshes=spec.meshes, cells=(spec.cells, spec.cells), engine=spec.engine)
    return meshes(wanted, seed + _UNSEEN)


def unseen_problems(
    around: Ensemble,
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
    dtype = around.x.dtype
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), _UNSEEN), around.meshes)
    steps = jnp.broadcast_to(jnp.asarray(fourier, dtype), (around.meshes,))
    kind = jnp.asarray(recipe.FIELDS.index(field))
    return _posed(around, keys, steps, kind, model, jnp.asarray(size, dtype), law)


@eqx.filter_jit
def _posed(
    around: Ensemble, keys: Array, steps: Array, kind: Array, model: Model, size: Array, law: sp.Expr | None
) -> Problem:
    def one(mesh: Ensemble, key: Array, fo: Array) -> Problem:
        return _enlarged(pose(mesh, key, field=kind, fourier=fo, model=model, law=law), size)

    return jax.vmap(one)(around, keys, steps)


def _enlarged(one: Problem, size: Float[Array, ""]) -> Problem:
    """T, S and boundary data times a number; the answer is that of the enlarged state."""
    held = one.around.holding(size * one.around.shown["dirichlet"].constant)
    T, S = size * one.T, size * one.S
    return posed(held, T, S, dt=one.dt, parameters=one.parameters, equation=one.equation, law=one.law)


@eqx.filter_jit
def stability_limits(around: Ensemble, model: Model = PLAIN_HEAT) -> Float[Array, " meshes"]:
    """2/λ_max over Δt_ref: the largest stable step of the first-order scheme of a linear diffusion, in reference steps.

    λ_max by power iteration, from below: the limit is from above, by less than a per cent.
    """

    def one(mesh: Ensemble) -> Float[Array, ""]:
        put, parameters = model.put_on(mesh.around)
        zero = jnp.zeros_like(put.V)
        L = linearised(lambda T: rate_on(put, T, zero, parameters=parameters, equation=model.equation), zero)

        def once(_: Any, v: Float[Array, " cells"]) -> Float[Array, " cells"]:
            w = jnp.where(mesh.around.live, L(v), 0.0)
            return w / jnp.linalg.norm(w)

        start = jnp.where(mesh.around.live, jnp.sin(jnp.arange(len(mesh.around.V), dtype=mesh.x.dtype)), 0.0)
        v = jax.lax.fori_loop(0, _POWER_STEPS, once, start)
        fastest = jnp.linalg.norm(jnp.where(mesh.around.live, L(v), 0.0))
        return 2.0 / fastest * fastest_rate(put, zero, parameters=parameters, equation=model.equation)

    return jax.vmap(one)(around)
