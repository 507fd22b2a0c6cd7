"""The folder of a run: its lock, its description, the results of its finished stages."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fluxforge._files import hold_folder, read_document, refuse_removed
from fluxforge.errors import DocumentError, InputError, StorageError
from fluxforge.run._checkpoint import Checkpoints
from fluxforge.run._durable import Metrics, explained, make_folder, reason, remove_strays, sync_folder, write_record

LOCK = "run.lock"


@contextmanager
def exclusive(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Hold a folder for the block. The system holds the lock, so that it vanishes with a killed process."""
    lock = FileLock(folder / name, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:  # before OSError, which it is
        raise InputError(f"{folder}: is in use by another process: wait for it to end, or stop it") from error
    except (OSError, NotImplementedError) as error:
        raise InputError(f"{folder}: cannot be locked ({reason(error)})") from error
    try:
        yield
    finally:
        lock.release()


_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Stages:
    """The results of finished stages, each a document `STAGE.json`; one that is damaged counts as not finished."""

    def __init__(self, folder: Path, *, warn: Callable[[str], None]) -> None:
        self.folder = folder
        self._warn = warn

    def finished(self, stage: str) -> dict[str, Any] | None:
        """What a stage gave, or None if it is not finished. A file that the system cannot read is an error."""
        path = self._path(stage)
        try:
            with explained(path, "cannot be read"):
                return _result(path, stage) if path.exists() else None
        except DocumentError as error:
            if isinstance(error.__cause__, OSError):
                raise StorageError(str(error)) from error
            self._warn(f"stage {stage} counts as not finished: {error}")
            return None

    def finish(self, stage: str, result: Mapping[str, Any]) -> None:
        """Say that a stage is finished, and what it gave: a small result in plain JSON."""
        path = self._path(stage)
        try:
            digest = _digest(result)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"{path}: cannot be written (its content is not plain JSON: {error})") from error
        make_folder(self.folder)
        write_record(path, "stage", {"stage": stage, "sha256": digest, "result": result})

    def _path(self, stage: str) -> Path:
        if not _NAME.fullmatch(stage):
            raise InputError(f"stage {stage!r:.80}: a name is of lower-case letters, digits, '-' and '_'")
        return self.folder / f"{stage}.json"


def _digest(result: Mapping[str, Any]) -> str:
    """The SHA-256 of a result as it will be read back: names are texts, tuples are lists."""
    read_back = json.loads(json.dumps(result, allow_nan=False))
    return hashlib.sha256(json.dumps(read_back, sort_keys=True).encode()).hexdigest()


def _result(path: Path, stage: str) -> dict[str, Any]:
    document = read_document(path, "stage", 1)
    result = document.get("result")
    with suppress(ValueError):  # a number that JSON has not
        if isinstance(result, dict) and document.get("stage") == stage and document.get("sha256") == _digest(result):
            return result
    raise DocumentError(f"{path}: is damaged (its content does not fit its SHA-256)")


_RUN = "run.json"
_PARTS = (_CHECKPOINTS := "checkpoints", _METRICS := "metrics.jsonl", _STAGES := "stages")
_HEAD = ("format", "format_version")

Warn = Callable[[str], None]


@dataclass(frozen=True)
class RunFolder:
    """A run folder that this process holds alone: what the run is, its checkpoints, metrics and finished stages.

    `with RunFolder.create(path, description=…, warn=…) as folder` begins a run, `with RunFolder.open(path, warn=…)`
    goes on with one. `warn` is told, in one line, of whatever was found damaged.
    """

    path: Path
    description: Mapping[str, Any]
    checkpoints: Checkpoints
    metrics: Metrics
    warn: Warn
    _stages: Stages

    @classmethod
    @contextmanager
    def create(cls, path: str | PathLike[str], *, description: Mapping[str, Any], warn: Warn) -> Iterator["RunFolder"]:
        """Begin a run in a folder that holds none, and hold it for the block; what fails to begin leaves nothing."""
        folder = _path(path)
        if clash := description.keys() & set(_HEAD):
            raise InputError(f"the description of a run cannot have a field {min(clash)!r}: its document has one")
        _refuse_a_run(folder)
        with _made(folder), exclusive(folder):
            _refuse_a_run(folder)
            _begin(folder, description)
            with hold_folder(folder):
                yield cls._of(folder, warn)

    @classmethod
    @contextmanager
    def open(cls, path: str | PathLike[str], *, warn: Warn) -> Iterator["RunFolder"]:
        """Hold a folder that holds a run for the block, and remove what killed writers left in it."""
        folder = _path(path)
        _refuse_no_run(folder)
        with exclusive(folder), hold_folder(folder):
            for place in (folder, folder / _CHECKPOINTS, folder / _STAGES):
                remove_strays(place)
            found = cls._of(folder, warn)
            found.checkpoints.tidy()
            yield found

    @classmethod
    def _of(cls, folder: Path, warn: Warn) -> "RunFolder":
        document = read_document(folder / _RUN, "run", 1)
        return cls(
            path=folder,
            description={name: value for name, value in document.items() if name not in _HEAD},
            checkpoints=Checkpoints(folder / _CHECKPOINTS, warn=warn),
            metrics=Metrics(folder / _METRICS),
            warn=warn,
            _stages=Stages(folder / _STAGES, warn=warn),
        )

    def finished(self, stage: str) -> dict[str, Any] | None:
        """What a stage gave, or None if it is not finished or its result is damaged."""
        return self._stages.finished(stage)

    def finish(self, stage: str, result: Mapping[str, Any]) -> None:
        """Say that a stage is finished, and what it gave: a small result in plain JSON."""
        self._stages.finish(stage, result)


def _path(path: str | PathLike[str]) -> Path:
    if "\0" in str(path):
        raise InputError(f"{str(path)!r}: is no path")
    return Path(path)


def _refuse_a_run(folder: Path) -> None:
    with explained(folder):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: is a file, and a run needs a folder: give another -o")
        if (folder / _RUN).exists():
            raise InputError(f"{folder}: already holds a run: go on with it by --resume {folder}, or give another -o")
        for part in _PARTS:
            if (folder / part).exists():
                raise InputError(f"{folder}: holds {part} of a run without its {_RUN}: remove it, or give another -o")


def _refuse_no_run(folder: Path) -> None:
    with explained(folder, "cannot be read"):
        if not folder.exists():
            raise InputError(f"{folder}: there is no such folder")
        if not folder.is_dir():
            raise InputError(f"{folder}: is a file, and a run is a folder")
        if not (folder / _RUN).exists():
            raise InputError(f"{folder}: holds no run (there is no {_RUN} in it)")


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder and its parents for the block; if it fails, those still empty are removed again."""
    with explained(folder):
        absent = [item for item in (folder, *folder.parents) if not item.exists()]
    try:
        with explained(folder):
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


def _begin(folder: Path, description: Mapping[str, Any]) -> None:
    try:
        remove_strays(folder, _RUN)
        write_record(folder / _RUN, "run", description)
    except BaseException:
        for name in (_RUN, LOCK):
            with suppress(OSError):
                (folder / name).unlink(missing_ok=True)
        raise
