"""A worker process: it reads one job per line, runs it in its folder, and writes one message per line.

A process of the pool runs `main`. It ends when its input is closed, even during a run, so that no run continues without
the process that started the sweep. An interrupted run can be resumed from its checkpoint.
"""

import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

from fluxforge import recipe
from fluxforge.errors import FluxforgeError, InputError
from fluxforge.pipeline._discover import discover, resume
from fluxforge.pipeline._folder import recipe_of
from fluxforge.recipe._recipe import Table
from fluxforge.run._folder import RunFolder, lock_folder

# Seconds between two messages about progress.
MESSAGE_INTERVAL = 0.25
# Seconds to wait for the lock of a run folder: its last worker may not have ended yet after its parent was killed.
FOLDER_WAIT = 60.0


class Job(msgspec.Struct, frozen=True):
    """A run to start or to resume: name of the point, run folder, recipe as plain JSON, and command to be recorded."""

    name: str
    folder: str
    recipe: Table
    command: str = ""


class Progressed(msgspec.Struct, frozen=True, tag=True):
    """The current stage, the number of its finished parts, and their total number."""

    stage: str
    done: int
    total: int


class Warned(msgspec.Struct, frozen=True, tag=True):
    """A warning of the run."""

    text: str


class Finished(msgspec.Struct, frozen=True, tag=True):
    """The run is finished."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The run ended with an error."""

    error: str


Message = Progressed | Warned | Finished | Failed
Send = Callable[[Message], None]


def run_job(job: Job, send: Send) -> Finished | Failed:
    """Start or resume the run of a job; an error becomes a message of one line."""
    try:
        discover_job(job, send)
    except FluxforgeError as error:
        return Failed(_to_one_line(error))
    except MemoryError:
        return Failed("not enough memory: use fewer workers, or a smaller recipe")
    except Exception as error:
        traceback.print_exc()
        return Failed(f"internal error: {type(error).__name__}: {_to_one_line(error)}".removesuffix(": "))
    return Finished()


def _to_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def discover_job(job: Job, send: Send) -> None:
    """The same calls as `fluxforge discover RECIPE -o FOLDER`, or `--resume FOLDER` if the folder holds the run."""
    spec, folder, tell = recipe.from_dict(job.recipe, job.name), Path(job.folder), _throttle(send)

    def warn(text: str) -> None:
        send(Warned(text))

    if not (folder / "run.json").exists():
        discover(spec, folder, command=job.command, tell=tell, warn=warn)
        return
    if recipe.to_dict(recipe_of(RunFolder.read(folder))) != recipe.to_dict(spec):
        raise InputError(f"{folder}: contains a run of another recipe than the sweep's: move it to another folder")
    _wait_until_free(folder)
    resume(folder, tell=tell, warn=warn)


def _wait_until_free(folder: Path) -> None:
    end = time.monotonic() + FOLDER_WAIT
    while True:
        try:
            with lock_folder(folder):
                return
        except InputError:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def _throttle(send: Send) -> Callable[[str, int, int], None]:
    """A Progress that sends messages: one for each new stage, and otherwise one every MESSAGE_INTERVAL seconds."""
    last, then = "", 0.0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal last, then
        stage, now = what.partition(" (")[0], time.monotonic()
        if stage != last or now - then >= MESSAGE_INTERVAL:
            last, then = stage, now
            send(Progressed(stage, done, total))

    return tell


def main() -> None:
    """Run the jobs that are read from stdin until it is closed."""
    # What libraries print goes to stderr, which is the worker's log: stdout is for messages.
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(jobs,), daemon=True).start()
    encoder = msgspec.json.Encoder()

    def send(message: Message) -> None:
        try:
            output.write(encoder.encode(message) + b"\n")
        except BrokenPipeError:
            os._exit(1)

    while True:
        send(run_job(msgspec.json.decode(jobs.get(), type=Job), send))


def _read(jobs: "queue.SimpleQueue[bytes]") -> None:
    for line in sys.stdin.buffer:
        jobs.put(line)
    os._exit(0)
