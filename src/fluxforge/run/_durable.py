"""The files of a run: atomic writes that are synced to disk, SHA-256 digests, and the metrics log."""

import hashlib
import io
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fluxforge._files import (
    TEMPORARY,
    atomic_path,
    failure,
    open_regular,
    parse_json,
    read_regular,
    refuse_removed,
    to_json_values,
    write_document,
)
from fluxforge.errors import DocumentError, FluxforgeError, InputError
from fluxforge.run._record import Document


@contextmanager
def explain_failure(path: Path, what: str = "cannot be written") -> Iterator[None]:
    """Turn an OSError in the block into a FluxforgeError with the message `path: what (reason)`."""
    try:
        yield
    except OSError as error:
        raise failure(path, error, what) from error


def write_durably(path: Path, content: bytes) -> None:
    """Write a file atomically and sync it to disk."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    sync_folder(path.parent)


@contextmanager
def require_json(path: Path) -> Iterator[None]:
    """Turn errors in the block about content that is not plain JSON into an InputError that names `path`."""
    try:
        yield
    except FluxforgeError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be written (its content is not plain JSON: {error})") from error


def write_record(path: Path, kind: str, content: Document) -> None:
    """Write a JSON document of version 1 atomically and sync it to disk.

    Raises InputError if the content is not plain JSON.
    """
    with require_json(path):
        write_document(path, kind, 1, content)
    sync(path)
    sync_folder(path.parent)


def sync(path: Path) -> None:
    """Sync the content of a file to disk."""
    with explain_failure(path), open_regular(path) as stream:
        os.fsync(stream.fileno())


def make_folder(folder: Path) -> None:
    """Create a folder, but not its parents, so that a run folder that was removed during the run stays removed."""
    with explain_failure(folder):
        refuse_removed(folder)
        folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk."""
    # Some systems cannot open or sync a folder; the rename is then as durable as it can be.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_strays(folder: Path, name: str | None = None, *, seconds: float = 0.0) -> None:
    """Remove the temporary files that killed processes left in a folder, either all or those of the file `name`.

    Only files of an age of at least `seconds` are removed. The caller must hold the folder's lock, or `seconds` must be
    longer than any write takes; otherwise a file that is being written could be removed.
    """
    newest = time.time() - seconds
    with explain_failure(folder, "cannot be cleaned up"):
        for item in folder.iterdir() if folder.is_dir() else ():
            match = TEMPORARY.fullmatch(item.name)
            if not match or name not in (None, match["name"]):
                continue
            with suppress(FileNotFoundError):  # another process may have renamed it meanwhile
                if stat.S_ISREG((info := item.lstat()).st_mode) and info.st_mtime <= newest:
                    item.unlink()


@dataclass(frozen=True)
class Altered:
    """Names of files that are missing, and of files whose content differs from the recorded digest."""

    missing: tuple[str, ...]
    changed: tuple[str, ...]


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with explain_failure(path, "cannot be read"), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_files(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of each file by its name relative to the folder, with forward slashes."""
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}


def read_digests(value: Any, where: Path) -> dict[str, str]:
    """Check a mapping from file names to texts, read from the file `where`, and return it.

    Raises DocumentError if it is no such mapping, or if a name leads out of the folder, into which files are restored.
    """
    if isinstance(value, dict) and all(isinstance(text, str) and _is_within(name) for name, text in value.items()):
        return value
    raise DocumentError(f"{where}: is not a record of a run's files: remove it")


def _is_within(name: str) -> bool:
    path = PurePosixPath(name)
    return name not in ("", ".") and not path.is_absolute() and ".." not in path.parts and not {"\0", "\\"} & set(name)


def find_altered(folder: Path, recorded: Mapping[str, str]) -> Altered:
    """The files of a folder that are missing or differ from their recorded digests."""
    places = {name: folder / name for name in recorded}
    with explain_failure(folder, "cannot be read"):
        missing = tuple(name for name, path in places.items() if not path.is_file())
    changed = (name for name, path in places.items() if name not in missing and file_digest(path) != recorded[name])
    return Altered(missing, tuple(changed))


class Metrics:
    """The file `metrics.jsonl` of a run, one JSON record per line.

    An unfinished last line, of a process that was killed, is ignored.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: Document) -> None:
        """Append one record; numbers that are not finite become null.

        Raises InputError for a record without a whole number `step`, FluxforgeError if the file cannot be written.
        """
        line = self._line(record)
        size = None
        try:
            refuse_removed(self.path)
            size = self._trim_unfinished()
            with self.path.open("ab") as stream:
                stream.write(line)
        except OSError as error:
            if size is not None:
                with suppress(OSError):
                    os.truncate(self.path, size)
            raise failure(self.path, error) from error

    def sync(self) -> None:
        """Sync all records to disk; to be called before a checkpoint is saved, so that it does not lack its records."""
        if self.path.exists():
            sync(self.path)

    def truncate(self, step: int) -> None:
        """Remove all records after `step`, to resume from the checkpoint of that step."""
        content = self._content()
        kept = b"".join(line for line, record in self._records(content) if record["step"] <= step)
        if kept != content:
            write_durably(self.path, kept)

    def read(self) -> list[Document]:
        """All complete records in order; raises InputError if a line is not a record."""
        return [record for _, record in self._records(self._content())]

    def _line(self, record: Document) -> bytes:
        plain = to_json_values(record)
        if type(plain.get("step")) is not int:
            raise InputError(f"{self.path}: a record needs a whole number 'step', got {plain.get('step')!r:.60}")
        try:
            return json.dumps(plain, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise InputError(f"{self.path}: the record of step {plain['step']} is not plain JSON ({error})") from error

    def _content(self) -> bytes:
        with explain_failure(self.path, "cannot be read"):
            try:
                return read_regular(self.path)
            except FileNotFoundError:
                return b""

    def _records(self, content: bytes) -> list[tuple[bytes, Document]]:
        lines = io.BytesIO(content[: _complete_size(content)]).readlines()
        return [(line, self._record(line, number)) for number, line in enumerate(lines, start=1)]

    def _record(self, line: bytes, number: int) -> Document:
        try:
            record = parse_json(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path}: line {number} is not a record ({error}): remove that line") from error
        if not isinstance(record, dict) or type(record.get("step")) is not int:
            raise InputError(f"{self.path}: line {number} is not a record with a whole number 'step': remove that line")
        return record

    def _trim_unfinished(self) -> int:
        """Remove an unfinished last line, and return the size of the file; 0 if there is no file."""
        try:
            stream = self.path.open("r+b")
        except FileNotFoundError:
            return 0
        with stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - 1, 0))
            if stream.read(1) in (b"", b"\n"):
                return size
            stream.seek(0)
            return stream.truncate(_complete_size(stream.read()))


def _complete_size(content: bytes) -> int:
    return content.rfind(b"\n") + 1
