"""Faults at the writes and in the stages of `discover` and `reproduce`, and how they end and can be gone on with.

The numerical work is replaced by constants (`toy_pipeline`); folders, writes, signals and exit codes are the real ones.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fault_worker import Ended, Fault, Nursery, started
from fluxforge.mesh import two_cells, write
from fluxforge.stepping import simulate, write_run
from run_files import read_files
from toy_pipeline import STAGES

TIMES = ("seconds", "took_s", "sha256")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with started(tmp_path_factory.mktemp("nursery")) as process:
        yield process


@pytest.fixture(scope="module")
def whole(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """The files of an uninterrupted run, and its number of writes."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    ended = nursery.run("discover", "first-order", "-o", folder, folder=folder)
    assert (ended.code, ended.err) == (0, "")
    return read_run(folder), ended.writes


def read_run(folder: Path) -> dict[str, Any]:
    """Every file, without times, the command line that began the run, and digests of documents that contain these."""
    return read_files(folder, without=(), differs=lambda name: name.endswith((*TIMES, "command", ".json")))


def resume_run(nursery: Nursery, folder: Path, **how: Any) -> Ended:
    """Resume a run, or start it if there is none."""
    if (folder / "run.json").exists():
        return nursery.run("discover", "--resume", folder, folder=folder, **how)
    return nursery.run("discover", "first-order", "-o", folder, folder=folder, **how)


# All writes in `make validate`; here every sixth one, from the last: that is where a run says that it is finished.
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_any_write_a_run_ends_as_one_that_was_not(
    every: int, nursery: Nursery, whole: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    wanted, writes = whole
    assert writes > 40
    for number in range(writes - 1, -1, -every):
        folder = tmp_path / f"run-{number}"
        ended = resume_run(nursery, folder, fault=Fault("SIGKILL", write=number))
        assert ended.code == -9
        ended = resume_run(nursery, folder)
        assert (ended.code, ended.err) == (0, ""), number
        assert read_run(folder) == wanted, number  # strays are gone, too
        shutil.rmtree(folder)


def test_killed_again_and_again_a_run_still_ends(
    nursery: Nursery, whole: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    kills = 0
    while resume_run(nursery, folder, fault=Fault("SIGKILL", write=7 + 2 * kills)).code == -9:
        kills += 1
    assert kills > 3
    assert read_run(folder) == whole[0]


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [("SIGINT", 130, "interrupted"), pytest.param("SIGTERM", 143, "interrupted", marks=pytest.mark.slow)],
)
def test_a_run_ended_by_a_signal_in_any_stage_can_be_resumed(
    kind: str, code: int, said: str, nursery: Nursery, whole: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    for stage in STAGES:
        folder = tmp_path / stage.replace(" ", "-")
        ended = resume_run(nursery, folder, fault=Fault(kind, stage=stage))
        assert ended.code == code, stage
        how, last = ended.err.splitlines()
        assert how == f"continue with: fluxforge discover --resume {folder}"
        assert last.startswith(said)
        assert not list(folder.rglob(".*"))
        assert resume_run(nursery, folder).code == 0
        assert read_run(folder) == whole[0], stage


@pytest.mark.parametrize("every", [10, pytest.param(5, marks=pytest.mark.slow)])
def test_a_disk_that_fails_is_an_error_and_no_finding(
    every: int, nursery: Nursery, whole: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    wanted, writes = whole
    kinds = {"ENOSPC": "No space left on device", "EROFS": "Read-only file system", "EIO": "Input/output error"}
    for number in range(4, writes, every):  # the first four write run.json
        kind, words = list(kinds.items())[number % 3]
        folder = tmp_path / f"run-{number}"
        ended = resume_run(nursery, folder, fault=Fault(kind, write=number))
        if ended.code == 0:  # a name that the disk may not have yet; the system is not asked for more
            assert number >= writes - 3
            continue
        assert ended.code == 1, ended.err
        (line,) = ended.err.splitlines()
        assert line.startswith(f"error: {folder}")
        assert words in line
        assert line.endswith(f"continue with: fluxforge discover --resume {folder}")
        assert not (folder / "stages" / "discovery.json").exists()
        ended = resume_run(nursery, folder)
        assert (ended.code, ended.err) == (0, "")
        assert read_run(folder) == wanted


def test_a_folder_that_is_removed_is_an_error_and_is_not_made_anew(nursery: Nursery, tmp_path: Path) -> None:
    for stage in STAGES:
        folder = tmp_path / "run"
        ended = resume_run(nursery, folder, fault=Fault("remove", stage=stage))
        assert ended.code == 1, stage
        (line,) = ended.err.splitlines()
        assert line.startswith(f"error: {folder}")
        assert "No such file or directory" in line
        assert not folder.exists(), stage


def test_a_second_process_is_refused_and_the_first_goes_on(
    nursery: Nursery, whole: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    fault = Fault("second", stage="certify", second=("discover", "--resume", str(folder)))
    assert resume_run(nursery, folder, fault=fault).code == 0
    assert (tmp_path / "run.second").read_text() == (
        f"error: {folder}: is in use by another process: wait until it ends, or stop it\n"
    )
    assert read_run(folder) == whole[0]


@pytest.mark.parametrize("stage", ["train 3", "search z1", "certify", "report"])
def test_a_folder_that_becomes_read_only_for_its_user(
    stage: str, nursery: Nursery, whole: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    ended = resume_run(nursery, folder, fault=Fault("lock away", stage=stage), obey_modes=True)
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert "Permission denied" in line
    for place in (folder, *(item for item in folder.rglob("*") if item.is_dir())):
        place.chmod(0o755)
    ended = resume_run(nursery, folder, obey_modes=True)
    assert (ended.code, ended.err) == (0, "")
    assert read_run(folder) == whole[0]


PARTS = ("rates", "controls", "symbolic")


@pytest.fixture(scope="module")
def parts(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """A folder with three parts of the paper, and the writes that each takes."""
    folder = tmp_path_factory.mktemp("parts")
    writes = {}
    for name in PARTS:
        ended = nursery.run("reproduce", name, "-o", folder, folder=folder)
        assert (ended.code, ended.err) == (0, "")
        writes[name] = ended.writes
    return folder, writes


@pytest.mark.parametrize("name", ["rates", pytest.param("controls", marks=pytest.mark.slow), "symbolic"])
def test_a_part_that_is_killed_or_stopped_ends_as_one_that_was_not(
    name: str, nursery: Nursery, parts: tuple[Path, dict[str, int]], tmp_path: Path
) -> None:
    whole, writes = parts
    struck = {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9, "ENOSPC": 1}
    for place, (kind, code) in enumerate(struck.items(), start=1):
        folder = tmp_path / kind
        for before in PARTS[: PARTS.index(name)]:
            shutil.copytree(whole / before, folder / before)  # what a part builds on is one of its inputs
        number = writes[name] * place // 5
        ended = nursery.run("reproduce", name, "-o", folder, fault=Fault(kind, write=number), folder=folder)
        assert ended.code == code, ended.err
        if kind == "ENOSPC":
            (line,) = ended.err.splitlines()
            assert "No space left on device" in line
        assert not (folder / name / f"{name}.json").exists()
        ended = nursery.run("reproduce", name, "-o", folder, folder=folder)
        assert (ended.code, ended.err) == (0, ""), kind
        assert read_run(folder / name) == read_run(whole / name)


def test_two_processes_on_one_mesh_cache_get_the_same_meshes(nursery: Nursery, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    alone = nursery.run("cached", tmp_path / "other", folder=tmp_path)
    # The second process makes and keeps the meshes while the first is about to: between its writing and its renaming.
    both = nursery.run(
        "cached", cache, fault=Fault("second", write=0, second=("cached", str(cache))), folder=tmp_path / "shared"
    )
    assert (both.code, both.err) == (0, alone.err)
    assert (tmp_path / "shared.second").read_text() == alone.err
    (kept,) = cache.iterdir()
    assert nursery.run("cached", cache, folder=tmp_path).writes == 0  # it is whole, and is read
    kept.unlink()
    assert nursery.run("cached", cache, fault=Fault("SIGKILL", write=0), folder=tmp_path).code == -9
    (stray,) = cache.iterdir()
    assert stray.name.startswith(".fluxforge-")
    os.utime(stray, (0, 0))  # as old as one that nobody writes to any more
    again = nursery.run("cached", cache, folder=tmp_path)
    assert (again.code, again.err) == (0, alone.err)
    assert [path.name for path in cache.iterdir()] == [kept.name]


@pytest.mark.parametrize(("kind", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGKILL", -9)])
def test_a_simulation_that_is_stopped_while_it_saves_leaves_no_half_of_a_run(
    kind: str, code: int, nursery: Nursery, tmp_path: Path
) -> None:
    """Files are written beside each other in a hidden folder, and moved when all are whole."""
    write(two_cells(), tmp_path / "m.msh")
    folder = tmp_path / "out"
    words = ("--mesh", tmp_path / "m.msh", "--initial", "x", "--steps", 20, "--save-every", 1, "-o", folder)
    ended = nursery.run("simulate", "euler", *words, fault=Fault(kind, write=8), folder=folder)
    assert ended.code == code
    left = list(folder.iterdir()) if folder.exists() else []
    assert len(left) == (kind == "SIGKILL")
    assert all(path.name.startswith(".fluxforge-writing-") for path in left)
    folder.mkdir(exist_ok=True)
    (folder / ".mine-0123456789ab.vtu").write_text("x")
    write_run(simulate("euler", two_cells(), initial="x", steps=2, save_every=1), folder)
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == [".mine-0123456789ab.vtu"]
