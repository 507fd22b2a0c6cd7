"""The command line: argument parsing and printing; each command makes one library call."""

import atexit
import gc
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `fluxforge` with `arguments`, by default those of the process, and return the exit code.

    0 on success, 1 if a run failed, 2 for bad input, 130 after Ctrl-C and 143 after a request to terminate.
    """
    if arguments is None:
        _relax_garbage_collector()
    try:
        # Imported here, so that Ctrl-C during the import is handled as it is later.
        from fluxforge.cli._main import run
    except KeyboardInterrupt:
        return 130
    return run(arguments)


def _relax_garbage_collector() -> None:
    """Run the garbage collector less often, which took a third of the time of `mesh info`.

    Imports create some hundred thousand objects, none of them garbage, which each collection would traverse again, the
    last one at exit.
    """
    gc.set_threshold(20_000, 10, 10)
    atexit.register(gc.freeze)
