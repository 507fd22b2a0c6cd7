"""Mesh files that a recipe names."""

import hashlib
import os

from msgspec.structs import replace

from fluxforge._files import open_regular
from fluxforge.recipe._data import Meshes
from fluxforge.recipe._messages import Place, visible
from fluxforge.recipe._recipe import Recipe


def mesh_files(recipe: Recipe) -> tuple[str, ...]:
    """The mesh files a recipe names, none where it generates its meshes."""
    return (recipe.data.files or ()) if isinstance(recipe.data, Meshes) else ()


def located(recipe: Recipe, folder: str | os.PathLike[str], where: str) -> Recipe:
    """The same recipe with its mesh files as absolute paths; a file that is not there is refused by name."""
    if not isinstance(recipe.data, Meshes) or not recipe.data.files:
        return recipe
    files = tuple(_found(file, folder, where) for file in recipe.data.files)
    return replace(recipe, data=replace(recipe.data, files=files))


def _found(file: str, folder: str | os.PathLike[str], where: str) -> str:
    path = os.path.abspath(os.path.join(folder, file))
    if not os.path.isfile(path):
        raise Place(where, "data.files").refuse(f"there is no mesh file '{visible(path)}'")
    return path


def digest(file: str, where: str) -> str:
    """SHA-256 of a mesh file's content."""
    try:
        with open_regular(file) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such name is possible"
        raise Place(where, "data.files").refuse(f"'{visible(file)}' cannot be read ({reason})") from error
