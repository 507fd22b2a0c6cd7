"""What training says as it goes: one JSON record a line."""

import io
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fluxforge._files import failure, parse_json, read_regular, refuse_removed
from fluxforge.errors import InputError
from fluxforge.run._durable import explained, sync, write_durably


class Metrics:
    """The file `metrics.jsonl` of a run. A line that lacks its end was not finished, and does not count."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: Mapping[str, Any]) -> None:
        """Add one record, which has a `step`; what is not finite becomes null."""
        line = self._line(record)
        size = None
        try:
            refuse_removed(self.path)
            size = self._mended_size()
            with self.path.open("ab") as stream:
                stream.write(line)
        except OSError as error:
            if size is not None:
                with suppress(OSError):
                    os.truncate(self.path, size)
            raise failure(self.path, error) from error

    def sync(self) -> None:
        """Wait until the disk has all records: call it before the checkpoint that follows them."""
        if self.path.exists():
            sync(self.path)

    def truncate(self, step: int) -> None:
        """Drop the records after a step, as if training had stopped there."""
        content = self._content()
        kept = b"".join(line for line, record in self._records(content) if record["step"] <= step)
        if kept != content:
            write_durably(self.path, kept)

    def read(self) -> list[dict[str, Any]]:
        """All finished records."""
        return [record for _, record in self._records(self._content())]

    def _line(self, record: Mapping[str, Any]) -> bytes:
        plain = _plain(record)
        if type(plain.get("step")) is not int:
            raise InputError(f"{self.path}: a record needs a whole number 'step', got {plain.get('step')!r:.60}")
        try:
            return json.dumps(plain, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise InputError(f"{self.path}: the record of step {plain['step']} is not plain JSON ({error})") from error

    def _content(self) -> bytes:
        with explained(self.path, "cannot be read"):
            try:
                return read_regular(self.path)
            except FileNotFoundError:
                return b""

    def _records(self, content: bytes) -> list[tuple[bytes, dict[str, Any]]]:
        lines = io.BytesIO(content[: _whole_size(content)]).readlines()
        return [(line, self._record(line, number)) for number, line in enumerate(lines, start=1)]

    def _record(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            record = parse_json(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path}: line {number} is not a record ({error}): remove that line") from error
        if not isinstance(record, dict) or type(record.get("step")) is not int:
            raise InputError(f"{self.path}: line {number} is not a record with a whole number 'step': remove that line")
        return record

    def _mended_size(self) -> int:
        """The size of the file, once the rest of an unfinished line is cut off."""
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
            return stream.truncate(_whole_size(stream.read()))


def _whole_size(content: bytes) -> int:
    return content.rfind(b"\n") + 1


def _plain(value: Any) -> Any:
    """Numbers, texts, lists and mappings of them; an array is its list, and what is not finite is None."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return _plain(np.asarray(value).tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
