"""One measurement in a process of its own, JSON in and JSON out.

A measurement of memory needs a process that did nothing else, and one of a large mesh can have a core to itself.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from fluxforge.errors import FluxforgeError


def in_child(words: Mapping[str, Any]) -> dict[str, Any]:
    """Measure these words in a new process."""
    command = [sys.executable, "-c", "from fluxforge.paper.studies._child import main; main()"]
    done = subprocess.run(command, input=json.dumps(words), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise FluxforgeError(f"the measurement of {words.get('scheme')} on {words.get('cells')} cells failed: {last}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def in_children(many: Sequence[Mapping[str, Any]], *, workers: int | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Measure several at once, by default as many as there are cores: which one, and what it gave, as they end."""
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        waiting = {pool.submit(in_child, words): k for k, words in enumerate(many)}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            # What has not begun would only delay the error, or the reader who left.
            for each in waiting:
                each.cancel()


def main() -> None:
    """Read the words of a measurement, write what it gave."""
    import jax

    from fluxforge.paper.studies._tasks import TASKS

    jax.config.update("jax_enable_x64", True)
    words = json.load(sys.stdin)
    result = TASKS[words["task"]](words)
    json.dump(result, sys.stdout, allow_nan=False)
