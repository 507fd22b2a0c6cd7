"""The files of a finished part: checked, drawn again, named; one process at a time; strays removed."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fluxforge import _files
from fluxforge.errors import InputError, StorageError
from fluxforge.paper import reproduce
from fluxforge.run import lock_folder


def list_warnings(folder: Path) -> list[str]:
    warnings: list[str] = []
    reproduce("first", folder=folder, warn=warnings.append)
    return warnings


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_figure_that_is_missing_is_drawn_again_and_told(toys: Any, tmp_path: Path, suffix: str) -> None:
    reproduce("first", folder=tmp_path)
    figure = tmp_path / "first" / f"first-figure.{suffix}"
    figure.unlink()
    assert list_warnings(tmp_path) == [f"{figure}: was missing and is drawn again"]
    assert figure.exists()
    assert list_warnings(tmp_path) == []
    assert toys[0].runs == 1


def test_what_is_changed_is_named_and_left_alone(toys: Any, tmp_path: Path) -> None:
    reproduce("first", folder=tmp_path)
    figure, document = (tmp_path / "first" / name for name in ("first-figure.png", "first.json"))
    figure.write_bytes(b"mine")
    document.write_text(document.read_text().replace("run 1", "run 9"))
    for _ in range(2):
        assert sorted(list_warnings(tmp_path)) == [
            f"{figure}: has changed since the part was run (its SHA-256 differs); remove it to have it drawn again",
            f"{document}: has changed since the part was run (its SHA-256 differs); --again replaces it",
        ]
        (tmp_path / "first" / "first-figure.svg").unlink(missing_ok=True)
        assert len(list_warnings(tmp_path)) == 3  # drawn again, and the others are still changed
    assert figure.read_bytes() == b"mine"
    reproduce("first", folder=tmp_path, again=True)
    assert list_warnings(tmp_path) == []


def test_a_part_killed_between_its_document_and_its_figures_is_completed(
    toys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fluxforge.paper._part.save_figure", die)
        with pytest.raises(KeyboardInterrupt):
            reproduce("first", folder=tmp_path)
    assert len(list_warnings(tmp_path)) == 2
    assert list_warnings(tmp_path) == []
    assert toys[0].runs == 1
    assert set(json.loads((tmp_path / "first" / "outputs.json").read_text())["files"]) == {
        "first.json", "first-figure.png", "first-figure.svg",
    }  # fmt: skip


def test_a_second_process_is_refused_for_the_same_part_only(toys: Any, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    with lock_folder(tmp_path / "first", "part.lock"):
        with pytest.raises(InputError, match="first: is in use by another process"):
            reproduce("first", folder=tmp_path)
        reproduce("second", folder=tmp_path)
    reproduce("first", folder=tmp_path)


def test_only_the_temporary_files_of_killed_processes_are_removed(toys: Any, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    kept = [tmp_path / "first" / ".mine-0123456789ab.json", tmp_path / ".fluxforge-ffffffffffff-index.html"]
    strays = [
        tmp_path / "first" / ".fluxforge-0123456789ab-first.json",
        tmp_path / ".fluxforge-0123456789ab-index.html",
    ]
    for path in (*kept, *strays):
        path.write_text("x")
    os.utime(strays[1], (0, 0))  # in the folder of all parts, only what is too old to be written now
    reproduce("first", folder=tmp_path)
    assert all(path.exists() for path in kept)
    assert not any(path.exists() for path in strays)


def test_a_folder_that_is_removed_meanwhile_is_an_error_and_not_made_anew(
    toys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = toys
    with pytest.raises(StorageError, match=r"first\.json: cannot be written \(No such file or directory\)"):
        reproduce("first", folder=tmp_path, tell=lambda *_: shutil.rmtree(tmp_path / "first"))
    assert not (tmp_path / "first").exists()
    reproduce("first", folder=tmp_path)
    assert first.runs == 2


def test_a_document_that_cannot_be_read_is_an_error_and_not_made_again(
    toys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce("first", folder=tmp_path)

    real = _files.open_regular

    def broken(path: Path) -> Any:
        if path.name == "first.json":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(_files, "open_regular", broken)
        with pytest.raises(StorageError, match=r"first\.json: cannot be read \(Input/output error\)"):
            reproduce("first", folder=tmp_path)
    assert toys[0].runs == 1
