"""Files that are whole or absent, and on the disk before the call returns: what was said done outlives a power cut."""

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fluxforge._files import TEMPORARY, atomic_path, failure, open_regular, refuse_removed, write_document
from fluxforge.errors import FluxforgeError, InputError


@contextmanager
def explained(path: Path, what: str = "cannot be written") -> Iterator[None]:
    """Turn what the system refuses within the block into one line about `path`."""
    try:
        yield
    except OSError as error:
        raise failure(path, error, what) from error


def reason(error: Exception) -> str:
    """Why, in the system's words, without the path that our message opens with."""
    return str(getattr(error, "strerror", None) or error)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, and wait until the disk has it."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    sync_folder(path.parent)


def write_record(path: Path, kind: str, content: Mapping[str, Any]) -> None:
    """Write a JSON document of version 1, and wait until the disk has it."""
    try:
        write_document(path, kind, 1, content)
    except FluxforgeError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be written (its content is not plain JSON: {error})") from error
    sync(path)
    sync_folder(path.parent)


def sync(path: Path) -> None:
    """Wait until the disk has what was written to a file."""
    with explained(path), open_regular(path) as stream:
        os.fsync(stream.fileno())


def make_folder(folder: Path) -> None:
    """Make a folder, but not its parents: a run folder that is gone is not made anew."""
    with explained(folder):
        refuse_removed(folder)
        folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names in a folder."""
    # Some systems cannot open or sync a folder; there the rename is as durable as it gets.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_strays(folder: Path, name: str | None = None, *, seconds: float = 0.0) -> None:
    """Remove the temporary files that killed writers left in a folder, all or those of one file.

    The caller holds the folder's lock, or gives an age in seconds that no writer which is alive needs: its file would
    be removed too.
    """
    newest = time.time() - seconds
    with explained(folder, "cannot be tidied"):
        for item in folder.iterdir() if folder.is_dir() else ():
            match = TEMPORARY.fullmatch(item.name)
            if not match or name not in (None, match["name"]):
                continue
            with suppress(FileNotFoundError):  # its writer may have been alive, and done with it
                if stat.S_ISREG((found := item.lstat()).st_mode) and found.st_mtime <= newest:
                    item.unlink()
