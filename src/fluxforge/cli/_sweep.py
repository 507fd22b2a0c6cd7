"""The command sweep: its options, the live table, and the output of the result."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.live import Live
from rich.table import Table

from fluxforge.cli._arguments import RECIPES, Json, Preset, RecipeName, check_folder, count
from fluxforge.cli._output import (
    console,
    format_value,
    number,
    offer_resume,
    one_line,
    replace_unprintable,
    say,
    show,
    show_json,
    show_status,
    show_table,
    warn,
)
from fluxforge.cli._signals import raise_lost_signal

if TYPE_CHECKING:
    from fluxforge.sweeps._summary import PointResult, PointStatus, Sweep

COLUMNS = ("point", "stage", "verdict", "formula", "loss", "seconds")
RATE_COLUMNS = ("setting", "recovered", "rate", "95 % interval", "approximation", "refused", "failed")
# Lines of the terminal that the live table needs for other things than rows of points.
FRAME = 6


def sweep(
    recipe: RecipeName = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUES",
            help="Values of a field: seed=0:10 (0 to 9), network.width=16,32. May be repeated: all combinations run.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Set a field in all runs. May be repeated."),
    ] = None,
    workers: Annotated[
        int | None, count("--workers", text="Number of runs in parallel (default: one per core).")
    ] = None,
    on: Annotated[
        str, typer.Option(metavar="processes|ray", help="Where to run: local processes, or a Ray cluster.")
    ] = "processes",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="Folder (default: sweeps/RECIPE).", callback=check_folder
        ),
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Continue the sweep in this folder.")] = None,
    preset: Preset = None,
    as_json: Json = False,
) -> None:
    """Run a recipe for many seeds or settings, several runs at a time, and count how often it is recovered.

    Each run is that of fluxforge discover with the same settings, bit for bit, in a run folder of its own. At the end
    the folder has summary.html, summary.json and summary.csv with recovery rates and Wilson's intervals.

    Finished runs are skipped if the same command is given again, or --resume; the others go on where they stopped. The
    exit code is 1 if a run failed with an error; verdicts do not change it.
    """
    if resume is not None and (recipe or over or settings or output or preset):
        raise typer.BadParameter(
            "--resume continues a sweep with its own settings: give only --workers, --on and --json with it"
        )
    if resume is None and not over:
        raise typer.BadParameter("--over is missing: give the values of a field, such as --over seed=0:10")
    # This process only reads versions and the memory of the device, which it must not reserve: its workers use it.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    with show_status("loading", quiet=as_json):
        from fluxforge import sweeps
    if resume is not None:
        _run(lambda **more: sweeps.resume_sweep(resume, workers=workers, on=on, **more), resume, as_json)
        return
    name = recipe or RECIPES[0]
    base, values = _prepare(name, over or [], settings or [], preset)
    folder = output or sweeps.default_folder(base)
    command = shlex.join(_discover_words(name, settings or [], preset))
    _run(
        lambda **more: sweeps.sweep(base, values, folder, workers=workers, on=on, command=command, **more),
        folder,
        as_json,
    )


def _prepare(name: str, over: list[str], settings: list[str], preset: str | None) -> tuple[Any, dict[str, Any]]:
    """The recipe with the changes of --set, and the values of --over; raises BadParameter for a field in both."""
    from fluxforge import recipe, sweeps

    base, values, changes = recipe.load(name, preset=preset), sweeps.parse_over(over), recipe.assignments(settings)
    if twice := sorted(values.keys() & changes.keys()):
        raise typer.BadParameter(f"field '{twice[0]}' is given twice: by --set and by --over")
    return (recipe.override(base, changes) if changes else base), values


def _discover_words(name: str, settings: list[str], preset: str | None) -> list[str]:
    """The words of the `fluxforge discover` command of a point, without the fields that the sweep varies."""
    words = ["fluxforge", "discover", name, *(["--preset", preset] if preset else [])]
    return [*words, *(word for text in settings for word in ("--set", text))]


def _run(work: Callable[..., "Sweep"], folder: Path, as_json: bool) -> None:
    """Run `work` with a live table and print the result; exit code 1 if a point failed."""
    with offer_resume("sweep", folder, "sweep.json"), _live_table(quiet=as_json) as tell:
        ended = work(tell=tell, warn=warn)
    if as_json:
        show_json(ended.document())
    else:
        _show_sweep(ended)
    if ended.failed:
        first = ended.failed[0]
        say(
            "error",
            f"{len(ended.failed)} of {len(ended.points)} points failed: {first.name}: {first.error}",
            style="bold red",
        )
        raise typer.Exit(1)


@contextmanager
def _live_table(*, quiet: bool) -> Iterator[Callable[["PointStatus"], None]]:
    """Yield a function that shows the status of a point: in a table on a terminal, otherwise as a line."""
    if quiet:
        yield lambda status: raise_lost_signal()
    elif not sys.stderr.isatty():
        yield _write_line
    else:
        states: dict[str, PointStatus] = {}
        target = console(stderr=True)
        with Live(console=target, transient=True, auto_refresh=False) as live:

            def tell(status: "PointStatus") -> None:
                raise_lost_signal()
                states[status.name] = status
                live.update(tabulate_points(states, target.height), refresh=True)

            yield tell


def tabulate_points(states: Mapping[str, "PointStatus"], height: int) -> Table:
    """A table of the points that ended last, as many as fit in `height` lines, and of those that are running."""
    running = [state for state in states.values() if state.result is None and state.stage != "waiting"]
    ended = [state for state in states.values() if state.result is not None]
    waiting = len(states) - len(running) - len(ended)
    shown = [*ended[-max(height - len(running) - FRAME, 1) :], *running]
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        caption=f"{len(ended)} of {len(states)} ended, {len(running)} running, {waiting} waiting",
        caption_justify="left",
    )
    for name in COLUMNS:
        table.add_column(name, no_wrap=True, overflow="ellipsis", justify="right" if name in COLUMNS[4:] else "left")
    for state in shown:
        table.add_row(*(replace_unprintable(cell) for cell in _row(state.name, _stage(state), state.result)))
    return table


def _stage(state: "PointStatus") -> str:
    return f"{state.stage}, {state.done:,} of {state.total:,}" if state.total > 1 else state.stage


def _row(name: str, stage: str, result: "PointResult | None") -> tuple[str, ...]:
    if result is None:
        return name, stage, "", "", "", ""
    formula = result.error or result.formula or "-"
    return name, stage, result.verdict or "-", formula, number(result.loss, 3), number(result.seconds, 3)


def _write_line(status: "PointStatus") -> None:
    """Write a line to stderr when a point starts or ends."""
    raise_lost_signal()
    if status.result is None and status.stage not in ("starting", "resuming"):
        return
    text = f"{status.name}: {status.stage}"
    if (result := status.result) is not None:
        details = (result.verdict, result.formula, result.error)
        loss = None if result.loss is None else f"loss {result.loss:.3g}"
        seconds = None if result.seconds is None else f"{result.seconds:.1f} s"
        text = ", ".join(filter(None, (text, *details, loss, seconds)))
    sys.stderr.write(one_line(text) + "\n")
    sys.stderr.flush()


def _shorten_formulas(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows with formulas truncated to the width that other columns leave; summary.csv has them in full."""
    place = columns.index("formula")
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    room = max(console().width - (sum(widths) - widths[place]) - 3 * (len(columns) - 1), len("formula"))
    cut = (row[place] if len(row[place]) <= room else f"{row[place][: room - 1]}…" for row in rows)
    return [(*row[:place], formula, *row[place + 1 :]) for row, formula in zip(rows, cut, strict=True)]


def _show_sweep(ended: "Sweep") -> None:
    from fluxforge.sweeps._summary import show_changes

    columns = tuple(name for name in COLUMNS if name != "stage")
    rows = []
    for point in ended.points:
        name, _, verdict, formula, loss, seconds = _row(point.name, "", point)
        rows.append((name, verdict if point.outcome == "finished" else "failed", formula, loss, seconds))
    show_table(columns, _shorten_formulas(columns, rows), right=columns[3:])
    if any(rate.of for rate in ended.rates):
        show()
        shown = [
            (
                show_changes(rate.changes),
                f"{rate.recovered} of {rate.of}",
                format_value(rate.rate, ".2f"),
                f"{rate.low:.3f} to {rate.high:.3f}",
                *(str(each) for each in (rate.approximation, rate.refused, rate.failed)),
            )
            for rate in ended.rates
        ]
        show_table(RATE_COLUMNS, shown, right=RATE_COLUMNS[1:])
    show(f"\nsummary: {ended.folder / 'summary.html'}")
