"""Mean residuals of networks and schemes on meshes and fields that no network has seen."""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.data import EnsembleSource, Model, Problem, hops_of, model_of, restepped, unseen_meshes
from fluxforge.distil import series
from fluxforge.gnn import Network, cast
from fluxforge.graph import evaluate_stages
from fluxforge.loss import averaged, defect_of, step_of
from fluxforge.scheme import Hop, find

Step: TypeAlias = Callable[[Problem], State]
# Explicit schemes that networks are compared with.
SCHEMES = ("euler", "midpoint", "rk4")
PROBLEMS = 48


def held_out(spec: recipe.Recipe, fourier: tuple[float, float], *, meshes: int = 24, cells: int = 150) -> Problem:
    """Problems drawn as in training, on other meshes, with steps in this range."""
    assert isinstance(spec.data, recipe.Meshes)
    wanted = recipe.Evaluation(meshes=meshes, cells=cells, engine=spec.evaluation.engine)
    with jax.enable_x64(True):
        drawn = (spec.data.fields, model_of(spec), PROBLEMS)
        first = _at_fourier(wanted, spec.seed, hops_of(spec.network), drawn)
    steps = jax.random.uniform(jax.random.key(spec.seed), (PROBLEMS,), "float64", *fourier)
    return restepped(first, steps)


@lru_cache(maxsize=2)
def _at_fourier(
    wanted: recipe.Evaluation, seed: int, hops: tuple[Hop, ...], drawn: tuple[tuple[Any, ...], Model, int]
) -> Problem:
    """Problems with Δt the Fourier step: drawn once for all networks that are compared on them."""
    fields, model, count = drawn
    around = unseen_meshes(wanted, seed, hops=hops)
    data = recipe.Meshes(fourier=(1.0, 1.0), fields=fields)
    draw = jax.jit(lambda key: EnsembleSource(around, data, model).batch(key, count))
    problems: Problem = draw(jax.random.fold_in(jax.random.key(seed), 2**26))
    return problems


def residuals(network: Network, spec: recipe.Recipe, fourier: tuple[float, float]) -> dict[str, float]:
    """Mean |residual| of the network, of the explicit schemes and of Crank–Nicolson, by the recipe's own loss."""
    steps: dict[str, Step] = {"network": step_of(cast(network, "float64"))}
    steps |= {name: _explicit(name) for name in SCHEMES}
    steps["crank-nicolson"] = crank_nicolson
    problems = held_out(spec, fourier)
    return {name: float(_mean(step, spec.loss, problems)) for name, step in steps.items()}


@eqx.filter_jit
def _mean(step: Step, loss: recipe.Loss, problems: Problem) -> Float[Array, ""]:
    """Compiled once for every loss and scheme, and for networks of one shape."""
    defect = defect_of(loss)
    return jax.lax.map(lambda p: averaged(defect(p, step(p)), p, "l1"), problems).mean()


def constants(network: Network, spec: recipe.Recipe, fourier: float) -> dict[str, float]:
    """The network's step as a series in ΔtL at one step, nested as layers would do it."""
    order = spec.network.layers * spec.network.hops
    found = series(step_of(cast(network, "float64")), held_out(spec, (fourier, fourier)), order)
    return {**found.nested, "unexplained": found.unexplained}


@cache
def _explicit(name: str) -> Step:
    """Always the same function for a scheme, which is what compiled code is kept under."""
    stages = find(name).stages
    return lambda p: evaluate_stages(stages, p.graph, p.T, p.S, parameters=p.named)


def crank_nicolson(p: Problem) -> State:
    """(1 − ½ΔtL) T' = T + ½Δt (L T + boundary) + ½Δt boundary + Δt S, solved densely."""
    M = jnp.eye(len(p.T)) - 0.5 * p.dt * jax.jacfwd(p.rate)(p.T)
    return p.T + jnp.linalg.solve(M, p.dt * p.rate(p.T))


def ratio(found: Mapping[str, float], to: str) -> float:
    """How many times the network's residual the scheme's is."""
    return found[to] / found["network"]
