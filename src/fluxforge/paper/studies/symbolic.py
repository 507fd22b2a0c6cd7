"""The paper's section 4, second half: networks on primitive features turned into formulas, again and again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, replace

from fluxforge import recipe
from fluxforge.data._source import source
from fluxforge.distil._constants import small_steps
from fluxforge.distil._engines import ENGINES
from fluxforge.distil._stencil import layer_stages, series
from fluxforge.expression._symbols import symbol
from fluxforge.gnn._network import cast
from fluxforge.loss._loss import step_of
from fluxforge.paper.studies._networks import constants_rows
from fluxforge.paper.studies._seeds import read_rates
from fluxforge.paper.studies._symbolic_result import EXACT, AgainstStep, Recovery, Result, Row, StepConstants, judge
from fluxforge.pipeline._discover import explain
from fluxforge.pipeline._folder import run_folder
from fluxforge.pipeline._problems import ladder, problems_by_step, with_steps
from fluxforge.recipe._equation import diffusivity_of
from fluxforge.run._progress import Progress, Warn, silent
from fluxforge.run._record import Number
from fluxforge.run.result import Discovery
from fluxforge.train._train import Trained, train

__all__ = ["AgainstStep", "Config", "Result", "Row", "StepConstants", "judge", "run"]

NAME = "symbolic"
FLUX = symbol("alpha") * symbol("A") / symbol("delta")
SEEDS = {"quick": 3, "paper": 10}
RECIPES = ("first-order", "first-order-pinn")


@dataclass(frozen=True)
class Config:
    """How many networks, for which diffusivities, and for which θ the constant is followed against Δt."""

    preset: str = "quick"
    changes: recipe.Changes = field(default_factory=dict)
    seeds: int | None = None
    diffusivities: tuple[float, ...] = (0.3, 2.5)
    thetas: tuple[float, ...] = (0.0, 0.5, 1.0)
    longest: float = 0.2
    problems: int = 512

    @property
    def networks(self) -> int:
        """The number of seeds given, or the preset's."""
        return int(self.changes.get("seeds") or self.seeds or SEEDS[self.preset])


def run(config: Config, folder: Path | None = None, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """The recovery table, and the constant against Δt; finished runs in the folder are read."""
    if folder is None:
        with TemporaryDirectory() as scratch:
            return run(config, Path(scratch) / NAME, tell, warn)
    problems = {name: engine.available() for name, engine in ENGINES.items()}
    engines = [name for name, problem in problems.items() if problem is None]
    found = _explain_all(_spec("first-order", config, seeds=config.networks), folder / "first-order", engines, tell)
    for alpha in config.diffusivities:
        own = _spec("first-order", config, seeds=1, diffusivity=alpha)
        found += _explain_all(own, folder / f"alpha-{alpha:g}", engines[:1], tell)
    rows = [row for row, _ in found]
    return Result(
        experiment=NAME,
        preset=config.preset,
        engines=engines,
        update={name: _spec(name, config).network.update for name in RECIPES},
        data="two-cells" if isinstance(_spec("first-order", config).data, recipe.TwoCells) else "pairs",
        left_out={name: problem for name, problem in problems.items() if problem},
        rows=rows,
        fronts=next((dict(each.fronts) for _, each in found if each.fronts), {}),
        recovery=count_recoveries(rows),
        against_step={f"θ = {theta:g}": _follow_step(config, theta, folder, tell) for theta in config.thetas},
        rates=read_rates(folder, RECIPES),
    )


def _spec(name: str, config: Config, **own: Any) -> recipe.Recipe:
    changes = {key: value for key, value in config.changes.items() if key != "seeds"}
    return recipe.override(recipe.load(name, preset=config.preset), {**changes, **own})


def _explain_all(
    spec: recipe.Recipe, folder: Path, engines: Sequence[str], tell: Progress
) -> list[tuple[Row, Discovery]]:
    """Train all seeds side by side, then explain each network by every engine; failures are rows like any other."""
    assert spec.search is not None
    trained = _train(spec, folder / "training", tell)
    rows = []
    for engine in engines:
        for seed in range(spec.seeds):
            own = replace(spec, seed=spec.seed + seed, seeds=1, search=replace(spec.search, engine=engine))
            tell(f"α = {diffusivity_of(spec):g}, {engine}, seed {seed}", seed, spec.seeds)
            discovery = explain(trained.member(seed), own, folder / f"{engine}-{seed}")
            rows.append((describe_formula(discovery, own, engine), discovery))
    return rows


def _train(spec: recipe.Recipe, folder: Path, tell: Progress) -> Trained:
    def tell_step(step: int, steps: int, _: Mapping[str, float]) -> None:
        tell(f"training {spec.seeds} networks, α = {diffusivity_of(spec):g}", step, steps)

    with run_folder(folder, spec, warn=lambda _: None) as held:
        return train(spec, source(spec), folder=held, tell=tell_step)


def describe_formula(found: Discovery, spec: recipe.Recipe, engine: str) -> Row:
    """The row of one network and engine."""
    values = found.constants or {}
    return Row(
        engine=engine,
        seed=spec.seed,
        diffusivity=diffusivity_of(spec),
        recovered=found.recovered,
        message=next(iter((found.messages or {}).values()), None),
        output=next(iter((found.outputs or {}).values()), None),
        constants=values,
        off=max((abs(value - 1.0) for value in values.values() if value is not None), default=None),
        network_loss=None if found.loss is None else _number(found.loss.network),
        formula_loss=None if found.loss is None else _number(found.loss.formula),
        stencil_difference=None if found.stencil is None else _number(found.stencil.difference),
        evaluation=found.evaluation,
        reason=next((text for text in found.reasons if not text.startswith("yes")), None),
        seconds=sum(each or 0.0 for each in found.seconds.values()),
    )


def _number(value: Number | UnsetType) -> Number:
    return None if isinstance(value, UnsetType) else value


def count_recoveries(rows: Sequence[Row]) -> list[Recovery]:
    """Per engine and diffusivity: how many of how many, the median time, and the worst constant of those recovered."""
    found = []
    for engine, alpha in dict.fromkeys((row.engine, row.diffusivity) for row in rows):
        own = [row for row in rows if (row.engine, row.diffusivity) == (engine, alpha)]
        good = [row for row in own if row.recovered]
        found.append(
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
    return found


def _follow_step(config: Config, theta: float, folder: Path, tell: Progress) -> AgainstStep:
    """The constants of least residual at every Δt, and those of a network trained on all of them."""
    shortest = config.longest / 20.0
    spec = with_steps(_spec("first-order-pinn", config, **{"loss.residual.theta": theta}), shortest, config.longest)
    trained = _train(spec, folder / f"residual-{theta:g}", tell)
    with jax.enable_x64(True):
        problems = problems_by_step(spec, (*ladder(spec), 0.1), config.problems)
        found = small_steps(layer_stages(FLUX, {"a1": 1.0, "c1": 1.0}, 1), spec.loss, problems)
        own = step_of(cast(trained.member(0), "float64"))
        rows = []
        for row in constants_rows(found):
            network: dict[str, float] | UnsetType = UNSET
            if row.step >= shortest:
                measured = series(own, problems[row.step], 1)
                network = {**measured.nested, "unexplained": measured.unexplained}
            alone = 1.0 / (1.0 + 2.0 * theta * diffusivity_of(spec) * row.step)
            rows.append(StepConstants(**asdict(row), alone=alone, network=network))
    return AgainstStep(rows, dict(found.fitted.values), dict(found.fitted.uncertainty))
