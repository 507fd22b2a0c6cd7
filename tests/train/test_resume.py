"""Interrupted runs, resumed in their folder, give the same result as an uninterrupted run."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from jaxtyping import PRNGKeyArray
from small_runs import TINY, graphs, opened, tiny, weights

from fluxforge.data import AbstractSource, Problem
from fluxforge.errors import InputError
from fluxforge.run import Metrics
from fluxforge.train import Trained, train


@cache
def whole() -> Trained:
    """An uninterrupted run without a folder."""
    return train(TINY, graphs())


def files(path: Path) -> dict[str, bytes]:
    """The files of a run: its metrics, and its checkpoints with their digests."""
    paths = [path / "metrics.jsonl", *sorted((path / "checkpoints").iterdir())]
    return {file.name: file.read_bytes() for file in paths}


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("uninterrupted") / "run"
    with opened(path) as folder:
        train(TINY, graphs(), folder=folder)
    return files(path)


class Stop:
    """Interrupts at some steps, once each."""

    def __init__(self, *steps: int) -> None:
        self.left = list(steps)

    def __call__(self, step: int, *_: object) -> None:
        if self.left and step >= self.left[0]:
            del self.left[0]
            raise KeyboardInterrupt


def test_a_folder_changes_nothing_about_the_networks(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as folder:
        done = train(TINY, graphs(), folder=folder)
        records = folder.metrics.read()
    assert np.array_equal(weights(done), weights(whole()))
    assert [record["step"] for record in records] == [10, 20, 30, 40]
    assert set(records[0]) == {"step", "supervised", "sparsity", "skipped", "learning_rate"}
    assert all(len(record["supervised"]) == 2 for record in records)
    # Falls along a cosine from 0.03 to nothing.
    assert [r["learning_rate"] for r in records] == pytest.approx(
        [0.015 * (1 + np.cos(np.pi * k / 4)) for k in (1, 2, 3, 4)], abs=1e-12
    )


@pytest.mark.parametrize("stops", [(10,), (10, 20, 30), (40,)])
def test_an_interrupted_and_resumed_run_ends_the_same(
    tmp_path: Path, wanted: dict[str, bytes], stops: tuple[int, ...]
) -> None:
    stop = Stop(*stops)
    for _ in stops:
        with opened(tmp_path / "run") as folder, pytest.raises(KeyboardInterrupt):
            train(TINY, graphs(), folder=folder, tell=stop)
    with opened(tmp_path / "run") as folder:
        done = train(TINY, graphs(), folder=folder)
    assert np.array_equal(weights(done), weights(whole()))
    resumed = files(tmp_path / "run")
    assert resumed["metrics.jsonl"] == wanted["metrics.jsonl"]
    for name in ("step-000000040.safetensors", "step-000000040.safetensors.sha256"):
        assert resumed[name] == wanted[name]


@pytest.mark.parametrize("after", [False, True])
def test_an_interruption_while_a_line_is_written_leaves_neither_gap_nor_double(
    tmp_path: Path, wanted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    original = Metrics.append

    def append(self: Metrics, record: dict[str, object]) -> None:
        if record["step"] == 30:
            if after:
                original(self, record)
            raise KeyboardInterrupt
        original(self, record)

    monkeypatch.setattr(Metrics, "append", append)
    with opened(tmp_path / "run") as folder, pytest.raises(KeyboardInterrupt):
        train(TINY, graphs(), folder=folder)
    assert (tmp_path / "run" / "checkpoints" / "step-000000020.safetensors").exists()
    monkeypatch.undo()
    with opened(tmp_path / "run") as folder:
        done = train(TINY, graphs(), folder=folder)
    assert np.array_equal(weights(done), weights(whole()))
    assert files(tmp_path / "run") == wanted


class InterruptedSource(AbstractSource):
    """A source whose first batch is interrupted."""

    def batch(self, key: PRNGKeyArray, count: int) -> Problem:
        raise KeyboardInterrupt


def test_an_interruption_before_the_first_step_loses_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as folder, pytest.raises(KeyboardInterrupt):
        train(TINY, InterruptedSource(), folder=folder)
    assert [path.name for path in (tmp_path / "run" / "checkpoints").glob("*.safetensors")] == [
        "step-000000000.safetensors"
    ]
    with opened(tmp_path / "run") as folder:
        assert np.array_equal(weights(train(TINY, graphs(), folder=folder)), weights(whole()))


def test_a_run_that_is_over_is_not_trained_again(tmp_path: Path, wanted: dict[str, bytes]) -> None:
    for told in (lambda *_: None, lambda *_: pytest.fail("a step too many")):
        with opened(tmp_path / "run") as folder:
            done = train(TINY, graphs(), folder=folder, tell=told)
    assert np.array_equal(weights(done), weights(whole()))
    assert files(tmp_path / "run") == wanted


def test_checkpoints_come_at_the_steps_asked_for_in_whole_chunks(tmp_path: Path) -> None:
    saved = []
    with opened(tmp_path / "run") as folder:
        original = folder.checkpoints.save
        folder.checkpoints.save = lambda step, *a, **k: (saved.append(step), original(step, *a, **k))  # type: ignore[method-assign]
        train(tiny(chunk=8, checkpoint_every=15), graphs(), folder=folder)
    assert saved == [16, 32, 40]


def test_how_often_a_run_saves_may_change_on_the_way(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as folder, pytest.raises(KeyboardInterrupt):
        train(TINY, graphs(), folder=folder, tell=Stop(10))
    with opened(tmp_path / "run") as folder:
        done = train(tiny(checkpoint_every=1), graphs(), folder=folder)
    assert np.array_equal(weights(done), weights(whole()))


def test_a_checkpoint_of_another_recipe_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as folder:
        train(TINY, graphs(), folder=folder)
    before = files(tmp_path / "run")
    with (
        opened(tmp_path / "run") as folder,
        pytest.raises(InputError, match=r"step-000000040\.safetensors: was made with another recipe or architecture"),
    ):
        train(tiny(learning_rate=0.02), graphs(), folder=folder)
    assert files(tmp_path / "run") == before
