"""Files that are whole or absent: atomic writes, and JSON documents that carry their kind and version."""

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fluxforge.errors import DocumentError, InputError


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path` that becomes `path` when the block ends well, and vanishes when it does not.

    The temporary name keeps the suffix, because writers choose a format by it.
    """
    path = Path(path)
    # The name is known before the file exists, so that an interruption at any moment finds what to remove.
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(6)}{path.suffix}")
    try:
        _create(temporary, path)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({_reason(error)})") from error
    finally:
        with suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def _create(temporary: Path, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except (OSError, ValueError) as error:
        raise InputError(f"{_shown(path)}: cannot be written ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def _shown(path: Path) -> str:
    """A path for a message; it may hold characters no file's name can."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(path))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_document(path: str | os.PathLike[str], kind: str, version: int, content: Mapping[str, Any]) -> None:
    """Write a JSON document headed by what it is and which version of that format it follows."""
    document = {"format": f"fluxforge-{kind}", "format_version": version, **content}
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_document(path: str | os.PathLike[str], kind: str, version: int) -> dict[str, Any]:
    """Read a JSON document of the given kind; a newer version than ours is refused by name."""
    path = Path(path)
    try:
        text = path.read_bytes()
    except (OSError, ValueError) as error:
        raise DocumentError(f"{_shown(path)}: cannot be read ({_reason(error)})") from error
    try:
        # ValueError: what is not UTF-8 or not JSON, and numbers of thousands of digits.
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{path}: is not JSON we can use ({error})") from error
    if not isinstance(document, dict) or document.get("format") != f"fluxforge-{kind}":
        raise DocumentError(f"{path}: is not a fluxforge {kind} (its field 'format' should say 'fluxforge-{kind}')")
    found = document.get("format_version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise DocumentError(f"{path}: field 'format_version' should be a positive whole number, got {found!r:.60}")
    if found > version:
        raise DocumentError(
            f"{path}: has format_version {found!r:.60}, and this fluxforge reads up to {version}: upgrade fluxforge"
        )
    return document
