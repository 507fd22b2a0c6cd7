"""Wherever saving fails, a whole checkpoint remains."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_checkpoints import F, pair, record_warnings, same_bits, save_steps, seal, steps, tree

from fluxforge.errors import InputError, StorageError
from fluxforge.run import Checkpoints


class Crash(BaseException):
    """Raised in place of a kill: nothing catches it."""


def failing(name: str, at: int, error: BaseException, patch: pytest.MonkeyPatch) -> None:
    """Let the function of `os` fail from the given call on."""
    real, calls = getattr(os, name), iter(range(10_000))

    def function(*arguments: Any, **more: Any) -> Any:
        if next(calls) >= at:
            raise error
        return real(*arguments, **more)

    patch.setattr(os, name, function)


@pytest.mark.parametrize("step", [2, 1], ids=["a new step", "the only step again"])
@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("name", ["replace", "fsync", "unlink"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), Crash()], ids=["full", "crash"])
def test_wherever_saving_fails_a_whole_checkpoint_remains(
    step: int, at: int, name: str, error: BaseException, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_steps(checkpoints, 1)
    after = {"w": tree(step)["w"] * 2, "n": np.int32(5)}
    watched = Checkpoints(checkpoints.folder, warn=lambda _: None, keep=1)
    with monkeypatch.context() as patch:
        failing(name, at, error, patch)
        with suppress(Crash, StorageError):
            watched.save(step, after, fingerprint=F)
    newest = checkpoints.latest(tree(0), fingerprint=F)
    assert newest is not None
    if newest[0] == 1 and newest[1]["n"] == 1:
        same_bits(newest[1], tree(1))
    else:
        assert newest[0] == step
        same_bits(newest[1], after)
    checkpoints.save(step, after, fingerprint=F)
    newest = checkpoints.latest(tree(0), fingerprint=F)
    assert newest is not None
    same_bits(newest[1], after)
    assert len(seal(checkpoints, step).read_text().splitlines()) == 1


def test_a_full_disk_is_one_line_and_leaves_no_rubbish(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_steps(checkpoints, 1)
    with monkeypatch.context() as patch:
        failing("replace", 1, OSError(errno.ENOSPC, "No space left on device"), patch)
        message = r"step-000000002.safetensors: cannot be written \(No space left on device\)"
        with pytest.raises(StorageError, match=message) as caught:
            save_steps(checkpoints, 2)
    assert "\n" not in str(caught.value)
    assert steps(checkpoints) == pair(1)


def test_old_ones_that_cannot_be_removed_are_told_and_stop_nothing(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_steps(checkpoints, 1, 2)
    watched, told = record_warnings(checkpoints)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: os.rmdir(checkpoints.folder))
        save_steps(watched, 3)
    assert len(told) == 1
    assert "cannot be removed" in told[0]
    newest = checkpoints.latest(tree(0), fingerprint=F)
    assert newest is not None
    assert newest[0] == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_one_line(checkpoints: Checkpoints) -> None:
    save_steps(checkpoints, 1)
    checkpoints.folder.chmod(0o555)
    try:
        with pytest.raises(InputError, match=r"cannot be written \(Permission denied\)"):
            save_steps(checkpoints, 2)
    finally:
        checkpoints.folder.chmod(0o755)
    assert steps(checkpoints) == pair(1)
