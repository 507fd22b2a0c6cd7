"""Results of the points, recovery rates with Wilson's interval, and the files summary.json, .csv and .html."""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

from msgspec.structs import replace

from fluxforge import recipe
from fluxforge._files import write_text
from fluxforge.errors import DocumentError, InputError
from fluxforge.pipeline._run import Run, load_run
from fluxforge.report._page import page
from fluxforge.report._tables import table_csv
from fluxforge.run.carry import CarryResult
from fluxforge.run.limiter import LimiterResult
from fluxforge.run.result import Discovery
from fluxforge.run.skew import SkewResult
from fluxforge.sweeps._points import Point, digest_recipe, show_value
from fluxforge.sweeps._records import PointResult, Rate, Sweep

SEED = "seed"
LOOKS = {"recovered": "holds", "approximation": "measured", "refused": "unknown", "failed": "fails"}


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
    # At 0 of n and n of n the interval ends at 0 and 1 exactly; round-off would leave it a little outside.
    low = 0.0 if successes == 0 else middle - half
    return low, 1.0 if successes == trials else middle + half


def read_result(point: Point, folder: Path) -> PointResult | None:
    """The result of a point whose run is finished, None if it is not; `folder` is that of the sweep.

    Raises InputError if the folder of the point holds a run of another recipe.
    """
    place = folder / run_place(point)
    if not (place / "run.json").exists():
        return None
    try:
        run = load_run(place)
    except DocumentError:
        raise
    except InputError:  # not finished
        return None
    if digest_recipe(run.recipe) != point.sha256:
        raise InputError(f"{place}: holds a run of another recipe than the sweep's: move it away")
    return _describe(point, run)


def run_place(point: Point) -> str:
    """The run folder of a point, relative to that of the sweep."""
    return f"runs/{point.name}"


def _describe(point: Point, run: Run) -> PointResult:
    found = run.result
    seconds = math.fsum(value or 0.0 for value in found.seconds.values())
    result = PointResult(
        name=point.name,
        changes=dict(point.changes),
        folder=run_place(point),
        outcome="finished",
        verdict=run.verdict,
        seconds=seconds,
    )
    if isinstance(found, CarryResult):
        formulas = "; ".join(f"{name} = {text}" for name, text in found.coefficients.items())
        return replace(result, as_expected=found.as_expected, formula=formulas or None)
    if isinstance(found, LimiterResult):
        return replace(result, as_expected=found.as_expected, formula=found.formula)
    if isinstance(found, SkewResult):
        chosen = "; ".join(f"{law.name}: {law.formula}" for law in found.laws[1:])
        return replace(result, as_expected=found.as_expected, formula=chosen or None)
    if not isinstance(found, Discovery):
        return result
    if found.experiment is not None:
        own = found.experiment
        return replace(
            result,
            as_expected=found.as_expected,
            formula=None if own.flux is None else f"F = {own.flux}",
            loss=own.error,
            network_loss=own.reduced_error,
        )
    parts = {**{name: f"Σ {text}" for name, text in (found.messages or {}).items()}, **(found.outputs or {})}
    return replace(
        result,
        as_expected=found.as_expected,
        formula="; ".join(f"{name} = {text}" for name, text in parts.items()) or None,
        loss=None if found.loss is None else _number(found.loss.formula),
        network_loss=None if found.loss is None else _number(found.loss.network),
    )


def _number(value: object) -> float | None:
    return value if isinstance(value, float) else None


def failed_result(point: Point, error: str) -> PointResult:
    """The result of a point that ended with an error."""
    changes = dict(point.changes)
    return PointResult(name=point.name, changes=changes, folder=run_place(point), outcome="failed", error=error)


def recovery_rates(results: Iterable[PointResult]) -> tuple[Rate, ...]:
    """A rate per combination of the fields other than the seed, in the order of the points."""
    groups: dict[str, list[PointResult]] = {}
    for result in results:
        others = {field: value for field, value in result.changes.items() if field != SEED}
        groups.setdefault(json.dumps(others, sort_keys=True), []).append(result)
    return tuple(_rate(group) for group in groups.values())


def _rate(group: Sequence[PointResult]) -> Rate:
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


def write_summary(found: Sweep, *, command: str = "") -> None:
    """Write summary.json, summary.csv and summary.html into the folder of the sweep."""
    document = {"format": "fluxforge-sweep-summary", "format_version": 1, **found.document()}
    write_text(
        found.folder / "summary.json", json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )
    write_text(found.folder / "summary.csv", table_csv([_csv_row(point) for point in found.points]))
    html = page(
        "sweep.html",
        sweep=found,
        rates=[(show_changes(rate.changes), rate) for rate in found.rates if rate.of],
        varied=list(found.over.items()),
        failed=len(found.failed),
        looks=LOOKS,
        has_reports={point.name for point in found.points if (found.folder / point.folder / "report.html").exists()},
        show_value=show_value,
        command=command,
    )
    write_text(found.folder / "summary.html", html)


def show_changes(changes: recipe.Changes) -> str:
    """`network.width=16`; `all points` of an empty mapping."""
    return ", ".join(f"{field}={show_value(value)}" for field, value in changes.items()) or "all points"


def _csv_row(point: PointResult) -> dict[str, Any]:
    columns = ("outcome", "verdict", "as_expected", "formula", "loss", "network_loss", "seconds", "error", "folder")
    varied = {field: show_value(value) for field, value in point.changes.items()}
    return {"name": point.name, **varied, **{name: getattr(point, name) for name in columns}}
