"""`fluxforge bench step`: cells per second of our steps, beside their peers in the same run."""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from fluxforge.bench._clock import best_seconds
from fluxforge.bench._peers import fipy_step, scipy_product, vector_add
from fluxforge.errors import InputError
from fluxforge.mesh import DualGraph, Mesh, dual, fourier_step, right_triangles
from fluxforge.scheme import find
from fluxforge.simulate import AbstractStepper, bytes_per_cell, operator, stepper

SCHEMES = ("euler", "midpoint", "two-hop", "corrected", "crank-nicolson")
SLOPE_CELLS = (10_000, 100_000, 1_000_000, 10_000_000)
FIPY_MOST_CELLS = 100_000

Progress = Callable[[str], None]


def bench_step(cells: int = 1_000_000, *, slope: bool = True, progress: Progress | None = None) -> dict[str, Any]:
    """Time every scheme's step on a mesh of right triangles with about that many cells.

    `roofline_fraction` is euler's: the bytes its step must move, over the bandwidth of a vector add that moves as
    many; each explicit scheme's own is its `bandwidth_share`. `shuffled_cells_per_s` is euler's on the same mesh with
    its cells in random order, which the stepper renumbers. `slope` is that of log(time ÷ time of a vector add of the
    same bytes) against log(cells), plus 1.
    """
    if not 100 <= cells <= 100_000_000:
        raise InputError(f"cells should be between 100 and 1e8, got {cells}")
    tell = progress or (lambda _: None)
    graph = dual(_mesh(cells))
    dt = 0.5 * fourier_step(graph)
    T = np.random.default_rng(0).random(graph.cells)
    tell("vector add, SciPy and euler")
    euler = stepper("euler", graph, dt)
    moved = bytes_per_cell(euler, graph.cells)
    assert moved is not None
    add_count = round(moved * graph.cells / 24)
    peers = best_seconds(
        {
            "add": vector_add(add_count),
            "euler": _repeat(euler, T),
            "scipy": scipy_product(operator(find("euler"), graph, dt=dt).M, T),
        }
    )
    bandwidth = 24 * add_count / peers["add"]
    result: dict[str, Any] = {
        "cells": graph.cells,
        "device": str(jax.devices()[0]),
        "precision": "float64",
        "schemes": {"euler": _row(graph, peers["euler"], moved, peers["add"])},
        "scipy_csr_cells_per_s": graph.cells / peers["scipy"],
        "bandwidth_gb_per_s": bandwidth / 1e9,
        "roofline_fraction": moved * graph.cells / peers["euler"] / bandwidth,
    }
    for name in SCHEMES[1:]:
        tell(name)
        step = stepper(name, graph, dt)
        tasks, bytes_moved = {"step": _repeat(step, T)}, bytes_per_cell(step, graph.cells)
        if bytes_moved is not None:
            tasks["add"] = vector_add(round(bytes_moved * graph.cells / 24))
        seconds = best_seconds(tasks, rounds=3)
        result["schemes"][name] = _row(graph, seconds["step"], bytes_moved, seconds.get("add"))
    tell("euler, cells in random order")
    shuffled = best_seconds({"euler": _repeat(stepper("euler", dual(_shuffled(_mesh(cells))), dt), T)}, rounds=3)
    result["shuffled_cells_per_s"] = graph.cells / shuffled["euler"]
    tell("FiPy")
    result |= _fipy(min(graph.cells, FIPY_MOST_CELLS))
    result["ratios"] = {
        "euler_over_scipy": result["schemes"]["euler"]["cells_per_s"] / result["scipy_csr_cells_per_s"],
        "euler_over_fipy": _over(result["schemes"]["euler"]["cells_per_s"], result["fipy_cells_per_s"]),
    }
    result["slope"] = _slope(tell) if slope else None
    return result


def _row(graph: DualGraph, seconds: float, moved: float | None, add: float | None) -> dict[str, float | None]:
    return {
        "cells_per_s": graph.cells / seconds,
        "seconds_per_step": seconds,
        "bytes_per_cell": moved,
        "bandwidth_share": None if add is None else add / seconds,
    }


def _over(a: float, b: float | None) -> float | None:
    return None if b is None else a / b


def _mesh(cells: int) -> Mesh:
    return right_triangles(max(2, round(math.sqrt(cells / 2))))


def _shuffled(mesh: Mesh) -> Mesh:
    order = np.random.default_rng(0).permutation(len(mesh.cells))
    return Mesh(mesh.points, mesh.cells[order], mesh.boundary, origin=f"{mesh.origin}, shuffled")


def _repeat(step: AbstractStepper, T: np.ndarray) -> Callable[[int], object]:
    state = step.enter(T)
    return lambda steps: jax.block_until_ready(step.repeat(state, steps))


def _fipy(cells: int) -> dict[str, Any]:
    run = fipy_step(cells, dt=0.1 / cells)
    if run is None:
        return {"fipy_cells_per_s": None, "fipy_cells": None}
    return {"fipy_cells_per_s": cells / best_seconds({"fipy": run}, rounds=3)["fipy"], "fipy_cells": cells}


def _slope(tell: Progress) -> float:
    """Time relative to a vector add of the same bytes, so that caches cancel out."""
    points = []
    for cells in SLOPE_CELLS:
        tell(f"euler on {cells:.0e} cells")
        graph = dual(_mesh(cells))
        step = stepper("euler", graph, 0.5 * fourier_step(graph))
        moved = bytes_per_cell(step, graph.cells)
        assert moved is not None
        seconds = best_seconds(
            {
                "euler": _repeat(step, np.random.default_rng(0).random(graph.cells)),
                "add": vector_add(round(moved * graph.cells / 24)),
            },
            rounds=5,
        )
        points.append((math.log(graph.cells), math.log(seconds["euler"] / seconds["add"])))
    logs, ratios = np.array(points).T
    return float(np.polyfit(logs, ratios, 1)[0] + 1.0)
