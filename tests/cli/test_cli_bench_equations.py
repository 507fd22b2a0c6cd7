"""`fluxforge bench equations`."""

import pytest
from cli_runs import Cli, only_line

from fluxforge.bench import Row, Validation

ROWS = [
    Row("robin wall", "implicit", "squares", 64, error=0.25, norm="relative L2", seconds_per_step=5e-4, steps=8),
    Row("robin wall", "implicit", "squares", 256, error=0.0625, norm="relative L2", order=2.0, steps=32),
]


def test_a_problem_is_solved(cli: Cli) -> None:
    told = cli("bench", "equations", "--only", "two-layers", "--size", "quick", "--json")
    assert told.code == 0
    measured = told.json["equations"]
    assert measured.keys() == {"size", "fipy", "rows"}
    assert [row["scheme"] for row in measured["rows"]] == ["two-point", "harmonic", "corrected", "arithmetic"]
    assert {"group", "problem", "scheme", "cells", "error", "seconds_per_step", "fipy_error"} <= measured["rows"][
        0
    ].keys()


@pytest.mark.parametrize("fipy", [None, "4.0"])
def test_what_was_measured_is_shown(cli: Cli, monkeypatch: pytest.MonkeyPatch, fipy: str | None) -> None:
    measured = Validation("quick", fipy, {"robin": ROWS})
    monkeypatch.setattr("fluxforge.bench._equations.bench_equations", lambda **options: measured)
    told = cli("bench", "equations")
    assert told.code == 0
    for words in ("robin: a Robin wall", "256", "0.0625", "2.00", "500 µs", "error: relative L2"):
        assert words in told.out
    assert "measured" not in told.out
    assert ("fluxforge[bench]" in told.out) == (fipy is None)


def test_a_problem_that_is_not_there_is_refused(cli: Cli) -> None:
    failed = cli("bench", "equations", "--only", "tides")
    assert failed.code == 2
    assert "tides" in only_line(failed.err)
