"""The points of a sweep as tasks on a Ray cluster: `pip install 'fluxforge[ray]'`.

Ray is imported only when it is used. All machines of the cluster must have access to the folder of the sweep.
"""

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

import msgspec

from fluxforge.errors import InputError
from fluxforge.run._durable import Metrics
from fluxforge.sweeps._pool import AbstractPool, Died, Event, share_cores
from fluxforge.sweeps._worker import Failed, Finished, Job, Message, Progressed, Warned, run_job


def require_ray() -> None:
    """Raise InputError if Ray is not installed."""
    if find_spec("ray") is None:
        raise InputError("--on ray: ray is not installed: pip install 'fluxforge[ray]'")


def run_task(job: bytes) -> bytes:
    """Run a job, given as JSON, in a process of Ray; returns its messages except those of progress, as JSON."""
    messages: list[Message] = []

    def send(message: Message) -> None:
        if not isinstance(message, Progressed):
            messages.append(message)

    messages.append(run_job(msgspec.json.decode(job, type=Job), send))
    return msgspec.json.encode(messages)


@final
class RayPool(AbstractPool):
    """A pool of tasks on the Ray cluster of RAY_ADDRESS or of this process, or otherwise on a new local cluster."""

    def __init__(self, workers: int) -> None:
        self._ray: Any = import_module("ray")
        self._workers = workers
        self._tasks: dict[Any, Job] = {}
        self._started = not self._ray.is_initialized()
        if self._started:
            # A new local cluster has one slot per worker; a running cluster has its own number of slots.
            local = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers, "include_dashboard": False}
            self._ray.init(log_to_driver=False, logging_level="warning", **local)
        cores = max(workers, int(self._ray.cluster_resources().get("CPU", workers)))
        options = {"num_cpus": 1, "max_retries": 0, "runtime_env": {"env_vars": share_cores(workers, cores)}}
        self._run = self._ray.remote(**options)(run_task)

    @property
    def free(self) -> int:
        """The number of tasks that can be submitted."""
        return self._workers - len(self._tasks)

    def start(self, job: Job) -> None:
        """Submit a job as a task."""
        self._tasks[self._run.remote(msgspec.json.encode(job))] = job

    def wait(self, seconds: float) -> list[Event]:
        """Wait for at most `seconds`; return messages of tasks that ended, and the progress of the others."""
        ended, running = self._ray.wait(list(self._tasks), num_returns=1, timeout=seconds)
        events = [event for task in ended for event in self._collect(task)]
        return events + [Event(self._tasks[task].name, _read_progress(self._tasks[task])) for task in running]

    def _collect(self, task: Any) -> list[Event]:
        job = self._tasks.pop(task)
        try:
            messages = msgspec.json.decode(self._ray.get(task), type=list[Finished | Failed | Warned])
        except self._ray.exceptions.RayTaskError as error:
            # The task itself could not be run, for instance without fluxforge on that machine.
            return [Event(job.name, Failed(f"on ray: {' '.join(str(error.cause).split())}"))]
        except self._ray.exceptions.RayError as error:
            return [Event(job.name, Died(type(error).__name__))]
        return [Event(job.name, message) for message in messages]

    def stop(self) -> None:
        """Cancel all tasks, and disconnect from the cluster if this pool has connected to it."""
        for task in self._tasks:
            self._ray.cancel(task, force=True)
        self._tasks.clear()
        if self._started:
            self._ray.shutdown()


def _read_progress(job: Job) -> Progressed:
    """The progress of the training of a run, from the last record of its metrics."""
    steps = job.recipe["training"]["steps"]
    try:
        records = Metrics(Path(job.folder) / "metrics.jsonl").read()
    except InputError:  # a resumed run may be rewriting the file
        records = []
    done = records[-1]["step"] if records else 0
    return Progressed("training", done, steps) if done < steps else Progressed("distilling and judging", 0, 0)
