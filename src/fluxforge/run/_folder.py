"""The folder of a run: its lock, its description, the results of its finished stages."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from filelock import FileLock, Timeout

from fluxforge._files import hold_folder, read_document, reason, refuse_removed
from fluxforge.errors import DocumentError, InputError, StorageError
from fluxforge.run._checkpoint import Checkpoints
from fluxforge.run._durable import (
    Metrics,
    explain_failure,
    make_folder,
    remove_strays,
    require_json,
    sync_folder,
    write_record,
)
from fluxforge.run._progress import Warn
from fluxforge.run._record import Document

LOCK = "run.lock"


@contextmanager
def lock_folder(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Lock a folder for the block; the operating system releases the lock of a killed process.

    Raises InputError if another process holds it.
    """
    lock = FileLock(folder / name, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:  # before OSError, of which it is a subclass
        raise InputError(f"{folder}: is in use by another process: wait until it ends, or stop it") from error
    except (OSError, NotImplementedError) as error:
        raise InputError(f"{folder}: cannot be locked ({reason(error)})") from error
    try:
        yield
    finally:
        lock.release()


_RUN = "run.json"
_PARTS = (_CHECKPOINTS := "checkpoints", _METRICS := "metrics.jsonl", _STAGES := "stages")
_HEADER_KEYS = ("format", "format_version")
_STAGE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class RunFolder:
    """A run folder: description, checkpoints, metrics and finished stages of the run.

    `with RunFolder.create(path, description=…, warn=…) as folder` starts a run, `with RunFolder.open(path, warn=…)`
    continues one: this process has `locked` it then. `warn` is called with one line about anything damaged.
    """

    path: Path
    description: Document
    checkpoints: Checkpoints
    metrics: Metrics
    warn: Warn
    locked: bool

    @classmethod
    @contextmanager
    def create(cls, path: str | PathLike[str], *, description: Document, warn: Warn) -> Iterator["RunFolder"]:
        """Start a run in a folder that has none, and lock it for the block; a failed start leaves no files.

        Raises InputError if the folder has a run or a part of one, or is in use.
        """
        folder = _check_path(path)
        if clash := description.keys() & set(_HEADER_KEYS):
            raise InputError(f"the description of a run cannot have a field {min(clash)!r}: its document has one")
        _check_no_run(folder)
        with _create_folder(folder), lock_folder(folder):
            _check_no_run(folder)
            _write_description(folder, description)
            with hold_folder(folder):
                yield cls._load(folder, warn, locked=True)

    @classmethod
    @contextmanager
    def open(cls, path: str | PathLike[str], *, warn: Warn) -> Iterator["RunFolder"]:
        """Lock the folder of a run for the block, and remove temporary files of killed processes.

        Raises InputError if there is no run in it, or it is in use.
        """
        folder = _check_path(path)
        _check_run(folder)
        with lock_folder(folder), hold_folder(folder):
            for place in (folder, folder / _CHECKPOINTS, folder / _STAGES):
                remove_strays(place)
            opened = cls._load(folder, warn, locked=True)
            opened.checkpoints.tidy()
            yield opened

    @classmethod
    def read(cls, path: str | PathLike[str], *, warn: Warn = lambda _: None) -> "RunFolder":
        """A run folder for reading only, without lock: nothing may be written through it.

        `warn` is called with one line about a damaged checkpoint. Raises InputError if there is no run in the folder.
        """
        folder = _check_path(path)
        _check_run(folder)
        return cls._load(folder, warn, locked=False)

    @classmethod
    def _load(cls, folder: Path, warn: Warn, *, locked: bool) -> "RunFolder":
        document = read_document(folder / _RUN, "run", 1)
        return cls(
            path=folder,
            description={name: value for name, value in document.items() if name not in _HEADER_KEYS},
            checkpoints=Checkpoints(folder / _CHECKPOINTS, warn=warn),
            metrics=Metrics(folder / _METRICS),
            warn=warn,
            locked=locked,
        )

    def read_stage(self, stage: str) -> Document | None:
        """Read the result of a stage; None if it is not finished, or if its file is damaged.

        Raises StorageError if the file cannot be read.
        """
        path = self.stage_path(stage)
        try:
            with explain_failure(path, "cannot be read"):
                return _read_result(path, stage) if path.exists() else None
        except DocumentError as error:
            if isinstance(error.__cause__, OSError):
                raise StorageError(str(error)) from error
            self.warn(f"stage {stage} counts as unfinished: {error}")
            return None

    def finish(self, stage: str, result: Document) -> None:
        """Record that a stage is finished, with its result: a small mapping of plain JSON."""
        path = self.stage_path(stage)
        with require_json(path):
            digest = _digest_result(result)
        make_folder(path.parent)
        write_record(path, "stage", {"stage": stage, "sha256": digest, "result": result})

    def stage_path(self, stage: str) -> Path:
        """The path of the file of a stage; raises InputError for an invalid name."""
        if not _STAGE_NAME.fullmatch(stage):
            raise InputError(f"stage {stage!r:.80}: a name consists of lower-case letters, digits, '-' and '_'")
        return self.path / _STAGES / f"{stage}.json"


def _digest_result(result: Document) -> str:
    """The SHA-256 of a result in the form in which JSON returns it: keys as strings, tuples as lists."""
    read_back = json.loads(json.dumps(result, allow_nan=False))
    return hashlib.sha256(json.dumps(read_back, sort_keys=True).encode()).hexdigest()


def _read_result(path: Path, stage: str) -> Document:
    document = read_document(path, "stage", 1)
    result = document.get("result")
    with suppress(ValueError):  # NaN or infinity, which JSON lacks
        if (
            isinstance(result, dict)
            and document.get("stage") == stage
            and document.get("sha256") == _digest_result(result)
        ):
            return result
    raise DocumentError(f"{path}: is damaged (its content does not match its SHA-256)")


def _check_path(path: str | PathLike[str]) -> Path:
    if "\0" in str(path):
        raise InputError(f"{str(path)!r}: is not a path")
    return Path(path)


def _check_no_run(folder: Path) -> None:
    with explain_failure(folder):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: is a file, but a run needs a folder: choose another with -o")
        if (folder / _RUN).exists():
            raise InputError(
                f"{folder}: already contains a run: continue it with --resume {folder}, or choose another -o"
            )
        for part in _PARTS:
            if (folder / part).exists():
                raise InputError(f"{folder}: contains {part} of a run but no {_RUN}: remove it, or choose another -o")


def _check_run(folder: Path) -> None:
    with explain_failure(folder, "cannot be read"):
        if not folder.exists():
            raise InputError(f"{folder}: no such folder")
        if not folder.is_dir():
            raise InputError(f"{folder}: is a file, but a run is a folder")
        if not (folder / _RUN).exists():
            raise InputError(f"{folder}: contains no run (no {_RUN} in it)")


@contextmanager
def _create_folder(folder: Path) -> Iterator[None]:
    """Create a folder and its parents; if the block fails, remove those that are still empty."""
    with explain_failure(folder):
        absent = [item for item in (folder, *folder.parents) if not item.exists()]
    try:
        with explain_failure(folder):
            refuse_removed(folder)
            folder.mkdir(parents=True, exist_ok=True)
        for item in absent:
            sync_folder(item.parent)
        yield
    except BaseException:
        for item in absent:
            with suppress(OSError):
                item.rmdir()
        raise


def _write_description(folder: Path, description: Document) -> None:
    try:
        remove_strays(folder, _RUN)
        write_record(folder / _RUN, "run", description)
    except BaseException:
        for name in (_RUN, LOCK):
            with suppress(OSError):
                (folder / name).unlink(missing_ok=True)
        raise
