"""Mean residuals of networks and schemes on meshes and fields that no network has seen."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.data import EnsembleSource, Problem, exchange, hops_of, restepped, unseen_meshes
from fluxforge.distil import series
from fluxforge.gnn import Network, cast
from fluxforge.loss import averaged, defect_of, step_of
from fluxforge.scheme import Ghost, find
from fluxforge.simulate import staged

# Explicit schemes that networks are compared with.
SCHEMES = ("euler", "midpoint", "rk4")
PROBLEMS = 48


def held_out(spec: recipe.Recipe, fourier: tuple[float, float], *, meshes: int = 24, cells: int = 150) -> Problem:
    """Problems drawn as in training, on other meshes, with steps in this range."""
    first = _at_fourier(json.dumps(recipe.to_dict(spec)), meshes, cells, PROBLEMS)
    steps = jax.random.uniform(jax.random.key(spec.seed), (PROBLEMS,), "float64", *fourier)
    return restepped(first, steps)


@lru_cache(maxsize=2)
def _at_fourier(words: str, meshes: int, cells: int, count: int) -> Problem:
    """Problems with Δt the Fourier step; the recipe as text, since drawing them again would be compiled again."""
    spec = recipe.from_dict(json.loads(words), "recipe")
    wanted = recipe.Evaluation(meshes=meshes, cells=cells, engine=spec.evaluation.engine)
    around = unseen_meshes(wanted, spec.seed, hops=hops_of(spec.network))
    assert isinstance(spec.data, recipe.Meshes)
    data = recipe.Meshes(fourier=(1.0, 1.0), fields=spec.data.fields)
    draw = jax.jit(lambda key: EnsembleSource(around, data, spec.diffusivity).batch(key, count))
    problems: Problem = draw(jax.random.fold_in(jax.random.key(spec.seed), 2**26))
    return problems


def residuals(network: Network, spec: recipe.Recipe, fourier: tuple[float, float]) -> dict[str, float]:
    """Mean |residual| of the network, of the explicit schemes and of Crank–Nicolson, by the recipe's own loss."""
    problems = held_out(spec, fourier)
    steps: dict[str, Any] = {"network": step_of(cast(network, "float64"))}
    steps |= {name: _explicit(name) for name in SCHEMES}
    steps["crank-nicolson"] = crank_nicolson
    defect = defect_of(spec.loss)

    def mean(step: Any) -> float:
        every = jax.jit(lambda problems: jax.lax.map(lambda p: averaged(defect(p, step(p)), p, "l1"), problems))
        return float(every(problems).mean())

    return {name: mean(step) for name, step in steps.items()}


def constants(network: Network, spec: recipe.Recipe, fourier: float) -> dict[str, float]:
    """The network's step as a series in ΔtL at one step, nested as layers would do it."""
    order = spec.network.layers * spec.network.hops
    found = series(step_of(cast(network, "float64")), held_out(spec, (fourier, fourier)), order)
    return {**found.nested, "unexplained": found.unexplained}


def _explicit(name: str) -> Any:
    stages = find(name).stages
    return lambda p: staged(stages, p.around, p.T, p.S, parameters={"dt": p.dt, "alpha": p.diffusivity})


def crank_nicolson(p: Problem) -> State:
    """(1 − ½ΔtL) T' = T + ½Δt (L T + boundary) + ½Δt boundary + Δt S, solved densely."""
    rate = exchange(p.around, p.T, p.diffusivity) + p.S

    def half(u: State) -> State:
        return 0.5 * p.dt * exchange(p.around, u, p.diffusivity, Ghost.ZERO)

    M = jnp.eye(len(p.T)) - jax.jacfwd(half)(p.T)
    return p.T + jnp.linalg.solve(M, p.dt * rate)


def ratio(found: Mapping[str, float], to: str) -> float:
    """How many times the network's residual the scheme's is."""
    return found[to] / found["network"]
