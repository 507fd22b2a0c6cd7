"""The plan of a sweep: a recipe for each combination of values of some fields, and the file sweep.json."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from fluxforge import recipe
from fluxforge._files import hold_folder, read_document
from fluxforge._machine import environment
from fluxforge.errors import DocumentError, InputError
from fluxforge.run._durable import explain_failure, remove_strays, write_record
from fluxforge.run._folder import lock_folder
from fluxforge.run._progress import Warn
from fluxforge.run._record import Document

SWEEP, LOCK, RUNS, LOGS = "sweep.json", "sweep.lock", "runs", "logs"
MOST_POINTS = 10_000
# Longest folder name made of fields and values; longer ones are truncated and end in a digest.
LONGEST_NAME = 100

_RANGE = re.compile(r"([+-]?\d{1,18}):([+-]?\d{1,18})")
_UNSAFE = re.compile(r"[^A-Za-z0-9._=+,-]+")


@dataclass(frozen=True)
class Point:
    """One run of a sweep: the name of its folder, the fields it sets, and its whole recipe."""

    name: str
    changes: recipe.Changes
    spec: recipe.Recipe

    @property
    def sha256(self) -> str:
        """The SHA-256 of the recipe."""
        return digest_recipe(self.spec)


def digest_recipe(spec: recipe.Recipe) -> str:
    """The SHA-256 of a recipe's fields as JSON."""
    return hashlib.sha256(json.dumps(recipe.to_dict(spec), sort_keys=True).encode()).hexdigest()


def parse_over(texts: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """The values of each field from texts `FIELD=VALUES`.

    VALUES are separated by commas; each is a range `0:10` (0 to 9) or a value as in `fluxforge discover --set`. Commas
    within brackets, braces and quotes belong to a value. Raises InputError for a text of another form, a field that is
    given twice, or an empty range.
    """
    over: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        field, equals, values = (part.strip() for part in text.partition("="))
        if not field or not equals or not values:
            wanted = "FIELD=VALUES, such as seed=0:10 or network.width=16,32"
            raise InputError(f"--over {text!r:.80}: expected {wanted}")
        if field in over:
            raise InputError(f"--over {text!r:.80}: field '{field}' is given twice")
        over[field] = tuple(value for part in _split_values(values) for value in _parse_values(field, part, text))
    return over


def parse_seeds(text: str) -> range:
    """Seeds from a number of them, `10` for 0 to 9, or a range, `10:20` for 10 to 19; raises InputError."""
    bounds = re.fullmatch(r"(?:([0-9]{1,9}):)?([0-9]{1,9})", text)
    seeds = range(int(bounds[1] or 0), int(bounds[2])) if bounds else range(0)
    if not 0 < len(seeds) <= MOST_POINTS:
        wanted = "a number, such as 10 for seeds 0 to 9, or a range, such as 10:20 for seeds 10 to 19"
        raise InputError(f"--seeds {text!r:.80}: expected {wanted} (at most {MOST_POINTS:,})")
    return seeds


def _split_values(text: str) -> Iterator[str]:
    """The parts of a text between commas that are not within brackets, braces or quotes."""
    depth, quote, start = 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[start:place].strip()
            start = place + 1
    yield text[start:].strip()


def _parse_values(field: str, part: str, text: str) -> Sequence[Any]:
    if (bounds := _RANGE.fullmatch(part)) is None:
        return list(recipe.assignments([f"{field}={part}"]).values())
    numbers = range(int(bounds[1]), int(bounds[2]))
    if not numbers:
        raise InputError(f"--over {text!r:.80}: the range {part} is empty: the second number is not included")
    if numbers.stop - numbers.start > MOST_POINTS:
        raise InputError(f"--over {text!r:.80}: the range {part} has more than {MOST_POINTS:,} numbers")
    return numbers


def make_points(base: recipe.Recipe, over: Mapping[str, Sequence[Any]]) -> tuple[Point, ...]:
    """One point for each combination of values, which are JSON values; the last field varies fastest.

    Raises InputError for a field or value that is invalid in the recipe, for two points that are the same recipe, and
    for too many points; if it is a RecipeError, it names the field.
    """
    if not over:
        raise InputError("over: a sweep needs a field to vary, such as seed=0:10")
    if empty := next((field for field, values in over.items() if not values), None):
        raise InputError(f"over: field '{empty}' has no values")
    if (count := math.prod(len(values) for values in over.values())) > MOST_POINTS:
        raise InputError(f"--over: {count:,} points are too many; at most {MOST_POINTS:,} are allowed")
    points: dict[str, Point] = {}
    for values in product(*over.values()):
        changes = dict(zip(over, values, strict=True))
        spec = recipe.self_contained(recipe.override(base, changes, "over"))
        point = Point(name_point(changes), changes, spec)
        if (twin := points.setdefault(point.sha256, point)) is not point:
            raise InputError(
                f"--over: the points {twin.name} and {point.name} are the same recipe: give each value once"
            )
    return tuple(points.values())


def name_point(changes: recipe.Changes) -> str:
    """The folder name of a point, as `network.width=16,seed=3`; with a digest if values are unsafe in file names."""
    whole = ",".join(f"{field}={recipe.to_toml_value(value)}" for field, value in changes.items())
    plain = ",".join(f"{field}={show_value(value)}" for field, value in changes.items())
    safe = _UNSAFE.sub("_", plain)
    if safe == plain and len(plain) <= LONGEST_NAME:
        return plain
    return f"{safe[:LONGEST_NAME]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def show_value(value: Any) -> str:
    """A value as text for readers: strings without quotes."""
    return value if isinstance(value, str) else recipe.to_toml_value(value)


@dataclass(frozen=True)
class Plan:
    """The plan of a sweep: a recipe, the values of the varied fields, and the points.

    `command` is the command line of a single run, such as `fluxforge discover midpoint`, without the varied fields.
    """

    base: recipe.Recipe
    over: Mapping[str, tuple[Any, ...]]
    points: tuple[Point, ...]
    command: str = ""

    def document(self) -> Document:
        """The plan as a JSON document."""
        return {
            "recipe": recipe.to_dict(self.base),
            "command": self.command,
            "over": {field: list(values) for field, values in self.over.items()},
            "points": [{"name": point.name, "sha256": point.sha256} for point in self.points],
        }


@contextmanager
def open_folder(folder: Path, plan: Plan, *, warn: Warn) -> Iterator[dict[str, str]]:
    """Lock the folder of a sweep for the block, and create it if needed; yields the versions it was started with.

    Raises InputError if another process uses it, or if it has another sweep, a run, or runs of an unknown sweep.
    """
    _refuse_other_content(folder)
    with explain_failure(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder, LOCK), hold_folder(folder):
        remove_strays(folder)
        if not (folder / SWEEP).exists():
            write_record(folder / SWEEP, "sweep", {**plan.document(), "environment": environment()})
        stored = read_document(folder / SWEEP, "sweep", 1)
        if any(stored.get(name) != value for name, value in _round_trip(plan).items() if name != "command"):
            raise InputError(f"{folder}: contains a sweep of another recipe or of other values: choose another -o")
        yield _check_versions(folder, stored, warn)


def read_plan(folder: Path) -> Plan:
    """The plan of the sweep in a folder; raises InputError if there is none, or if it is damaged."""
    if not (folder / SWEEP).exists():
        what = f"contains no sweep (no {SWEEP} in it)" if folder.is_dir() else "no such folder"
        raise InputError(f"{folder}: {what}")
    stored = read_document(folder / SWEEP, "sweep", 1)
    base = recipe.from_dict(stored.get("recipe"), f"{folder / SWEEP}")
    over, command = stored.get("over"), stored.get("command")
    if not isinstance(over, dict) or not all(isinstance(values, list) and values for values in over.values()):
        raise DocumentError(f"{folder / SWEEP}: field 'over' should be a mapping from fields to lists of values")
    values = {field: tuple(each) for field, each in over.items()}
    plan = Plan(base, values, make_points(base, values), command if isinstance(command, str) else "")
    if _round_trip(plan)["points"] != stored.get("points"):
        raise DocumentError(
            f"{folder / SWEEP}: the points do not match their digests, so the file was changed: restore the original"
        )
    return plan


def _refuse_other_content(folder: Path) -> None:
    with explain_failure(folder, "cannot be read"):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: is a file, but a sweep needs a folder: choose another with -o")
        if (folder / "run.json").exists():
            raise InputError(f"{folder}: contains a run, not a sweep: choose another -o")
        if (folder / RUNS).exists() and not (folder / SWEEP).exists():
            raise InputError(f"{folder}: contains {RUNS} but no {SWEEP}: remove it, or choose another -o")


def _round_trip(plan: Plan) -> Document:
    """The document of a plan as it is read back: lists for tuples, strings for keys."""
    document: Document = json.loads(json.dumps(plan.document()))
    return document


def _check_versions(folder: Path, stored: Document, warn: Warn) -> dict[str, str]:
    """The versions with which a sweep was started; calls `warn` if those of this process differ."""
    begun = stored.get("environment")
    if not isinstance(begun, dict):
        raise DocumentError(f"{folder / SWEEP}: field 'environment' should be a mapping")
    now = environment()
    changed = [f"{name} {begun.get(name)} → {now[name]}" for name in now if begun.get(name) != now[name]]
    if changed:
        warn(f"{folder}: was begun with other versions, and the remaining runs may differ: {', '.join(changed)}")
    return {str(name): str(value) for name, value in begun.items()}
