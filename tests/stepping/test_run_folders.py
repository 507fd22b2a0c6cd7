"""Folders that hold a run already, and what killed runs leave in them."""

import json
import os
import select
import signal
import time
import warnings
from pathlib import Path

import pytest

from fluxforge.errors import InputError
from fluxforge.mesh import jittered
from fluxforge.stepping import Simulation, _simulation, compare, prepare_folder, simulate, write_comparison, write_run

MESH = jittered(3)


@pytest.fixture(autouse=True)
def no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take most of the time, and only their names matter here."""
    for name in ("save_figure", "animation"):
        monkeypatch.setattr(_simulation, name, lambda _, path, **__: path.write_bytes(b"drawn"))


@pytest.fixture(scope="module")
def run() -> Simulation:
    return simulate("euler", MESH, initial="x", steps=2, save_every=1)


@pytest.fixture(scope="module")
def longer() -> Simulation:
    return simulate("euler", MESH, initial="y", steps=12, save_every=1)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_that_holds_a_run_is_refused(run: Simulation, longer: Simulation, tmp_path: Path) -> None:
    write_run(longer, tmp_path, gif=True)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"holds an earlier run \(summary\.json\): give another"):
        write_run(run, tmp_path)
    assert contents(tmp_path) == before


def test_a_folder_that_holds_fields_alone_is_refused_too(run: Simulation, tmp_path: Path) -> None:
    (tmp_path / "T_3.vtu").write_text("precious", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds an earlier run \(T_3\.vtu\)"):
        write_run(run, tmp_path)
    assert contents(tmp_path) == {"T_3.vtu": b"precious"}


def test_a_run_that_is_replaced_leaves_no_old_file_behind(run: Simulation, longer: Simulation, tmp_path: Path) -> None:
    write_run(longer, tmp_path, gif=True)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    written = write_run(run, tmp_path, overwrite=True)
    assert sorted(tmp_path.iterdir()) == sorted([*written, tmp_path / "notes.txt"])
    assert not (tmp_path / "T.gif").exists()
    assert json.loads((tmp_path / "summary.json").read_text())["steps"] == 2


def test_a_comparison_that_is_replaced_takes_its_folders_with_it(run: Simulation, tmp_path: Path) -> None:
    write_comparison(compare(["euler", "midpoint"], MESH, steps=1), tmp_path)
    (tmp_path / "midpoint" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"compare\.json"):
        write_run(run, tmp_path)
    written = write_run(run, tmp_path, overwrite=True)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == {*written, tmp_path / "midpoint" / "mine.txt"}
    assert not (tmp_path / "euler").exists()


def test_a_comparison_does_not_write_over_a_run_in_a_folder_of_its_own(run: Simulation, tmp_path: Path) -> None:
    write_run(run, tmp_path / "euler", gif=True)
    both = compare(["euler", "midpoint"], MESH, steps=1)
    with pytest.raises(InputError, match=r"holds an earlier run \(euler/summary\.json\)"):
        write_comparison(both, tmp_path)
    write_comparison(both, tmp_path, overwrite=True)
    assert not (tmp_path / "euler" / "T.gif").exists()


def test_an_error_while_writing_leaves_the_earlier_run_as_it_was(
    run: Simulation, longer: Simulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(longer, tmp_path / "out")
    before = contents(tmp_path)

    def fail(*_: object) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr(_simulation, "save_figure", fail)
    with pytest.raises(InputError, match="full"):
        write_run(run, tmp_path / "out", overwrite=True)
    with pytest.raises(InputError, match="full"):
        write_run(run, tmp_path / "new")
    assert contents(tmp_path) == before
    assert not (tmp_path / "new").exists()


def fork_writer(run: Simulation, folder: Path) -> tuple[int, int]:
    """A process that stops for a minute while it writes a run: its number, and a pipe that tells when."""
    reading, writing = os.pipe()

    def pause(*_: object) -> None:
        os.write(writing, b"writing")
        time.sleep(60)

    with warnings.catch_warnings():
        # Of threads that exist in the parent only: the child computes nothing.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            setattr(_simulation, "save_figure", pause)  # noqa: B010
            write_run(run, folder)
        finally:
            os._exit(1)
    os.close(writing)
    return child, reading


def test_what_a_killed_run_left_is_removed_by_the_next_but_not_while_it_writes(run: Simulation, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    writer, reading = fork_writer(run, folder)
    try:
        assert select.select([reading], [], [], 30.0)[0]
        assert os.read(reading, 7) == b"writing"
        (living,) = folder.iterdir()
        prepare_folder(folder, ["euler"])
        assert (living / "T_0.vtu").is_file()
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        os.close(reading)
    assert living.is_dir()
    (folder / ".fluxforge-0123456789ab-T_0.vtu").write_text("of a version that wrote in place", encoding="utf-8")
    (folder / ".mine").write_text("mine", encoding="utf-8")
    written = write_run(run, folder)
    assert sorted(folder.iterdir()) == sorted([*written, folder / ".mine"])
