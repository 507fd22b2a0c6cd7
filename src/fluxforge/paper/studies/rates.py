"""How often each shipped recipe ends with the expected verdict: the same discovery with several seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import jax
import numpy as np
from msgspec import Struct, convert, to_builtins

from fluxforge import recipe
from fluxforge.data._source import source
from fluxforge.paper.studies._networks import Residuals, discover_in, measure_residuals
from fluxforge.paper.studies._records import (
    BUILT_IN,
    OUTCOMES,
    SMALL_STEPS,
    Claim,
    Outcome,
    Rate,
    Spread,
    StudyConfig,
    Tally,
    find_objection,
    to_verdict,
    weigh,
)
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, Warn, prefix_progress, silent
from fluxforge.run.result import Discovery
from fluxforge.train._train import train

NAME = "rates"
# Number of seeds per recipe, by preset. The recipes have the shipped sizes at both presets.
SEEDS = {"quick": 5, "paper": 10}
# A residual is significantly lower than Euler's if it is at most this share of it.
LOWER = 0.5
# A constant counts as equal to a number if it differs by at most this share of it.
CONSTANT_TOLERANCE = 0.02
# A power counts as a whole number if it differs by at most this.
POWER = 0.3
HALF_STEP = {"a1": 0.5, "c1": 0.5, "a2": 1.0, "c2": 1.0}
TWO_PATHS = {"a2": 1.0, "b": 0.5, "d": 1.0, "e": 0.5}
# Name and constants of the scheme that the paper describes, by recipe; {}: all constants are 1.
PAPER_SCHEMES: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "first-order": ("first-order scheme", {}),
    "first-order-direct": ("first-order scheme", {}),
    "first-order-pinn": ("first-order scheme", {}),
    "midpoint": ("midpoint rule", HALF_STEP),
    "two-hop": ("midpoint rule", TWO_PATHS),
}
RECIPES = tuple(PAPER_SCHEMES)
# Powers of the two-hop coefficient if the flux is applied twice: ½ Δt² w_PN w_NQ/(V_P V_N), w = A/δ.
TWICE_APPLIED_POWERS = {
    "A_PN": 1.0,
    "delta_PN": -1.0,
    "A_NQ": 1.0,
    "delta_NQ": -1.0,
    "V_P": -1.0,
    "V_N": -1.0,
    "dt": 2.0,
}


class Row(Struct, frozen=True):
    """One seed: its verdict, the least share of the network's step that its formula explains, and the constants.

    `rational` are the constants that were rounded to fractions, `far` the powers of the two-hop term, `reason` is the
    first failed condition, and `residual` is None for recipes that do not train on meshes.
    """

    seed: int
    verdict: Outcome
    as_expected: bool
    explained: float | None
    constants: dict[str, float]
    rational: dict[str, float]
    far: dict[str, float | None] | None
    residual: Residuals | None
    reason: str | None
    seconds: float


class RecipeRates(Tally, frozen=True):
    """The seeds of one recipe: counts and medians, and one row per seed."""

    rows: list[Row]


class Result(Struct, frozen=True):
    """The result of the study."""

    experiment: str
    preset: str
    seeds: int
    recipes: dict[str, RecipeRates]


@dataclass(frozen=True)
class Config(StudyConfig):
    """The recipes to run, and the number of seeds of each: that of the recipe, and those that follow it."""

    recipes: tuple[str, ...] = RECIPES
    seeds: int | None = None

    @property
    def networks(self) -> int:
        """The number of seeds: that of the changes or of `seeds` if given, otherwise that of the preset."""
        return int(self.changes.get("seeds") or self.seeds or SEEDS[self.preset])


def run(config: Config, folder: Path, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Run every recipe with every seed, each in its run folder RECIPE-SEED; finished runs are read.

    `fluxforge discover RECIPE --seed K -o FOLDER/rates/RECIPE-K` makes the same run folder, so that seeds can be run in
    parallel beforehand, by other processes.
    """
    runs = [(name, k) for name in config.recipes for k in range(config.networks)]
    rows: dict[str, list[Row]] = {name: [] for name in config.recipes}
    for done, (name, k) in enumerate(runs):
        spec = load_spec(config, name, k)
        tell(f"{name}, seed {spec.seed}", done, len(runs))
        run_of_seed = folder / f"{spec.name}-{spec.seed}"
        discovery = discover_in(spec, run_of_seed, prefix_progress(tell, f"{spec.name}, seed {spec.seed}"), warn)
        rows[name].append(describe_seed(spec, discovery, measure_residual(spec, run_of_seed, warn)))
    recipes = {name: tally(load_spec(config, name, 0), each) for name, each in rows.items()}
    return Result(NAME, config.preset, config.networks, recipes)


def load_spec(config: Config, name: str, k: int) -> recipe.Recipe:
    """The recipe of a run, with its own seed plus k."""
    return config.load_recipe(name, "quick", {"seed": recipe.load(name).seed + k, "seeds": 1})


def describe_seed(spec: recipe.Recipe, discovery: Discovery, residual: Residuals | None) -> Row:
    """The row of one seed, from its discovery and its residuals."""
    # Documents of older versions have `recovered` but no verdict.
    verdict = next((each for each in OUTCOMES if each == discovery.verdict), None)
    verdict = verdict or ("recovered" if discovery.recovered else "refused")
    # Documents of older versions lack `as_expected`.
    expected = verdict in ("recovered", spec.expect) if discovery.as_expected is None else discovery.as_expected
    return Row(
        seed=spec.seed,
        verdict=verdict,
        as_expected=expected,
        explained=None if discovery.explained is None else discovery.explained.least,
        constants=select_constants(discovery),
        rational={name: float(Fraction(each)) for name, each in (discovery.rational or {}).items()},
        far=None if discovery.laws is None else dict(discovery.laws.far.exponents),
        residual=residual,
        reason=find_objection(discovery.reasons),
        seconds=sum(each or 0.0 for each in discovery.seconds.values()),
    )


def select_constants(discovery: Discovery) -> dict[str, float]:
    """The constants of a discovery: the network's own in the limit Δt → 0 if measured, else the refitted ones.

    Constants that the network does not determine are left out; without a formula the result is empty.
    """
    values = discovery.limit or discovery.constants or {}
    return {name: float(each) for name, each in values.items() if each is not None}


def measure_residual(spec: recipe.Recipe, folder: Path, warn: Warn) -> Residuals | None:
    """Mean residuals of the network and of schemes on unseen meshes; None for recipes that do not train on meshes."""
    if not isinstance(spec.data, recipe.Meshes) or spec.loss.residual is None:
        return None
    with RunFolder.open(folder, warn=warn) as held:
        done = held.read_stage("residual")
        if done is None:
            network = train(spec, source(spec), folder=held).member(0)
            with jax.enable_x64(True):
                done = to_builtins(measure_residuals(network, spec, spec.data.fourier))
            held.finish("residual", done)
    return convert(done, Residuals)


def tally(spec: recipe.Recipe, rows: Sequence[Row]) -> RecipeRates:
    """Counts, rates and medians over the seeds of one recipe."""
    return RecipeRates(
        expected=spec.expect,
        update=spec.network.update,
        theta=None if spec.loss.residual is None else spec.loss.residual.theta,
        verdicts={each: sum(row.verdict == each for row in rows) for each in OUTCOMES},
        rate=Rate(sum(row.as_expected for row in rows), len(rows)),
        rates={key: Rate(sum(true), len(true)) for key, true in _check_statements(spec.name, rows).items()},
        medians=_find_medians(rows),
        seconds=find_quartiles([row.seconds for row in rows]),
        rows=list(rows),
    )


def find_quartiles(values: Sequence[float]) -> Spread | None:
    """Median and quartiles of the values; None if there are none."""
    return Spread(*(float(each) for each in np.quantile(values, (0.25, 0.5, 0.75)))) if values else None


def _find_medians(rows: Sequence[Row]) -> dict[str, Spread]:
    constants = sorted({key for row in rows for key in row.constants})
    spreads = {
        "explained": find_quartiles([row.explained for row in rows if row.explained is not None]),
        "residual over Euler's": find_quartiles(
            [row.residual.network / row.residual.euler for row in rows if row.residual is not None]
        ),
        **{key: find_quartiles([row.constants[key] for row in rows if key in row.constants]) for key in constants},
    }
    return {key: each for key, each in spreads.items() if each is not None}


def _check_statements(name: str, rows: Sequence[Row]) -> dict[str, list[bool]]:
    """For each statement about the seeds of a recipe, whether it is true of each seed."""
    scheme, wanted = PAPER_SCHEMES.get(name, ("expected scheme", {}))
    statements = {scheme: [row.verdict == "recovered" and has_constants(row, wanted) for row in rows]}
    residuals = [row.residual for row in rows if row.residual is not None]
    if len(residuals) == len(rows):
        statements["lower residual than Euler"] = [each.network <= LOWER * each.euler for each in residuals]
    if name == "two-hop":
        statements["two-hop term without A and δ"] = [row.far is not None and _is_flat(row.far) for row in rows]
        twice = [_is_flux_twice(row) for row in rows]
        statements["two-hop term is the flux twice"] = twice
        statements["two-hop term is something else"] = [
            row.far is not None and not is_twice for row, is_twice in zip(rows, twice, strict=True)
        ]
    return statements


def has_constants(row: Row, wanted: Mapping[str, float]) -> bool:
    """Whether the constants are the wanted ones; an empty `wanted` means that all are 1.

    A constant is compared by the fraction that it was rounded to, if any, otherwise by its value.
    """
    values = {**row.constants, **row.rational}
    wanted = wanted or dict.fromkeys(values, 1.0)
    return bool(values) and all(
        abs(values.get(key, math.inf) - value) <= CONSTANT_TOLERANCE * value for key, value in wanted.items()
    )


def _is_flat(exponents: Mapping[str, float | None]) -> bool:
    """Whether the powers of all areas and distances are 0."""
    powers = [power for name, power in exponents.items() if name[0] in "Ad" and name != "dt"]
    return all(power is not None and abs(power) <= POWER for power in powers)


def _is_flux_twice(row: Row) -> bool:
    """Whether a formula with the flux applied twice was recovered, or the powers of the two-hop term are those of it.

    The powers alone would miss some seeds: they are fitted to weights of all sizes, and may be wrong by up to a half
    even if the formula explains 99 % of the step.
    """
    if row.verdict == "recovered" and has_constants(row, TWO_PATHS):
        return True
    return row.far is not None and all(
        abs((row.far.get(name) or 0.0) - power) <= POWER for name, power in TWICE_APPLIED_POWERS.items()
    )


OTHER_LOSS = "with another loss than printed"
# θ of the loss as printed, which has the Laplacian of the network's output.
AS_PRINTED = 1.0

TEXTS = {
    "first-order": "the network learns the exact corresponding first-order FV scheme",
    "first-order-direct": "the same, where the network predicts the new temperature itself",
    "first-order-pinn": "the same architecture trained using a physics-informed loss also exactly rediscovers the "
    "first-order scheme",
    "two-hop": "a second-order scheme with a correction term exploiting the 2-hop stencil",
    "midpoint": "an explicit-midpoint scheme, similar to a second-order Runge-Kutta scheme",
}


def judge(result: Result) -> list[Claim]:
    """One claim per recipe that was run."""
    return [_judge_recipe(name, result.recipes[name]) for name in TEXTS if name in result.recipes]


def _judge_recipe(name: str, seeds: Tally) -> Claim:
    (scheme, _), conditions = PAPER_SCHEMES[name], _list_conditions(seeds)
    counts = ", ".join(f"{key} {count}" for key, count in seeds.verdicts.items())
    medians = ", ".join(
        f"{key} {each.median:.4g} [{each.q1:.4g}, {each.q3:.4g}]" for key, each in seeds.medians.items()
    )
    rate = seeds.rates[scheme]
    evidence = f"Recipe {name}: {counts}; it is the {scheme} in {rate.text}"
    evidence += f"; medians and quartiles: {medians}." if medians else "."
    return weigh(
        Claim(f"rates-{name}", TEXTS[name], to_verdict(not conditions, in_part=True), evidence, ", ".join(conditions)),
        rate,
    )


def _list_conditions(seeds: Tally) -> list[str]:
    """Conditions of a verdict: texts on the differences between the recipe and the text of the paper."""
    conditions = [BUILT_IN] if seeds.update == "residual" else []
    if seeds.theta is not None:
        conditions.append(SMALL_STEPS if seeds.theta == AS_PRINTED else f"{OTHER_LOSS} (θ = {seeds.theta:g})")
    return conditions
