"""Recipes from names, files, documents and changes of other recipes, checked by schema and rules."""

import os
import tomllib
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from msgspec.structs import replace

from fluxforge._files import escape_unprintable, open_regular, reason
from fluxforge.errors import RecipeError
from fluxforge.recipe._check import RULES
from fluxforge.recipe._equation import mesh_files, with_equation_inside
from fluxforge.recipe._messages import Place, closest, describe_value, join_words
from fluxforge.recipe._recipe import Changes, Meshes, Recipe, Table
from fluxforge.recipe._schema import from_table, to_dict
from fluxforge.recipe._toml import set_fields, to_toml

PRESETS = ("quick", "paper")
MOST_BYTES = 1_000_000
_SHIPPED = resources.files("fluxforge.recipe") / "shipped"


def load(source: str | os.PathLike[str], *, preset: str | None = None) -> Recipe:
    """A shipped recipe by name, or one from a TOML file (its name ends in .toml or holds a separator).

    `preset` chooses between the `quick` version of a shipped recipe, the default, and the `paper`'s sizes; a recipe
    that has no version of its own for the paper is the same in both.
    """
    if _is_path(source):
        if preset is not None:
            where = escape_unprintable(str(source))
            raise RecipeError(
                f"{where}: a preset ({describe_value(preset)}) can be chosen for shipped recipes only, not for files"
            )
        return _from_file(Path(source))
    file = _file(str(source), preset or "quick")
    return from_dict(_parse(file.read_bytes(), file.name), file.name)


def text(source: str | os.PathLike[str], *, preset: str | None = None, changes: Changes | None = None) -> str:
    """A recipe's TOML with its comments, as a template for another one; `changes` are written into it."""
    unchanged = load(source, preset=preset)
    file = Path(source) if _is_path(source) else _file(str(source), preset or "quick")
    content = file.read_text(encoding="utf-8-sig")
    if not changes:
        return content
    changed, wanted = set_fields(content, changes), override(unchanged, changes)
    folder = file.parent if isinstance(file, Path) else ""
    try:
        table = with_equation_inside(_parse(changed.encode(), "the changed text"), folder, file.name)
        reread = locate_mesh_files(from_dict(table, "the changed text"), folder, file.name)
    except RecipeError:
        reread = None
    # A text whose layout `set_fields` does not follow is replaced by the recipe in full, without comments.
    return changed if reread == wanted else to_toml(to_dict(wanted))


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
    where = escape_unprintable(str(path))
    try:
        with open_regular(path) as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise RecipeError(f"{where}: cannot be read ({reason(error)})") from error
    table = with_equation_inside(_parse(content, where), path.parent, where)
    return locate_mesh_files(from_dict(table, where), path.parent, where)


def _parse(content: bytes, where: str) -> Table:
    if len(content) > MOST_BYTES:
        raise RecipeError(f"{where}: is larger than {MOST_BYTES // 1_000_000} MB, the limit for a recipe")
    try:
        # Some editors begin a file with a byte-order mark. The line end gives errors at the end a line number.
        return tomllib.loads(content.decode("utf-8-sig") + "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise RecipeError(f"{where}: line {line} is not UTF-8; save the file in that encoding") from error
    except RecursionError as error:
        raise RecipeError(f"{where}: is nested too deeply") from error
    except ValueError as error:
        # Besides syntax errors: integers of thousands of digits, and dates that do not exist.
        raise RecipeError(f"{where}: is not TOML ({escape_unprintable(str(error))})") from error


def check(recipe: Recipe, where: str | None = None) -> None:
    """Raise RecipeError for a recipe with a value outside the schema's ranges, or with fields that clash.

    The message begins with `where`, by default the recipe's name. `load`, `from_dict` and `override` check by
    themselves.
    """
    where = f"recipe {describe_value(recipe.name)}" if where is None else where
    refuse_clashes(from_table(to_dict(recipe), where), where)


def from_dict(document: object, where: str) -> Recipe:
    """The recipe of a document from `to_dict`, TOML or JSON; raises RecipeError, which begins with `where`."""
    recipe = from_table(document, where)
    refuse_clashes(recipe, where)
    return recipe


def refuse_clashes(recipe: Recipe, where: str) -> None:
    """Raise RecipeError for the first rule that the recipe violates."""
    for rule in RULES:
        for fields, why in rule(recipe):
            if len(fields) == 1:
                raise Place(where, fields[0]).refuse(why)
            raise RecipeError(f"{escape_unprintable(where)}: fields {join_words(fields, 'and')}: {why}")


# For messages about an optional section that a recipe lacks: the shipped recipes that have it.
SECTION_EXAMPLES = {"loss.residual": "first-order-pinn, midpoint and two-hop have one"}


def override(recipe: Recipe, assignments: Changes, where: str = "command line") -> Recipe:
    """The recipe with fields set by dotted names, `{"seed": 3, "training.steps": 100}`, and checked as a file would be.

    A whole section may be given as a table. Mesh files and an equation's file are relative to the working folder.
    Raises RecipeError, which begins with `where`.
    """
    document = to_dict(recipe)
    for field, value in assignments.items():
        _assign(document, field, value, where)
    changed = from_dict(with_equation_inside(document, "", where), where)
    return changed if mesh_files(changed) == mesh_files(recipe) else locate_mesh_files(changed, "", where)


def _assign(document: Table, field: str, value: object, where: str) -> None:
    *sections, last = field.split(".")
    table = document
    for depth, name in enumerate(sections, start=1):
        table[name] = _section(table, name, Place(where).at(field), ".".join(sections[:depth]))
        table = table[name]
    if field == "data.kind" and table.get("kind", value) != value:
        old = describe_value(table["kind"])
        raise Place(where, field).refuse(
            f"cannot be changed from {old}, since other kinds of data have other fields; write a recipe file"
        )
    table[last] = value


def _section(table: Table, name: str, place: Place, section: str) -> Table:
    """A copy of the section `name`, empty if it is missing: the schema then refuses a section that it does not know."""
    inner = table.get(name, {})
    if inner is None:
        instead = f"; {SECTION_EXAMPLES[section]}" if section in SECTION_EXAMPLES else ""
        raise place.refuse(
            f"the recipe has no section [{section}]; set all of it as a table, or write a recipe file{instead}"
        )
    if not isinstance(inner, Mapping):
        raise place.refuse(f"'{Place('').at(section).field}' has no fields")
    return dict(inner)


def locate_mesh_files(recipe: Recipe, folder: str | os.PathLike[str], where: str) -> Recipe:
    """The same recipe with absolute paths of its mesh files; raises RecipeError for a file that does not exist."""
    if not isinstance(recipe.data, Meshes) or not recipe.data.files:
        return recipe
    files = tuple(_locate_file(file, folder, where) for file in recipe.data.files)
    return replace(recipe, data=replace(recipe.data, files=files))


def _locate_file(file: str, folder: str | os.PathLike[str], where: str) -> str:
    path = os.path.abspath(os.path.join(folder, file))
    if not os.path.isfile(path):
        raise Place(where, "data.files").refuse(f"there is no mesh file '{escape_unprintable(path)}'")
    return path
