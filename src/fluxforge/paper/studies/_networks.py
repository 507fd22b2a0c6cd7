"""Trained networks of other parts, their residuals on unseen meshes, and what several seeds say together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge import recipe
from fluxforge._files import read_document
from fluxforge._types import State
from fluxforge.data import EnsembleSource, Model, Problem, hops_of, model_of, restepped, source, unseen_meshes
from fluxforge.distil import series
from fluxforge.gnn import Network, cast
from fluxforge.graph import evaluate_stages
from fluxforge.loss import averaged, defect_of, step_of
from fluxforge.paper.studies._records import Claim, Verdict
from fluxforge.pipeline import recipe_of
from fluxforge.run import RunFolder
from fluxforge.scheme import Hop, find
from fluxforge.train import train

# Where `higher-order` keeps its two networks, beside the other parts of a reproduction.
PART = "higher-order"
NAMES = ("midpoint", "two-hop")
# Where `rates` keeps its runs, RECIPE-SEED.
RATES = "rates"


def trained_before(folder: Path | None) -> dict[str, Network]:
    """The networks of `higher-order` that are trained to their end, by the name of their recipe.

    `folder` is another part's own, beside it.
    """
    if folder is None:
        return {}
    own = folder.parent / PART
    runs = {name: own / name for name in NAMES}
    if (own / f"{PART}.json").exists():
        # It has taken over a network that `rates` had trained.
        runs |= {name: of_rates(own, name, 0) for name, run in runs.items() if not run.exists()}
    return {f"network-{name}": _network(run) for name, run in runs.items() if _is_done(run)}


def of_rates(folder: Path, name: str, seed: int) -> Path:
    """The run folder of a recipe and a seed in `rates`, beside another part's folder."""
    return folder.parent / RATES / f"{name}-{seed}"


def run_of(spec: recipe.Recipe, folder: Path) -> Path:
    """Where a part runs this recipe: in its folder, unless `rates` beside it has finished the very same run."""
    own, other = folder / spec.name, of_rates(folder, spec.name, spec.seed)
    if (own / "run.json").exists() or not _is_done(other):
        return own
    with RunFolder.open(other, warn=lambda _: None) as held:
        same = recipe.fingerprint(recipe_of(held)) == recipe.fingerprint(spec)
    return other if same else own


def _is_done(run: Path) -> bool:
    return (run / "stages" / "discovery.json").exists()


def _network(run: Path) -> Network:
    with RunFolder.open(run, warn=lambda _: None) as folder:
        spec = recipe_of(folder)
        return train(spec, source(spec), folder=folder).member(0)


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


Outcome: TypeAlias = Literal["recovered", "approximation", "refused"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
# A sentence about trained networks is judged on that many seeds at least,
ENOUGH = 5
# holds if it is true of this share of them, and does not if it is true of fewer than half.
SHARE, HALF = 0.9, 0.5
UNTESTABLE: Verdict = "cannot be tested from the text"


@dataclass(frozen=True)
class Rate:
    """So many of so many seeds."""

    reached: int
    of: int

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.reached} of {self.of} seeds"

    def document(self) -> dict[str, int]:
        """As plain JSON."""
        return asdict(self)


def outcome(document: Mapping[str, Any]) -> Outcome:
    """The verdict of a discovery; documents of older runs have `recovered` alone."""
    if "verdict" not in document:
        return "recovered" if document.get("recovered") else "refused"
    found: Outcome = document["verdict"]
    return found


def constants_of(document: Mapping[str, Any]) -> dict[str, float]:
    """The constants of a discovery: the network's own in the limit of small steps, where it has any, or refitted ones.

    What the network does not determine is left out; without a formula there is nothing.
    """
    values = document.get("limit") or document.get("constants") or {}
    return {str(name): float(each) for name, each in values.items() if isinstance(each, int | float)}


def rationals_of(document: Mapping[str, Any]) -> dict[str, float]:
    """The fractions that a discovery takes its constants for, those that it takes for any."""
    return {str(name): float(Fraction(each)) for name, each in (document.get("rational") or {}).items()}


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """Median and quartiles over seeds; None of no values."""
    if not values:
        return None
    low, middle, high = (float(each) for each in np.quantile(values, (0.25, 0.5, 0.75)))
    return {"q1": low, "median": middle, "q3": high}


def weigh(claim: Claim, rate: Rate | None) -> Claim:
    """A claim that one network would have, judged on the seeds: it takes 9 of 10 to hold, and half for a condition.

    The given verdict is what is left to decide by the seeds: the best that the claim can have, or "does not hold" if
    that is known without any network. On fewer than five seeds there is no verdict.
    """
    if claim.verdict == "does not hold":
        return claim
    if rate is None or rate.of < ENOUGH:
        seeds = "one seed" if rate is None else f"{rate.of} seeds"
        why = f"Judged on {seeds}; it takes {ENOUGH} (fluxforge reproduce {RATES}). "
        return Claim(claim.name, claim.text, UNTESTABLE, why + claim.evidence)
    verdict: Verdict = claim.verdict
    if rate.reached < HALF * rate.of:
        verdict = "does not hold"
    elif rate.reached < SHARE * rate.of and verdict == "holds":
        verdict = "holds under a condition"
    condition = claim.condition if verdict == "holds under a condition" else ""
    return Claim(claim.name, claim.text, verdict, f"True of {rate.text}. {claim.evidence}", condition)


def rate_of(result: Mapping[str, Any], recipe: str, name: str) -> Rate | None:
    """A rate that a document took over from `rates`; None if that has not been run beside it."""
    found = ((result.get("rates") or {}).get(recipe) or {}).get("rates", {}).get(name)
    return None if found is None else Rate(found["reached"], found["of"])


def rates_before(folder: Path | None, recipes: Sequence[str]) -> dict[str, Any] | None:
    """What `rates` says of these recipes, without its rows; None if it has not been run in the same reproduction.

    `folder` is another part's own, beside it.
    """
    if folder is None or not (path := folder.parent / RATES / f"{RATES}.json").exists():
        return None
    return taken_over(read_document(path, RATES, 1), recipes)


def taken_over(document: Mapping[str, Any], recipes: Sequence[str]) -> dict[str, Any]:
    """The recipes of a document of `rates` as other parts keep them: counts and medians, no single seeds."""
    found = document["recipes"]
    return {
        name: {key: value for key, value in found[name].items() if key != "rows"} for name in recipes if name in found
    }
