"""Output folders: each holds one complete run, which is replaced only when the next one is complete."""

import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fluxforge._files import TEMPORARY
from fluxforge.errors import InputError
from fluxforge.run._durable import explain_failure
from fluxforge.run._folder import LOCK, lock_folder

# The files of a run or a comparison besides its fields; the summaries are written last and removed first.
SUMMARIES = ("summary.json", "compare.json")


NAMES = (*SUMMARIES, "series.pvd", "final.png", "T.gif", "compare.png", "problem.json", "problem.npz")


_FRAME = re.compile(r"T_\d+\.vtu")


_TEMPORARY_PREFIX = ".fluxforge-writing-"


def folder_names(schemes: Sequence[str]) -> list[str]:
    """A folder name for each scheme of a comparison; names read from files may be equal, or unusable for folders."""
    names: list[str] = []
    for scheme in schemes:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", scheme).strip("-")[:60] or "scheme"
        taken = sum(name == plain or name.startswith(f"{plain}~") for name in names)
        names.append(f"{plain}~{taken + 1}" if taken else plain)
    return names


def prepare_folder(folder: Path, schemes: Sequence[str], *, overwrite: bool = False) -> None:
    """Refuse a folder that holds an earlier run, unless `overwrite`; then remove what killed runs left there.

    `schemes` are the names of the schemes that are run; several get a folder each. Nothing of the earlier run is
    removed here: it stays until the new one is complete.
    """
    places = _refuse_earlier(folder, schemes, overwrite=overwrite)
    for place in places:
        with explain_failure(place, "files left by an interrupted run cannot be removed"):
            _remove_strays(place)


def _refuse_earlier(folder: Path, schemes: Sequence[str], *, overwrite: bool) -> list[Path]:
    """The folders that these schemes would write to, none of which may hold a run, unless `overwrite`."""
    places = [folder, *(folder / name for name in folder_names(schemes) if len(schemes) > 1)]
    with explain_failure(folder, "cannot be read"):
        earlier = next((path for place in places for path in _earlier_files(place)), None)
    if earlier is not None and not overwrite:
        raise InputError(
            f"{folder}: holds an earlier run ({earlier.relative_to(folder)}): give another folder, "
            f"or --overwrite (overwrite=True) to replace it"
        )
    return places


def _earlier_files(folder: Path) -> list[Path]:
    """The files of an earlier run in a folder, its summaries first."""
    if not folder.is_dir():
        return []
    ours = [path for path in folder.iterdir() if path.name in NAMES or _FRAME.fullmatch(path.name)]
    return sorted(ours, key=lambda path: (path.name not in SUMMARIES, path.name))


def _remove_strays(folder: Path) -> None:
    """Remove files and folders that killed runs were writing; those of a run that still writes are locked."""
    for item in folder.iterdir() if folder.is_dir() else ():
        match = TEMPORARY.fullmatch(item.name)
        if match and (match["name"] in NAMES or _FRAME.fullmatch(match["name"])) and item.is_file():
            item.unlink(missing_ok=True)
        elif item.name.startswith(_TEMPORARY_PREFIX) and item.is_dir() and not item.is_symlink():
            # InputError: another process holds the lock.
            with suppress(InputError):
                with lock_folder(item):
                    pass
                shutil.rmtree(item, ignore_errors=True)


@contextmanager
def replace_folder(folder: Path, schemes: Sequence[str], *, overwrite: bool) -> Iterator[Path]:
    """A temporary folder whose files replace those of an earlier run in `folder` if the block ends without an error.

    Raises InputError if another run has written there in the meantime, unless `overwrite`. If the block fails, the
    earlier files do not change.
    """
    prepare_folder(folder, schemes, overwrite=overwrite)
    writing, ours = folder / f"{_TEMPORARY_PREFIX}{secrets.token_hex(6)}", not folder.exists()
    try:
        with explain_failure(folder):
            writing.mkdir(parents=True)
        with lock_folder(writing):
            yield writing
            places = _refuse_earlier(folder, schemes, overwrite=overwrite)
            with explain_failure(folder):
                _remove_earlier(folder, places)
                _move_files(writing, folder)
    finally:
        shutil.rmtree(writing, ignore_errors=True)
        if ours:
            # OSError: it holds the new run.
            with suppress(OSError):
                folder.rmdir()


def _remove_earlier(folder: Path, places: Sequence[Path]) -> None:
    """Remove an earlier run from these folders, and all of an earlier comparison in `folder`.

    The folder of a scheme that is not run again is removed too, unless it holds other files.
    """
    others: list[Path] = []
    if (folder / "compare.json").is_file():
        inside = [item for item in folder.iterdir() if item.is_dir() and not item.name.startswith(_TEMPORARY_PREFIX)]
        others = [item for item in inside if (item / "summary.json").is_file() and (item / "series.pvd").is_file()]
    for place in dict.fromkeys((*places, *others)):
        for path in _earlier_files(place):
            path.unlink()
    for place in others:
        # OSError: it holds other files.
        with suppress(OSError):
            place.rmdir()


def _move_files(source: Path, target: Path) -> None:
    """Move every file to its place, summaries last, so that a folder with a summary is complete."""
    files = [path for path in source.rglob("*") if path.is_file() and path.name != LOCK]
    for path in sorted(files, key=lambda path: (path.name in SUMMARIES, path.name == "compare.json", path.name)):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, place)
