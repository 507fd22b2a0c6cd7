"""`fluxforge bench`: each benchmark against a peer in the same run."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from fluxforge.cli._arguments import Json, command, count, group, split_names
from fluxforge.cli._bench_equations import equations
from fluxforge.cli._bench_limiter import limiter
from fluxforge.cli._bench_skew import skew
from fluxforge.cli._bench_time import time
from fluxforge.cli._output import duration, number, show, show_json, show_pairs, show_table

bench = group(
    text="Measure speed on this machine, each number against a peer in the same run.",
    example="fluxforge bench step --cells 1e6",
)


@command(bench, "fluxforge bench step --cells 1e5 --no-slope")
def step(
    cells: Annotated[int, count("--cells", text="Number of cells.")] = 10**6,
    slope: Annotated[
        bool, typer.Option(help="Also measure how cost grows, up to 1e7 cells: minutes, gigabytes.")
    ] = True,
    schemes: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Built-in schemes beside euler, separated by commas (default: all)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Time one step of each scheme beside SciPy, FiPy and a plain vector add."""
    from fluxforge.cli._progress import show_status

    with show_status(f"measuring a step on {cells:,} cells", quiet=as_json) as tell:
        from fluxforge.bench._step import bench_step
        from fluxforge.cli._progress import use_64_bits

        use_64_bits()
        chosen = {} if schemes is None else {"schemes": list(split_names(schemes))}
        measured = bench_step(cells, **chosen, slope=slope, progress=lambda what: tell(f"measuring: {what}"))
    if as_json:
        show_json(measured)
        return
    show(f"{measured['cells']:,} cells, {measured['precision']}, {measured['device']}\n")
    columns = ("scheme", "cells per second", "per step", "bytes per cell", "of a vector add", "by")
    show_table(columns, [_row(name, timed) for name, timed in measured["schemes"].items()], right=columns[1:-1])
    show()
    show_pairs(_pairs(measured))


def _row(name: str, timed: Mapping[str, Any]) -> tuple[str, ...]:
    speed, moved = number(timed["cells_per_s"]), number(timed["bytes_per_cell"])
    return name, speed, duration(timed["seconds_per_step"]), moved, number(timed["bandwidth_share"], 3), timed["by"]


def _pairs(measured: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    ratios = measured["ratios"]
    yield "bandwidth of a vector add", f"{number(measured['bandwidth_gb_per_s'])} GB/s"
    yield "euler, share of that bandwidth", number(measured["roofline_fraction"], 3)
    yield "building the mesh", duration(measured["mesh_seconds"])
    yield "euler, cells in random order", f"{number(measured['shuffled_cells_per_s'])} cells per second"
    yield "SciPy's CSR product", f"{number(measured['scipy_csr_cells_per_s'])} cells per second"
    yield "euler over SciPy", number(ratios["euler_over_scipy"], 3)
    if measured["fipy_cells_per_s"] is None:
        yield "FiPy", "not installed: pip install 'fluxforge[bench]'"
    else:
        speed = number(measured["fipy_cells_per_s"])
        yield "FiPy's explicit step", f"{speed} cells per second, on {measured['fipy_cells']:,} cells"
        yield "euler over FiPy", number(ratios["euler_over_fipy"], 3)
    if measured["slope"] is not None:
        yield "growth of cost with cells", f"{number(measured['slope'], 3)} (1 is linear)"


@command(bench, "fluxforge bench train --seeds 64")
def train(
    steps: Annotated[int, count("--steps", text="Steps of our loop in each round of measuring.")] = 1_000,
    seeds: Annotated[int, count("--seeds", text="Networks trained at once.")] = 16,
    as_json: Json = False,
) -> None:
    """Time the paper's toy training beside the same network in PyTorch Geometric."""
    from fluxforge.cli._progress import show_status

    with show_status("measuring the toy training", quiet=as_json) as tell:
        from fluxforge.bench._train import bench_train

        measured = bench_train(seeds, steps=steps, progress=lambda what: tell(f"measuring: {what}"))
    if as_json:
        show_json(measured)
        return
    show(f"{measured['parameters']} parameters, batches of {measured['batch']} graphs, {measured['device']}\n")
    columns = ("training loop", "steps per second", "per step")
    show_table(columns, list(_loops(measured)), right=columns[1:])
    show()
    show_pairs(_compare(measured))


def _loops(measured: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    names = ("ours", "PyTorch Geometric", "PyTorch Geometric, batches prepared")
    for name, key in zip(names, ("ours", "pyg", "pyg_prepared"), strict=True):
        if (rate := measured[f"{key}_steps_per_s"]) is not None:
            yield name, number(rate), duration(1.0 / rate)


def _compare(measured: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if measured["ratio"] is None:
        yield "PyTorch Geometric", "not installed: pip install 'fluxforge[bench]'"
    else:
        threads = f"{measured['pyg_device']}, best with threads: {measured['pyg_threads']}"
        yield "PyTorch Geometric on", threads
        yield "ours over PyTorch Geometric", number(measured["ratio"], 3)
        yield "the same, batches prepared", number(measured["ratio_prepared"], 3)
    yield f"{measured['seeds']} seeds at once, steps of all", f"{number(measured['seeds_steps_per_s'])} per second"
    whole = f"{number(measured['seeds_per_s'], 3)} per second"
    yield f"trainings of {measured['training_steps']:,} steps, so", whole


command(bench, "fluxforge bench equations --only burgers,fisher --size quick")(equations)
command(bench, "fluxforge bench time --cells 1e3 --no-runs")(time)
command(bench, "fluxforge bench limiter --json")(limiter)
command(bench, "fluxforge bench skew --size quick")(skew)
