"""The points of a sweep as tasks on a Ray cluster: `pip install 'fluxforge[ray]'`.

Ray is imported when it is used. The folder of the sweep has to be the same on all machines of the cluster.
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
    """Run a job, given as JSON; return its messages, without those of progress, as JSON. Runs in a process of Ray."""
    messages: list[Message] = []

    def send(message: Message) -> None:
        if not isinstance(message, Progressed):
            messages.append(message)

    messages.append(run_job(msgspec.json.decode(job, type=Job), send))
    return msgspec.json.encode(messages)


@final
class RayPool(AbstractPool):
    """Tasks on the cluster that RAY_ADDRESS names or this process is connected to; otherwise on a new local one."""

    def __init__(self, workers: int) -> None:
        self._ray: Any = import_module("ray")
        self._workers = workers
        self._tasks: dict[Any, Job] = {}
        self._started = not self._ray.is_initialized()
        if self._started:
            # A new local cluster gets a slot per worker; a cluster that is running already has its own slots.
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
        """Results of tasks that ended, and how far training is in the others, from their folders."""
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
        """Cancel all tasks, and leave the cluster if this pool has joined it."""
        for task in self._tasks:
            self._ray.cancel(task, force=True)
        self._tasks.clear()
        if self._started:
            self._ray.shutdown()


def _read_progress(job: Job) -> Progressed:
    """How far the training of a run is, from the last record of its metrics."""
    steps = job.recipe["training"]["steps"]
    try:
        records = Metrics(Path(job.folder) / "metrics.jsonl").read()
    except InputError:  # being rewritten by a run that goes on
        records = []
    done = records[-1]["step"] if records else 0
    return Progressed("training", done, steps) if done < steps else Progressed("distilling and judging", 0, 0)
