"""Forks the workers and parents of sweeps: what they import, seconds of processor time, is imported once.

Workers do toy discoveries unless SWEEP_REAL is set, and faults strike where they are told. SWEEP_FAULTS are, separated
by semicolons, KIND:POINT:STAGE. `kill` sends SIGKILL to the worker, `pause` lets it sleep for minutes, `error` raises a
TrainingError. SWEEP_MARKS is a folder: a mark is left there when a fault strikes, and each strikes at most SWEEP_TIMES
times (once, unless given). There too is the list of all jobs that any worker has begun.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import toy_pipeline
from fluxforge.cli import _main  # imported now, not by every process
from fluxforge.errors import TrainingError
from fluxforge.run import Checkpoints
from fluxforge.sweeps import _pool, _worker

_point = [""]


def strike(stage: str) -> None:
    """Let a fault happen, if it is this point's and this stage's and has not happened often enough."""
    for fault in os.environ.get("SWEEP_FAULTS", "").split(";"):
        kind, _, where = fault.partition(":")
        if where == f"{_point[0]}:{stage}" and _first_times(f"{kind} {_point[0]}"):
            if kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == "pause":
                time.sleep(120)
            raise TrainingError("the training of the test failed")


def _first_times(name: str) -> bool:
    for number in range(int(os.environ.get("SWEEP_TIMES", "1"))):
        try:
            (Path(os.environ["SWEEP_MARKS"]) / f"{name} {number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return True
    return False


def run_job(job: Any, send: Any, real: Any = _worker.discover_job) -> None:
    """A job, whose name is kept for the faults and for the list."""
    _point[0] = job.name
    with (Path(os.environ["SWEEP_MARKS"]) / "begun").open("a") as log:
        log.write(f"{job.name}\n")
    real(job, send)


def save(self: Checkpoints, step: int, *arguments: Any, real: Any = Checkpoints.save, **more: Any) -> None:
    """A checkpoint, after which a fault may strike."""
    real(self, step, *arguments, **more)
    strike(f"checkpoint {step}")


def work() -> None:
    """A worker of a sweep."""
    _worker.discover_job = run_job
    if "SWEEP_REAL" in os.environ:
        Checkpoints.save = save  # type: ignore[method-assign]
    else:
        toy_pipeline.install(setattr)
        toy_pipeline.hooks.append(strike)
    _worker.main()


def lead(arguments: list[str]) -> int:
    """The command line, with workers of this nursery."""
    _pool.PROGRAM = tuple(json.loads(os.environ["SWEEP_PROGRAM"]))
    (Path(os.environ["SWEEP_MARKS"]) / "parent").write_text(str(os.getpid()))
    return _main.run(arguments)


def answer(connection: socket.socket) -> None:
    """Fork one process, and tell its number and its exit code."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    asked = json.loads(connection.makefile().readline())
    kind, *arguments = asked["arguments"]
    if (child := os.fork()) == 0:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, 100)
        # New ones: those of the nursery remember what kind of file theirs were.
        sys.stdin, sys.stdout, sys.stderr = open(0, closefd=False), open(1, "w"), open(2, "w")  # noqa: SIM115
        os.environ.clear()
        os.environ.update(asked["environment"])
        code = 99
        try:
            code = lead(arguments) if kind == "lead" else work()  # type: ignore[func-returns-value]
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(code or 0)
    for stream in streams:
        os.close(stream)
    connection.sendall(f"{child}\n".encode())
    threading.Thread(target=_wait, args=(child, connection), daemon=True).start()


def _wait(child: int, connection: socket.socket) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(f"{code}\n".encode())
    connection.close()


if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen()
        print("ready", flush=True)
        while True:
            answer(server.accept()[0])
