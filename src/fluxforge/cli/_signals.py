"""Signals that stop a command: an exception unwinds it, so that no half-written file remains.

An exception that a signal handler raises inside a callback of the garbage collector is lost, which is likely while JAX
compiles. Therefore the signal is also recorded, and `raise_lost_signal` raises the exception again later.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class TerminatedError(BaseException):
    """The process received SIGTERM. It is not a subclass of Exception, so that no `except Exception` catches it."""


_received: list[type[BaseException]] = []
_EXCEPTIONS: dict[int, type[BaseException]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: TerminatedError}


@contextmanager
def handle_signals() -> Iterator[None]:
    """Raise an exception on SIGINT and SIGTERM for the block, so that no half-written file remains."""
    _received.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def unwind(number: int, frame: FrameType | None) -> None:
        _received.append(_EXCEPTIONS[number])
        raise _EXCEPTIONS[number]

    before = {number: signal.signal(number, unwind) for number in _EXCEPTIONS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _received.clear()


def raise_lost_signal() -> None:
    """Raise the exception of a received signal again, in case the one raised by the handler was lost."""
    if _received:
        raise _received[0]


def count_done(tell: Callable[[str, int, int], None] | None) -> Callable[[str, int, int], None]:
    """Adapt `question_bar` to work that reports the number done rather than the number of the current item.

    Each call first raises the exception of a lost signal. With None nothing is shown.
    """

    def report(what: str, done: int, total: int) -> None:
        raise_lost_signal()
        if tell is not None:
            tell(what, done + 1, total)

    return report
