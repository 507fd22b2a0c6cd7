"""Command lines run by forked processes, in which a fault strikes at a write or at a stage.

A line of JSON on stdin is one process: its arguments, its fault, and where its streams go. Answered by its exit code,
negative for a signal, as `subprocess` has it, and by how many writes it made.
"""

import ctypes
import errno
import gc
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import toy_pipeline


@dataclass(frozen=True)
class Fault:
    """What strikes, at the write of that number (counted from 0) or when that stage is reached.

    The name of a signal is sent to the process itself; the name of an error is what all writes from then on raise; of
    `remove`, `lock away` and `second`, see `strike`. `second` are the arguments of another process.
    """

    kind: str
    write: int = -1
    stage: str = ""
    second: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    writes: int
    err: str


def strike(fault: Fault, folder: Path) -> None:
    """Let the fault happen now."""
    if hasattr(signal, fault.kind):
        os.kill(os.getpid(), getattr(signal, fault.kind))
        time.sleep(10 if fault.kind == "SIGKILL" else 0)
    elif fault.kind == "remove":
        shutil.rmtree(folder)
    elif fault.kind == "lock away":
        for place in (folder, *(item for item in folder.rglob("*") if item.is_dir())):
            place.chmod(0o555)
    elif fault.kind == "second":
        _wait(_forked({"arguments": fault.second, "err": f"{folder}.second"}, None)[0])


def arm(fault: Fault | None, folder: Path) -> list[int]:
    """Prepare the fault; the list has an item for every write from then on. A write is a sync or a rename."""
    writes: list[int] = []
    real = {name: getattr(os, name) for name in ("replace", "fsync")}

    def patched(name: str) -> Any:
        def function(*arguments: Any, **more: Any) -> Any:
            writes.append(len(writes))
            if fault is not None and fault.write >= 0 and len(writes) > fault.write:
                if hasattr(errno, fault.kind):
                    code = getattr(errno, fault.kind)
                    raise OSError(code, os.strerror(code))
                if len(writes) == fault.write + 1:
                    strike(fault, folder)
            return real[name](*arguments, **more)

        return function

    for name in real:
        setattr(os, name, patched(name))
    if fault is not None and fault.stage:
        toy_pipeline.hooks.append(lambda stage: strike(fault, folder) if stage == fault.stage else None)
    return writes


def obey_modes() -> None:
    """Give up the superuser's right to read and write whatever the modes of files and folders forbid.

    The user stays who he is, so that modules imported from here on are still found in a folder closed to others.
    """
    if os.geteuid() != 0:
        return
    version_3 = 0x20080522
    header = (ctypes.c_uint32 * 2)(version_3, 0)
    none = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice: no capability at all
    if ctypes.CDLL(None, use_errno=True).capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _forked(asked: dict[str, Any], fault: Fault | None) -> tuple[int, int]:
    """The process's number, and a pipe by which it tells how many writes it has made."""
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        return child, reading
    with open(asked["err"], "w") as err, open(os.devnull, "w") as out:
        os.dup2(err.fileno(), 2)
        os.dup2(out.fileno(), 1)
        sys.stdout, sys.stderr = out, err
        if asked.get("obey_modes"):
            obey_modes()
        toy_pipeline.hooks.clear()
        writes = arm(fault, Path(asked.get("folder", "/nowhere")))
        code = _command(*asked["arguments"])
        err.flush()
    os.write(writing, str(len(writes)).encode())
    os._exit(code)


def _command(name: str, *arguments: str) -> int:
    """A command line; or `cached FOLDER`, which makes meshes or finds them in a cache, and tells their digest."""
    if name != "cached":
        from fluxforge.cli import main

        return main([name, *arguments])
    from fluxforge.data import generate_meshes

    os.environ["FLUXFORGE_CACHE"] = arguments[0]
    made = generate_meshes([{"kind": "irregular", "cells": 40, "seed": seed, "engine": "builtin"} for seed in range(2)])
    total = hashlib.sha256()
    for mesh in made:
        total.update(mesh.points.tobytes() + mesh.cells.tobytes())
    sys.stderr.write(total.hexdigest())
    sys.stderr.flush()
    return 0


def _wait(child: int) -> int:
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status)


def _warm_up() -> None:
    """Load what a command line loads late, once for all; and let no child's collector touch what all share."""
    from fluxforge.cli import main

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        main(["discover", "--show"])
    gc.collect()
    gc.freeze()


def nursery() -> None:
    """For each line, a process: the modules are loaded once."""
    import fluxforge.cli._discovery
    import fluxforge.cli._reproduction  # noqa: F401

    toy_pipeline.install(setattr)
    _warm_up()
    for line in sys.stdin:
        asked = json.loads(line)
        fault = Fault(**asked["fault"]) if asked.get("fault") else None
        child, reading = _forked(asked, fault)
        code = _wait(child)
        writes = os.read(reading, 100)
        os.close(reading)
        os.write(1, f"{code} {int(writes or 0)}\n".encode())


class Nursery:
    """The processes, as a test sees them."""

    def __init__(self, process: subprocess.Popen[str], scratch: Path) -> None:
        self._process, self._err = process, scratch / "err"

    def run(self, *arguments: object, fault: Fault | None = None, folder: Path, obey_modes: bool = False) -> Ended:
        """Run a command line in a process of its own; `folder` is what a fault strikes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {
            "arguments": [str(each) for each in arguments],
            "fault": None if fault is None else asdict(fault),
            "err": str(self._err),
            "folder": str(folder),
            "obey_modes": obey_modes,
        }
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        code, writes = map(int, self._process.stdout.readline().split())
        return Ended(code, writes, self._err.read_text(encoding="utf-8"))


@contextmanager
def started(scratch: Path) -> Iterator[Nursery]:
    """A nursery for the block."""
    environment = {**os.environ, "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    with process:
        try:
            yield Nursery(process, scratch)
        finally:
            process.kill()


if __name__ == "__main__":
    nursery()
