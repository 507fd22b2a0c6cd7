"""Files that are whole or absent, and on the disk before the call returns: what was said done outlives a power cut."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fluxforge._files import atomic_path, open_regular, write_document
from fluxforge.errors import InputError

_STRAY = re.compile(r"\.(?P<stem>.+)-[0-9a-f]{12}(\.[^.]+)?")


@contextmanager
def explained(path: Path, what: str = "cannot be written") -> Iterator[None]:
    """Turn what the system refuses within the block into one line about `path`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {what} ({reason(error)})") from error


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
    except InputError:
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


def remove_strays(folder: Path, stem: str | None = None) -> None:
    """Remove the temporary files that killed writers left in a folder, all or those of one file's stem."""
    with explained(folder, "cannot be tidied"):
        for item in folder.iterdir() if folder.is_dir() else ():
            match = _STRAY.fullmatch(item.name)
            if match and stem in (None, match["stem"]) and item.is_file() and not item.is_symlink():
                item.unlink(missing_ok=True)
