"""What a run reports while it works: progress, warnings, and the seconds of its stages."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

# Called with what is being done, how much of it is done, and the total.
Progress: TypeAlias = Callable[[str, int, int], None]
# Called with one line.
Warn: TypeAlias = Callable[[str], None]


def silent(what: str, done: int, total: int) -> None:
    """A Progress that reports nothing."""


def prefix_progress(tell: Progress, prefix: str) -> Progress:
    """A Progress that puts the prefix and a colon before what is being done."""
    return lambda what, done, total: tell(f"{prefix}: {what}", done, total)


@contextmanager
def add_seconds(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Add the duration of the block to `seconds[name]`, also if the block fails."""
    began = time.perf_counter()
    try:
        yield
    finally:
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - began
