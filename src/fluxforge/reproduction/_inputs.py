"""What a part's result depends on, so that it is repeated when that has changed and not otherwise."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fluxforge import recipe
from fluxforge._files import read_document
from fluxforge.discover import environment
from fluxforge.errors import DocumentError, StorageError
from fluxforge.reproduction._part import Part

# Of the environment, what does not change a result.
NOT_INPUTS = frozenset({"platform", "system"})


def inputs(part: Part, preset: str, changes: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    """The part's version, its options, its recipes as they stand, the libraries, and the results it builds on."""
    config = dataclasses.asdict(part.module.Config(preset=preset, changes=changes))
    libraries = {name: value for name, value in environment().items() if name not in NOT_INPUTS}
    return {
        "version": part.version,
        "config": config,
        "recipes": {
            name: recipe.fingerprint(recipe.load(name, preset=part.recipe_preset or preset)) for name in part.recipes
        },
        "libraries": libraries,
        "after": {name: _digest_in(folder, name) for name in part.after},
    }


def digest(found: Mapping[str, Any]) -> str:
    """A short SHA-256 of inputs."""
    text = json.dumps(found, sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def finished(folder: Path | None, name: str, wanted: str) -> dict[str, Any] | None:
    """The document of a part that was made from the same inputs; None if there is none, or it cannot be read."""
    document = _document(folder, name)
    return document if document is not None and document.get("inputs") == wanted else None


def _digest_in(folder: Path | None, name: str) -> str | None:
    document = _document(folder, name)
    return None if document is None else document.get("inputs")


def _document(folder: Path | None, name: str) -> dict[str, Any] | None:
    if folder is None or not (path := folder / name / f"{name}.json").exists():
        return None
    try:
        return read_document(path, name, 1)
    except DocumentError as error:
        if isinstance(error.__cause__, OSError):
            raise StorageError(str(error)) from error
        # Damaged or newer: it is made again, over it.
        return None
