"""gmsh, when it starts, undoes what Python has decided about closed pipes."""

import ctypes
import signal
from collections.abc import Iterator
from contextlib import contextmanager

IGNORED = 1


@contextmanager
def closed_pipes_stay_errors() -> Iterator[None]:
    """SIGPIPE is ignored afterwards if it was before: by default it ends the process, without a word.

    Python ignores it, so that writing into a closed pipe is a BrokenPipeError, and does not notice when a library
    sets it back. Its own `signal.signal` works in the main thread only; what lies below it works in any.
    """
    ignored = hasattr(signal, "SIGPIPE") and signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    try:
        yield
    finally:
        if ignored:
            _set(signal.SIGPIPE, IGNORED)


def _set(number: int, handler: int) -> None:
    below = ctypes.pythonapi.PyOS_setsig
    below.argtypes, below.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    below(number, handler)
