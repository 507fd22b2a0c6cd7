"""`fluxforge bench`: the commands, and the tables that they print."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluxforge.cli._arguments import Json, check_writable, choice, command, count, group, split_names
from fluxforge.cli._output import duration, number, show, show_json, show_pairs, show_status, show_table

if TYPE_CHECKING:
    from fluxforge.bench._equations import Validation
    from fluxforge.bench._rows import Row
    from fluxforge.bench._step import StepBench, StepRow
    from fluxforge.bench._time import TimeBench
    from fluxforge.bench._train import TrainBench

bench = group(
    "Measure speed and accuracy, each compared with other codes or methods in the same run.",
    "fluxforge bench step --cells 1e6",
    "fluxforge bench equations --only burgers",
)


@command(bench, "fluxforge bench step --cells 1e5 --no-slope")
def step(
    cells: Annotated[int, count("--cells", text="Number of cells.")] = 10**6,
    slope: Annotated[
        bool, typer.Option(help="Also measure how the cost grows up to 1e7 cells; takes minutes and gigabytes.")
    ] = True,
    schemes: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Built-in schemes timed besides euler, separated by commas (default: all)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Time one step of each scheme, compared with SciPy, FiPy and a vector addition."""
    with show_status(f"measuring a step on {cells:,} cells", quiet=as_json) as tell:
        from fluxforge.bench._step import bench_step

        _use_64_bits()
        chosen = {} if schemes is None else {"schemes": list(split_names(schemes))}
        measured = bench_step(cells, **chosen, slope=slope, progress=lambda what: tell(f"measuring: {what}"))
    if as_json:
        show_json(asdict(measured))
        return
    show(f"{measured.cells:,} cells, {measured.precision}, {measured.device}\n")
    columns = ("scheme", "cells per second", "per step", "bytes per cell", "of a vector add", "by")
    show_table(columns, [_step_row(name, timed) for name, timed in measured.schemes.items()], right=columns[1:-1])
    show()
    show_pairs(_step_pairs(measured))


def _use_64_bits() -> None:
    """Switch on JAX's 64-bit mode, which the library leaves to its caller."""
    import jax

    jax.config.update("jax_enable_x64", True)


def _step_row(name: str, timed: "StepRow") -> tuple[str, ...]:
    speed, moved = number(timed.cells_per_s), number(timed.bytes_per_cell)
    return name, speed, duration(timed.seconds_per_step), moved, number(timed.bandwidth_share, 3), timed.by


def _step_pairs(measured: "StepBench") -> Iterator[tuple[str, str]]:
    ratios = measured.ratios
    yield "bandwidth of a vector add", f"{number(measured.bandwidth_gb_per_s)} GB/s"
    yield "euler, share of that bandwidth", number(measured.roofline_fraction, 3)
    yield "building the mesh", duration(measured.mesh_seconds)
    yield "euler, cells in random order", f"{number(measured.shuffled_cells_per_s)} cells per second"
    yield "SciPy's CSR product", f"{number(measured.scipy_csr_cells_per_s)} cells per second"
    yield "euler over SciPy", number(ratios.euler_over_scipy, 3)
    if measured.fipy_cells_per_s is None:
        yield "FiPy", "not installed: pip install 'fluxforge[bench]'"
    else:
        speed = number(measured.fipy_cells_per_s)
        yield "FiPy's explicit step", f"{speed} cells per second, on {measured.fipy_cells:,} cells"
        yield "euler over FiPy", number(ratios.euler_over_fipy, 3)
    if measured.slope is not None:
        yield "growth of cost with cells", f"{number(measured.slope, 3)} (1 is linear)"


@command(bench, "fluxforge bench train --seeds 64")
def train(
    steps: Annotated[int, count("--steps", text="Training steps per round of timing.")] = 1_000,
    seeds: Annotated[int, count("--seeds", text="Networks trained in parallel.")] = 16,
    as_json: Json = False,
) -> None:
    """Time the training of a small network of the paper, compared with the same network in PyTorch Geometric."""
    with show_status("measuring the toy training", quiet=as_json) as tell:
        from fluxforge.bench._train import bench_train

        measured = bench_train(seeds, steps=steps, progress=lambda what: tell(f"measuring: {what}"))
    if as_json:
        show_json(asdict(measured))
        return
    show(f"{measured.parameters} parameters, batches of {measured.batch} graphs, {measured.device}\n")
    columns = ("training loop", "steps per second", "per step")
    show_table(columns, list(_loop_rows(measured)), right=columns[1:])
    show()
    show_pairs(_peer_pairs(measured))


def _loop_rows(measured: "TrainBench") -> Iterator[tuple[str, ...]]:
    names = ("ours", "PyTorch Geometric", "PyTorch Geometric, batches prepared")
    for name, key in zip(names, ("ours", "pyg", "pyg_prepared"), strict=True):
        if (rate := getattr(measured, f"{key}_steps_per_s")) is not None:
            yield name, number(rate), duration(1.0 / rate)


def _peer_pairs(measured: "TrainBench") -> Iterator[tuple[str, str]]:
    if measured.ratio is None:
        yield "PyTorch Geometric", "not installed: pip install 'fluxforge[bench]'"
    else:
        yield "PyTorch Geometric on", f"{measured.pyg_device}, best with threads: {measured.pyg_threads}"
        yield "ours over PyTorch Geometric", number(measured.ratio, 3)
        yield "the same, batches prepared", number(measured.ratio_prepared, 3)
    yield f"{measured.seeds} seeds at once, steps of all", f"{number(measured.seeds_steps_per_s)} per second"
    yield f"trainings of {measured.training_steps:,} steps", f"{number(measured.seeds_per_s, 3)} per second"


class Size(StrEnum):
    """Sizes of the meshes."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"


@command(bench, "fluxforge bench equations --only burgers,fisher --size quick")
def equations(
    size: Annotated[
        Size, choice(Size, "Mesh sizes: quick (about a minute), default (two minutes) or full (many minutes).")
    ] = Size.DEFAULT,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Problems to solve, separated by commas (default: all).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Solve problems with known solutions: errors and orders of many schemes, on some problems compared with FiPy."""
    with show_status("solving problems with known solutions", quiet=as_json) as tell:
        from fluxforge.bench._equations import bench_equations

        _use_64_bits()
        names = None if only is None else split_names(only)
        measured = bench_equations(size=size.value, only=names, progress=lambda name: tell(f"solving: {name}"))
    if as_json:
        show_json(measured.document())
    else:
        _show_problems(measured)


def _show_problems(measured: "Validation") -> None:
    """Print one table per problem."""
    from fluxforge.bench._equations import GROUPS

    for name, rows in measured.groups.items():
        for problem in dict.fromkeys(row.problem for row in rows):
            alike = [row for row in rows if row.problem == problem]
            subject = "" if len(alike) == len(rows) else f" ({problem.removeprefix(f'{name}, ')})"
            show(f"{name}: {GROUPS[name].title}{subject}\n")
            _show_rows(alike)
            show()
    if measured.fipy is None:
        from fluxforge.bench._rows import HOW_TO_INSTALL

        show(f"FiPy: {HOW_TO_INSTALL}")


# Columns of tables: heading, field of the row, and the function that formats a value.
COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("scheme", "scheme", str),
    ("mesh", "mesh", str),
    ("cells", "cells", "{:,}".format),
    ("error", "error", partial(number, digits=3)),
    ("max", "error_max", partial(number, digits=3)),
    ("order", "order", "{:.2f}".format),
    ("measured", "measured", partial(number, digits=5)),
    ("exact", "exact", partial(number, digits=5)),
    ("predicted", "predicted", partial(number, digits=5)),
    ("least", "minimum", partial(number, digits=3)),
    ("largest", "maximum", partial(number, digits=4)),
    ("variation", "variation", partial(number, digits=3)),
    ("per step", "seconds_per_step", duration),
    ("FiPy's error", "fipy_error", partial(number, digits=3)),
    ("difference", "fipy_difference", partial(number, digits=2)),
    ("FiPy per step", "fipy_seconds_per_step", duration),
)


def _show_rows(rows: Sequence["Row"]) -> None:
    """Print a table of the columns that have a value in some row, with a dash for rows without."""
    shown = [column for column in COLUMNS if any(getattr(row, column[1]) is not None for row in rows)]
    cells = [
        ["-" if (value := getattr(row, field)) is None else write(value) for _, field, write in shown] for row in rows
    ]
    columns = [heading for heading, _, _ in shown]
    show_table(columns, cells, right=columns[2:])
    quantities = sorted({row.quantity for row in rows if row.quantity is not None})
    norms = sorted({row.norm for row in rows if row.norm is not None})
    about = [f"error: {', '.join(norms)}"] if norms else []
    show("; ".join([*about, *([f"measured: {', '.join(quantities)}"] if quantities else [])]))


@command(bench, "fluxforge bench time --cells 1e3 --no-runs", "fluxforge bench time --run runs/carry --figure time.png")
def time(
    cells: Annotated[int, count("--cells", text="Number of cells.")] = 10_000,
    mesh: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Meshes, separated by commas: irregular, graded (default: both)."),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="Folder of a run whose network is included. May be repeated."),
    ] = None,
    runs: Annotated[
        bool, typer.Option(help="Also compare runs to t = 0.02 with equal numbers of operator applications.")
    ] = True,
    figure: Annotated[
        Path | None,
        typer.Option(
            callback=check_writable,
            metavar="PNG",
            help="Plot the error against operator applications and against seconds.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare methods for one step of the heat equation.

    Runge–Kutta stages with coefficients per face, fixed polynomials of the operator, exponentials, and implicit steps.
    """
    with show_status(f"measuring steps on {cells:,} cells", quiet=as_json) as tell:
        from fluxforge.bench._time import bench_time
        from fluxforge.bench._time_case import MESHES

        _use_64_bits()
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
    from fluxforge.bench._time_rows import work_precision_figure
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
