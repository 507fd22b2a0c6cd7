"""Sweeps of toy discoveries: what they leave, what goes wrong in one run, and that nothing runs twice.

All tests with workers from the nursery are here: it is started once for a file.
"""

import json
import os
import signal
from pathlib import Path

import pytest
from sweep_runs import start_parent, wait_for

import fluxforge as ff
from fluxforge import recipe
from fluxforge.cli import main
from fluxforge.cli._reproduction import run_in_processes
from fluxforge.distil._engines import count_threads as operon_threads
from fluxforge.errors import DiscoveryError, InputError
from fluxforge.run import lock_folder
from fluxforge.sweeps import Exhibit, GalleryRun, resume_sweep
from fluxforge.sweeps._pool import MOST_DEATHS, share_cores
from run_files import read_files

SEEDS = {"seed": range(3)}
SWEEP = ("sweep", "first-order", "--over", "seed=0:3", "--workers", "1", "-o")


def begun(marks: Path) -> list[str]:
    """The names of the jobs that workers have begun."""
    return (marks / "begun").read_text().split()


def test_a_sweep_leaves_runs_and_a_summary_and_is_not_repeated(marks, tmp_path):
    told = []
    ended = ff.sweep("first-order", SEEDS, tmp_path / "s", workers=2, tell=told.append)
    assert [point.verdict for point in ended.points] == ["recovered"] * 3
    assert all("z = Σ" in point.formula for point in ended.points)
    assert sorted(begun(marks)) == ["seed=0", "seed=1", "seed=2"]
    (rate,) = ended.rates
    assert (rate.recovered, rate.of, rate.changes) == (3, 3, {})
    assert ended.run("seed=1").recipe == recipe.override(recipe.load("first-order"), {"seed": 1})
    stages = [status.stage for status in told if status.name == "seed=1"]
    assert stages[:2] == ["waiting", "starting"]
    assert "training" in stages
    assert stages[-1] == "finished"
    document = json.loads((tmp_path / "s" / "sweep.json").read_text())
    assert document["over"] == {"seed": [0, 1, 2]}
    assert {"fluxforge", "jax"} <= document["environment"].keys()
    assert json.loads((tmp_path / "s/runs/seed=2/run.json").read_text())["command"] == (
        "fluxforge discover first-order --set seed=2"
    )
    again = ff.sweep("first-order", SEEDS, tmp_path / "s", workers=2)
    assert again == ended
    assert resume_sweep(tmp_path / "s") == ended
    assert len(begun(marks)) == 3


def test_a_run_whose_worker_is_killed_is_resumed_by_another(marks, tmp_path, monkeypatch, undisturbed):
    monkeypatch.setenv("SWEEP_FAULTS", "kill:seed=1:train 5")
    warned = []
    ended = ff.sweep("first-order", SEEDS, tmp_path / "s", workers=1, warn=warned.append)
    assert [point.outcome for point in ended.points] == ["finished"] * 3
    assert warned == ["seed=1: its process ended early (SIGKILL); a new process continues the run"]
    assert begun(marks) == ["seed=0", "seed=1", "seed=1", "seed=2"]
    for seed in range(3):
        assert read_files(tmp_path / f"s/runs/seed={seed}") == read_files(undisturbed / f"runs/seed={seed}")


def test_a_run_whose_workers_die_again_and_again_is_given_up_and_can_be_resumed(marks, tmp_path, monkeypatch):
    monkeypatch.setenv("SWEEP_FAULTS", "kill:seed=0:train 1")
    monkeypatch.setenv("SWEEP_TIMES", str(MOST_DEATHS))
    ended = ff.sweep("first-order", {"seed": range(2)}, tmp_path / "s", workers=1)
    assert [point.outcome for point in ended.points] == ["failed", "finished"]
    assert f"ended early {MOST_DEATHS} times (the last time: SIGKILL)" in ended.points[0].error
    assert (ended.rates[0].of, ended.rates[0].failed) == (1, 1)
    assert begun(marks) == ["seed=0"] * MOST_DEATHS + ["seed=1"]
    assert [point.outcome for point in resume_sweep(tmp_path / "s", workers=1).points] == ["finished"] * 2


def test_an_error_is_the_result_of_its_point_alone(marks, tmp_path, monkeypatch, undisturbed):
    monkeypatch.setenv("SWEEP_FAULTS", "error:seed=1:train 3")
    ended = ff.sweep("first-order", SEEDS, tmp_path / "s", workers=1)
    assert [point.outcome for point in ended.points] == ["finished", "failed", "finished"]
    assert ended.points[1].error == "the training of the test failed"
    with pytest.raises(InputError, match="not finished"):
        ended.run("seed=1")
    with pytest.raises(InputError, match="no point 'seed=9'"):
        ended.run("seed=9")
    resumed = resume_sweep(tmp_path / "s", workers=1)
    assert [point.outcome for point in resumed.points] == ["finished"] * 3
    assert read_files(tmp_path / "s/runs/seed=1") == read_files(undisturbed / "runs/seed=1")
    assert begun(marks) == ["seed=0", "seed=1", "seed=2", "seed=1"]


def test_a_folder_of_something_else_is_refused(undisturbed, tmp_path):
    with pytest.raises(InputError, match="another recipe or of other values"):
        ff.sweep("first-order", {"seed": range(4)}, undisturbed)
    with pytest.raises(InputError, match="another recipe or of other values"):
        ff.sweep("midpoint", SEEDS, undisturbed)
    with pytest.raises(InputError, match="contains a run, not a sweep"):
        ff.sweep("first-order", SEEDS, undisturbed / "runs/seed=0")
    with pytest.raises(InputError, match="no such folder"):
        resume_sweep(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"contains no sweep \(no sweep.json in it\)"):
        resume_sweep(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(InputError, match=r"contains runs but no sweep.json"):
        ff.sweep("first-order", SEEDS, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"over": {', '"over": 3, "x": {', "field 'over'"),
        ('"name": "seed=1"', '"name": "seed=8"', "do not match their digests"),
        ('"sha256": "', '"sha256": "0', "do not match their digests"),
        ('"recipe": {', '"recipe": {"colour": 3,', "unknown field 'colour'"),
        ("fluxforge-sweep", "fluxforge-run", "is not a fluxforge sweep"),
    ],
)
def test_a_damaged_plan_is_one_line(undisturbed, tmp_path, old, new, named):
    text = (undisturbed / "sweep.json").read_text()
    (tmp_path / "sweep.json").write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        resume_sweep(tmp_path)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_run_of_another_recipe_in_the_place_of_a_point_is_refused(marks, tmp_path):
    ff.sweep("first-order", {"seed": [0]}, tmp_path / "s", workers=1)
    described = tmp_path / "s/runs/seed=0/run.json"
    described.write_text(described.read_text().replace('"steps": ', '"steps": 1', 1))
    with pytest.raises(InputError, match="contains a run of another recipe"):
        resume_sweep(tmp_path / "s")


def test_workers_share_the_cores(monkeypatch):
    for name in ("PJRT_NPROC", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert share_cores(2, 8)["PJRT_NPROC"] == "4"
    assert share_cores(3, 2)["OMP_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert share_cores(2, 8)["OMP_NUM_THREADS"] == "2"
    assert share_cores(8, 8)["OMP_NUM_THREADS"] == "1"
    monkeypatch.setenv("PJRT_NPROC", "1")
    assert operon_threads() == 1


def test_runs_are_made_in_processes_and_a_failure_is_told_at_the_end(marks, tmp_path, monkeypatch):
    runs = [
        GalleryRun(Exhibit("first-order", ""), seed, recipe.override(recipe.load("first-order"), {"seed": seed}), place)
        for seed, place in enumerate((tmp_path / "one", tmp_path / "other"))
    ]
    monkeypatch.setenv("SWEEP_FAULTS", "error:one:train 1")
    with pytest.raises(DiscoveryError, match="1 of 2 runs failed: one: the training of the test failed"):
        run_in_processes(runs, 2, tmp_path / "logs", lambda *_: None)
    assert [run.read() is not None for run in runs] == [False, True]
    # The run that failed is made again, and the other one is finished.
    run_in_processes([run for run in runs if run.read() is None], 2, tmp_path / "logs", lambda *_: None)
    assert all(run.read() is not None for run in runs)
    assert sorted((marks / "begun").read_text().split()) == ["one", "one", "other"]


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers stop in the middle of the training of seed 1, after its second checkpoint."""
    monkeypatch.setenv("SWEEP_FAULTS", "pause:seed=1:train 5")


@pytest.mark.usefixtures("paused")
def test_a_sweep_whose_parent_was_killed_is_resumed_by_one_parent_only(
    nursery: Path, marks: Path, tmp_path: Path, undisturbed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "s"
    with start_parent(nursery, *SWEEP, folder) as parent:
        wait_for(marks / "pause seed=1 0", parent)
        for second in ((*SWEEP, str(folder)), ("sweep", "--resume", str(folder))):
            assert main(second) == 2
            (told,) = capsys.readouterr().err.splitlines()
            assert told == f"error: {folder}: is in use by another process: wait until it ends, or stop it"
        os.kill(int((marks / "parent").read_text()), signal.SIGKILL)
    assert parent.returncode == -signal.SIGKILL
    assert not (folder / "summary.json").exists()
    ended = resume_sweep(folder, workers=1)
    assert [point.verdict for point in ended.points] == ["recovered"] * 3
    assert (marks / "begun").read_text().split() == ["seed=0", "seed=1", "seed=1", "seed=2"]
    for seed in range(3):
        assert read_files(folder / f"runs/seed={seed}") == read_files(undisturbed / f"runs/seed={seed}")


@pytest.mark.usefixtures("paused")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_sweep_ends_its_workers_and_says_how_to_resume(
    nursery: Path, marks: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    folder = tmp_path / "s"
    with start_parent(nursery, *SWEEP, folder) as parent:
        wait_for(marks / "pause seed=1 0", parent)
        parent.send_signal(number)
        out, err = parent.communicate()
    assert parent.returncode == code
    assert out == ""
    *lines, how, last = err.splitlines()
    assert how == f"continue with: fluxforge sweep --resume {folder}"
    assert last == "interrupted: stopped before the end"
    assert next(line for line in lines if "finished" in line).startswith("seed=0: finished, recovered")
    with lock_folder(folder / "runs" / "seed=1"):  # nobody has it any more
        pass
