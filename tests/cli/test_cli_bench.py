"""`fluxforge bench`."""

from typing import Any

import pytest
from cli_runs import Cli, only_line

from fluxforge.bench import StepBench, _step
from fluxforge.bench._step import StepRatios, StepRow

ROW = {"cells_per_s": 2e6, "seconds_per_step": 5e-4, "bytes_per_cell": 48.0, "bandwidth_share": 0.75, "by": "kernel"}
MEASURED = {
    "cells": 1000,
    "mesh_seconds": 2.5,
    "device": "a device",
    "precision": "float64",
    "schemes": {"euler": ROW, "crank-nicolson": ROW | {"bytes_per_cell": None, "bandwidth_share": None}},
    "scipy_csr_cells_per_s": 1e6,
    "bandwidth_gb_per_s": 10.0,
    "roofline_fraction": 0.85,
    "shuffled_cells_per_s": 1.5e6,
    "fipy_cells_per_s": 1e4,
    "fipy_cells": 900,
    "ratios": {"euler_over_scipy": 2.0, "euler_over_fipy": 200.0},
    "slope": 1.01,
}


def to_record(fields: dict[str, Any]) -> StepBench:
    rows = {name: StepRow(**row) for name, row in fields["schemes"].items()}
    return StepBench(**{**fields, "schemes": rows, "ratios": StepRatios(**fields["ratios"])})


# FiPy is imported here, and warns of itself.
@pytest.mark.filterwarnings("ignore")
def test_a_step_is_measured(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_step, "LEAST_SECONDS", 1e-4)  # the clock's tenth of a second makes figures good, and no others
    told = cli("bench", "step", "--cells", "2e2", "--no-slope", "--json")
    assert told.code == 0
    assert told.json.keys() == MEASURED.keys()
    assert told.json["cells"] == 200
    assert told.json["slope"] is None
    assert told.json["schemes"]["euler"].keys() == ROW.keys()


@pytest.mark.parametrize("columns", ["100", "60"])
def test_what_was_measured_is_shown(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("fluxforge.bench._step.bench_step", lambda cells, **options: to_record(MEASURED))
    told = cli("bench", "step")
    assert max(map(len, told.out.splitlines())) <= int(columns)
    for words in ("1,000 cells", "500 µs", "crank-nicolson", "10 GB/s", "0.75", "0.85", "on 900 cells", "200", "1.01"):
        assert words in " ".join(told.out.split())


def test_without_fipy_it_says_how_to_get_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    without = MEASURED | {"fipy_cells_per_s": None, "ratios": {"euler_over_scipy": 2.0, "euler_over_fipy": None}}
    monkeypatch.setattr("fluxforge.bench._step.bench_step", lambda cells, **options: to_record(without))
    assert "fluxforge[bench]" in cli("bench", "step").out


def test_too_few_cells_are_refused(cli: Cli) -> None:
    failed = cli("bench", "step", "--cells", "5")
    assert failed.code == 2
    assert "cells" in only_line(failed.err)
