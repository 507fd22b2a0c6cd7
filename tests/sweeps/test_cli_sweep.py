"""`fluxforge sweep`: what it prints, and what it refuses before anything runs."""

import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from fluxforge.cli import main
from fluxforge.cli._sweep import tabulate_points
from fluxforge.sweeps import PointResult, PointStatus


def test_a_sweep_prints_a_line_per_change_and_tables_at_its_end(
    marks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("SWEEP_FAULTS", "error:network.width=32,seed=1:train 3")
    words = ["sweep", "first-order", "--over", "network.width=16,32", "--over", "seed=0:2", "--set", "training.steps=7"]
    assert main([*words, "--workers", "1", "-o", str(tmp_path / "s")]) == 1
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert lines[0] == "network.width=16,seed=0: starting"
    assert lines[1].startswith("network.width=16,seed=0: finished, recovered, z = Σ")
    assert lines[-2] == "network.width=32,seed=1: failed, the training of the test failed"
    assert lines[-1] == "error: 1 of 4 points failed: network.width=32,seed=1: the training of the test failed"
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["point", "verdict", "formula", "loss", "seconds"]
    assert ["network.width=16", "2", "of", "2", "1.00", "0.342", "to", "1.000", "0", "0", "0"] in rows
    assert ["network.width=32", "1", "of", "1", "1.00", "0.207", "to", "1.000", "0", "0", "1"] in rows
    assert out.splitlines()[-1] == f"summary: {tmp_path / 's' / 'summary.html'}"
    run = json.loads((tmp_path / "s/runs/network.width=32,seed=0/run.json").read_text())
    assert run["command"] == "fluxforge discover first-order --set training.steps=7 --set network.width=32 --set seed=0"
    assert run["recipe"]["training"]["steps"] == 7
    assert main(["sweep", "--resume", str(tmp_path / "s"), "--workers", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [point["outcome"] for point in json.loads(out)["points"]] == ["finished"] * 4


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--over", "sed=0:3"), "unknown field 'sed'"),
        (("--over", "training.steps=5,0"), "field 'training.steps'"),
        (("--over", "seed=3:3"), "the range 3:3 is empty"),
        (("--over", "seed=0:2", "--set", "seed=4"), "field 'seed' is given twice: by --set and by --over"),
        (("--over", "seed=0:2", "--on", "moon"), "on should be 'processes' or 'ray', got 'moon'"),
        (("--over", "seed=0:2", "--workers", "0"), "workers should be 1 or more"),
        (("--over", "seed=0:2", "--preset", "huge"), "no preset 'huge'"),
        (("--over", "seed=0:2", "nonesuch"), "no recipe 'nonesuch'"),
        (("--over", "network.hops=1,2", "--set", "data.kind=two-cells"), "data.kind"),
        ((), "--over is missing"),
        (("--resume", "nowhere"), "nowhere: no such folder"),
        (("--resume", "x", "--over", "seed=0:2"), "--resume continues a sweep with its own settings"),
    ],
)
def test_bad_input_is_one_line_before_anything_runs(
    arguments: tuple[str, ...],
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert named in line
    assert not list(tmp_path.iterdir())


def test_ray_that_is_not_installed_is_named_with_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["sweep", "first-order", "--over", "seed=0:2", "--on", "ray", "-o", str(tmp_path / "s")]) == 2
    assert capsys.readouterr().err == "error: --on ray: ray is not installed: pip install 'fluxforge[ray]'\n"
    assert not (tmp_path / "s").exists()


def test_the_live_table_fits_the_terminal_and_shows_what_runs() -> None:
    states = {
        f"seed={k}": PointStatus(
            name=f"seed={k}",
            stage="finished",
            result=PointResult(
                name=f"seed={k}", changes={"seed": k}, folder="", outcome="finished", verdict="refused", loss=0.5
            ),
        )
        for k in range(50)
    }
    states["seed=50"] = PointStatus(name="seed=50", stage="training", done=1500, total=4000)
    states["seed=51"] = PointStatus(name="seed=51")
    screen = Console(width=80, height=12, file=sys.stderr)
    with screen.capture() as held:
        screen.print(tabulate_points(states, screen.height))
    lines = held.get().splitlines()
    assert len(lines) <= 12
    assert any(line.split() == ["seed=49", "finished", "refused", "-", "0.5", "-"] for line in lines)
    assert any(line.split() == ["seed=50", "training,", "1,500", "of", "4,000"] for line in lines)
    assert lines[-1].strip() == "50 of 52 ended, 1 running, 1 waiting"
