"""Results of a sweep: status and results of its points, recovery rates, and the files summary.json, .csv and .html."""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import msgspec

from fluxforge import recipe
from fluxforge._files import write_document, write_text
from fluxforge.errors import DocumentError, InputError
from fluxforge.pipeline._run import Run, load_run
from fluxforge.report._page import page
from fluxforge.report._tables import table_csv
from fluxforge.run._record import Document
from fluxforge.run.carry import CarryResult
from fluxforge.run.limiter import LimiterResult
from fluxforge.run.result import Discovery, Generalisation
from fluxforge.run.skew import SkewResult
from fluxforge.sweeps._plan import Point, digest_recipe, show_value

SEED = "seed"
VERDICT_CLASSES = {"recovered": "holds", "approximation": "measured", "refused": "unknown", "failed": "fails"}
Outcome = Literal["finished", "failed"]


class PointStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a point: a text on its stage, and `done` of `total` parts of that stage (`total` 0 if unknown).

    `result` is None until the point has ended.
    """

    name: str
    stage: str = "waiting"
    done: int = 0
    total: int = 0
    result: "PointResult | None" = None


class PointResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a point.

    - `changes`: the fields that the point sets; `folder`: its run folder, relative to that of the sweep;
    - `outcome`: `finished`, whatever the verdict, or `failed` with an `error`;
    - `verdict`: None for a point that failed, and for a recipe with arms;
    - `formula`: messages and outputs, separated by semicolons, if there is a formula;
    - `loss`, `network_loss`: least loss of the formula, and that of the network, on the same problems; for a flux found
      by experiments, relative errors on held-out fluxes;
    - `seconds`: total computing time of all stages of the run.
    """

    name: str
    changes: recipe.Changes
    folder: str
    outcome: Outcome
    verdict: str | None = None
    as_expected: bool | None = None
    formula: str | None = None
    loss: float | None = None
    network_loss: float | None = None
    seconds: float | None = None
    error: str | None = None


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """The rate of recovery over the seeds of one combination of the other fields, with Wilson's interval of 95 %.

    `of` is the number of points with a verdict; `failed` points have none and are not part of the rate.
    """

    changes: recipe.Changes
    of: int
    recovered: int
    approximation: int
    refused: int
    failed: int
    rate: float | None
    low: float
    high: float


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep that has ended: its folder, the values of the varied fields, one result per point, and recovery rates."""

    folder: Path
    recipe: str
    over: dict[str, tuple[Any, ...]]
    points: tuple[PointResult, ...]
    rates: tuple[Rate, ...]
    environment: dict[str, str]

    def __repr__(self) -> str:
        verdicts = [point.verdict or point.outcome for point in self.points]
        counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
        return f"Sweep({self.recipe}: {counts}; {self.folder})"

    @property
    def failed(self) -> tuple[PointResult, ...]:
        """The points that ended with an error."""
        return tuple(point for point in self.points if point.outcome == "failed")

    def run(self, name: str) -> Run:
        """The run of a point, by its name; raises InputError if there is no such point, or it is not finished."""
        for point in self.points:
            if point.name == name:
                return load_run(self.folder / point.folder)
        raise InputError(f"{self.folder}: has no point {name!r:.80}; points are named like {self.points[0].name!r}")

    def document(self) -> Document:
        """The content of summary.json."""
        plain: Document = msgspec.to_builtins(self, enc_hook=str)
        return plain


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion:  (k + z²/2)/(n + z²) ± z/(n + z²) √(k (n − k)/n + z²/4).

    E. B. Wilson, J. Amer. Statist. Assoc. 22 (1927) 209-212. Without trials it is (0, 1). Raises InputError unless
    0 ≤ successes ≤ trials and 0 < confidence < 1.
    """
    if not 0 <= successes <= trials:
        raise InputError(f"successes should be between 0 and the {trials} trials, got {successes}")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence should be between 0 and 1, got {confidence}")
    if trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    middle = (successes + z * z / 2) / (trials + z * z)
    half = z / (trials + z * z) * math.sqrt(successes * (trials - successes) / trials + z * z / 4)
    # For 0 of n and n of n the interval ends exactly at 0 or 1, which round-off could exceed.
    low = 0.0 if successes == 0 else middle - half
    return low, 1.0 if successes == trials else middle + half


def read_result(point: Point, folder: Path) -> PointResult | None:
    """The result of a point, None if its run is not finished; `folder` is that of the sweep.

    Raises InputError if the folder of the point has a run of another recipe.
    """
    place = folder / name_run_folder(point)
    if not (place / "run.json").exists():
        return None
    try:
        run = load_run(place)
    except DocumentError:
        raise
    except InputError:  # not finished
        return None
    if digest_recipe(run.recipe) != point.sha256:
        raise InputError(f"{place}: contains a run of another recipe than the sweep's: move it to another folder")
    return _describe(point, run)


def name_run_folder(point: Point) -> str:
    """The run folder of a point, relative to that of the sweep."""
    return f"runs/{point.name}"


def _describe(point: Point, run: Run) -> PointResult:
    result = run.result
    formula, loss, network_loss = None, None, None
    if isinstance(result, CarryResult):
        formula = "; ".join(f"{name} = {text}" for name, text in result.coefficients.items())
    elif isinstance(result, LimiterResult):
        formula = result.formula
    elif isinstance(result, SkewResult):
        formula = "; ".join(f"{law.name}: {law.formula}" for law in result.laws[1:])
    elif isinstance(result, Discovery) and (experiment := result.experiment) is not None:
        formula = experiment.flux and f"F = {experiment.flux}"
        loss, network_loss = experiment.error, experiment.reduced_error
    elif isinstance(result, Discovery):
        parts = {**{name: f"Σ {text}" for name, text in (result.messages or {}).items()}, **(result.outputs or {})}
        formula = "; ".join(f"{name} = {text}" for name, text in parts.items())
        if result.loss is not None:
            loss, network_loss = _number(result.loss.formula), _number(result.loss.network)
    return PointResult(
        name=point.name,
        changes=dict(point.changes),
        folder=name_run_folder(point),
        outcome="finished",
        verdict=run.verdict,
        as_expected=None if isinstance(result, Generalisation) else result.as_expected,
        formula=formula or None,
        loss=loss,
        network_loss=network_loss,
        seconds=math.fsum(value or 0.0 for value in result.seconds.values()),
    )


def _number(value: object) -> float | None:
    return value if isinstance(value, float) else None


def make_failed_result(point: Point, error: str) -> PointResult:
    """The result of a point that ended with an error."""
    changes = dict(point.changes)
    return PointResult(name=point.name, changes=changes, folder=name_run_folder(point), outcome="failed", error=error)


def count_rates(results: Iterable[PointResult]) -> tuple[Rate, ...]:
    """One rate per combination of the fields other than the seed, in the order of the points."""
    groups: dict[str, list[PointResult]] = {}
    for result in results:
        others = {field: value for field, value in result.changes.items() if field != SEED}
        groups.setdefault(json.dumps(others, sort_keys=True), []).append(result)
    return tuple(_count_rate(group) for group in groups.values())


def _count_rate(group: Sequence[PointResult]) -> Rate:
    verdicts = [result.verdict for result in group if result.verdict is not None]
    recovered, of = verdicts.count("recovered"), len(verdicts)
    low, high = wilson_interval(recovered, of)
    return Rate(
        changes={field: value for field, value in group[0].changes.items() if field != SEED},
        of=of,
        recovered=recovered,
        approximation=verdicts.count("approximation"),
        refused=verdicts.count("refused"),
        failed=sum(result.outcome == "failed" for result in group),
        rate=recovered / of if of else None,
        low=low,
        high=high,
    )


def write_summary(sweep: Sweep) -> None:
    """Write summary.json, summary.csv and summary.html into the folder of the sweep."""
    write_document(sweep.folder / "summary.json", "sweep-summary", 1, sweep.document())
    write_text(sweep.folder / "summary.csv", table_csv([_make_csv_row(point) for point in sweep.points]))
    html = page(
        "sweep.html",
        sweep=sweep,
        rates=[(show_changes(rate.changes), rate) for rate in sweep.rates if rate.of],
        looks=VERDICT_CLASSES,
        has_reports={p.name for p in sweep.points if (sweep.folder / p.folder / "report.html").exists()},
        command="",
    )
    write_text(sweep.folder / "summary.html", html)


def show_changes(changes: recipe.Changes) -> str:
    """Changes as text, such as `network.width=16`; `all points` for an empty mapping."""
    return ", ".join(f"{field}={show_value(value)}" for field, value in changes.items()) or "all points"


def _make_csv_row(point: PointResult) -> dict[str, Any]:
    columns = ("outcome", "verdict", "as_expected", "formula", "loss", "network_loss", "seconds", "error", "folder")
    varied = {field: show_value(value) for field, value in point.changes.items()}
    return {"name": point.name, **varied, **{name: getattr(point, name) for name in columns}}
