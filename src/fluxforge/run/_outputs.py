"""SHA-256 digests of files that a run leaves, and which of them are missing or changed later."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fluxforge.errors import DocumentError
from fluxforge.run._durable import explained


@dataclass(frozen=True)
class Altered:
    """Names of files that are missing, and of files whose content is another than recorded."""

    missing: tuple[str, ...]
    changed: tuple[str, ...]


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with explained(path, "cannot be read"), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digests(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of each file by its name relative to the folder, with forward slashes."""
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}


def read_record(value: Any, where: Path) -> dict[str, str]:
    """A mapping from names of files to texts, read from the file `where`; every name lies within the folder.

    Raises DocumentError otherwise: what is restored is written under these names.
    """
    if isinstance(value, dict) and all(isinstance(text, str) and _is_within(name) for name, text in value.items()):
        return value
    raise DocumentError(f"{where}: is no record of a run's files: remove it")


def _is_within(name: str) -> bool:
    path = PurePosixPath(name)
    return name not in ("", ".") and not path.is_absolute() and ".." not in path.parts and not {"\0", "\\"} & set(name)


def altered(folder: Path, recorded: Mapping[str, str]) -> Altered:
    """Compare the files in a folder with recorded digests."""
    places = {name: folder / name for name in recorded}
    with explained(folder, "cannot be read"):
        missing = tuple(name for name, path in places.items() if not path.is_file())
    changed = (name for name, path in places.items() if name not in missing and file_digest(path) != recorded[name])
    return Altered(missing, tuple(changed))
