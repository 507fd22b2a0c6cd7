"""The paper's sections 4.5 and 4.6: formulas of networks on primitive features, over seeds and diffusivities.

The module also has the records of the result and the claims that are judged from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

from fluxforge import recipe
from fluxforge.data._source import source
from fluxforge.distil._constants import small_steps
from fluxforge.distil._engines import ENGINES
from fluxforge.distil._stencil import layer_stages, series
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._network import cast
from fluxforge.loss._loss import step_of
from fluxforge.paper.studies._networks import ConstantsRow, make_constants_rows
from fluxforge.paper.studies._records import (
    BUILT_IN,
    LEAST_SEEDS,
    SMALL_STEPS,
    Claim,
    Rate,
    StudyConfig,
    Tally,
    find_objection,
    find_rate,
    read_rates,
    to_verdict,
    weigh,
)
from fluxforge.pipeline._discover import explain
from fluxforge.pipeline._folder import run_folder
from fluxforge.pipeline._problems import ladder, problems_by_step, with_steps
from fluxforge.recipe._equation import diffusivity_of
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.run._record import Number, Numbers
from fluxforge.run.result import Discovery, Evaluation, FrontTable
from fluxforge.train._train import Trained, train

NAME = "symbolic"
FLUX = symbol("alpha") * symbol("A") / symbol("delta")
SEEDS = {"quick": 3, "paper": 10}
RECIPES = ("first-order", "first-order-pinn")
# A refitted constant is exact if it differs from that of the scheme by at most this share.
EXACT = 1e-3
PAIRS = "on random pairs of triangles"


class Row(Struct, frozen=True):
    """One network and search engine: formula, largest difference `off` of a constant from the scheme's, and losses.

    `reason` is the first failed condition of a recovery; None if there is none.
    """

    engine: str
    seed: int
    diffusivity: float
    recovered: bool
    message: str | None
    output: str | None
    constants: Numbers
    off: float | None
    network_loss: Number
    formula_loss: Number
    stencil_difference: Number
    evaluation: Evaluation | None
    reason: str | None
    seconds: float


class Recovery(Struct, frozen=True):
    """Counts for the networks of one engine and one α, and the worst constant of the recovered formulas.

    `recovered` formulas of `of` networks were recovered, `exact` of them with exact constants.
    """

    engine: str
    diffusivity: float
    recovered: int
    of: int
    exact: int
    worst_constant: float | None
    median_seconds: float


class StepConstants(ConstantsRow, frozen=True, kw_only=True):
    """Constants of least residual at one Δt, the flux constant of an isolated pair, and those of a trained network."""

    alone: float
    network: dict[str, float] | UnsetType = UNSET


class AgainstStep(Struct, frozen=True):
    """Constants of least residual at each Δt, and their limit as Δt → 0 with its uncertainty."""

    rows: list[StepConstants]
    limit: dict[str, float]
    uncertainty: dict[str, float]


class Result(Struct, frozen=True, kw_only=True):
    """The result of the study; `update` and `data` are absent from documents of older versions.

    With the update "residual" the network is f in T' = T + Δt/V·f, in which T + Δt/V is built in. `left_out` are the
    engines that are not available, with the reasons.
    """

    experiment: str
    preset: str
    engines: list[str]
    update: dict[str, str] | UnsetType = UNSET
    data: str | UnsetType = UNSET
    left_out: dict[str, str]
    rows: list[Row]
    fronts: dict[str, FrontTable]
    recovery: list[Recovery]
    against_step: dict[str, AgainstStep]
    rates: dict[str, Tally] | None


@dataclass(frozen=True)
class Config(StudyConfig):
    """Number of networks, further diffusivities, and for the constants of least residual θ, longest Δt and problems."""

    seeds: int | None = None
    diffusivities: tuple[float, ...] = (0.3, 2.5)
    thetas: tuple[float, ...] = (0.0, 0.5, 1.0)
    longest: float = 0.2
    problems: int = 512

    @property
    def networks(self) -> int:
        """The number of seeds: that of the changes or of `seeds` if given, otherwise that of the preset."""
        return int(self.changes.get("seeds") or self.seeds or SEEDS[self.preset])


def run(config: Config, folder: Path, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Distil networks by every engine, and compute constants of least residual against Δt; finished runs are read."""
    problems = {name: engine.available() for name, engine in ENGINES.items()}
    engines = [name for name, problem in problems.items() if problem is None]
    spec = load_spec("first-order", config, seeds=config.networks)
    explained = _explain_all(spec, folder / "first-order", engines, tell)
    for alpha in config.diffusivities:
        spec = load_spec("first-order", config, seeds=1, diffusivity=alpha)
        explained += _explain_all(spec, folder / f"alpha-{alpha:g}", engines[:1], tell)
    rows = [row for row, _ in explained]
    return Result(
        experiment=NAME,
        preset=config.preset,
        engines=engines,
        update={name: load_spec(name, config).network.update for name in RECIPES},
        data="two-cells" if isinstance(load_spec("first-order", config).data, recipe.TwoCells) else "pairs",
        left_out={name: problem for name, problem in problems.items() if problem},
        rows=rows,
        fronts=next((dict(each.fronts) for _, each in explained if each.fronts), {}),
        recovery=count_recoveries(rows),
        against_step={f"θ = {theta:g}": follow_step(config, theta, folder, tell) for theta in config.thetas},
        rates=read_rates(folder, RECIPES),
    )


def load_spec(name: str, config: Config, **own: Any) -> recipe.Recipe:
    """A shipped recipe at the size of the preset, with the changes of the run and then those given."""
    return config.load_recipe(name, config.preset, own)


def _explain_all(
    spec: recipe.Recipe, folder: Path, engines: Sequence[str], tell: Progress
) -> list[tuple[Row, Discovery]]:
    """Train all seeds together, and distil each network by every engine; a search that fails is a row, too."""
    assert spec.search is not None
    trained = train_in_folder(spec, folder / "training", tell)
    rows = []
    for engine in engines:
        for seed in range(spec.seeds):
            single = replace(spec, seed=spec.seed + seed, seeds=1, search=replace(spec.search, engine=engine))
            tell(f"α = {diffusivity_of(spec):g}, {engine}, seed {seed}", seed, spec.seeds)
            discovery = explain(trained.member(seed), single, folder / f"{engine}-{seed}")
            rows.append((describe_formula(discovery, single, engine), discovery))
    return rows


def train_in_folder(spec: recipe.Recipe, folder: Path, tell: Progress) -> Trained:
    """Train the networks of a recipe, or continue their training in the folder."""
    what = f"training {spec.seeds} networks, α = {diffusivity_of(spec):g}"
    with run_folder(folder, spec, warn=lambda _: None) as held:
        return train(spec, source(spec), folder=held, tell=lambda step, steps, _: tell(what, step, steps))


def describe_formula(discovery: Discovery, spec: recipe.Recipe, engine: str) -> Row:
    """The row of one network and engine, from the discovery."""
    values = discovery.constants or {}
    return Row(
        engine=engine,
        seed=spec.seed,
        diffusivity=diffusivity_of(spec),
        recovered=discovery.recovered,
        message=next(iter((discovery.messages or {}).values()), None),
        output=next(iter((discovery.outputs or {}).values()), None),
        constants=values,
        off=max((abs(value - 1.0) for value in values.values() if value is not None), default=None),
        network_loss=None if discovery.loss is None else _number(discovery.loss.network),
        formula_loss=None if discovery.loss is None else _number(discovery.loss.formula),
        stencil_difference=None if discovery.stencil is None else _number(discovery.stencil.difference),
        evaluation=discovery.evaluation,
        reason=find_objection(discovery.reasons),
        seconds=sum(each or 0.0 for each in discovery.seconds.values()),
    )


def _number(value: Number | UnsetType) -> Number:
    return None if isinstance(value, UnsetType) else value


def count_recoveries(rows: Sequence[Row]) -> list[Recovery]:
    """The counts of recoveries, the median time, and the worst recovered constant, per engine and diffusivity."""
    recoveries = []
    for engine, alpha in dict.fromkeys((row.engine, row.diffusivity) for row in rows):
        own = [row for row in rows if (row.engine, row.diffusivity) == (engine, alpha)]
        good = [row for row in own if row.recovered]
        recoveries.append(
            Recovery(
                engine=engine,
                diffusivity=alpha,
                recovered=len(good),
                of=len(own),
                exact=sum(row.off is None or row.off <= EXACT for row in good),
                worst_constant=max((row.off or 0.0 for row in good), default=None),
                median_seconds=float(np.median([row.seconds for row in own])),
            )
        )
    return recoveries


def follow_step(config: Config, theta: float, folder: Path, tell: Progress) -> AgainstStep:
    """The constants of least residual at every Δt for one θ, and those of a network trained over the range of Δt."""
    shortest = config.longest / 20.0
    spec = load_spec("first-order-pinn", config, **{"loss.residual.theta": theta})
    spec = with_steps(spec, shortest, config.longest)
    trained = train_in_folder(spec, folder / f"residual-{theta:g}", tell)
    with jax.enable_x64(True):
        problems = problems_by_step(spec, (*ladder(spec), 0.1), config.problems)
        limit = small_steps(layer_stages(FLUX, {"a1": 1.0, "c1": 1.0}, 1), spec.loss, problems)
        step = step_of(cast(trained.member(0), "float64"))
        rows = []
        for row in make_constants_rows(limit):
            network: dict[str, float] | UnsetType = UNSET
            if row.step >= shortest:
                measured = series(step, problems[row.step], 1)
                network = {**measured.nested, "unexplained": measured.unexplained}
            alone = 1.0 / (1.0 + 2.0 * theta * diffusivity_of(spec) * row.step)
            rows.append(StepConstants(**asdict(row), alone=alone, network=network))
    return AgainstStep(rows, dict(limit.fitted.values), dict(limit.fitted.uncertainty))


def judge(result: Result) -> list[Claim]:
    """The claims of section 4 about formulas of networks."""
    return [_judge_supervised(result), _judge_residual(result)]


def _list_conditions(result: Result, name: str) -> list[str]:
    """Conditions for what is built into a recipe's network; results without `update` are of residual updates."""
    return [BUILT_IN] if (result.update or {}).get(name, "residual") == "residual" else []


def _judge_supervised(result: Result) -> Claim:
    """Judged by the seeds of this part if there are enough at one α, otherwise by those of `rates`."""
    recoveries = result.recovery
    good, of = sum(row.exact for row in recoveries), sum(row.of for row in recoveries)
    # Networks for other α have the same seeds, and are not counted as further ones.
    seeds = max((row.of for row in recoveries), default=0)
    rate = Rate(good, of) if seeds >= LEAST_SEEDS else find_rate(result.rates, "first-order", "first-order scheme")
    rate = rate or Rate(min(good, seeds), seeds)
    on_pairs = result.data != "two-cells"
    conditions = [*_list_conditions(result, "first-order"), *([PAIRS] * on_pairs)]
    listed = "; ".join(f"{row.engine}, α = {row.diffusivity:g}: {row.recovered} of {row.of}" for row in recoveries)
    claim = Claim(
        "symbolic-supervised",
        "Symbolic regression of the trained GNN recovers f_agg = α A/δ (T_N − T_P) and f_up = T + Δt/V Σ + Δt S.",
        to_verdict(not conditions, in_part=True),
        f"recovered and certified here: {listed}; {good} of {of} with a constant within {EXACT:g} of α."
        + (" The network is f in T' = T + Δt/V·f: T + Δt/V is built in, not found." * (BUILT_IN in conditions))
        + (
            " Trained on random pairs of triangles and steps: on the paper's one pair A, δ and V are constants."
            * on_pairs
        ),
        ", ".join(conditions),
    )
    return weigh(claim, rate)


def _judge_residual(result: Result) -> Claim:
    """Judged by the constants of least residual without a network, and by the trained networks of `rates`."""
    rows = {name: min(study.rows, key=lambda row: abs(row.step - 0.1)) for name, study in result.against_step.items()}
    at = {name: row.constants for name, row in rows.items()}
    limits = [study.limit["c1"] for study in result.against_step.values()]
    sources = [study.limit["a1"] for study in result.against_step.values()]
    exact = all(abs(values[name] - 1.0) <= EXACT for values in at.values() for name in ("c1", "a1"))
    tends = all(abs(limit - 1.0) <= EXACT for limit in (*limits, *sources))
    conditions = [*([SMALL_STEPS] * (not exact)), *_list_conditions(result, "first-order-pinn")]
    verdict = to_verdict(tends and not conditions, tends)
    listed = "; ".join(f"{name}: flux {values['c1']:.3f} α, source {values['a1']:.3f}" for name, values in at.items())
    claim = Claim(
        "symbolic-residual",
        "The same scheme is recovered from the physics-informed loss alone.",
        verdict,
        f"constants of least residual at αΔt = 0.1: {listed}; in the limit Δt → 0: "
        f"{', '.join(f'{limit:.4f}' for limit in limits)} α, source {', '.join(f'{limit:.4f}' for limit in sources)}."
        + _describe_networks(rows),
        ", ".join(conditions) if verdict == "holds under a condition" else "",
    )
    return weigh(claim, find_rate(result.rates, "first-order-pinn", "first-order scheme"))


def _describe_networks(rows: Mapping[str, StepConstants]) -> str:
    """A text on the constants of the trained networks in these rows; empty if there are none."""
    listed = "; ".join(
        f"{name}: flux {row.network['c1']:.3f} α, {row.network['unexplained']:.0%} of the step not explained by flux "
        "and source"
        for name, row in rows.items()
        if row.network
    )
    return f" One network trained with each has at that step {listed}." if listed else ""
