"""`fluxforge bench time`: tables of steps and runs by many methods, or one JSON document, and a figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fluxforge.cli._arguments import Json, check_writable, count, split_names
from fluxforge.cli._output import duration, number, show, show_json, show_table

if TYPE_CHECKING:
    from fluxforge.bench._time import TimeBench


def time(
    cells: Annotated[int, count("--cells", text="Number of cells.")] = 10_000,
    mesh: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Meshes, separated by commas: irregular, graded (default: both)."),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="Folder of a run whose network takes part; may be repeated."),
    ] = None,
    runs: Annotated[
        bool, typer.Option(help="Also compare runs to t = 0.02 with equal numbers of applications.")
    ] = True,
    figure: Annotated[
        Path | None,
        typer.Option(callback=check_writable, metavar="PNG", help="Draw error against applications and seconds."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare steps with local coefficients with fixed polynomials, exponentials and implicit steps."""
    from fluxforge.cli._progress import show_status

    with show_status(f"measuring steps on {cells:,} cells", quiet=as_json) as tell:
        from fluxforge.bench._time import bench_time
        from fluxforge.bench._time_case import MESHES
        from fluxforge.cli._progress import use_64_bits

        use_64_bits()
        names = MESHES if mesh is None else split_names(mesh)
        measured = bench_time(
            cells,
            meshes=names,
            runs=run or (),
            **({} if runs else {"end_time": None}),
            progress=lambda what: tell(f"measuring: {what}"),
        )
        if figure is not None:
            _save_figure(measured, figure)
    if as_json:
        show_json(measured.document())
        return
    _show_steps(measured)
    if measured.runs:
        _show_runs(measured)
    for sentence in measured.conclusions:
        show(f"- {sentence}.")


def _save_figure(measured: "TimeBench", path: Path) -> None:
    from fluxforge.bench._time import FOURIER
    from fluxforge.bench._time_figure import work_precision_figure
    from fluxforge.mesh import save_figure

    for fourier in FOURIER:
        for against in ("applications", "seconds"):
            drawn = work_precision_figure(measured.rows, fourier=fourier, against=against)
            ending = "" if (fourier, against) == (FOURIER[-1], "applications") else f"-{fourier:g}-{against}"
            save_figure(drawn, path.with_name(f"{path.stem}{ending}{path.suffix}"), dpi=110)


def _show_steps(measured: "TimeBench") -> None:
    for key in dict.fromkeys((row.mesh, row.cells, row.fourier) for row in measured.rows):
        mesh, cells, fourier = key
        show(
            f"\n{mesh} mesh, {cells:,} cells, sizes 1:{measured.meshes[mesh]:.0f}: one step of {fourier:g} Fourier "
            "steps, error over change\n"
        )
        rows = [row for row in measured.rows if (row.mesh, row.cells, row.fourier) == key]
        rows.sort(key=lambda row: (row.applications, row.family != "local", row.method))
        lines: list[Sequence[str]] = []
        for method, substeps in dict.fromkeys((row.method, row.substeps) for row in rows):
            alike = {row.field: row for row in rows if (row.method, row.substeps) == (method, substeps)}
            first = next(iter(alike.values()))
            errors = [number(alike[kind].error, 2) if kind in alike else "-" for kind in ("smooth", "noise")]
            times = "" if substeps == 1 else f" × {substeps}"
            lines.append((f"{method}{times}", number(first.applications, 3), *errors, duration(first.seconds)))
        columns = ("method", "applications", "smooth", "noise", "time")
        show_table(columns, lines, right=columns[1:])


def _show_runs(measured: "TimeBench") -> None:
    for key in dict.fromkeys((row.mesh, row.cells, row.budget) for row in measured.runs):
        show(f"\n{key[0]} mesh, {key[1]:,} cells: runs to t = 0.02, {key[2]:g} applications per Fourier step\n")
        rows = [row for row in measured.runs if (row.mesh, row.cells, row.budget) == key]
        lines: list[Sequence[str]] = []
        for method, steps in dict.fromkeys((row.method, row.steps) for row in rows):
            alike = [row for row in rows if (row.method, row.steps) == (method, steps)]
            errors = ["blew up" if row.error is None else number(row.error, 2) for row in alike]
            work = number(max(row.applications for row in alike), 3)
            lines.append((method, f"{steps:,}", work, *errors, duration(alike[0].seconds)))
        columns = ("method", "steps", "applications", "smooth", "noise", "time")
        show_table(columns, lines, right=columns[1:])
    show()
