"""Printing: results to stdout; messages, progress bars and status lines to stderr."""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from fluxforge._files import to_json_values
from fluxforge.errors import StorageError

PIPED_WIDTH = 120


class _Console(Console):
    """A console that raises BrokenPipeError on a closed pipe, for `main` to handle."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """A console on stdout or stderr that never interprets text as markup."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH
    return _Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def replace_unprintable(text: str) -> str:
    """The text with unprintable characters replaced: names from files may contain terminal escapes."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def one_line(text: str) -> str:
    """The text on one line, white space collapsed, unprintable characters replaced."""
    return replace_unprintable(" ".join(text.split()))


def say(label: str, text: str, *, style: str = "bold yellow") -> None:
    """Print `label: text` to stderr, on one line unless a terminal is narrower."""
    _print_words(console(stderr=True), Text.assemble((f"{label}: ", style), one_line(text)))


def _print_words(target: Console, text: Text | str) -> None:
    """Print a sentence: on a terminal its lines end between words, elsewhere it is one line."""
    target.print(text, soft_wrap=not target.is_terminal)


def warn(text: str) -> None:
    """Print a warning to stderr."""
    say("warning", text)


def command_line() -> str:
    """The command of this process, quoted for a shell."""
    return shlex.join(["fluxforge", *sys.argv[1:]])


def show(text: str | Text = "") -> None:
    """Print a line of the result to stdout."""
    console().print(text, soft_wrap=True)


def show_sentence(text: str) -> None:
    """Print a sentence to stdout."""
    _print_words(console(), replace_unprintable(text))


def show_json(document: Mapping[str, object]) -> None:
    """Print a document as JSON to stdout."""
    sys.stdout.write(json.dumps(to_json_values(document), indent=2, allow_nan=False) + "\n")


def _print_table(target: Console, table: Table) -> None:
    """Print a table; if the output is not a terminal, without trailing spaces."""
    if target.is_terminal:
        target.print(table)
        return
    with target.capture() as held:
        target.print(table)
    try:
        target.file.write("".join(f"{line.rstrip()}\n" for line in held.get().splitlines()))
        target.file.flush()
    except BrokenPipeError:
        target.on_broken_pipe()


def show_pairs(rows: Iterable[Sequence[str | Text]]) -> None:
    """Print rows without a header: labels in the first column, the last column wrapped."""
    rows = list(rows)
    last = len(rows[0]) - 1 if rows else -1
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for n in range(last + 1):
        table.add_column(
            style="cyan" if n == 0 else None, no_wrap=n != last, overflow="fold" if n == last else "ellipsis"
        )
    for row in rows:
        table.add_row(*(entry if isinstance(entry, Text) else replace_unprintable(entry) for entry in row))
    _print_table(console(), table)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Iterable[str] = ()) -> None:
    """Print a table with a header, or a paragraph per row if the terminal is too narrow.

    Columns named in `right` are right-aligned.
    """
    numbers, target = set(right), console()
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for k, name in enumerate(columns):
        justify: JustifyMethod = "right" if name in numbers else "left"
        table.add_column(name, justify=justify, style="cyan" if k == 0 else None, no_wrap=True)
    for row in rows:
        table.add_row(*(replace_unprintable(entry) for entry in row))
    if target.measure(table, options=target.options.update(max_width=10**4)).maximum <= target.width:
        _print_table(target, table)
        return
    for first, *others in rows:
        show(Text(replace_unprintable(first), style="bold cyan"))
        show_pairs((f"  {name}", entry) for name, entry in zip(columns[1:], others, strict=True))


def format_value(value: float | None, form: str) -> str:
    """A number in a format such as `.2e`; a dash for None."""
    return "-" if value is None else format(value, form)


def number(value: float | None, digits: int = 4) -> str:
    """A number with `digits` significant digits; a dash for None."""
    return format_value(value, f".{digits}g")


def duration(seconds: float | None) -> str:
    """A duration in s, ms, µs or ns; a dash for None."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


# Least number of seconds between lines of progress if stderr is not a terminal.
LOG_INTERVAL = 30.0


class _Words(ProgressColumn):
    """A column with the description on one line: on a narrow terminal it is cut, not the numbers."""

    def render(self, task: Task) -> Text:
        """The description of a task."""
        return Text(task.description, no_wrap=True, overflow="ellipsis")


class _Count(ProgressColumn):
    """A column with the count done, the total, and the rate."""

    def render(self, task: Task) -> Text:
        """The text of a task; empty before the total is known."""
        if task.total is None:
            return Text()
        rate = f" {task.speed:,.0f}/s" if task.speed else ""
        return Text(f"{task.completed:,.0f}/{task.total:,.0f}{rate}", style="progress.download")


def _progress(target: Console) -> Progress:
    """Words, a bar of a fifth of the terminal, counts and the time left."""
    whole = Column(no_wrap=True)
    bar = BarColumn(bar_width=target.width // 5)
    columns = (_Words(), bar, _Count(whole), TimeRemainingColumn(table_column=whole))
    return Progress(*columns, console=target, transient=True)


@contextmanager
def progress_bar(what: str, total: int | None, *, quiet: bool = False) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on stderr; yield a function of the number done, or None if quiet or not on a terminal.

    The clock starts at the first call, so that the rate excludes the preparation.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with _progress(console(stderr=True)) as progress:
        task = progress.add_task(f"preparing {what}", total=None, start=False)

        def tell(done: int) -> None:
            progress.start_task(task)
            progress.update(task, description=what, total=total, completed=done)

        yield tell


@contextmanager
def question_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show a bar on stderr; yield a function of the current item, its number and the total, or None if quiet.

    If stderr is not a terminal, it writes a line at most every LOG_INTERVAL seconds.
    """
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield Lines(what)
        return
    with _progress(console(stderr=True)) as progress:
        task = progress.add_task(what, total=None)

        def tell(question: str, number: int, total: int) -> None:
            progress.update(task, description=f"{what}: {question}", total=total, completed=number - 1)

        yield tell


class Lines:
    """Progress for a log: the current item, the number done and the total, at most every LOG_INTERVAL seconds."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock = what, clock
        self._last = clock()

    def __call__(self, question: str, number: int, total: int) -> None:
        """Write a line if the last one is old enough."""
        if self._clock() - self._last < LOG_INTERVAL:
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


@contextmanager
def offer_resume(command: str, folder: Path, marker: str) -> Iterator[None]:
    """If the block is interrupted or the disk fails, and the folder has a file `marker`, print how to continue.

    Interruptions are raised again; a StorageError is raised with the command in its message.
    """
    again = f"fluxforge {command} --resume {shlex.quote(str(folder))}"
    try:
        yield
    except StorageError as error:
        if not (folder / marker).exists():
            raise
        raise StorageError(f"{error}; after fixing this, continue with: {again}") from error
    except Exception:
        raise
    except BaseException:
        # Ctrl-C or a request to terminate: neither is an Exception.
        if (folder / marker).exists():
            say("continue with", again, style="bold")
        raise
