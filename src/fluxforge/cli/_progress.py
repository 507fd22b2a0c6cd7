"""A command at work: signals that stop it, JAX's 64-bit mode, progress on stderr.

A signal handler's exception is lost if it is raised inside a callback of the garbage collector, which JAX's compiler
keeps busy. So the request is remembered too, and `raise_lost_signal` raises it again at the next step of the work.
"""

import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from fluxforge.cli._output import console, one_line, say
from fluxforge.errors import StorageError


class TerminatedError(BaseException):
    """The process received SIGTERM. Not an Exception, so that no handler in between catches it."""


_received: list[type[BaseException]] = []
_EXCEPTIONS: dict[int, type[BaseException]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: TerminatedError}


@contextmanager
def handle_signals() -> Iterator[None]:
    """Raise an exception on SIGINT and SIGTERM for the block, so that no half-written file remains."""
    _received.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def unwind(number: int, frame: FrameType | None) -> None:
        _received.append(_EXCEPTIONS[number])
        raise _EXCEPTIONS[number]

    before = {number: signal.signal(number, unwind) for number in _EXCEPTIONS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _received.clear()


def raise_lost_signal() -> None:
    """Raise the exception of a signal that was received, in case the handler's own was lost."""
    if _received:
        raise _received[0]


def use_64_bits() -> None:
    """Switch on JAX's 64-bit mode, which the library leaves to its caller."""
    import jax

    jax.config.update("jax_enable_x64", True)


@contextmanager
def offer_resume(command: str, folder: Path, marker: str) -> Iterator[None]:
    """If the block is interrupted, or the disk fails, and the folder has a file `marker`, say how to continue.

    Interruptions are raised again; a StorageError is raised with the command in its message.
    """
    again = f"fluxforge {command} --resume {shlex.quote(str(folder))}"
    try:
        yield
    except (KeyboardInterrupt, TerminatedError):
        if (folder / marker).exists():
            say("continue with", again, style="bold")
        raise
    except StorageError as error:
        if not (folder / marker).exists():
            raise
        raise StorageError(f"{error}; after fixing this, continue with: {again}") from error


# Seconds between lines of progress in a log.
BETWEEN_LINES = 30.0


class _Count(ProgressColumn):
    """A column with the count done, the total, and the rate."""

    def render(self, task: Task) -> Text:
        """The text of a task; empty before the total is known."""
        if task.total is None:
            return Text()
        rate = f" {task.speed:,.0f}/s" if task.speed else ""
        return Text(f"{task.completed:,.0f}/{task.total:,.0f}{rate}", style="progress.download")


@contextmanager
def progress_bar(what: str, total: int | None, *, quiet: bool = False) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on stderr; yield a function to call with the count done, or None if quiet or not a terminal.

    The clock starts at the first call, so that the rate excludes preparation.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        _Count(Column(no_wrap=True)),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True, expand=True) as progress:
        task = progress.add_task(f"preparing {what}", total=None, start=False)

        def tell(done: int) -> None:
            progress.start_task(task)
            progress.update(task, description=what, total=total, completed=done)

        yield tell


@contextmanager
def question_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show a bar on stderr; yield a function to call with the current item, its number and the total, or None if quiet.

    If stderr is not a terminal, it writes a line at most every BETWEEN_LINES seconds.
    """
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield Lines(what)
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), _Count(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True, expand=True) as progress:
        task = progress.add_task(what, total=None)

        def tell(question: str, number: int, total: int) -> None:
            progress.update(task, description=f"{what}: {question}", total=total, completed=number - 1)

        yield tell


class Lines:
    """Progress for a log: the current item, the number done and the total, at most every BETWEEN_LINES seconds."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock = what, clock
        self._last = clock()

    def __call__(self, question: str, number: int, total: int) -> None:
        """Write a line if the last one is old enough."""
        if self._clock() - self._last < BETWEEN_LINES:
            return
        self._last = self._clock()
        # Like the bar, the line counts the items finished before the current one.
        sys.stderr.write(one_line(f"{self._what}: {question} ({number - 1:,} of {total:,})") + "\n")
        sys.stderr.flush()


@contextmanager
def show_status(what: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a status line on stderr during the block; yield a function that changes it."""
    if quiet or not sys.stderr.isatty():
        yield lambda words: None
        return
    with console(stderr=True).status(what) as status:
        yield status.update


def count_done(tell: Callable[[str, int, int], None] | None) -> Callable[[str, int, int], None]:
    """Adapt `question_bar` to work that reports the number done rather than the number of the current item.

    Each call first raises the exception of a lost signal. With None nothing is shown.
    """

    def report(what: str, done: int, total: int) -> None:
        raise_lost_signal()
        if tell is not None:
            tell(what, done + 1, total)

    return report
