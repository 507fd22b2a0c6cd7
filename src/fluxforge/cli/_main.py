"""From arguments to an exit code: what is said on stderr when something goes wrong."""

import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from fluxforge.cli._app import app
from fluxforge.cli._output import one_line, say
from fluxforge.cli._signals import TerminatedError, answering
from fluxforge.errors import FluxforgeError

USAGE, FAILED, INTERRUPTED, CLOSED_PIPE, TERMINATED = 2, 1, 130, 141, 143
# Where Typer keeps the class of its usage errors differs between versions; where a bad parameter comes from does not.
UsageError: type[Any] = typer.BadParameter.__mro__[1]


def run(arguments: Sequence[str] | None) -> int:
    """Run a command line and return its exit code; each failure is one line on stderr."""
    arguments, debug = _without_debug(sys.argv[1:] if arguments is None else arguments)
    _show_any_character()
    try:
        with answering(), _without_warnings(debug):
            code = _invoke(arguments)
            sys.stdout.flush()
    except BrokenPipeError:
        return _leave_closed_pipe()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except TerminatedError:
        code = TERMINATED
    except Exception as error:
        if debug:
            traceback.print_exception(error)
        code = _explain(error)
    if code in (INTERRUPTED, TERMINATED):
        say("interrupted", "stopped before the end", style="bold red")
    return code


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Take `--debug` out wherever it stands: an error suggests it, and it is then typed at the end of the line."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [word for word in arguments[:end] if word != "--debug"]
    return [*kept, *arguments[end:]], len(kept) < end


@contextmanager
def _without_warnings(debug: bool) -> Iterator[None]:
    """Keep warnings of overflow and the like off the terminal, unless they were asked for (`--debug`, `python -W`).

    What they are about is judged by the commands themselves: a field that is not finite, a line not established.
    """
    with warnings.catch_warnings():
        if not (debug or sys.warnoptions):
            warnings.simplefilter("ignore", RuntimeWarning)
        yield


def _invoke(arguments: list[str]) -> int:
    try:
        code = typer.main.get_command(app).main(args=arguments, prog_name="fluxforge", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except SystemExit as finished:
        # Typer ends a shell's request for completions so.
        code = finished.code
    return code if isinstance(code, int) else 0


def _explain(error: Exception) -> int:
    """One line for the user; the code tells bad input from a run that failed."""
    if isinstance(error, FluxforgeError):
        say("error", str(error), style="bold red")
        return error.exit_code
    if isinstance(error, UsageError):
        say("error", _usage(error), style="bold red")
        return USAGE
    if isinstance(error, MemoryError):
        say("error", "there is not enough memory for this: take fewer cells or save fewer fields", style="bold red")
        return FAILED
    what = f"{type(error).__name__}: {one_line(str(error))}".removesuffix(": ")
    say("internal error", f"{what}; run again with --debug for the traceback", style="bold red")
    return FAILED


def _usage(error: Any) -> str:
    """Typer's message, and where to read on."""
    path = "fluxforge" if error.ctx is None else error.ctx.command_path
    message = one_line(error.format_message()).replace(": Value error, ", ": ")
    return f"{message.rstrip('.')} (see {path} --help)"


def _show_any_character() -> None:
    """Where the terminal's encoding lacks a letter such as Δ, print its code instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def _leave_closed_pipe() -> int:
    """Whoever read our output has stopped: say nothing, and let the interpreter's last flush find an open file."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    return CLOSED_PIPE
