"""Run jobs in worker processes on this machine until all have ended; `_ray` does the same on a Ray cluster."""

import abc
import os
import selectors
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, final

import msgspec

from fluxforge._arguments import check_whole
from fluxforge._machine import count_cores
from fluxforge.errors import InputError
from fluxforge.run._durable import explain_failure
from fluxforge.run._progress import Warn
from fluxforge.sweeps._worker import Failed, Finished, Job, Message, Progressed, Warned

PLACES = ("processes", "ray")
# The program of a worker; tests replace it by one without numerical work.
PROGRAM = (sys.executable, "-P", "-c", "from fluxforge.sweeps._worker import main; main()")
MOST_WORKERS = 1024
# Seconds between the request to a worker to terminate and the signal that kills it.
GRACE_SECONDS = 5.0
# Environment variables for the number of threads of XLA, OpenMP, OpenBLAS, MKL and numba.
THREADS = ("PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Died(msgspec.Struct, frozen=True):
    """The message that the process of a run ended without a result; `how` is its exit code or signal as text."""

    how: str


@dataclass(frozen=True)
class Event:
    """A message about the point with this name."""

    name: str
    message: Message | Died


class AbstractPool(abc.ABC):
    """Workers that run jobs, several at a time.

    `start` accepts a job if `free` is not 0; `wait` returns the events since the last call, after some seconds at the
    latest. A job ends with Finished, Failed or Died. `stop` ends all jobs; their runs can be resumed.
    """

    @property
    @abc.abstractmethod
    def free(self) -> int:
        """The number of jobs that can be started now."""

    @abc.abstractmethod
    def start(self, job: Job) -> None:
        """Start a job."""

    @abc.abstractmethod
    def wait(self, seconds: float) -> list[Event]:
        """Wait for at most `seconds` for events, and return those since the last call."""

    @abc.abstractmethod
    def stop(self) -> None:
        """End all jobs and release the resources of the pool."""


def check_workers(workers: object) -> int:
    """Return a valid number of workers; raises InputError for anything else."""
    number = check_whole(workers, "workers", least=1)
    if number > MOST_WORKERS:
        raise InputError(f"workers should be at most {MOST_WORKERS}, got {number}")
    return number


def share_cores(workers: int, cores: int) -> dict[str, str]:
    """Environment variables that limit each worker to its share of the cores; smaller numbers already set remain."""
    share = max(1, cores // workers)
    settings = {name: os.environ.get(name, "") for name in THREADS}
    threads = {
        name: str(min(share, int(text)) if text.isdigit() and int(text) else share) for name, text in settings.items()
    }
    # Several processes may share a GPU: by default JAX would reserve most of its memory for one of them.
    return threads | {"XLA_PYTHON_CLIENT_PREALLOCATE": os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "false")}


@dataclass
class _Process:
    """A worker process, the name of the point that it runs (empty if none), and its incomplete last line of output."""

    popen: "subprocess.Popen[bytes]"
    point: str = ""
    rest: bytes = b""

    def stream(self, which: str) -> IO[bytes]:
        pipe: IO[bytes] | None = getattr(self.popen, which)
        assert pipe is not None
        return pipe


@final
class ProcessPool(AbstractPool):
    """A pool of Python processes on this machine, each of which runs one job after another; one that dies is replaced.

    Their stderr goes to files in the folder `logs`, which must exist.
    """

    def __init__(self, workers: int, logs: Path) -> None:
        self._workers, self._logs, self._started = workers, logs, 0
        self._environment = {**os.environ, **share_cores(workers, count_cores())}
        self._processes: list[_Process] = []
        self._selector = selectors.DefaultSelector()

    @property
    def free(self) -> int:
        """The number of workers without a job."""
        return self._workers - sum(bool(process.point) for process in self._processes)

    def start(self, job: Job) -> None:
        """Give a job to an idle worker; a process is started if there is none."""
        process = next((each for each in self._processes if not each.point), None) or self._spawn()
        process.point = job.name
        # If the worker is dead, `wait` reports it, since its output is closed.
        with suppress(BrokenPipeError):
            process.stream("stdin").write(msgspec.json.encode(job) + b"\n")
            process.stream("stdin").flush()

    def _spawn(self) -> _Process:
        self._started += 1
        with (self._logs / f"worker-{self._started}.log").open("ab") as log:
            # In a session of its own, a worker does not receive Ctrl-C of the terminal; this process ends the workers.
            popen = subprocess.Popen(
                PROGRAM,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )
        process = _Process(popen)
        self._processes.append(process)
        self._selector.register(process.stream("stdout"), selectors.EVENT_READ, process)
        return process

    def wait(self, seconds: float) -> list[Event]:
        """Wait for at most `seconds`; return messages of workers, and Died for those that ended during a job."""
        events: list[Event] = []
        for key, _ in self._selector.select(seconds):
            process: _Process = key.data
            # Empty content: the output is closed, as it is when a process ends for any reason.
            content = os.read(key.fd, 65536)
            events += self._read(process, content) if content else self._remove_dead(process)
        return events

    def _read(self, process: _Process, content: bytes) -> list[Event]:
        *lines, process.rest = (process.rest + content).split(b"\n")
        events = []
        for line in lines:
            message: Message = msgspec.json.decode(line, type=Message)
            events.append(Event(process.point, message))
            if isinstance(message, Finished | Failed):
                process.point = ""
        return events

    def _remove_dead(self, process: _Process) -> list[Event]:
        self._selector.unregister(process.stream("stdout"))
        self._processes.remove(process)
        code = _end_process(process)
        return [Event(process.point, Died(_describe_exit(code)))] if process.point else []

    def stop(self) -> None:
        """End all workers at once; their runs can be resumed, since files are written atomically."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.popen.terminate()
        for process in self._processes:
            _end_process(process)
        self._processes.clear()
        self._selector.close()


def _end_process(process: _Process) -> int:
    """Close the pipes of a process, wait for its end, and return the exit code."""
    with suppress(OSError):
        process.stream("stdin").close()
    process.stream("stdout").close()
    try:
        return process.popen.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.popen.kill()
        return process.popen.wait()


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


# Number of deaths of its process after which a job fails: it may need more memory than there is.
MOST_DEATHS = 3
# tell(job, stage, done, total)
Tell = Callable[[str, str, int, int], None]
# end(job, error), with None for a job that is finished
End = Callable[[str, str | None], None]


def run_processes(jobs: Sequence[Job], workers: int, logs: Path, *, tell: Tell, end: End, warn: Warn) -> None:
    """Run jobs in processes on this machine; their stderr goes to files in the folder `logs`, which is created."""
    if not jobs:
        return
    with explain_failure(logs):
        logs.mkdir(parents=True, exist_ok=True)
    run_jobs(jobs, ProcessPool(min(workers, len(jobs)), logs), logs, tell=tell, end=end, warn=warn)


def run_jobs(jobs: Sequence[Job], pool: AbstractPool, logs: Path, *, tell: Tell, end: End, warn: Warn) -> None:
    """Run all jobs in a pool, call `end` once for each job, and stop the pool at the end.

    A job whose worker dies is continued by another one, until that has happened MOST_DEATHS times.
    """
    named = {job.name: job for job in jobs}
    waiting, deaths, ended = deque(named), Counter[str](), set[str]()

    def close(name: str, error: str | None) -> None:
        ended.add(name)
        end(name, error)

    try:
        while len(ended) < len(named):
            while waiting and pool.free:
                name = waiting.popleft()
                tell(name, "resuming" if deaths[name] else "starting", 0, 0)
                pool.start(named[name])
            for event in pool.wait(0.5):
                name = event.name
                match event.message:
                    case Progressed(stage, done, total):
                        tell(name, stage, done, total)
                    case Warned(text):
                        warn(f"{name}: {text}")
                    case Finished():
                        close(name, None)
                    case Failed(error):
                        close(name, error)
                    case Died(how):
                        deaths[name] += 1
                        if deaths[name] < MOST_DEATHS:
                            warn(f"{name}: its process ended early ({how}); a new process continues the run")
                            waiting.appendleft(name)
                        else:
                            close(
                                name, f"its process ended early {MOST_DEATHS} times (the last time: {how}); see {logs}"
                            )
    finally:
        pool.stop()
