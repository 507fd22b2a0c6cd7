"""Claims of a study, its result as a record and as JSON, and measurements that are kept so that none is made twice."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from fluxforge.errors import DocumentError
from fluxforge.pipeline import environment
from fluxforge.run import RunFolder

R = TypeVar("R")

Verdict: TypeAlias = Literal["holds", "holds under a condition", "does not hold", "cannot be tested from the text"]


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, the verdict computed from a result, and the numbers it rests on.

    `condition` is what a verdict "holds under a condition" begins with, if that has a name.
    """

    name: str
    text: str
    verdict: Verdict
    evidence: str
    condition: str = ""

    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def to_document(result: msgspec.Struct, claims: Sequence[Claim]) -> dict[str, Any]:
    """The JSON document of a study: the fields of its result, the environment and the claims."""
    document: dict[str, Any] = msgspec.to_builtins(result)
    return {**document, "environment": environment(), "claims": [claim.document() for claim in claims]}


def read_result(document: Mapping[str, Any], kind: type[R]) -> R:
    """The result of a study from its JSON document; fields that the record does not have are left out.

    Raises DocumentError where a field is missing or of another type.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise DocumentError(f"not a result of {document.get('experiment', 'this study')}: {error}") from error


# Raised when the same words would give other numbers.
VERSION = 1


class Records:
    """What is measured already; without a folder, nothing is."""

    def __init__(self, folder: RunFolder | None) -> None:
        self._folder = folder

    def found(self, what: str, words: Mapping[str, Any]) -> dict[str, Any] | None:
        """The measurement of these words, or None if it is not made."""
        return None if self._folder is None else self._folder.finished(_stage(what, words))

    def keep(self, what: str, words: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a measurement; given back as it will be read."""
        plain: dict[str, Any] = json.loads(json.dumps(result, allow_nan=False))
        if self._folder is not None:
            self._folder.finish(_stage(what, words), plain)
        return plain

    def once(self, what: str, words: Mapping[str, Any], kind: type[R], measure: Callable[[], R]) -> R:
        """The measurement of these words, read as a record of this kind; made now if it is not kept."""
        held = self.found(what, words)
        return msgspec.convert(self.keep(what, words, msgspec.to_builtins(measure())) if held is None else held, kind)


@contextmanager
def records(folder: Path | None, warn: Callable[[str], None]) -> Iterator[Records]:
    """The measurements kept in a folder, which is made if need be. Other words make other records beside them."""
    if folder is None:
        yield Records(None)
    elif (folder / "run.json").exists():
        with RunFolder.open(folder, warn=warn) as held:
            yield Records(held)
    else:
        with RunFolder.create(folder, description={"what": "measurements of a grid"}, warn=warn) as held:
            yield Records(held)


def _stage(what: str, words: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps([VERSION, what, words], sort_keys=True).encode()).hexdigest()[:16]
    return f"{re.sub('[^a-z0-9]+', '-', what.lower())[:40].strip('-')}-{digest}"
