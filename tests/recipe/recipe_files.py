"""Recipes as files, for tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fluxforge.errors import RecipeError
from fluxforge.recipe import Loss, Meshes, Recipe, Supervised, from_dict, load, to_dict

BASE = 'name = "mine"\n[loss.supervised]\n'

PLAIN = Recipe(name="mine", loss=Loss(supervised=Supervised()))
ON_MESHES = Recipe(name="mine", data=Meshes(), loss=Loss(supervised=Supervised()))


def with_fields(recipe: Recipe, **sections: Any) -> dict[str, Any]:
    """The recipe as a document, with top-level fields replaced and sections updated."""
    document = to_dict(recipe)
    for name, value in sections.items():
        document[name] = document[name] | value if isinstance(document[name], dict) else value
    return document


def leaves(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted name and value of every field that is not a section."""
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def refused(document: object) -> str:
    """The message a document is refused with, less its opening."""
    with pytest.raises(RecipeError) as caught:
        from_dict(document, "my.toml")
    return opened(caught.value, "my.toml")


def refused_file(path: Path, content: str | bytes) -> str:
    """The message a file is refused with, less its opening."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(RecipeError) as caught:
        load(path)
    return opened(caught.value, str(path))


def opened(error: RecipeError, where: str) -> str:
    """What follows `where: ` in a message of one line."""
    message = str(error)
    assert message.startswith(f"{where}: ")
    assert len(message.splitlines()) == 1
    return message.removeprefix(f"{where}: ")
