"""The metrics file: whole lines, truncated at a step, the same as those of an uninterrupted run."""

import errno
import json
import math
import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxforge.errors import InputError, StorageError
from fluxforge.run import Metrics


@pytest.fixture
def metrics(tmp_path: Path) -> Metrics:
    return Metrics(tmp_path / "metrics.jsonl")


def test_a_record_is_one_line_that_is_there_at_once(metrics: Metrics) -> None:
    metrics.append({"step": 1, "loss": 0.5, "who": "α\nβ"})
    metrics.append({"step": 2, "loss": 0.25})
    lines = metrics.path.read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["step"] for line in lines[:2]] == [1, 2]
    assert lines[2:] == [""]
    assert metrics.read() == [{"step": 1, "loss": 0.5, "who": "α\nβ"}, {"step": 2, "loss": 0.25}]


def test_what_is_not_finite_is_null_at_any_depth(metrics: Metrics) -> None:
    metrics.append({"step": 0, "a": math.nan, "b": [math.inf, {"c": -math.inf}], "d": (1.0, math.nan)})
    assert metrics.read() == [{"step": 0, "a": None, "b": [None, {"c": None}], "d": [1.0, None]}]
    assert "NaN" not in metrics.path.read_text()


def test_arrays_and_their_scalars_are_numbers(metrics: Metrics) -> None:
    metrics.append({"step": np.int64(3), "a": jnp.float32(0.5), "b": np.array([1.0, np.nan]), "c": np.bool_(True)})
    assert metrics.read() == [{"step": 3, "a": 0.5, "b": [1.0, None], "c": True}]


@pytest.mark.parametrize("record", [{}, {"step": None}, {"step": 1.0}, {"step": True}, {"step": "1"}])
def test_a_record_without_a_whole_step_is_refused(record: dict[str, object], metrics: Metrics) -> None:
    with pytest.raises(InputError, match=r"metrics\.jsonl: a record needs a whole number 'step'"):
        metrics.append(record)
    assert not metrics.path.exists()


def test_a_record_that_is_not_json_is_refused(metrics: Metrics) -> None:
    with pytest.raises(InputError, match="step 4 is not plain JSON"):
        metrics.append({"step": 4, "model": object()})
    assert not metrics.path.exists()


def test_nothing_written_reads_as_nothing(metrics: Metrics) -> None:
    assert metrics.read() == []
    metrics.truncate(5)
    metrics.sync()
    assert not metrics.path.exists()


def test_truncate_drops_what_came_after_a_step_and_the_half_written_line(metrics: Metrics) -> None:
    for step in range(10):
        metrics.append({"step": step})
        metrics.append({"step": step, "seed": 1})
    whole = metrics.path.read_bytes()
    with metrics.path.open("ab") as stream:
        stream.write(b'{"step": 3, "los')
    metrics.truncate(6)
    metrics.sync()
    assert metrics.path.read_bytes() == b"".join(whole.splitlines(keepends=True)[:14])
    assert [item.name for item in metrics.path.parent.iterdir()] == ["metrics.jsonl"]


def test_truncate_leaves_a_file_alone_that_needs_nothing(metrics: Metrics) -> None:
    metrics.append({"step": 1})
    before = metrics.path.stat()
    metrics.truncate(1)
    assert metrics.path.stat().st_ino == before.st_ino


@pytest.mark.parametrize("half", [b"{", b'{"step": 2, "loss": 0.', b'{"step": 2}', b"\0\0\0"])
def test_a_half_written_line_is_not_read_and_the_next_record_replaces_it(half: bytes, metrics: Metrics) -> None:
    metrics.append({"step": 1})
    whole = metrics.path.read_bytes()
    metrics.path.write_bytes(whole + half)
    assert metrics.read() == [{"step": 1}]
    metrics.append({"step": 2})
    assert metrics.path.read_bytes() == whole + b'{"step": 2}\n'


@pytest.mark.parametrize("bad", [b"{]", b"[1]", b'{"loss": 1}', b'{"step": 1.5}', b"\xff", b"[" * 100_000])
def test_a_bad_line_that_is_finished_is_named(bad: bytes, metrics: Metrics) -> None:
    metrics.path.write_bytes(b'{"step": 1}\n' + bad + b'\n{"step": 2}\n')
    for ask in (metrics.read, lambda: metrics.truncate(1)):
        with pytest.raises(InputError, match=r"metrics\.jsonl: line 2 is not a record"):
            ask()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(stop=st.integers(0, 20), cut=st.integers(0, 12), resumed=st.integers(0, 20))
def test_a_resumed_file_equals_one_never_interrupted(
    stop: int, cut: int, resumed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("metrics")
    never, interrupted = Metrics(folder / "never.jsonl"), Metrics(folder / "interrupted.jsonl")
    for step in range(21):
        never.append({"step": step, "loss": step / 7})
    for step in range(stop + 1):
        interrupted.append({"step": step, "loss": step / 7})
    size = interrupted.path.stat().st_size
    os.truncate(interrupted.path, max(size - cut, 0))
    interrupted.truncate(start := min(resumed, stop - (cut > 0)))
    for step in range(start + 1, 21):
        interrupted.append({"step": step, "loss": step / 7})
    assert interrupted.path.read_bytes() == never.path.read_bytes()


def test_a_folder_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "gone" / "metrics.jsonl")
    with pytest.raises(InputError, match=r"gone/metrics\.jsonl: cannot be written \(No such file or directory\)"):
        metrics.append({"step": 1})
    assert not (tmp_path / "gone").exists()


def test_a_file_that_is_a_folder_is_named(tmp_path: Path) -> None:
    for ask in (
        Metrics(tmp_path).read,
        lambda: Metrics(tmp_path).truncate(1),
        lambda: Metrics(tmp_path).append({"step": 1}),
    ):
        with pytest.raises(InputError, match=r"cannot be (read|written) \(Is a directory\)"):
            ask()


def test_a_full_disk_while_cutting_leaves_the_file_as_it_was(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in range(3):
        metrics.append({"step": step})
    before = metrics.path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"metrics\.jsonl: cannot be written \(No space left on device\)"):
        metrics.truncate(1)
    assert metrics.path.read_bytes() == before
    assert [item.name for item in metrics.path.parent.iterdir()] == ["metrics.jsonl"]
