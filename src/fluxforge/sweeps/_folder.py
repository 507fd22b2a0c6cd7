"""The folder of a sweep: its lock, and sweep.json with the recipe, the points, their digests and the versions."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fluxforge import recipe
from fluxforge._files import hold_folder, read_document
from fluxforge._machine import environment
from fluxforge.errors import DocumentError, InputError
from fluxforge.run._durable import explain_failure, remove_strays, write_durably
from fluxforge.run._folder import lock_folder
from fluxforge.run._progress import Warn
from fluxforge.run._record import Document
from fluxforge.sweeps._points import Point, make_points

SWEEP, LOCK, RUNS, LOGS = "sweep.json", "sweep.lock", "runs", "logs"


@dataclass(frozen=True)
class Plan:
    """What a sweep runs: a recipe, the fields varied, and its points.

    `command` is the command line of a single run, such as `fluxforge discover midpoint`, without the fields varied.
    """

    base: recipe.Recipe
    over: Mapping[str, tuple[Any, ...]]
    points: tuple[Point, ...]
    command: str = ""

    def document(self) -> Document:
        """The plan as plain JSON."""
        return {
            "recipe": recipe.to_dict(self.base),
            "command": self.command,
            "over": {field: list(values) for field, values in self.over.items()},
            "points": [{"name": point.name, "sha256": point.sha256} for point in self.points],
        }


@contextmanager
def open_folder(folder: Path, plan: Plan, *, warn: Warn) -> Iterator[dict[str, str]]:
    """Lock the folder of a sweep for the block, made if it is not there; yield the versions it was begun with.

    Raises InputError if another process has it, or if it holds another sweep, a run, or runs of an unknown sweep.
    """
    _refuse_other_content(folder)
    with explain_failure(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder, LOCK), hold_folder(folder):
        remove_strays(folder)
        if not (folder / SWEEP).exists():
            head = {"format": "fluxforge-sweep", "format_version": 1}
            _write(folder / SWEEP, {**head, **plan.document(), "environment": environment()})
        held = _read(folder)
        if any(held.get(name) != value for name, value in _as_read(plan).items() if name != "command"):
            raise InputError(f"{folder}: holds a sweep of another recipe or other values: give another -o")
        yield _check_versions(folder, held, warn)


def read_plan(folder: Path) -> Plan:
    """The plan of the sweep in a folder; raises InputError if there is none, or if it is damaged."""
    if not (folder / SWEEP).exists():
        what = "contains no sweep" if folder.is_dir() else "no such folder"
        raise InputError(f"{folder}: {what}{f' (no {SWEEP} in it)' if folder.is_dir() else ''}")
    held = _read(folder)
    base = recipe.from_dict(held.get("recipe"), f"{folder / SWEEP}")
    over, command = held.get("over"), held.get("command")
    if not isinstance(over, dict) or not all(isinstance(values, list) and values for values in over.values()):
        raise DocumentError(f"{folder / SWEEP}: field 'over' should be a mapping from fields to lists of values")
    values = {field: tuple(each) for field, each in over.items()}
    plan = Plan(base, values, make_points(base, values), command if isinstance(command, str) else "")
    if _as_read(plan)["points"] != held.get("points"):
        raise DocumentError(f"{folder / SWEEP}: the points do not match their digests: put back the file")
    return plan


def _refuse_other_content(folder: Path) -> None:
    with explain_failure(folder, "cannot be read"):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: is a file, but a sweep needs a folder: choose another with -o")
        if (folder / "run.json").exists():
            raise InputError(f"{folder}: contains a run, not a sweep: choose another -o")
        if (folder / RUNS).exists() and not (folder / SWEEP).exists():
            raise InputError(f"{folder}: contains {RUNS} but no {SWEEP}: remove it, or choose another -o")


def _write(path: Path, document: Document) -> None:
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be written (its content is not plain JSON: {error})") from error
    write_durably(path, text.encode() + b"\n")


def _read(folder: Path) -> Document:
    return read_document(folder / SWEEP, "sweep", 1)


def _as_read(plan: Plan) -> Document:
    """The document of a plan as it is read back: lists for tuples, strings for keys."""
    document: Document = json.loads(json.dumps(plan.document()))
    return document


def _check_versions(folder: Path, held: Document, warn: Warn) -> dict[str, str]:
    """The versions a sweep was begun with; a warning if those of this process differ."""
    begun = held.get("environment")
    if not isinstance(begun, dict):
        raise DocumentError(f"{folder / SWEEP}: field 'environment' should be a mapping")
    now = environment()
    changed = [f"{name} {begun.get(name)} → {now[name]}" for name in now if begun.get(name) != now[name]]
    if changed:
        warn(f"{folder}: was begun with other versions, and the remaining runs may differ: {', '.join(changed)}")
    return {str(name): str(value) for name, value in begun.items()}
