"""`fluxforge bench time`: what is shown, written and refused."""

from pathlib import Path

import pytest
from cli_runs import Cli, only_line

from fluxforge import bench
from fluxforge.bench import TimeBench
from fluxforge.bench._time_rows import RunRow, TimeRow


def step_row(family: str, method: str, field: str, error: float, *, fourier: float = 4.0) -> TimeRow:
    return TimeRow("graded", 1000, field, fourier, family, method, 4, 1, 4.0, error, error, 2e-4, 1e-3)


def run_row(method: str, field: str, error: float | None) -> RunRow:
    return RunRow("graded", 500, field, 1.0, "local", method, 1234, 4.0, 4936.0, error, 0.5)


ROWS = tuple(
    step_row(family, method, field, error, fourier=fourier)
    for fourier in bench.FOURIER
    for field in ("smooth", "noise")
    for family, method, error in (("local", "stages-4", 0.0123), ("rkl2", "rkl2-4", 0.25))
)
RUNS = (run_row("stages-4", "smooth", None), run_row("stages-4", "noise", 3.5e-5))
MEASURED = TimeBench({"graded": 101.0}, ROWS, RUNS, ("a conclusion",))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxforge.bench._time.bench_time", lambda cells, **options: MEASURED)


@pytest.mark.usefixtures("measured")
def test_steps_runs_and_conclusions_are_shown(cli: Cli) -> None:
    told = " ".join(cli("bench", "time").out.split())
    for words in ("graded mesh, 1,000 cells, sizes 1:101", "rkl2-4", "0.012", "0.25", "200 µs", "1,234", "blew up"):
        assert words in told
    assert "- a conclusion." in told


@pytest.mark.usefixtures("measured")
def test_one_document_holds_every_row(cli: Cli) -> None:
    document = cli("bench", "time", "--json").json["time"]
    assert len(document["rows"]) == len(ROWS)
    assert document["rows"][0]["method"] == "stages-4"
    assert document["runs"][0]["error"] is None
    assert document["conclusions"] == ["a conclusion"]


@pytest.mark.usefixtures("measured")
def test_figures_are_written_against_applications_and_seconds(cli: Cli, tmp_path: Path) -> None:
    assert cli("bench", "time", "--figure", str(tmp_path / "work.png")).code == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["work-0.5-applications.png", "work-0.5-seconds.png", "work-4-seconds.png", "work.png"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("--mesh", "round"), "no mesh 'round'"), (("--cells", "7"), "cells"), (("--run", "nowhere"), "nowhere")],
)
def test_bad_input_is_one_line(cli: Cli, arguments: tuple[str, str], words: str) -> None:
    failed = cli("bench", "time", *arguments)
    assert failed.code == 2
    assert words in only_line(failed.err)
