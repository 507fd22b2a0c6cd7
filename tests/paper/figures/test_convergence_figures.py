"""The figures of the convergence study, from a result written by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxforge.paper import PARTS
from fluxforge.paper.studies import convergence
from study_documents import read_partial

errors_figure = PARTS["convergence"].draw["errors"]
printed_residual_map = PARTS["convergence"].draw["convergence-as-printed"]
residual_map = PARTS["convergence"].draw["convergence"]
SCHEMES = ("euler", "midpoint", "midpoint-printed", "two-hop", "two-hop-printed", "crank-nicolson", "rkl2-8", "network")
FRACTIONS = (2.0, 1.0, 0.5, 0.25)
CELLS = (100, 1000, 10_000)


def _limit(name: str, fourier: float) -> dict[str, Any]:
    unlimited = name == "crank-nicolson"
    return {"dt": None if unlimited else 1.4 * fourier, "unlimited": unlimited}


@pytest.fixture
def result() -> dict[str, Any]:
    rows, space = [], []
    for name in SCHEMES:
        for n in CELLS[: 2 if name == "network" else 3]:
            space.append({"scheme": name, "wanted": n, "cells": n, "error": n**-0.5, "seconds": 1.0})
            for f in FRACTIONS:
                blew = f > 1 and name not in ("crank-nicolson", "rkl2-8")
                residual = 0.0 if name == "crank-nicolson" else 0.1 * f
                rows.append(
                    {"scheme": name, "wanted": n, "cells": n, "fourier": f, "dt": f / n, "steps": 8}
                    | {"blew_up": blew, "error": None if blew else 1e-3 * f, "seconds": 1 / f}
                    | {"residual_half": None if blew and n == 100 else residual, "residual_one": 0.2 * f}
                )
    meshes = [
        {"wanted": n, "cells": n, "fourier": 1 / n, "rate": 1.5 * n, "oscillation": 4 / (3 * n)}
        | {"limits": {name: _limit(name, 1 / n) for name in SCHEMES[:-1]}}
        for n in CELLS
    ]
    return {
        "schemes": list(SCHEMES),
        "meshes": meshes,
        "rows": rows,
        "space": space,
        "choices": {"until": 0.02, "end": 64.0},
    }


@pytest.mark.parametrize("draw", [residual_map, pytest.param(printed_residual_map, marks=pytest.mark.slow)])
def test_a_map_has_a_panel_per_scheme_and_a_place_for_the_legend(
    draw: Any, result: dict[str, Any], tmp_path: Path
) -> None:
    figure = draw(read_partial(result, convergence.Result))
    figure.savefig(tmp_path / "map.png")
    titles = [panel.get_title().split(" (")[0] for panel in figure.axes if panel.get_title()]
    assert titles == list(SCHEMES)
    assert sum(panel.get_legend() is not None for panel in figure.axes) == 1


def test_tiles_hold_what_was_measured_and_nothing_else(result: dict[str, Any]) -> None:
    panel = residual_map(read_partial(result, convergence.Result)).axes[0]
    (tiles,) = [each for each in panel.collections if each.get_array() is not None]
    values = np.ma.asarray(tiles.get_array())
    assert values.shape == (len(FRACTIONS), len(CELLS))
    assert values[0].tolist() == pytest.approx([0.025] * 3)
    assert values.mask.sum() == 1
    assert bool(np.ma.getmaskarray(values)[-1, 0])


def test_lines_are_where_the_steps_are(result: dict[str, Any]) -> None:
    fourier, limit, blown = residual_map(read_partial(result, convergence.Result)).axes[0].lines
    assert list(fourier.get_ydata()) == [1 / n for n in CELLS]
    assert list(limit.get_ydata()) == [1.4 / n for n in CELLS]
    assert list(blown.get_ydata()) == [2 / n for n in CELLS]
    # Without a limit and without a blow-up only Fourier's line is left.
    assert len(residual_map(read_partial(result, convergence.Result)).axes[5].lines) == 1


def test_errors_end_where_a_scheme_blows_up(result: dict[str, Any], tmp_path: Path) -> None:
    figure = errors_figure(read_partial(result, convergence.Result))
    figure.savefig(tmp_path / "errors.png")
    in_time, in_space, in_seconds = figure.axes
    by_name = {str(line.get_label()).split(" (")[0]: line for line in in_time.lines}
    assert max(by_name["euler"].get_xdata()) == 1.0
    assert max(by_name["crank-nicolson"].get_xdata()) == 2.0
    assert "in time: 1,000 cells" in by_name["network"].get_label()
    assert len(in_space.lines) == len(SCHEMES) + 2
    assert len(in_seconds.lines) == len(SCHEMES)


def test_networks_are_told_from_schemes_and_say_where_they_end(result: dict[str, Any]) -> None:
    for row in result["rows"]:
        row["error"] = None if row["scheme"] == "network" else row["error"]
    in_time = errors_figure(read_partial(result, convergence.Result)).axes[0]
    black = [line.get_label() for line in in_time.lines if line.get_color() == "black"]
    assert black == ["network (blows up in time)"]


def test_a_study_of_one_mesh_draws(result: dict[str, Any], tmp_path: Path) -> None:
    one = {key: [row for row in result[key] if row["wanted"] == 100] for key in ("meshes", "rows", "space")}
    for draw in (residual_map, errors_figure):
        draw(read_partial(result | one, convergence.Result)).savefig(tmp_path / "figure.png")
