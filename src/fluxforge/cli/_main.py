"""The command line: its commands, and how one ends, with an exit code and at most one error line."""

import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any

import typer

from fluxforge.cli._arguments import command, group
from fluxforge.cli._bench import bench
from fluxforge.cli._commands import discover, doctor, reproduce, schemes
from fluxforge.cli._export import export
from fluxforge.cli._mesh import mesh
from fluxforge.cli._output import one_line, say, show
from fluxforge.cli._progress import TerminatedError, answering
from fluxforge.cli._simulate import simulate
from fluxforge.cli._verify import verify
from fluxforge.errors import FluxforgeError

app = group(
    text="Finite-volume schemes as formulas: meshes, built-in schemes, certificates, heat problems, code.",
    example="fluxforge simulate euler --mesh m.msh --initial 'sin(pi*x)*sin(pi*y)' -o out",
    name="fluxforge",
    add_completion=True,
)


def _show_version(asked: bool) -> bool:
    if asked:
        show(f"fluxforge {version('fluxforge')}")
        raise typer.Exit
    return asked


@app.callback()
def fluxforge(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors, with any command.")] = False,
) -> None:
    """Finite-volume schemes as formulas: meshes, built-in schemes, certificates, heat problems, code."""


command(app, "fluxforge discover")(discover)
command(app, "fluxforge schemes crank-nicolson")(schemes)
command(
    app,
    "fluxforge simulate euler --mesh m.msh --initial 'sin(pi*x)*sin(pi*y)' --boundary left=1 "
    "--boundary right=insulated --compare crank-nicolson -o out",
)(simulate)
command(app, "fluxforge verify midpoint --quick -o certificate")(verify)
command(app, "fluxforge reproduce generalisation theorems -o reproduction")(reproduce)
command(app, "fluxforge export midpoint --to c -o midpoint.c")(export)
command(app, "fluxforge doctor --json")(doctor)
app.add_typer(mesh, name="mesh")
app.add_typer(bench, name="bench")


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
