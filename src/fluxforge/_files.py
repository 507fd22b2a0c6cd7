"""Files: reads of regular files only, atomic writes, and JSON documents with a kind and a version."""

import errno
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from fluxforge.errors import DocumentError, FluxforgeError, InputError, StorageError

# Names of temporary files; no other program makes such names, so files that match may be removed.
TEMPORARY = re.compile(r"\.fluxforge-[0-9a-f]{12}-(?P<name>.+)")
# Errors that are the system's whatever the path (disk full, too many open files). All other errors mean that the path
# is bad, unless they occur in a held folder.
_SYSTEM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
# The folders that runs of this process hold, each with its device and inode at the start.
_held: dict[Path, tuple[int, int]] = {}


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Within the `with` block, a write fails if `folder` was removed or replaced, and does not create it again.

    An OSError of a write in the folder becomes StorageError, not InputError: the path was valid when the run began.
    """
    place = Path(os.path.abspath(folder))
    nested = place in _held
    _held.setdefault(place, _identity(place))
    try:
        yield
    finally:
        if not nested:
            del _held[place]


def refuse_removed(path: Path) -> None:
    """Raise OSError if a held folder that contains `path` was removed, or replaced by another of the same name."""
    place = Path(os.path.abspath(path))
    for folder, identity in _held.items():
        if place.is_relative_to(folder) and _identity(folder) != identity:
            raise FileNotFoundError(errno.ENOENT, "another folder has taken the place of the run's")


def failure(path: Path, error: Exception, what: str = "cannot be written") -> FluxforgeError:
    """The error for an OSError about `path`: a StorageError if the system failed, an InputError if the path is bad."""
    place = Path(os.path.abspath(path))
    inside = any(place.is_relative_to(folder) for folder in _held)
    system = inside and not isinstance(error, SpecialFileError | IsADirectoryError)
    kind = StorageError if system or getattr(error, "errno", None) in _SYSTEM else InputError
    return kind(f"{escape_unprintable(str(path))}: {what} ({reason(error)})")


def _identity(folder: Path) -> tuple[int, int]:
    status = os.stat(folder)
    return status.st_dev, status.st_ino


_SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class SpecialFileError(OSError):
    """A pipe, a socket or a device instead of a regular file: reading it might never end."""


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file for reading bytes. Every file that a user names is opened here.

    Raises SpecialFileError for a pipe, a socket or a device, IsADirectoryError for a folder, and whatever else the
    system refuses as an OSError.
    """
    # Opening some devices has effects, so stat comes first; O_NONBLOCK in case a pipe replaced the file since.
    _refuse_special(os.stat(path).st_mode)
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _refuse_special(os.fstat(handle).st_mode)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a regular file; raises as `open_regular` does."""
    with open_regular(path) as stream:
        return stream.read()


def _refuse_special(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        what = _SPECIAL.get(stat.S_IFMT(mode), "something else")
        raise SpecialFileError(errno.EINVAL, f"not a regular file but {what}")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError if it is not JSON, or if an object has a key twice."""
    return json.loads(text, object_pairs_hook=_refuse_duplicates)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r:.60} is given twice")
    return content


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`, renamed to `path` if the block succeeds and removed if it fails.

    The temporary name keeps the suffix, because writers choose a format by it.
    """
    path = Path(path)
    # The name is known before the file exists, so that it can be removed after an interruption at any moment.
    temporary = path.with_name(f".fluxforge-{secrets.token_hex(6)}-{path.name}")
    try:
        _create(temporary, path)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise failure(path, error) from error
    finally:
        with suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def _create(temporary: Path, path: Path) -> None:
    try:
        refuse_removed(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except (OSError, ValueError) as error:
        raise failure(path, error) from error


def reason(error: Exception) -> str:
    """The system's description of an error (`strerror`), or else the message of the exception."""
    return str(getattr(error, "strerror", None) or error)


def escape_unprintable(text: str) -> str:
    r"""The text on one line, for a message: unprintable characters are escaped (`\n`, `\x00`, `\u202e`)."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def to_json_values(value: Any) -> Any:
    """Convert to JSON types: non-finite numbers to null, paths to strings, tuples and arrays to lists."""
    match value:
        case Mapping():
            return {str(key): to_json_values(entry) for key, entry in value.items()}
        case list() | tuple():
            return [to_json_values(entry) for entry in value]
        case float() if not math.isfinite(value):
            return None
        case Path():
            return os.fspath(value)
    # Arrays and NumPy numbers are recognised by this method, so that printing a document imports neither NumPy nor JAX.
    if (to_list := getattr(value, "tolist", None)) is not None:
        return to_json_values(to_list())
    return value


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_document(path: str | os.PathLike[str], kind: str, version: int, content: Mapping[str, Any]) -> None:
    """Write a JSON document that begins with its kind and format version."""
    document = {"format": f"fluxforge-{kind}", "format_version": version, **content}
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_document(path: str | os.PathLike[str], kind: str, version: int) -> dict[str, Any]:
    """Read a JSON document of the given kind.

    Raises DocumentError if it cannot be read, is of another kind, or has a newer version than `version`.
    """
    where = escape_unprintable(str(Path(path)))
    try:
        text = read_regular(path)
    except (OSError, ValueError) as error:
        raise DocumentError(f"{where}: cannot be read ({reason(error)})") from error
    try:
        # ValueError: text that is not UTF-8 or not JSON, a key given twice, an integer of thousands of digits.
        document = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: is not JSON that can be read ({error})") from error
    if not isinstance(document, dict) or document.get("format") != f"fluxforge-{kind}":
        raise DocumentError(f"{where}: is not a fluxforge {kind} (its field 'format' should say 'fluxforge-{kind}')")
    number = document.get("format_version")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise DocumentError(f"{where}: field 'format_version' should be a positive whole number, got {number!r:.60}")
    if number > version:
        raise DocumentError(
            f"{where}: has format_version {number!r:.60}, but this version of fluxforge reads at most {version}: "
            "upgrade fluxforge"
        )
    return document
