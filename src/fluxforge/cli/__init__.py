"""The command line: parsing and printing; every command is one library call."""

import atexit
import gc
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `fluxforge` with these arguments, or with the process's own, and return the exit code.

    0 if all went well, 1 if a run failed, 2 for bad input, 130 after Ctrl-C and 143 after a request to terminate.
    """
    if arguments is None:
        _collect_less_garbage()
    try:
        # Imported here so that Ctrl-C during the import is answered as it is later.
        from fluxforge.cli._main import run
    except KeyboardInterrupt:
        return 130
    return run(arguments)


def _collect_less_garbage() -> None:
    """Let a process of a command spend less time in the garbage collector: a third of what `mesh info` took.

    Imports make some hundred thousand objects, none of them garbage, and the collector would look through them again
    and again, and once more at the exit.
    """
    gc.set_threshold(20_000, 10, 10)
    atexit.register(gc.freeze)
