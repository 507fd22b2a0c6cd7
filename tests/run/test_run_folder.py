"""A run folder: made, refused, locked, tidied; and the stages finished in it."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from fluxforge import _files
from fluxforge._files import read_document, write_document, write_text
from fluxforge.errors import DocumentError, InputError, StorageError
from fluxforge.run import RunFolder

DESCRIPTION: dict[str, Any] = {"recipe": {"name": "first-order", "widths": [32, 32]}, "command": "discover", "seed": 7}


def begin(path: Path, **more: Any) -> Path:
    with RunFolder.create(path, **{"description": DESCRIPTION, "warn": pytest.fail, **more}) as folder:
        return folder.path


def reopen(path: Path) -> Path:
    with RunFolder.open(path, warn=pytest.fail) as folder:
        return folder.path


def names(folder: Path) -> set[str]:
    return {str(item.relative_to(folder)) for item in folder.rglob("*")}


def test_a_new_folder_says_what_the_run_is(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one"
    with RunFolder.create(path, description=DESCRIPTION, warn=pytest.fail) as folder:
        assert folder.path == path
        assert folder.description == DESCRIPTION
        assert folder.checkpoints.latest({}, fingerprint="f") is None
        assert folder.metrics.read() == []
        assert folder.metrics.path == path / "metrics.jsonl"
    assert read_document(path / "run.json", "run", 1)["seed"] == 7
    with RunFolder.open(str(path), warn=pytest.fail) as folder:
        assert folder.description == DESCRIPTION


def test_an_empty_folder_and_one_with_other_things_can_begin_a_run(tmp_path: Path) -> None:
    begin(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    begin(tmp_path / "other")
    assert (tmp_path / "other" / "notes.txt").read_text() == "mine"


def test_a_folder_that_holds_a_run_is_not_begun_again(tmp_path: Path) -> None:
    begin(tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(
        InputError, match=r"run: already contains a run: .*--resume .*run, or choose another -o"
    ) as caught:
        begin(tmp_path / "run", description={"seed": 8})
    assert caught.value.exit_code == 2
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    reopen(tmp_path / "run")


@pytest.mark.parametrize("part", ["checkpoints", "stages", "metrics.jsonl"])
def test_parts_of_a_run_without_its_description_are_not_taken_for_a_new_run(part: str, tmp_path: Path) -> None:
    (tmp_path / part).mkdir()
    with pytest.raises(InputError, match=f"contains {part} of a run but no run.json"):
        begin(tmp_path)
    assert names(tmp_path) == {part}


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file: is a file, but a run needs a folder"):
        begin(tmp_path / "file")
    with pytest.raises(InputError, match="file: is a file, but a run is a folder"):
        reopen(tmp_path / "file")
    with pytest.raises(InputError, match=r"below: cannot be written \(Not a directory\)"):
        begin(tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "x"


def test_a_folder_that_holds_no_run_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no such folder"):
        reopen(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"contains no run \(no run.json in it\)"):
        reopen(tmp_path)
    assert names(tmp_path) == set()


def test_a_path_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(InputError, match="is not a path"):
        begin(Path("a\0b"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "fluxforge-scheme", "format_version": 1}'])
def test_a_damaged_description_is_named(text: str, tmp_path: Path) -> None:
    begin(tmp_path)
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(DocumentError, match=r"run\.json: is not"):
        reopen(tmp_path)


def test_a_run_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    write_document(tmp_path / "run.json", "run", 2, {})
    with pytest.raises(DocumentError, match="upgrade fluxforge"):
        reopen(tmp_path)


def refuse_with(error: int) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    return refuse


def test_a_parent_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "mkdir", refuse_with(errno.EACCES))
    with pytest.raises(InputError, match=r"run: cannot be written \(Permission denied\)"):
        begin(tmp_path / "run")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    begin(tmp_path / "run")
    tmp_path.chmod(0o555)
    (tmp_path / "run" / "run.lock").unlink()
    (tmp_path / "run").chmod(0o555)
    try:
        with pytest.raises(InputError, match=r"new: cannot be written \(Permission denied\)"):
            begin(tmp_path / "new")
        with pytest.raises(InputError, match=r"run: cannot be locked \(Permission denied\)"):
            reopen(tmp_path / "run")
    finally:
        tmp_path.chmod(0o755)
        (tmp_path / "run").chmod(0o755)


def test_a_folder_that_cannot_be_locked_is_named_and_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(tmp_path / "run")
    monkeypatch.setattr(os, "open", refuse_with(errno.EROFS))
    with pytest.raises(InputError, match=r"run: cannot be locked \(Read-only file system\)"):
        reopen(tmp_path / "run")
    with pytest.raises(InputError, match=r"new: cannot be locked \(Read-only file system\)"):
        begin(tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("culprit", ["replace", "fsync"])
def test_a_beginning_that_fails_leaves_nothing(culprit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, culprit, refuse_with(errno.ENOSPC))
        for path in (tmp_path / "a" / "b" / "run", tmp_path / "empty"):
            with pytest.raises(StorageError, match=r"run\.json: cannot be written \(No space left on device\)"):
                begin(path)
    assert names(tmp_path) == {"empty"}
    begin(tmp_path / "a" / "b" / "run")


def test_an_interrupted_beginning_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "run")
    assert names(tmp_path) == set()


@pytest.mark.parametrize("description", [{"a": object()}, {"a": float("nan")}, {"format": "x"}, {"format_version": 3}])
def test_a_description_that_cannot_be_written_leaves_nothing(description: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"plain JSON|cannot have a field 'format"):
        begin(tmp_path / "run", description=description)
    assert names(tmp_path) == set()


def test_a_run_that_fails_later_stays_and_is_free_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locks: list[FileLock] = []

    def remember(*arguments: Any, **more: Any) -> FileLock:
        locks.append(FileLock(*arguments, **more))  # one that nothing holds on to would be free in any case
        return locks[-1]

    monkeypatch.setattr("fluxforge.run._folder.FileLock", remember)
    with (
        pytest.raises(RuntimeError, match="later"),
        RunFolder.create(tmp_path / "run", description={}, warn=pytest.fail),
    ):
        raise RuntimeError("later")
    reopen(tmp_path / "run")
    assert len(locks) == 2
    assert not any(lock.is_locked for lock in locks)


def test_a_folder_is_held_by_one_and_free_after_the_block(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "run", description={}, warn=pytest.fail):
        with pytest.raises(InputError, match="run: is in use by another process") as caught:
            reopen(tmp_path / "run")
        assert caught.value.exit_code == 2
    with RunFolder.open(tmp_path / "run", warn=pytest.fail), pytest.raises(InputError, match="is in use"):
        reopen(tmp_path / "run")
    reopen(tmp_path / "run")


def test_of_two_processes_that_create_one_folder_only_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def overtaken(path: Any, *rest: Any, **more: Any) -> None:
        mkdir(path, *rest, **more)
        monkeypatch.setattr(os, "mkdir", mkdir)
        begin(tmp_path / "run", description={"seed": 1})

    monkeypatch.setattr(os, "mkdir", overtaken)
    with pytest.raises(InputError, match="already contains a run"):
        begin(tmp_path / "run", description={"seed": 2})
    with RunFolder.open(tmp_path / "run", warn=pytest.fail) as folder:
        assert folder.description == {"seed": 1}


def test_only_the_temporary_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    begin(tmp_path)
    strays = [".fluxforge-0123456789ab-run.json", "checkpoints/.fluxforge-0123456789ab-step-000000001.safetensors"]
    strays += ["stages/.fluxforge-ffffffffffff-train.json", ".fluxforge-0123456789ab-report.html"]
    others = [".gitignore", ".nfs0123456789ab", "checkpoints/.DS_Store", "notes-0123456789ab.txt", ".old-xyz.json"]
    others += [".notes-0123456789ab.txt", ".fluxforge-notes.txt"]  # a user's, though they look like ours
    for name in strays + others:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / ".fluxforge-0123456789ab-folder").mkdir()
    reopen(tmp_path)
    kept = {"run.json", "run.lock", "checkpoints", "stages", ".fluxforge-0123456789ab-folder"}
    assert names(tmp_path) == {*others, *kept}


def test_a_beginning_killed_half_way_can_be_begun_again(tmp_path: Path) -> None:
    for name in ("run.lock", ".fluxforge-0123456789ab-run.json", ".mine-0123456789ab.json"):
        (tmp_path / name).write_text("")
    begin(tmp_path)
    assert names(tmp_path) == {"run.json", "run.lock", ".mine-0123456789ab.json"}


def test_a_folder_removed_during_the_run_is_not_made_anew(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "run", description={}, warn=pytest.fail) as folder:
        (tmp_path / "run").rename(tmp_path / "moved")
        for ask in (
            lambda: folder.finish("train", {}),
            lambda: folder.checkpoints.save(1, {}, fingerprint="f"),
            lambda: folder.metrics.append({"step": 1}),
        ):
            with pytest.raises(StorageError, match=r"run/.*: cannot be written \(No such file or directory\)"):
                ask()
        assert not (tmp_path / "run").exists()
        (tmp_path / "run").mkdir()
        for name in ("report.html", "below/figure.png"):
            with pytest.raises(StorageError, match="another folder has taken the place of the run's"):
                write_text(tmp_path / "run" / name, "x")
        assert names(tmp_path / "run") == set()
    write_text(tmp_path / "run" / "report.html", "x")  # nobody holds it any more


@pytest.mark.parametrize("name", ["report.html", "stages/train.json", "figures/new/loss.png"])
def test_an_output_is_not_written_to_a_folder_that_is_gone(name: str, tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "run", description={}, warn=pytest.fail):
        shutil.rmtree(tmp_path / "run")
        with pytest.raises(StorageError, match=r"cannot be written \(No such file or directory\)") as caught:
            write_text(tmp_path / "run" / name, "x")
        assert caught.value.exit_code == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
def test_what_the_system_refuses_during_a_run_is_a_failure_and_no_bad_input(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunFolder.create(tmp_path / "run", description={}, warn=pytest.fail) as folder:
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", refuse_with(code))
            for ask in (
                lambda: folder.finish("train", {}),
                lambda: folder.checkpoints.save(1, {}, fingerprint="f"),
                lambda: write_text(folder.path / "report.html", "x"),
            ):
                with pytest.raises(StorageError, match=r"cannot be written"):
                    ask()
        folder.finish("train", {})


def test_a_stage_that_cannot_be_read_is_not_taken_for_one_that_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunFolder.create(tmp_path / "run", description={}, warn=pytest.fail) as folder:
        folder.finish("train", {"loss": 1.0})
        with monkeypatch.context() as patch:
            patch.setattr(_files, "open_regular", refuse_with(errno.EIO))
            with pytest.raises(StorageError, match=r"train\.json: cannot be read \(Input/output error\)"):
                folder.read_stage("train")
        assert folder.read_stage("train") == {"loss": 1.0}
