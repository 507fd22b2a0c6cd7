"""Callbacks for progress and warnings of a run, and the duration of its stages."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

# Called with a text on the current work, the number of finished parts of it, and their total number.
Progress: TypeAlias = Callable[[str, int, int], None]
# Called with one line of text.
Warn: TypeAlias = Callable[[str], None]


def silent(what: str, done: int, total: int) -> None:
    """A Progress that reports nothing."""


def prefix_progress(tell: Progress, prefix: str) -> Progress:
    """A Progress that calls `tell` with the prefix and a colon before the text."""
    return lambda what, done, total: tell(f"{prefix}: {what}", done, total)


@contextmanager
def add_seconds(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Add the duration of the block to `seconds[name]`, also if the block fails."""
    began = time.perf_counter()
    try:
        yield
    finally:
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - began
