"""Records that studies share: claims, residuals, constants; a study as JSON; measurements kept between runs."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec import field as named

from fluxforge._machine import environment
from fluxforge.errors import DocumentError
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Warn
from fluxforge.run._record import Document
from fluxforge.run.result import to_document as result_to_document

R = TypeVar("R")
# The part that runs every recipe with several seeds.
RATES = "rates"

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


def to_document(result: msgspec.Struct, claims: Sequence[Claim]) -> Document:
    """The JSON document of a study: the fields of its result, the environment and the claims."""
    document = result_to_document(result)
    return {**document, "environment": environment(), "claims": [asdict(claim) for claim in claims]}


def read_result(document: Document, kind: type[R]) -> R:
    """The result of a study from its JSON document; fields that the record does not have are left out.

    Raises DocumentError where a field is missing or of another type.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise DocumentError(f"not a result of {document.get('experiment', 'this study')}: {error}") from error


class Residuals(Struct, frozen=True):
    """Mean |residual| of a network, of explicit schemes and of Crank–Nicolson on unseen meshes."""

    network: float
    euler: float
    midpoint: float
    rk4: float
    crank_nicolson: float = named(name="crank-nicolson")


class ConstantsRow(Struct, frozen=True, kw_only=True):
    """The constants of least residual at one Δt, and their numerical errors."""

    step: float
    constants: dict[str, float]
    # Absent from documents of older versions.
    error: dict[str, float | None] | UnsetType = UNSET
    loss: float


# Increased when the same key gives other numbers.
VERSION = 1
# What a measurement depends on.
Key: TypeAlias = msgspec.Struct | Mapping[str, object]


class Measurements:
    """Measurements that a folder keeps, each under a title and a key; without a folder nothing is kept."""

    def __init__(self, folder: RunFolder | None) -> None:
        self._folder = folder

    def read(self, title: str, key: Key, kind: type[R]) -> R | None:
        """The measurement of this key as a record of this kind, or None if the folder does not have it."""
        kept = None if self._folder is None else self._folder.read_stage(_stage(title, key))
        return None if kept is None else msgspec.convert(kept, kind)

    def keep(self, title: str, key: Key, measured: R) -> R:
        """Keep a measurement, and return it as it will be read."""
        plain = json.loads(json.dumps(msgspec.to_builtins(measured), allow_nan=False))
        if self._folder is not None:
            self._folder.finish(_stage(title, key), plain)
        return msgspec.convert(plain, type(measured))

    def measure_once(self, title: str, key: Key, kind: type[R], measure: Callable[[], R]) -> R:
        """The measurement of this key; made and kept if the folder does not have it."""
        kept = self.read(title, key, kind)
        return self.keep(title, key, measure()) if kept is None else kept


@contextmanager
def open_measurements(folder: Path | None, warn: Warn) -> Iterator[Measurements]:
    """The measurements of a folder, which is made if it does not exist."""
    if folder is None:
        yield Measurements(None)
    elif (folder / "run.json").exists():
        with RunFolder.open(folder, warn=warn) as held:
            yield Measurements(held)
    else:
        with RunFolder.create(folder, description={"what": "measurements of a grid"}, warn=warn) as held:
            yield Measurements(held)


def _stage(title: str, key: Key) -> str:
    content = json.dumps([VERSION, title, msgspec.to_builtins(key)], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return f"{re.sub('[^a-z0-9]+', '-', title.lower())[:40].strip('-')}-{digest}"
