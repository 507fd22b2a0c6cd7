"""Which stages of a run are finished, and what each gave."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fluxforge._files import read_document
from fluxforge.errors import DocumentError, InputError, StorageError
from fluxforge.run._durable import explained, make_folder, write_record

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
