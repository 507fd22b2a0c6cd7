"""The paper's section 4, second half: networks on primitive features turned into formulas, again and again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np
from msgspec.structs import replace

from fluxforge import recipe
from fluxforge.data import source
from fluxforge.distil import ENGINES, layered, series, small_steps
from fluxforge.gnn import cast
from fluxforge.loss import step_of
from fluxforge.paper.studies._networks import ENOUGH, Rate, rate_of, rates_before, weigh
from fluxforge.paper.studies._records import Claim, Verdict
from fluxforge.paper.studies.rates import BUILT_IN, SMALL_STEPS
from fluxforge.pipeline import Progress, environment, explain, ladder, problems_by_step, run_folder, silent, with_steps
from fluxforge.recipe import diffusivity_of
from fluxforge.scheme import symbol
from fluxforge.train import Trained, train

NAME = "symbolic"
Warn = Callable[[str], None]
FLUX = symbol("alpha") * symbol("A") / symbol("delta")
# Found again: the constant within this part of α, after the refit.
EXACT = 1e-3
SEEDS = {"quick": 3, "paper": 10}
RECIPES = ("first-order", "first-order-pinn")
PAIRS = "on random pairs of triangles"


@dataclass(frozen=True)
class Config:
    """How many networks, for which diffusivities, and for which θ the constant is followed against Δt."""

    preset: str = "quick"
    changes: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    diffusivities: tuple[float, ...] = (0.3, 2.5)
    thetas: tuple[float, ...] = (0.0, 0.5, 1.0)
    longest: float = 0.2
    problems: int = 512

    @property
    def networks(self) -> int:
        """The seeds asked for, or the preset's."""
        return int(self.changes.get("seeds") or self.seeds or SEEDS[self.preset])


def run(
    config: Config, folder: Path | None = None, tell: Progress = silent, warn: Warn = lambda _: None
) -> dict[str, Any]:
    """The recovery table, and the constant against Δt; what is finished in the folder is not repeated."""
    if folder is None:
        with TemporaryDirectory() as scratch:
            return run(config, Path(scratch) / NAME, tell, warn)
    engines = [name for name, engine in ENGINES.items() if engine.available() is None]
    rows = _table(_spec("first-order", config, seeds=config.networks), folder / "first-order", engines, tell=tell)
    for alpha in config.diffusivities:
        own = _spec("first-order", config, seeds=1, diffusivity=alpha)
        rows += _table(own, folder / f"alpha-{alpha:g}", engines[:1], tell=tell)
    result = {
        "experiment": NAME,
        "preset": config.preset,
        "engines": engines,
        # With "residual" the network is asked for f in T' = T + Δt/V·f, and T + Δt/V is not to be found.
        "update": {name: _spec(name, config).network.update for name in RECIPES},
        "data": "two-cells" if isinstance(_spec("first-order", config).data, recipe.TwoCells) else "pairs",
        "left_out": {name: engine.available() for name, engine in ENGINES.items() if engine.available()},
        "rows": [{key: value for key, value in row.items() if key != "fronts"} for row in rows],
        "fronts": next((row["fronts"] for row in rows if row["fronts"]), {}),
        "recovery": _recovery(rows),
        "against_step": {f"θ = {theta:g}": _against_step(config, theta, folder, tell) for theta in config.thetas},
        "rates": rates_before(folder, RECIPES),
        "environment": environment(),
    }
    return result | {"claims": [claim.document() for claim in check(result)]}


def _spec(name: str, config: Config, **own: Any) -> recipe.Recipe:
    changes = {key: value for key, value in config.changes.items() if key != "seeds"}
    return recipe.override(recipe.load(name, preset=config.preset), {**changes, **own})


def _table(spec: recipe.Recipe, folder: Path, engines: list[str], *, tell: Progress) -> list[dict[str, Any]]:
    """Every seed trained side by side, then explained by every engine; failures are rows like any other."""
    assert spec.search is not None
    trained = _trained(spec, folder / "training", tell)
    rows = []
    for engine in engines:
        for seed in range(spec.seeds):
            name = f"{engine}-{seed}"
            own = replace(spec, seed=spec.seed + seed, seeds=1, search=replace(spec.search, engine=engine))
            tell(f"α = {diffusivity_of(spec):g}, {engine}, seed {seed}", seed, spec.seeds)
            found = explain(trained.member(seed), own, folder / name)
            rows.append(_row(found, own, engine))
    return rows


def _trained(spec: recipe.Recipe, folder: Path, tell: Progress) -> Trained:
    def told(step: int, steps: int, _: Mapping[str, float]) -> None:
        tell(f"training {spec.seeds} networks, α = {diffusivity_of(spec):g}", step, steps)

    with run_folder(folder, spec, warn=lambda _: None) as held:
        return train(spec, source(spec), folder=held, tell=told)


def _row(found: Mapping[str, Any], spec: recipe.Recipe, engine: str) -> dict[str, Any]:
    values = found.get("constants", {})
    message = next(iter(found.get("messages", {}).values()), None)
    return {
        "engine": engine,
        "seed": spec.seed,
        "diffusivity": diffusivity_of(spec),
        "recovered": bool(found["recovered"]),
        "message": message,
        "output": next(iter(found.get("outputs", {}).values()), None),
        "constants": values,
        "off": max((abs(value - 1.0) for value in values.values()), default=None),
        "network_loss": found.get("loss", {}).get("network"),
        "formula_loss": found.get("loss", {}).get("formula"),
        "stencil_difference": found.get("stencil", {}).get("difference"),
        "evaluation": found.get("evaluation"),
        "reason": next((text for text in found["reasons"] if not text.startswith("yes")), None),
        "seconds": sum(found["seconds"].values()),
        "fronts": found.get("fronts", {}),
    }


def _recovery(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per engine and diffusivity: how many of how many, the median time, and the worst constant of those found."""
    found = []
    for engine, alpha in dict.fromkeys((row["engine"], row["diffusivity"]) for row in rows):
        own = [row for row in rows if (row["engine"], row["diffusivity"]) == (engine, alpha)]
        good = [row for row in own if row["recovered"]]
        found.append(
            {
                "engine": engine,
                "diffusivity": alpha,
                "recovered": len(good),
                "of": len(own),
                "exact": sum(row["off"] is None or row["off"] <= EXACT for row in good),
                "worst_constant": max((row["off"] or 0.0 for row in good), default=None),
                "median_seconds": float(np.median([row["seconds"] for row in own])),
            }
        )
    return found


def _against_step(config: Config, theta: float, folder: Path, tell: Progress) -> dict[str, Any]:
    """The constants of least residual at every Δt, and those of a network trained on all of them."""
    spec = _spec("first-order-pinn", config, **{"loss.residual.theta": theta})
    shortest = config.longest / 20.0
    spec = with_steps(spec, shortest, config.longest)
    trained = _trained(spec, folder / f"residual-{theta:g}", tell)
    with jax.enable_x64(True):
        problems = problems_by_step(spec, (*ladder(spec), 0.1), config.problems)
        found = small_steps(layered(FLUX, {"a1": 1.0, "c1": 1.0}, 1), spec.loss, problems)
        own = step_of(cast(trained.member(0), "float64"))
        rows = found.rows()
        for row in rows:
            step = row["step"]
            row["alone"] = 1.0 / (1.0 + 2.0 * theta * diffusivity_of(spec) * step)
            if step >= shortest:
                measured = series(own, problems[step], 1)
                row["network"] = {**measured.nested, "unexplained": measured.unexplained}
    return {"rows": rows, "limit": dict(found.fitted.values), "uncertainty": dict(found.fitted.uncertainty)}


def check(result: Mapping[str, Any]) -> list[Claim]:
    """What section 4 says of formulas found from networks."""
    return [_supervised(result), _residual(result)]


def _conditions(result: Mapping[str, Any], name: str) -> list[str]:
    """What is built into a recipe's network; results that do not say are of networks with a residual update."""
    return [BUILT_IN] if result.get("update", {}).get(name, "residual") == "residual" else []


def _supervised(result: Mapping[str, Any]) -> Claim:
    """On this part's own seeds if there are enough of them at one α, otherwise on those of `rates`."""
    found = result["recovery"]
    good, of = (sum(row[key] for row in found) for key in ("exact", "of"))
    # Networks of other α start from the same seeds.
    seeds = max((row["of"] for row in found), default=0)
    rate = Rate(good, of) if seeds >= ENOUGH else rate_of(result, "first-order", "first-order scheme")
    rate = rate or Rate(min(good, seeds), seeds)
    own = result.get("data", "pairs") != "two-cells"
    conditions = [*_conditions(result, "first-order"), *([PAIRS] * own)]
    listed = "; ".join(
        f"{row['engine']}, α = {row['diffusivity']:g}: {row['recovered']} of {row['of']}" for row in found
    )
    claim = Claim(
        "symbolic-supervised",
        "Symbolic regression of the trained GNN recovers f_agg = α A/δ (T_N − T_P) and f_up = T + Δt/V Σ + Δt S.",
        "holds under a condition" if conditions else "holds",
        f"recovered and certified here: {listed}; {good} of {of} with a constant within {EXACT:g} of α."
        + (" The network is f in T' = T + Δt/V·f: T + Δt/V is given to it, not found." * (BUILT_IN in conditions))
        + (" Trained on random pairs of triangles and steps: on the paper's one pair A, δ and V are constants." * own),
        ", ".join(conditions),
    )
    return weigh(claim, rate)


def _residual(result: Mapping[str, Any]) -> Claim:
    """What the residual asks for, without a network; and that trained networks give it, on the seeds of `rates`."""
    rows = {name: found["rows"] for name, found in result["against_step"].items()}
    at = {name: _nearest(each, 0.1)["constants"] for name, each in rows.items()}
    limits = [found["limit"]["c1"] for found in result["against_step"].values()]
    sources = [found["limit"]["a1"] for found in result["against_step"].values()]
    exact = all(abs(values[name] - 1.0) <= EXACT for values in at.values() for name in ("c1", "a1"))
    tends = all(abs(limit - 1.0) <= EXACT for limit in (*limits, *sources))
    conditions = [*([SMALL_STEPS] * (not exact)), *_conditions(result, "first-order-pinn")]
    verdict: Verdict = "does not hold" if not tends else "holds under a condition" if conditions else "holds"
    listed = "; ".join(f"{name}: flux {values['c1']:.3f} α, source {values['a1']:.3f}" for name, values in at.items())
    claim = Claim(
        "symbolic-residual",
        "The same scheme is recovered from the physics-informed loss alone.",
        verdict,
        f"constants of least residual at αΔt = 0.1: {listed}; in the limit Δt → 0: "
        f"{', '.join(f'{limit:.4f}' for limit in limits)} α, source {', '.join(f'{limit:.4f}' for limit in sources)}."
        + _of_networks(rows),
        ", ".join(conditions) if verdict == "holds under a condition" else "",
    )
    return weigh(claim, rate_of(result, "first-order-pinn", "first-order scheme"))


def _of_networks(rows: Mapping[str, Any]) -> str:
    """What the trained networks have at that step themselves."""
    found = {name: _nearest(each, 0.1).get("network") for name, each in rows.items()}
    listed = "; ".join(
        f"{name}: flux {own['c1']:.3f} α, {own['unexplained']:.0%} of the step not explained by flux and source"
        for name, own in found.items()
        if own is not None
    )
    return f" One network trained with each has at that step {listed}." if listed else ""


def _nearest(rows: list[Any], step: float) -> Any:
    return min(rows, key=lambda row: abs(row["step"] - step))
