"""Checkpoints: a process killed at any moment leaves the newest complete one readable."""

import hashlib
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from jaxtyping import PyTree

from fluxforge._files import open_regular, reason
from fluxforge.errors import FluxforgeError, InputError
from fluxforge.run._archive import DamagedError, pack_tree, unpack_tree
from fluxforge.run._durable import explain_failure, make_folder, write_durably

_NAME = re.compile(r"step-([0-9]{9}|[1-9][0-9]{9,})\.safetensors")
_SEAL = ".sha256"
_DIGEST = re.compile(rb"^([0-9a-f]{64}) ", re.MULTILINE)
_SEAL_SIZE = 1024


class Checkpoints:
    """The checkpoints of one run: `step-000012000.safetensors`, each with its SHA-256 in a file beside it.

    The SHA-256 is on disk before its file appears, and the file appears by one atomic rename: a process killed at any
    moment leaves both, or a SHA-256 without a file, which is ignored. A file that does not match its SHA-256, or has
    none, was therefore damaged by something else; `warn` is called with one line about it.
    """

    def __init__(self, folder: Path, *, warn: Callable[[str], None], keep: int = 2) -> None:
        if keep < 1:
            raise ValueError(f"keep should be at least 1, got {keep}")
        self.folder = folder
        self.keep = keep
        self._warn = warn

    def save(self, step: int, tree: PyTree, *, fingerprint: str) -> None:
        """Save the array leaves of a tree, then remove all checkpoints but this one and the newest `keep` intact ones.

        `fingerprint` identifies the architecture and recipe. Leaves that are not arrays are static and are not saved.
        """
        if step < 0:
            raise ValueError(f"step should not be negative, got {step}")
        path = self._path(step)
        try:
            content = pack_tree(tree, step=step, fingerprint=fingerprint)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        make_folder(self.folder)
        self._replace(path, content)
        self._prune(path)

    def latest(self, template: PyTree, *, fingerprint: str) -> tuple[int, PyTree] | None:
        """The step of the newest intact checkpoint, and the template filled from it; None if there is no checkpoint.

        Raises FluxforgeError if all checkpoints are damaged, InputError if one was made by another recipe.
        """
        steps = self._steps()
        why = ""
        for step, older in zip_longest(steps, steps[1:]):
            path = self._path(step)
            try:
                _check_seal(path)
                return step, unpack_tree(path, template, step=step, fingerprint=fingerprint)
            except DamagedError as error:
                why = why or f"{path.name}: {error}"
                if older is not None:
                    self._warn(f"checkpoint {path} is damaged ({error}); falling back to {self._path(older).name}")
        if steps:
            raise FluxforgeError(
                f"{self.folder}: all {len(steps)} checkpoints are damaged ({why}): remove this folder to train anew"
            )
        return None

    def tidy(self) -> None:
        """Remove what a killed `save` left: intact checkpoints beyond the newest `keep`, digests without a file.

        Damaged checkpoints stay, so that `latest` warns of them.
        """
        steps = self._steps()
        whole = [path for path in map(self._path, steps) if len(steps) > self.keep and _intact_digest(path)]
        lone = self._seals() - {_seal(self._path(step)) for step in steps}
        self._remove(whole[self.keep :], (*map(_seal, whole[self.keep :]), *lone))

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:09d}.safetensors"

    def _steps(self) -> list[int]:
        """The steps that have a file, newest first."""
        with explain_failure(self.folder, "cannot be read"):
            items = list(self.folder.iterdir()) if self.folder.exists() else []
        return sorted((int(name[1]) for item in items if (name := _NAME.fullmatch(item.name))), reverse=True)

    def _seals(self) -> set[Path]:
        return {item for item in self.folder.glob(f"*{_SEAL}") if _NAME.fullmatch(item.name.removesuffix(_SEAL))}

    def _replace(self, path: Path, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        old = _intact_digest(path)
        if old != digest:
            # While an intact file is replaced, its old and its new digest are both valid, so that it is always intact.
            write_durably(_seal(path), _format_seal(path, *filter(None, (old, digest))))
            _write_sealed(path, content)
        if old is not None:
            write_durably(_seal(path), _format_seal(path, digest))

    def _prune(self, saved: Path) -> None:
        paths = [self._path(step) for step in self._steps()]
        whole = [path for path in paths if path == saved or _intact_digest(path)]
        kept = {saved, *whole[: self.keep]}
        self._remove(set(paths) - kept, self._seals() - {_seal(path) for path in kept})

    def _remove(self, paths: Iterable[Path], seals: Iterable[Path]) -> None:
        try:
            # The file is removed before its SHA-256, since a file without one would count as damaged.
            for path in (*paths, *seals):
                path.unlink(missing_ok=True)
        except OSError as error:
            self._warn(f"old checkpoints in {self.folder} cannot be removed ({reason(error)})")


def _seal(path: Path) -> Path:
    return path.with_name(path.name + _SEAL)


def _write_sealed(path: Path, content: bytes) -> None:
    try:
        write_durably(path, content)
    except BaseException:
        with suppress(OSError):
            if not path.exists():
                _seal(path).unlink(missing_ok=True)
        raise


def _format_seal(path: Path, *digests: str) -> bytes:
    """Digests in the format of `sha256sum --check`."""
    return "".join(f"{digest}  {path.name}\n" for digest in digests).encode()


def _check_seal(path: Path) -> str:
    """The SHA-256 of a file; raises DamagedError if it is not among those recorded in the file beside it."""
    try:
        with open_regular(_seal(path)) as stream:
            wanted = _DIGEST.findall(stream.read(_SEAL_SIZE))
        with open_regular(path) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise DamagedError("it has no SHA-256 beside it") from error
    except OSError as error:
        raise DamagedError(reason(error)) from error
    if digest.encode() not in wanted:
        raise DamagedError("its SHA-256 is not the one beside it")
    return digest


def _intact_digest(path: Path) -> str | None:
    try:
        return _check_seal(path)
    except DamagedError:
        return None
