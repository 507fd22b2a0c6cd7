"""Printing: results to stdout, messages to stderr."""

import json
import math
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

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


def printable(text: str) -> str:
    """The text with unprintable characters replaced: names from files may contain terminal escapes."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def one_line(text: str) -> str:
    """The text on one line, white space collapsed, unprintable characters replaced."""
    return printable(" ".join(text.split()))


def say(label: str, text: str, *, style: str = "bold yellow") -> None:
    """Print `label: text` as one unwrapped line to stderr."""
    line = Text.assemble((f"{label}: ", style), one_line(text))
    console(stderr=True).print(line, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning to stderr."""
    say("warning", text)


def command_line() -> str:
    """The command of this process, quoted for a shell."""
    return shlex.join(["fluxforge", *sys.argv[1:]])


def show(text: str | Text = "") -> None:
    """Print a line of the result to stdout."""
    console().print(text, soft_wrap=True)


def show_json(document: Mapping[str, object]) -> None:
    """Print a document as JSON to stdout."""
    sys.stdout.write(json.dumps(plain(document), indent=2, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """The value as JSON types: numbers that are not finite become null, paths strings, tuples lists."""
    match value:
        case Mapping():
            return {str(key): plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry) for entry in value]
        case float() if not math.isfinite(value):
            return None
        case Path():
            return os.fspath(value)
    return value


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
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for k, row in enumerate(rows):
        for n in range(len(row) if k == 0 else 0):
            last = n == len(row) - 1
            table.add_column(
                style="cyan" if n == 0 else None, no_wrap=not last, overflow="fold" if last else "ellipsis"
            )
        table.add_row(*(entry if isinstance(entry, Text) else printable(entry) for entry in row))
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
        table.add_row(*(printable(entry) for entry in row))
    if target.measure(table, options=target.options.update(max_width=10**4)).maximum <= target.width:
        _print_table(target, table)
        return
    for first, *others in rows:
        show(Text(printable(first), style="bold cyan"))
        show_pairs((f"  {name}", entry) for name, entry in zip(columns[1:], others, strict=True))


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits; a dash for None."""
    return "-" if value is None else f"{value:.{digits}g}"


def duration(seconds: float | None) -> str:
    """A duration in s, ms, µs or ns; a dash for None."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
