"""The folder of one training run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from fluxforge._files import hold_folder, read_document, refuse_removed
from fluxforge.errors import InputError
from fluxforge.run._checkpoint import Checkpoints
from fluxforge.run._durable import explained, remove_strays, sync_folder, write_record
from fluxforge.run._lock import LOCK, exclusive
from fluxforge.run._metrics import Metrics
from fluxforge.run._stages import Stages

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
