"""Reading trained networks of other parts, and residuals of networks and schemes on unseen meshes."""

from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from msgspec import UNSET, Struct, UnsetType
from msgspec import field as named

from fluxforge import recipe
from fluxforge._types import State
from fluxforge.data._ensemble import EnsembleSource, unseen_meshes
from fluxforge.data._model import Model, model_of
from fluxforge.data._problem import Problem, scale_step
from fluxforge.data._source import source
from fluxforge.distil._constants import Limit
from fluxforge.distil._stencil import series
from fluxforge.gnn._build import hops_of
from fluxforge.gnn._network import AbstractNetwork, Network, cast
from fluxforge.graph._stages import evaluate_stages
from fluxforge.loss._loss import defect_of, mean_defect, step_of
from fluxforge.paper.studies._records import to_number
from fluxforge.pde._equation import HEAT
from fluxforge.pipeline._discover import discover, resume
from fluxforge.pipeline._folder import recipe_of, run_folder
from fluxforge.pipeline._run import load_run
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, Warn
from fluxforge.run.result import Discovery
from fluxforge.scheme._document import find
from fluxforge.scheme._scheme import Hop
from fluxforge.train._train import train

# The parts in whose folders, beside those of the other parts, networks of these recipes are stored.
HIGHER_ORDER, RATES = "higher-order", "rates"
NAMES = ("midpoint", "two-hop")
# Name of the folder, beside the parts, of a run of `fluxforge discover carry`: its network is in the form of a flux.
CARRY = "carry"


class Residuals(Struct, frozen=True):
    """Mean |residual| on unseen meshes of a network, of explicit schemes and of Crank–Nicolson."""

    network: float
    euler: float
    midpoint: float
    rk4: float
    crank_nicolson: float = named(name="crank-nicolson")


class ConstantsRow(Struct, frozen=True, kw_only=True):
    """The constants of least residual at one Δt, and their numerical errors."""

    step: float
    constants: dict[str, float]
    # Absent from documents of older versions.
    error: dict[str, float | None] | UnsetType = UNSET
    loss: float


def read_networks(folder: Path) -> dict[str, AbstractNetwork]:
    """The trained networks of `higher-order`, under the names `network-RECIPE`; those not finished are absent.

    `folder` is that of another part, beside the folder of `higher-order`. If there is a finished run `carry` of the
    heat equation beside both, its network in the form of a flux is included.
    """
    part = folder.parent / HIGHER_ORDER
    runs = {name: part / name for name in NAMES}
    if (part / f"{HIGHER_ORDER}.json").exists():
        # A network that `rates` had trained was not trained again by `higher-order`.
        runs |= {name: find_rates_run(part, name, 0) for name, run in runs.items() if not run.exists()}
    networks: dict[str, AbstractNetwork] = {
        f"network-{name}": _load_network(run) for name, run in runs.items() if _is_done(run)
    }
    beside = folder.parent / CARRY
    if (beside / "stages" / f"{CARRY}.json").exists() and (run := load_run(beside)).network.equation == HEAT:
        networks[f"network-{CARRY}"] = run.network.network
    return networks


def find_rates_run(folder: Path, name: str, seed: int) -> Path:
    """The path of the run folder of a recipe and seed in `rates`; `folder` is that of another part."""
    return folder.parent / RATES / f"{name}-{seed}"


def choose_run(spec: recipe.Recipe, folder: Path) -> Path:
    """The run folder of a recipe in a part: that of `rates` if the same run is finished there, else in `folder`."""
    own, other = folder / spec.name, find_rates_run(folder, spec.name, spec.seed)
    if (own / "run.json").exists() or not _is_done(other):
        return own
    with RunFolder.open(other, warn=lambda _: None) as held:
        same = recipe.fingerprint(recipe_of(held)) == recipe.fingerprint(spec)
    return other if same else own


def discover_in(spec: recipe.Recipe, folder: Path, tell: Progress, warn: Warn) -> Discovery:
    """The result of a discovery in a run folder: a finished one is read, others are continued or started.

    Raises InputError if the folder has a run of another recipe.
    """
    if (folder / "run.json").exists():
        # Raises InputError if the run is of another recipe, before it is continued.
        with run_folder(folder, spec, warn=warn):
            pass
        finished = resume(folder, tell=tell, warn=warn)
    else:
        finished = discover(spec, folder, tell=tell, warn=warn)
    assert isinstance(finished.result, Discovery)
    return finished.result


def _is_done(run: Path) -> bool:
    return (run / "stages" / "discovery.json").exists()


def _load_network(run: Path) -> Network:
    with RunFolder.open(run, warn=lambda _: None) as folder:
        spec = recipe_of(folder)
        return train(spec, source(spec), folder=folder).member(0)


Step: TypeAlias = Callable[[Problem], State]
# Explicit schemes that networks are compared with, in the order of `Residuals`.
SCHEMES = ("euler", "midpoint", "rk4")
PROBLEMS = 48


def draw_unseen(spec: recipe.Recipe, fourier: tuple[float, float], *, meshes: int = 24, cells: int = 150) -> Problem:
    """Problems drawn as in training, on unseen meshes, with Δt uniform in the range `fourier` of Fourier steps."""
    assert isinstance(spec.data, recipe.Meshes)
    evaluation = recipe.Evaluation(meshes=meshes, cells=cells, engine=spec.evaluation.engine)
    with jax.enable_x64(True):
        data = recipe.Meshes(fourier=(1.0, 1.0), fields=spec.data.fields)
        first = _draw_at_fourier(evaluation, spec.seed, hops_of(spec.network), (data, model_of(spec), PROBLEMS))
    steps = jax.random.uniform(jax.random.key(spec.seed), (PROBLEMS,), "float64", *fourier)
    return scale_step(first, steps)


@lru_cache(maxsize=2)
def _draw_at_fourier(
    evaluation: recipe.Evaluation, seed: int, hops: tuple[Hop, ...], drawn: tuple[recipe.Meshes, Model, int]
) -> Problem:
    """Problems with Δt of one Fourier step; cached, so that all networks are compared on the same ones."""
    data, model, count = drawn
    around = unseen_meshes(evaluation, seed, hops=hops)
    draw = jax.jit(lambda key: EnsembleSource(around, data, model).batch(key, count))
    problems: Problem = draw(jax.random.fold_in(jax.random.key(seed), 2**26))
    return problems


def measure_residuals(network: Network, spec: recipe.Recipe, fourier: tuple[float, float]) -> Residuals:
    """The mean residuals of a network and of schemes on unseen meshes, by the residual of the recipe's loss."""
    steps: list[Step] = [step_of(cast(network, "float64")), *map(_make_step, SCHEMES), step_crank_nicolson]
    problems = draw_unseen(spec, fourier)
    return Residuals(*(float(_average_residual(step, spec.loss, problems)) for step in steps))


@eqx.filter_jit
def _average_residual(step: Step, loss: recipe.Loss, problems: Problem) -> Float[Array, ""]:
    """Mean |residual| of a step over problems; compiled once per loss and scheme, and per shape of networks."""
    defect = defect_of(loss)
    return jax.lax.map(lambda p: mean_defect(defect(p, step(p)), p, "l1"), problems).mean()


def make_constants_rows(limit: Limit) -> list[ConstantsRow]:
    """The constants of least residual as records, one per Δt, longest first; an error that is not finite is None."""
    return [
        ConstantsRow(
            step=step,
            constants=dict(values),
            error={name: to_number(error) for name, error in errors.items()},
            loss=loss,
        )
        for step, values, errors, loss in zip(limit.steps, limit.values, limit.errors, limit.losses, strict=True)
    ]


def measure_constants(network: Network, spec: recipe.Recipe, fourier: float) -> dict[str, float]:
    """The coefficients of the network's step as a series in ΔtL, in nested form, and the share left unexplained."""
    order = spec.network.layers * spec.network.hops
    expansion = series(step_of(cast(network, "float64")), draw_unseen(spec, (fourier, fourier)), order)
    return {**expansion.nested, "unexplained": expansion.unexplained}


@cache
def _make_step(name: str) -> Step:
    """The step of an explicit scheme; cached, since JAX reuses compiled code only for the same function object."""
    stages = find(name).stages
    return lambda p: evaluate_stages(stages, p.graph, p.T, p.S, parameters=p.step_parameters)


def step_crank_nicolson(p: Problem) -> State:
    """The field after a step (1 − ½ΔtL) T' = T + ½Δt (L T + boundary) + ½Δt boundary + Δt S, by a dense solver."""
    M = jnp.eye(len(p.T)) - 0.5 * p.dt * jax.jacfwd(p.rate)(p.T)
    return p.T + jnp.linalg.solve(M, p.dt * p.rate(p.T))
