"""Runs of the gallery in processes of a sweep's pool, and its options."""

from pathlib import Path

import pytest

from fluxforge import recipe
from fluxforge.cli._reproduction import _run_in_processes
from fluxforge.errors import DiscoveryError, InputError
from fluxforge.sweeps import GalleryRun, parse_seeds, plan_gallery
from fluxforge.sweeps._gallery import Exhibit


@pytest.mark.parametrize(("text", "seeds"), [("3", range(3)), ("10:20", range(10, 20))])
def test_seeds_are_a_number_or_a_range(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["0", "5:5", "6:5", "x", "1:", "-1:3", "1e3", "0:20000"])
def test_other_seeds_are_refused(text):
    with pytest.raises(InputError, match="--seeds"):
        parse_seeds(text)


def test_decoys_take_the_first_seed_and_commands_make_the_same_runs(tmp_path: Path):
    runs = plan_gallery(tmp_path, parse_seeds("10:12"))
    assert [run.name for run in runs][:2] == ["conductance-10", "conductance-11"]
    assert [run.seed for run in runs if run.exhibit.decoy] == [10] * 5
    (traffic,) = (run for run in runs if run.name == "godunov-traffic-11")
    assert traffic.command.startswith("fluxforge discover godunov --seed 11 --equation traffic -o ")
    assert (traffic.spec.seed, traffic.spec.equation) == (11, "traffic")


def test_runs_are_made_in_processes_and_a_failure_is_told_at_the_end(marks, tmp_path, monkeypatch):
    runs = [
        GalleryRun(Exhibit("first-order", ""), seed, recipe.override(recipe.load("first-order"), {"seed": seed}), place)
        for seed, place in enumerate((tmp_path / "one", tmp_path / "other"))
    ]
    monkeypatch.setenv("SWEEP_FAULTS", "error:one:train 1")
    with pytest.raises(DiscoveryError, match="1 of 2 runs failed: one: the training of the test failed"):
        _run_in_processes(runs, 2, tmp_path / "logs", lambda *_: None)
    assert [run.read() is not None for run in runs] == [False, True]
    # The run that failed is made again, and the other one is finished.
    _run_in_processes([run for run in runs if run.read() is None], 2, tmp_path / "logs", lambda *_: None)
    assert all(run.read() is not None for run in runs)
    assert sorted((marks / "begun").read_text().split()) == ["one", "one", "other"]
