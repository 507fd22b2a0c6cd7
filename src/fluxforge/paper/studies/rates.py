"""How often each shipped recipe finds what it expects: the same discovery with several seeds."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax

from fluxforge import recipe
from fluxforge.data import source
from fluxforge.paper.studies._networks import (
    OUTCOMES,
    Rate,
    constants_of,
    outcome,
    rationals_of,
    residuals,
    spread,
    weigh,
)
from fluxforge.paper.studies._records import Claim, Verdict
from fluxforge.pipeline import Progress, discover, environment, resume, run_folder, silent
from fluxforge.run import RunFolder
from fluxforge.train import train

NAME = "rates"
Warn = Callable[[str], None]
RECIPES = ("first-order", "first-order-direct", "first-order-pinn", "midpoint", "two-hop")
# Seeds per recipe. The recipes are the shipped ones, at their own size, at both presets.
SEEDS = {"quick": 5, "paper": 10}
# A residual is significantly lower than Euler's if it is at most that part of it.
LOWER = 0.5
# A constant is a number if it is within this part of it.
WITHIN = 0.02
# A power is a whole number if it is within this of it.
POWER = 0.3
HALF_STEP = {"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}
TWO_PATHS = {"a2": 1.0, "b": 0.5, "d": 1.0, "e": 0.5}
# What each recipe's constants are if it found the scheme that the paper speaks of; of a first-order one, all are 1.
WANTED: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "first-order": ("first-order scheme", {}),
    "first-order-direct": ("first-order scheme", {}),
    "first-order-pinn": ("first-order scheme", {}),
    "midpoint": ("midpoint rule", HALF_STEP),
    "two-hop": ("midpoint rule", TWO_PATHS),
}
# Powers of the two-hop coefficient that is the flux applied twice: ½ Δt² w_PN w_NQ/(V_P V_N), w = A/δ.
TWICE = {"A_PN": 1.0, "delta_PN": -1.0, "A_NQ": 1.0, "delta_NQ": -1.0, "V_P": -1.0, "V_N": -1.0, "dt": 2.0}


@dataclass(frozen=True)
class Config:
    """Which recipes, with how many seeds each: the first is the recipe's own, the others follow it."""

    preset: str = "quick"
    changes: Mapping[str, Any] = field(default_factory=dict)
    recipes: tuple[str, ...] = RECIPES
    seeds: int | None = None

    @property
    def networks(self) -> int:
        """The seeds asked for, or the preset's."""
        return int(self.changes.get("seeds") or self.seeds or SEEDS[self.preset])


def run(
    config: Config, folder: Path | None = None, tell: Progress = silent, warn: Warn = lambda _: None
) -> dict[str, Any]:
    """Every recipe with every seed, each in a run folder RECIPE-SEED of its own; what is finished is collected.

    `fluxforge discover RECIPE --seed K -o FOLDER/rates/RECIPE-K` makes such a run folder, so that the seeds can be run
    by other processes beforehand, on cores of their own.
    """
    if folder is None:
        with TemporaryDirectory() as scratch:
            return run(config, Path(scratch), tell, warn)
    wanted = [(name, k) for name in config.recipes for k in range(config.networks)]
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in config.recipes}
    about = {}
    for done, (name, k) in enumerate(wanted):
        spec = _spec(config, name, k)
        tell(f"{name}, seed {spec.seed}", done, len(wanted))
        rows[name].append(_row(spec, _document(spec, folder, _named(tell, spec), warn), folder, warn))
        about[name] = _about(spec)
    result = {
        "experiment": NAME,
        "preset": config.preset,
        "seeds": config.networks,
        "recipes": {name: about[name] | _together(name, each) for name, each in rows.items()},
        "environment": environment(),
    }
    return result | {"claims": [claim.document() for claim in check(result)]}


def _spec(config: Config, name: str, k: int) -> recipe.Recipe:
    changes = {key: value for key, value in config.changes.items() if key != "seeds"}
    spec = recipe.load(name)
    return recipe.override(spec, {**changes, "seed": spec.seed + k, "seeds": 1})


def _about(spec: recipe.Recipe) -> dict[str, Any]:
    """What a verdict on the recipe depends on: the outcome it expects, what its update builds in, and its loss."""
    return {
        "expected": spec.expect,
        "update": spec.network.update,
        "theta": None if spec.loss.residual is None else spec.loss.residual.theta,
    }


def _named(tell: Progress, spec: recipe.Recipe) -> Progress:
    return lambda what, done, total: tell(f"{spec.name}, seed {spec.seed}: {what}", done, total)


def _document(spec: recipe.Recipe, folder: Path, tell: Progress, warn: Warn) -> Mapping[str, Any]:
    """The document of one seed's discovery: read, continued, or made."""
    own = folder / f"{spec.name}-{spec.seed}"
    if not (own / "run.json").exists():
        return discover(spec, own, tell=tell, warn=warn).document
    # Refused where the run is of another recipe, before it is gone on with.
    with run_folder(own, spec, warn=warn):
        pass
    return resume(own, tell=tell, warn=warn).document


def _row(spec: recipe.Recipe, document: Mapping[str, Any], folder: Path, warn: Warn) -> dict[str, Any]:
    """One seed: its verdict, how much of the network its formula explains at least, and the formula's constants."""
    verdict = outcome(document)
    return {
        "seed": spec.seed,
        "verdict": verdict,
        # Runs of older versions do not say it.
        "as_expected": bool(document.get("as_expected", verdict in ("recovered", spec.expect))),
        "explained": (document.get("explained") or {}).get("least"),
        "constants": constants_of(document),
        "rational": rationals_of(document),
        "far": ((document.get("laws") or {}).get("far") or {}).get("exponents"),
        "residual": _residual(spec, folder / f"{spec.name}-{spec.seed}", warn),
        "reason": next((text for text in document.get("reasons", ()) if not text.startswith("yes")), None),
        "seconds": sum((document.get("seconds") or {}).values()),
    }


def _residual(spec: recipe.Recipe, folder: Path, warn: Warn) -> dict[str, float] | None:
    """Mean residuals of the network and of schemes on unseen meshes, for recipes that train on meshes."""
    if not isinstance(spec.data, recipe.Meshes) or spec.loss.residual is None:
        return None
    with RunFolder.open(folder, warn=warn) as held:
        done = held.finished("residual")
        if done is None:
            network = train(spec, source(spec), folder=held).member(0)
            with jax.enable_x64(True):
                done = residuals(network, spec, spec.data.fourier)
            held.finish("residual", done)
    return done


def _together(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rates and medians over the seeds of one recipe."""
    verdicts = {each: sum(row["verdict"] == each for row in rows) for each in OUTCOMES}
    rates = {key: Rate(sum(map(bool, found)), len(found)) for key, found in _judged(name, rows).items()}
    constants = sorted({key for row in rows for key in row["constants"]})
    medians = {
        "explained": spread([row["explained"] for row in rows if row["explained"] is not None]),
        "residual over Euler's": spread([_over_euler(row["residual"]) for row in rows if row["residual"] is not None]),
        **{key: spread([row["constants"][key] for row in rows if key in row["constants"]]) for key in constants},
    }
    return {
        "verdicts": verdicts,
        "rate": Rate(sum(row["as_expected"] for row in rows), len(rows)).document(),
        "rates": {key: rate.document() for key, rate in rates.items()},
        "medians": {key: found for key, found in medians.items() if found is not None},
        "seconds": spread([row["seconds"] for row in rows]),
        "rows": list(rows),
    }


def _over_euler(found: Mapping[str, float]) -> float:
    return found["network"] / found["euler"]


def _judged(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[bool]]:
    """What is true of each seed, by what it is called."""
    called, wanted = WANTED.get(name, ("expected scheme", {}))
    found = {called: [row["verdict"] == "recovered" and _is(row, wanted) for row in rows]}
    if all(row["residual"] is not None for row in rows):
        found["lower residual than Euler"] = [_over_euler(row["residual"]) <= LOWER for row in rows]
    if name == "two-hop":
        found["two-hop term without A and δ"] = [row["far"] is not None and _is_flat(row["far"]) for row in rows]
        twice = [_is_flux_twice(row) for row in rows]
        found["two-hop term is the flux twice"] = twice
        found["two-hop term is something else"] = [
            row["far"] is not None and not own for row, own in zip(rows, twice, strict=True)
        ]
    return found


def _is(row: Mapping[str, Any], wanted: Mapping[str, float]) -> bool:
    """Whether constants are the wanted ones, or all one: by the fraction each is taken for, or else by its value."""
    values = {**row["constants"], **row["rational"]}
    wanted = wanted or dict.fromkeys(values, 1.0)
    return bool(values) and all(
        abs(values.get(key, math.inf) - value) <= WITHIN * value for key, value in wanted.items()
    )


def _is_flat(exponents: Mapping[str, float]) -> bool:
    return all(abs(power) <= POWER for name, power in exponents.items() if name[0] in "Ad" and name != "dt")


def _is_flux_twice(row: Mapping[str, Any]) -> bool:
    """Whether a formula with the flux applied twice was recovered, or the powers of the two-hop term alone say so.

    Powers are fitted to weights of all sizes, and are off by up to a half where the formula explains 99 % of the step.
    """
    recovered = row["verdict"] == "recovered" and _is(row, TWO_PATHS)
    return recovered or (row["far"] is not None and _is_twice(row["far"]))


def _is_twice(exponents: Mapping[str, float]) -> bool:
    return all(abs(exponents.get(name, 0.0) - power) <= POWER for name, power in TWICE.items())


# The words that a verdict on a network begins with if its update adds what it is to find.
BUILT_IN = "with T + Δt/V built into the network"
OTHER_LOSS = "with another loss than printed"
SMALL_STEPS = "in the limit of small steps"
# The loss as printed takes the Laplacian of the network's output.
AS_PRINTED = 1.0

TEXTS: Mapping[str, tuple[str, str]] = {
    "first-order": ("the network learns the exact corresponding first-order FV scheme", "first-order scheme"),
    "first-order-direct": ("the same, where the network predicts the new temperature itself", "first-order scheme"),
    "first-order-pinn": (
        "the same architecture trained using a physics-informed loss also exactly rediscovers the first-order scheme",
        "first-order scheme",
    ),
    "two-hop": ("a second-order scheme with a correction term exploiting the 2-hop stencil", "midpoint rule"),
    "midpoint": ("an explicit-midpoint scheme, similar to a second-order Runge-Kutta scheme", "midpoint rule"),
}


def check(result: Mapping[str, Any]) -> list[Claim]:
    """One claim per recipe that was run."""
    return [_recipe(name, result["recipes"][name]) for name in TEXTS if name in result["recipes"]]


def _recipe(name: str, found: Mapping[str, Any]) -> Claim:
    text, called = TEXTS[name]
    conditions = _conditions(found)
    verdict: Verdict = "holds under a condition" if conditions else "holds"
    counts = ", ".join(f"{key} {count}" for key, count in found["verdicts"].items())
    medians = ", ".join(
        f"{key} {each['median']:.4g} [{each['q1']:.4g}, {each['q3']:.4g}]" for key, each in found["medians"].items()
    )
    evidence = f"Recipe {name}: {counts}; it is the {called} in {Rate(**found['rates'][called]).text}"
    evidence += f"; medians and quartiles: {medians}." if medians else "."
    claim = Claim(f"rates-{name}", text, verdict, evidence, ", ".join(conditions))
    return weigh(claim, Rate(**found["rates"][called]))


def _conditions(found: Mapping[str, Any]) -> list[str]:
    """What the recipe does otherwise than the paper says."""
    conditions = [BUILT_IN] if found["update"] == "residual" else []
    if found["theta"] is not None:
        conditions.append(SMALL_STEPS if found["theta"] == AS_PRINTED else f"{OTHER_LOSS} (θ = {found['theta']:g})")
    return conditions
