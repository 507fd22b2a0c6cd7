"""Timing on noisy machines: the best of several rounds, peers interleaved so that noise meets them alike."""

import time
from collections.abc import Callable, Mapping

ROUNDS = 7
LEAST_SECONDS = 0.1


def best_seconds(tasks: Mapping[str, Callable[[int], object]], *, rounds: int = ROUNDS) -> dict[str, float]:
    """Seconds per repetition of each task, a function of how often to repeat; the smallest over the rounds counts.

    Each task is run often enough per round to be seen by the clock, and once beforehand to be compiled.
    """
    counts = {name: _enough(task) for name, task in tasks.items()}
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task(counts[name])
            best[name] = min(best[name], (time.perf_counter() - start) / counts[name])
    return best


def _enough(task: Callable[[int], object]) -> int:
    """How many repetitions last long enough; even, because steps may come in pairs."""
    task(2)
    start = time.perf_counter()
    task(2)
    once = (time.perf_counter() - start) / 2
    return max(2, 2 * round(LEAST_SECONDS / max(once, 1e-7) / 2))
