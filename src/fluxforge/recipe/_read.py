"""Recipes by name or by file."""

import os
import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from fluxforge._files import open_regular
from fluxforge.errors import RecipeError
from fluxforge.recipe._check import from_dict
from fluxforge.recipe._equation import locate_mesh_files, with_equation_inside
from fluxforge.recipe._messages import closest, describe_value, escape_unprintable, join_words
from fluxforge.recipe._override import override, rewrite_text
from fluxforge.recipe._recipe import Changes, Recipe, Table

PRESETS = ("quick", "paper")
LARGEST = 1_000_000
_SHIPPED = resources.files("fluxforge.recipe") / "shipped"


def load(source: str | os.PathLike[str], *, preset: str | None = None) -> Recipe:
    """A shipped recipe by name, or one from a TOML file (its name ends in .toml or holds a separator).

    `preset` chooses between the `quick` version of a shipped recipe, the default, and the `paper`'s sizes; a recipe
    that has no version of its own for the paper is the same in both.
    """
    if _is_path(source):
        if preset is not None:
            raise RecipeError(
                f"{_show_source(source)}: a preset ({describe_value(preset)}) belongs to shipped recipes, not to files"
            )
        return _from_file(Path(source))
    return _from_package(str(source), preset or "quick")


def text(source: str | os.PathLike[str], *, preset: str | None = None, changes: Changes | None = None) -> str:
    """A recipe's TOML with its comments, as the start of another one; `changes` are written into it."""
    unchanged = load(source, preset=preset)
    file = Path(source) if _is_path(source) else _file(str(source), preset or "quick")
    content = file.read_text(encoding="utf-8-sig")
    if not changes:
        return content
    folder = file.parent if isinstance(file, Path) else ""

    def read(changed: str) -> Recipe:
        table = with_equation_inside(_parse(changed.encode(), "the changed text"), folder, file.name)
        return locate_mesh_files(from_dict(table, "the changed text"), folder, file.name)

    return rewrite_text(content, changes, override(unchanged, changes), read)


def list_recipes() -> dict[str, str]:
    """The shipped recipes: name and summary."""
    return {name: load(name).summary for name in _names()}


def _is_path(source: str | os.PathLike[str]) -> bool:
    if not isinstance(source, str):
        return True
    separated = any(mark in source for mark in ("/", os.sep, os.altsep) if mark)
    return separated or source.lower().endswith(".toml")


def _names() -> list[str]:
    stems = (item.name.removesuffix(".toml") for item in _SHIPPED.iterdir() if item.name.endswith(".toml"))
    return sorted(stem for stem in stems if "." not in stem)


def _from_package(name: str, preset: str) -> Recipe:
    file = _file(name, preset)
    return from_dict(_parse(file.read_bytes(), file.name), file.name)


def _file(name: str, preset: str) -> Traversable:
    if preset not in PRESETS:
        raise RecipeError(f"no preset {describe_value(preset)}: choose {join_words(PRESETS)}{closest(preset, PRESETS)}")
    names = _names()
    if name not in names:
        known = f"neither a shipped one ({', '.join(names)}) nor a .toml file"
        raise RecipeError(f"no recipe {describe_value(name)}: {known}{closest(name, names)}")
    file = _SHIPPED / f"{name}.{preset}.toml"
    return file if file.is_file() else _SHIPPED / f"{name}.toml"


def _from_file(path: Path) -> Recipe:
    where = _show_source(path)
    try:
        with open_regular(path) as stream:
            content = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecipeError(f"{where}: cannot be read ({reason})") from error
    table = with_equation_inside(_parse(content, where), path.parent, where)
    return locate_mesh_files(from_dict(table, where), path.parent, where)


def _parse(content: bytes, where: str) -> Table:
    if len(content) > LARGEST:
        raise RecipeError(f"{where}: is larger than {LARGEST // 1_000_000} MB, which no recipe is")
    try:
        # Some editors open a file with a byte-order mark; with a last line end, errors there have a line too.
        return tomllib.loads(content.decode("utf-8-sig") + "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise RecipeError(f"{where}: line {line} is not UTF-8; save the file in that encoding") from error
    except RecursionError as error:
        raise RecipeError(f"{where}: is nested too deeply") from error
    except ValueError as error:
        # Besides syntax: whole numbers of thousands of digits, and days that no month has.
        raise RecipeError(f"{where}: is not TOML ({escape_unprintable(str(error))})") from error


def _show_source(source: str | os.PathLike[str]) -> str:
    return escape_unprintable(str(source))
