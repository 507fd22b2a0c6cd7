"""Progress on stderr: a bar with a rate and the remaining time, or a word on what is being done."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from fluxforge.cli._output import console


class _Rate(ProgressColumn):
    """Steps per second."""

    def render(self, task: Task) -> Text:
        """The rate so far, a dash before there is one."""
        return Text("-/s" if not task.speed else f"{task.speed:,.0f}/s", style="progress.data.speed")


@contextmanager
def progress_bar(what: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that is told how much is done, or None where no bar is wanted or no terminal would show it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def doing(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show what is being done while it takes time."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    with console(sys.stderr).status(what):
        yield
