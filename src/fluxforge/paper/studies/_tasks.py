"""Measurements that are stored in a folder, and made either in this process or each in a process of its own.

A measurement of memory needs a process that has done nothing else; measurements on large meshes run in parallel.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import jax
import msgspec
from msgspec import Struct

from fluxforge.errors import FluxforgeError
from fluxforge.paper.studies._measures import make_irregular
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, Warn
from fluxforge.stepping._solvers import Solver

R = TypeVar("R")
# Version of the measurements, part of every key: to be increased when the same key gives other numbers.
VERSION = 1
# Everything on which a measurement depends.
Key: TypeAlias = msgspec.Struct | Mapping[str, object]


class Measurements:
    """The measurements stored in a run folder, each under a title and a key."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def read(self, title: str, key: Key, kind: type[R]) -> R | None:
        """The stored measurement under this title and key as a record of type `kind`; None if there is none."""
        kept = self._folder.read_stage(_name_stage(title, key))
        return None if kept is None else msgspec.convert(kept, kind)

    def keep(self, title: str, key: Key, kind: type[R], measured: object) -> R:
        """Store a measurement, and return it as it will be read back: a record of type `kind`."""
        plain = json.loads(json.dumps(msgspec.to_builtins(measured), allow_nan=False))
        self._folder.finish(_name_stage(title, key), plain)
        return msgspec.convert(plain, kind)

    def measure_once(self, title: str, key: Key, kind: type[R], measure: Callable[[], R]) -> R:
        """The stored measurement under this title and key; if there is none, the result of `measure`, now stored."""
        kept = self.read(title, key, kind)
        return self.keep(title, key, kind, measure()) if kept is None else kept


@contextmanager
def open_measurements(folder: Path, warn: Warn) -> Iterator[Measurements]:
    """Open the measurements in the run folder `grid` of a part's folder, which is created if it does not exist."""
    grid = folder / "grid"
    with (
        RunFolder.open(grid, warn=warn)
        if (grid / "run.json").exists()
        else RunFolder.create(grid, description={"what": "measurements of a grid"}, warn=warn)
    ) as held:
        yield Measurements(held)


def _name_stage(title: str, key: Key) -> str:
    content = json.dumps([VERSION, title, msgspec.to_builtins(key)], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return f"{re.sub('[^a-z0-9]+', '-', title.lower())[:40].strip('-')}-{digest}"


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One measurement: its kind, and everything on which its numbers depend; fields that it does not need are absent.

    `scheme` is the name of a built-in scheme, or of a network, whose weights have the digest `weights`; None is for a
    process that only makes the mesh.
    """

    task: Literal["grid", "space", "clock", "memory", "counted"]
    scheme: str | None
    cells: int
    seed: int
    weights: str | None = None
    solver: Solver | None = None
    baseline: str | None = None
    fourier: float | None = None
    fractions: tuple[float, ...] = ()
    end: float = 0.0
    until: float = 0.0
    fraction: float = 0.0

    @property
    def title(self) -> str:
        """A text that describes the measurement, for progress and file names."""
        if self.task in ("memory", "counted"):
            return f"memory: {self.scheme or 'mesh alone'} {self.solver or ''}, {self.cells} cells"
        return f"{self.task}: {self.scheme}, {self.cells} cells"


def measure_tasks(
    tasks: Sequence[Task],
    kind: type[R],
    held: Measurements,
    *,
    measure: Callable[[Task], Struct],
    tell: Progress,
    workers: int | None,
    here: Callable[[Task], Struct] | None = None,
    is_apart: Callable[[Task], bool] = lambda _: True,
) -> list[R]:
    """The results of the tasks, in their order: read from the folder, or measured and stored there.

    A task is measured by `here` in this process, or by `measure` in a new one if `is_apart` returns True for it or
    there is no `here`. `measure` must be a function at the top level of a module, since new processes import it.
    """
    results = [held.read(task.title, task, kind) for task in tasks]
    missing = [k for k, result in enumerate(results) if result is None]
    apart = [k for k in missing if here is None or is_apart(tasks[k])]
    done = 0
    for k in missing:
        if here is not None and k not in apart:
            tell(tasks[k].title, done, len(missing))
            results[k] = held.keep(tasks[k].title, tasks[k], kind, here(tasks[k]))
            done += 1
    # Put the meshes into the cache first, so that parallel processes do not generate the same mesh.
    for cells, seed in dict.fromkeys((tasks[k].cells, tasks[k].seed) for k in apart):
        make_irregular(cells, seed)
    for at, text in run_children([tasks[k] for k in apart], measure, workers=workers):
        task = tasks[apart[at]]
        results[apart[at]] = held.keep(task.title, task, kind, msgspec.json.decode(text, type=kind))
        done += 1
        tell(task.title, done, len(missing))
    return [result for result in results if result is not None]


def run_children(
    tasks: Sequence[Task], measure: Callable[[Task], Struct], *, workers: int | None
) -> Iterator[tuple[int, bytes]]:
    """Measure several tasks at once, by default as many as there are cores; yields (index, JSON) of each as it ends."""
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        waiting = {pool.submit(run_child, task, measure): k for k, task in enumerate(tasks)}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            # Cancel tasks that have not begun: they would delay an error, or a caller that stopped reading.
            for each in waiting:
                each.cancel()


def run_child(task: Task, measure: Callable[[Task], Struct]) -> bytes:
    """Measure a task in a new process, and return the result as JSON; raises FluxforgeError if it fails."""
    code = (
        f"from {measure.__module__} import {measure.__name__} as measure; from {__name__} import serve; serve(measure)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=msgspec.json.encode(task), capture_output=True, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.decode().strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise FluxforgeError(f"the measurement of {task.scheme} on {task.cells} cells failed: {last}")
    return done.stdout


def serve(measure: Callable[[Task], Struct]) -> None:
    """Measure a task read from standard input, and write the result to standard output, both as JSON."""
    jax.config.update("jax_enable_x64", True)
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    json.dump(msgspec.to_builtins(measure(task)), sys.stdout, allow_nan=False)
