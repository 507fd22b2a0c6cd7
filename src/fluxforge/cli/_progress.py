"""A command at work: signals that stop it, JAX's 64-bit mode, progress on stderr.

A signal handler's exception is lost if it is raised inside a callback of the garbage collector, which JAX's compiler
keeps busy. So the request is remembered too, and `raise_lost_signal` raises it again at the next step of the work.
"""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from fluxforge.cli._output import console, one_line


class TerminatedError(BaseException):
    """The process was asked to end: not an Exception, so that nothing on the way swallows it."""


_asked: list[type[BaseException]] = []
_ANSWERS: dict[int, type[BaseException]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: TerminatedError}


@contextmanager
def answering() -> Iterator[None]:
    """Answer signals by unwinding, for the block, so that no half-written file stays."""
    _asked.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def unwind(number: int, frame: FrameType | None) -> None:
        _asked.append(_ANSWERS[number])
        raise _ANSWERS[number]

    before = {number: signal.signal(number, unwind) for number in _ANSWERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _asked.clear()


def raise_lost_signal() -> None:
    """Raise what was asked for and got lost."""
    if _asked:
        raise _asked[0]


def use_64_bits() -> None:
    """Switch on JAX's 64-bit mode, which the library leaves to its caller."""
    import jax

    jax.config.update("jax_enable_x64", True)


# Seconds, for whoever reads a log of hours.
BETWEEN_LINES = 30.0


class _Count(ProgressColumn):
    """How much is done, of how much, and how fast."""

    def render(self, task: Task) -> Text:
        """Nothing before the work begins, no rate before there is one."""
        if task.total is None:
            return Text()
        rate = f" {task.speed:,.0f}/s" if task.speed else ""
        return Text(f"{task.completed:,.0f}/{task.total:,.0f}{rate}", style="progress.download")


@contextmanager
def progress_bar(what: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that is told how much is done, or None where no bar is wanted or no terminal would show it.

    Until it is told for the first time the bar only shows that something is going on, so that the rate is the work's.
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
    """Yield a function that is told what is being asked now, as which of how many, or None where quiet is wanted.

    Where no terminal would show a bar, it writes a line now and then.
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
    """For a log: what is being asked, as which of how many, in a line at most every half minute."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock = what, clock
        self._last = clock()

    def __call__(self, question: str, number: int, total: int) -> None:
        """Write a line if it is time for one."""
        if self._clock() - self._last < BETWEEN_LINES:
            return
        self._last = self._clock()
        # A bar shows what is done before the one being asked; so does a line.
        sys.stderr.write(one_line(f"{self._what}: {question} ({number - 1:,} of {total:,})") + "\n")
        sys.stderr.flush()


@contextmanager
def doing(what: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what is being done while it takes time; yield a function that changes the words."""
    if quiet or not sys.stderr.isatty():
        yield lambda words: None
        return
    with console(stderr=True).status(what) as status:
        yield status.update


def counted(tell: Callable[[str, int, int], None] | None) -> Callable[[str, int, int], None]:
    """A question bar for work that counts what is done, where the bar counts what is being asked; or silence.

    Each time it is told, an interruption that got lost is raised again.
    """

    def told(what: str, done: int, total: int) -> None:
        raise_lost_signal()
        if tell is not None:
            tell(what, done + 1, total)

    return told
