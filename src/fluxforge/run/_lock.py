"""One process at a time in a run folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from fluxforge.errors import InputError
from fluxforge.run._durable import reason

LOCK = "run.lock"


@contextmanager
def exclusive(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Hold a folder for the block. The system holds the lock, so that it vanishes with a killed process."""
    lock = FileLock(folder / name, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:  # before OSError, which it is
        raise InputError(f"{folder}: is in use by another process: wait for it to end, or stop it") from error
    except (OSError, NotImplementedError) as error:
        raise InputError(f"{folder}: cannot be locked ({reason(error)})") from error
    try:
        yield
    finally:
        lock.release()
