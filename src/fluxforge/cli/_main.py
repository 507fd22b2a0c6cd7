"""The command line: its commands, exit codes, and the one line on stderr with which a command fails."""

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
from fluxforge.cli._bench_limiter import limiter
from fluxforge.cli._bench_skew import skew
from fluxforge.cli._commands import doctor, equations, schemes, verify
from fluxforge.cli._discover import discover, reproduce
from fluxforge.cli._export import export
from fluxforge.cli._mesh import mesh
from fluxforge.cli._output import one_line, say, show
from fluxforge.cli._signals import TerminatedError, handle_signals
from fluxforge.cli._simulate import rerun, simulate
from fluxforge.cli._sweep import sweep
from fluxforge.errors import FluxforgeError

SUMMARY = "Discover, verify, simulate and export finite-volume schemes on unstructured meshes."
app = group(
    SUMMARY,
    "fluxforge mesh square --cells 300 -o m.msh",
    "fluxforge simulate euler --mesh m.msh --initial 'sin(pi*x)*sin(pi*y)' -o out",
    "fluxforge verify euler --quick",
    "fluxforge discover first-order",
    name="fluxforge",
    add_completion=True,
)


def _show_version(wanted: bool) -> bool:
    if wanted:
        show(f"fluxforge {version('fluxforge')}")
        raise typer.Exit
    return wanted


@app.callback()
def fluxforge(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors; works with any command.")] = False,
) -> None:
    """The options before a command; its help is SUMMARY."""


command(
    app,
    "fluxforge discover",
    "fluxforge discover midpoint --seeds 4 --set training.steps=2000 -o runs/mine",
    "fluxforge discover --resume runs/mine",
    "fluxforge discover first-order --show",
)(discover)
command(app, "fluxforge equations", "fluxforge equations conduction")(equations)
command(
    app,
    "fluxforge sweep midpoint --over seed=0:10 --workers 2 -o sweep",
    "fluxforge sweep --resume sweep",
)(sweep)
command(app, "fluxforge schemes", "fluxforge schemes crank-nicolson")(schemes)
command(
    app,
    "fluxforge simulate euler --mesh m.msh --initial 'sin(pi*x)*sin(pi*y)' -o out",
    "fluxforge simulate euler --mesh m.msh --boundary 'left=1, rest=insulated' --end-time 0.5 --compare crank-nicolson",
    "fluxforge simulate upwind-rk4 --mesh m.msh --equation advection --set 'velocity=(1, 0)' --initial 'x < 0.5'",
    "fluxforge simulate --restart out --end-time 2 -o more",
)(simulate)
command(app, "fluxforge rerun out", "fluxforge rerun out -o again")(rerun)
command(app, "fluxforge verify midpoint --quick -o certificate", "fluxforge verify scheme.json --mesh m.msh")(verify)
command(app, "fluxforge reproduce generalisation theorems -o reproduction")(reproduce)
command(app, "fluxforge export midpoint --to c -o midpoint.c", "fluxforge export euler --to latex")(export)
command(app, "fluxforge doctor --json")(doctor)
command(bench, "fluxforge bench limiter", "fluxforge bench limiter --no-triangles --json")(limiter)
command(bench, "fluxforge bench skew --size quick")(skew)
app.add_typer(mesh, name="mesh")
app.add_typer(bench, name="bench")


USAGE, FAILED, INTERRUPTED, CLOSED_PIPE, TERMINATED = 2, 1, 130, 141, 143
# Typer's class of usage errors is in different modules in its versions; in all of them it is the base of BadParameter.
UsageError: type[Any] = typer.BadParameter.__mro__[1]


def run(arguments: Sequence[str] | None) -> int:
    """Run a command line and return its exit code; each failure is one line on stderr."""
    arguments, debug = _split_debug(sys.argv[1:] if arguments is None else arguments)
    _escape_unprintable()
    try:
        with handle_signals(), _hide_warnings(debug):
            code = _invoke(arguments)
            sys.stdout.flush()
    except BrokenPipeError:
        return _close_output()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except TerminatedError:
        code = TERMINATED
    except Exception as error:
        if debug:
            traceback.print_exception(error)
        code = _report_error(error)
    if code in (INTERRUPTED, TERMINATED):
        say("interrupted", "stopped before the end", style="bold red")
    return code


def _split_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without `--debug`, and whether it was among them; users may append it to any command."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [word for word in arguments[:end] if word != "--debug"]
    return [*kept, *arguments[end:]], len(kept) < end


@contextmanager
def _hide_warnings(debug: bool) -> Iterator[None]:
    """Hide RuntimeWarnings, such as overflow, unless `--debug` or `python -W` asks for them.

    The commands report the cause of such a warning, for instance a field that is not finite.
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
        # Typer raises SystemExit after printing shell completions.
        code = finished.code
    return code if isinstance(code, int) else 0


def _report_error(error: Exception) -> int:
    """Print one line about an error and return the exit code."""
    if isinstance(error, FluxforgeError):
        say("error", str(error), style="bold red")
        return error.exit_code
    if isinstance(error, UsageError):
        say("error", _describe_usage(error), style="bold red")
        return USAGE
    if isinstance(error, MemoryError):
        say("error", "not enough memory: use fewer cells or save fewer fields", style="bold red")
        return FAILED
    what = f"{type(error).__name__}: {one_line(str(error))}".removesuffix(": ")
    say("internal error", f"{what}; run again with --debug for the traceback", style="bold red")
    return FAILED


def _describe_usage(error: Any) -> str:
    """The message of a usage error on one line, and the command that prints the help."""
    path = "fluxforge" if error.ctx is None else error.ctx.command_path
    message = one_line(error.format_message()).replace(": Value error, ", ": ")
    if getattr(error, "param", None) is None:
        # A message of this package already names the option: remove the words that Typer puts before it.
        message = message.removeprefix("Invalid value: ")
    return f"{message.rstrip('.')} (see {path} --help)"


def _escape_unprintable() -> None:
    """Let stdout and stderr print an escape code for characters that their encoding lacks, such as Δ."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def _close_output() -> int:
    """Redirect stdout to the null device, so that the flush at exit does not fail; return the exit code."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    return CLOSED_PIPE
