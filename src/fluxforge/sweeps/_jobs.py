"""Jobs handed to the workers of a pool until all have ended; the job of a worker that dies is taken up by another."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path

from fluxforge.run._durable import explain_failure
from fluxforge.sweeps._pool import AbstractPool, Died, Event, ProcessPool
from fluxforge.sweeps._worker import Failed, Finished, Job, Progressed, Warned

# A job whose process has died so often is given up: it may need more memory than there is.
MOST_DEATHS = 3
Tell = Callable[[str, str, int, int], None]
"""tell(job, stage, done, total)."""
End = Callable[[str, str | None], None]
"""end(job, error); None for a job that is finished."""
Warn = Callable[[str], None]


def run_processes(jobs: Sequence[Job], workers: int, logs: Path, *, tell: Tell, end: End, warn: Warn) -> None:
    """Run jobs in processes of this machine; what those print goes to files in the folder `logs`, which is made."""
    if not jobs:
        return
    with explain_failure(logs):
        logs.mkdir(parents=True, exist_ok=True)
    run_jobs(jobs, ProcessPool(min(workers, len(jobs)), logs), logs, tell=tell, end=end, warn=warn)


def run_jobs(jobs: Sequence[Job], pool: AbstractPool, logs: Path, *, tell: Tell, end: End, warn: Warn) -> None:
    """Hand out the jobs, each to one worker at a time; `end` is called once for each. The pool is stopped."""
    try:
        _Queue(jobs, pool, logs, tell, end, warn).work()
    finally:
        pool.stop()


class _Queue:
    """The jobs that wait and those that have ended."""

    def __init__(self, jobs: Sequence[Job], pool: AbstractPool, logs: Path, tell: Tell, end: End, warn: Warn) -> None:
        self._jobs, self._pool, self._logs = {job.name: job for job in jobs}, pool, logs
        self._tell, self._end, self._warn = tell, end, warn
        self._waiting, self._ended = deque(self._jobs), set[str]()
        self._deaths: Counter[str] = Counter()

    def work(self) -> None:
        """Run all jobs to their ends."""
        while len(self._ended) < len(self._jobs):
            while self._waiting and self._pool.free:
                name = self._waiting.popleft()
                self._tell(name, "resuming" if self._deaths[name] else "starting", 0, 0)
                self._pool.start(self._jobs[name])
            for event in self._pool.wait(0.5):
                self._handle(event)

    def _handle(self, event: Event) -> None:
        name = event.name
        match event.message:
            case Progressed(stage, done, total):
                self._tell(name, stage, done, total)
            case Warned(text):
                self._warn(f"{name}: {text}")
            case Finished():
                self._close(name, None)
            case Failed(error):
                self._close(name, error)
            case Died(how):
                self._take_back(name, how)

    def _take_back(self, name: str, how: str) -> None:
        """Let another worker go on with a run whose worker has died, unless that has happened too often."""
        self._deaths[name] += 1
        if self._deaths[name] < MOST_DEATHS:
            self._warn(f"{name}: its process ended early ({how}); another one goes on with the run")
            self._waiting.appendleft(name)
            return
        self._close(name, f"its process ended early {MOST_DEATHS} times (the last time: {how}); see {self._logs}")

    def _close(self, name: str, error: str | None) -> None:
        self._ended.add(name)
        self._end(name, error)
