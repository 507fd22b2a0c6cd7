"""`sweep` and `resume_sweep`: run a recipe for all combinations of values of some fields."""

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from fluxforge import recipe
from fluxforge._arguments import (
    check_choice,
    check_function,
    check_kind,
    check_path,
    check_text,
    describe_value,
)
from fluxforge._machine import count_cores
from fluxforge.errors import InputError
from fluxforge.pipeline._discover import check_feasible
from fluxforge.run._durable import explain_failure
from fluxforge.run._progress import Warn
from fluxforge.sweeps._plan import LOGS, RUNS, Plan, Point, make_points, open_folder, read_plan
from fluxforge.sweeps._pool import PLACES, AbstractPool, ProcessPool, check_workers, run_jobs
from fluxforge.sweeps._summary import (
    PointResult,
    PointStatus,
    Sweep,
    count_rates,
    make_failed_result,
    name_run_folder,
    read_result,
    write_summary,
)
from fluxforge.sweeps._worker import Job

Tell = Callable[[PointStatus], None]


def sweep(
    source: str | os.PathLike[str] | recipe.Recipe = "first-order",
    over: Mapping[str, Iterable[Any]] | None = None,
    output: str | os.PathLike[str] | None = None,
    *,
    workers: int | None = None,
    on: str = "processes",
    changes: recipe.Changes | None = None,
    command: str = "",
    tell: Tell = lambda _: None,
    warn: Warn = lambda _: None,
) -> Sweep:
    """Run a recipe once for every combination of values of some fields, several runs at a time.

    `source` and `changes` are those of `ff.discover`; `over` gives the values of each field by its name with dots, such
    as `{"seed": range(10), "network.width": [16, 32]}`. Runs are made in `workers` processes of this machine (`on` is
    "processes"; by default one per core), or as tasks on a Ray cluster ("ray"). The folder is sweeps/RECIPE unless
    `output` is given. If it has the same sweep already, only points that are not finished are run. `tell` is called
    with every change of a point's status, `warn` with one line about anything unusual.

    A run that fails with an error does not stop the others: its result has the error. Raises InputError, before
    anything is run, for an argument, a recipe, a field or a value that cannot be used, and for a folder that another
    process uses.
    """
    _check_arguments(source, over, output, changes, command)
    count = _check_workers(workers, on, tell, warn)
    base = source if isinstance(source, recipe.Recipe) else recipe.load(source)
    base = recipe.self_contained(recipe.override(base, changes, "changes") if changes else base)
    values = _check_values(over or {})
    if not command and not isinstance(source, recipe.Recipe):
        command = shlex.join(["fluxforge", "discover", os.fspath(source)]) + _format_options(changes or {})
    plan = Plan(base, values, make_points(base, values), command)
    folder = default_folder(base) if output is None else Path(output)
    return _run_plan(plan, folder, count, on, tell, warn)


def resume_sweep(
    folder: str | os.PathLike[str],
    *,
    workers: int | None = None,
    on: str = "processes",
    tell: Tell = lambda _: None,
    warn: Warn = lambda _: None,
) -> Sweep:
    """Resume the sweep in a folder: run the points that are not finished, including those that failed.

    The other arguments are those of `sweep`. Raises InputError if the folder has no sweep or another process uses it.
    """
    check_path(folder, "folder", "the path of a sweep's folder")
    count = _check_workers(workers, on, tell, warn)
    return _run_plan(read_plan(Path(folder)), Path(folder), count, on, tell, warn)


def _format_options(changes: recipe.Changes) -> str:
    """The options of a command that set these fields, each preceded by a space."""
    options = (f"{field}={recipe.to_toml_value(value)}" for field, value in changes.items())
    return "".join(f" --set {shlex.quote(option)}" for option in options)


def default_folder(spec: recipe.Recipe) -> Path:
    """The folder sweeps/RECIPE."""
    return Path("sweeps") / spec.name


def _check_arguments(source: object, over: object, output: object, changes: object, command: object) -> None:
    if not isinstance(source, recipe.Recipe):
        check_path(source, "source", "a recipe, the name of a shipped one or the path of a .toml file")
    for name, value in (("over", over), ("changes", changes)):
        for field in () if value is None else check_kind(value, name, Mapping, "a mapping from fields to values"):
            check_text(field, f"{name}: a field")
    if output is not None:
        check_path(output, "output", "the path of a folder")
    check_text(command, "command")


def _check_values(over: Mapping[str, Iterable[Any]]) -> dict[str, tuple[Any, ...]]:
    for field, values in over.items():
        if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
            raise InputError(f"over: field {field!r:.60} should have a list of values, got {describe_value(values)}")
    return {field: tuple(values) for field, values in over.items()}


def _check_workers(workers: object, on: str, tell: object, warn: object) -> int:
    """The number of workers; raises InputError for an argument of the wrong kind."""
    check_choice(on, "on", PLACES)
    check_function(tell, "tell"), check_function(warn, "warn")
    return count_cores() if workers is None else check_workers(workers)


def _run_plan(plan: Plan, folder: Path, workers: int, on: str, tell: Tell, warn: Warn) -> Sweep:
    for point in plan.points:
        check_feasible(point.spec)
    if on == "ray":
        from fluxforge.sweeps._ray import require_ray

        require_ray()
    with open_folder(folder, plan, warn=warn) as versions:
        results = _run_points(plan, folder, workers, on, tell, warn)
        points = tuple(results[point.name] for point in plan.points)
        record = Sweep(
            folder=folder,
            recipe=plan.base.name,
            over=dict(plan.over),
            points=points,
            rates=count_rates(points),
            environment=versions,
        )
        write_summary(record)
    return record


def _run_points(plan: Plan, folder: Path, workers: int, on: str, tell: Tell, warn: Warn) -> dict[str, PointResult]:
    """The results by name of the point: those finished in the folder are read, the others are run."""
    points = {point.name: point for point in plan.points}
    results: dict[str, PointResult] = {}

    def report(name: str, stage: str, done: int, total: int) -> None:
        tell(PointStatus(name=name, stage=stage, done=done, total=total))

    def collect(name: str, result: PointResult) -> None:
        results[name] = result
        tell(PointStatus(name=name, stage=result.outcome, result=result))

    def end(name: str, error: str | None) -> None:
        result = read_result(points[name], folder) if error is None else make_failed_result(points[name], error)
        collect(name, result or make_failed_result(points[name], "the run left no result"))

    jobs = []
    for name, point in points.items():
        if (result := read_result(point, folder)) is not None:
            collect(name, result)
        else:
            jobs.append(_make_job(plan, point, folder))
            tell(PointStatus(name=name))
    if jobs:
        for place in (folder / RUNS, folder / LOGS):
            with explain_failure(place):
                place.mkdir(exist_ok=True)
        pool = _make_pool(on, min(workers, len(jobs)), folder)
        run_jobs(jobs, pool, folder / LOGS, tell=report, end=end, warn=warn)
    return results


def _make_job(plan: Plan, point: Point, folder: Path) -> Job:
    command = plan.command and plan.command + _format_options(point.changes)
    # An absolute path, since workers on other machines have another working folder.
    place = (folder / name_run_folder(point)).absolute()
    return Job(point.name, str(place), recipe.to_dict(point.spec), command)


def _make_pool(on: str, workers: int, folder: Path) -> AbstractPool:
    if on == "ray":
        from fluxforge.sweeps._ray import RayPool

        return RayPool(workers)
    return ProcessPool(workers, folder / LOGS)
