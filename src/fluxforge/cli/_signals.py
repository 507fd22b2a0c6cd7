"""Ctrl-C and requests to terminate: both unwind, and neither is lost.

A handler's exception vanishes if it strikes inside a callback of the garbage collector, which compilers of array
programs keep busy. So the request is remembered too, and `refuse_to_go_on` raises it again at the next step of work.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TerminatedError(BaseException):
    """The process was asked to end: not an Exception, so that nothing on the way swallows it."""


_asked: list[type[BaseException]] = []
_ANSWERS: dict[int, type[BaseException]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: TerminatedError}


@contextmanager
def answering() -> Iterator[None]:
    """Answer signals by unwinding, for the block, so that no half-written file stays."""
    _asked.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def unwind(number: int, frame: FrameType | None) -> None:
        _asked.append(_ANSWERS[number])
        raise _ANSWERS[number]

    before = {number: signal.signal(number, unwind) for number in _ANSWERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _asked.clear()


def refuse_to_go_on() -> None:
    """Raise what was asked for and got lost."""
    if _asked:
        raise _asked[0]
