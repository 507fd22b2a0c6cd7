"""Recipes by name and by file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from recipe_files import BASE, PLAIN, refused_file

from fluxforge.errors import InputError, RecipeError
from fluxforge.recipe import Meshes, load

SHIPPED = (
    "carry, conductance, exponential, first-order, first-order-direct, first-order-pinn, generalisation, godunov, "
    "limiter, limiter-downwind, midpoint, skew, stages, two-hop, upwind"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "my.toml"


def test_a_file_is_read(path: Path) -> None:
    path.write_text(BASE)
    assert load(path) == load(str(path)) == PLAIN


@pytest.mark.parametrize("content", [BASE.replace("\n", "\r\n"), "\ufeff" + BASE, "# é\n" + BASE])
def test_other_line_ends_and_marks_are_read_too(path: Path, content: str) -> None:
    path.write_bytes(content.encode())
    assert load(path) == PLAIN


def test_a_name_without_folder_that_ends_in_toml_is_a_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(BASE)
    monkeypatch.chdir(path.parent)
    assert load("my.toml") == PLAIN
    path.rename(path.with_name("first-order"))
    assert load("./first-order") == load(Path("first-order")) == PLAIN
    assert load("first-order").name == "first-order"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name =", "is not TOML (Invalid value (at line 1, column 7))"),
        ('name = "a"\nx y', "is not TOML (Expected '=' after a key in a key/value pair (at line 2, column 3))"),
        ('name = "a"\nname = "b"', "is not TOML (Cannot overwrite a value (at line 2, column 11))"),
        ("seed = 2020-02-31", "is not TOML ("),
        (f"seed = {'1' * 5000}", "is not TOML ("),
        ("a = " + "[" * 100_000, "is nested too deeply"),
        (b'name = "a"\nsummary = "\xe9"', "line 2 is not UTF-8; save the file in that encoding"),
        (b"\x00", "is not TOML ("),
        (b"#" * 1_000_001, "is larger than 1 MB, the limit for a recipe"),
        ("", "field 'name': is missing"),
        (
            BASE + "weight = nan",
            "field 'loss.supervised.weight': expected a finite number from 0 to 1000000000.0, got nan",
        ),
        (BASE + "[trainin]", "unknown field 'trainin' (did you mean 'training'?)"),
        (BASE + "[training]\nsteps = 0", "field 'training.steps': expected a whole number from 1 to 100000000, got 0"),
        (BASE + "[training]\nsteps = 2020-01-01", "expected a whole number from 1 to 100000000, got a date or time"),
        (BASE + "[training]\nsteps = 07:32:00", "expected a whole number from 1 to 100000000, got a date or time"),
        ('name = "mine"', "fields 'loss.supervised' and 'loss.residual': the loss has no term"),
        (BASE + "[search]\n[arms]\na = 1", "fields 'arms' and 'search'"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(path: Path, content: str | bytes, message: str) -> None:
    assert message in refused_file(path, content)


def test_a_file_of_exactly_the_limit_is_read(path: Path) -> None:
    path.write_text(BASE + "#" * (1_000_000 - len(BASE)))
    assert load(path) == PLAIN


def test_a_file_that_is_not_there_or_not_a_file_is_named(tmp_path: Path) -> None:
    missing, folder = tmp_path / "none.toml", tmp_path
    with pytest.raises(RecipeError) as caught:
        load(missing)
    assert str(caught.value) == f"{missing}: cannot be read (No such file or directory)"
    with pytest.raises(RecipeError) as caught:
        load(folder)
    assert str(caught.value) == f"{folder}: cannot be read (Is a directory)"


@pytest.mark.parametrize("name", ["a\0b.toml", "a\nb.toml", "\x1b[2J.toml", "x" * 5000 + ".toml"])
def test_a_path_no_file_can_have_is_one_line(name: str) -> None:
    with pytest.raises(RecipeError, match="cannot be read") as caught:
        load(name)
    assert str(caught.value).isprintable()


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is readable to this user")
def test_a_file_we_may_not_read_is_named(path: Path) -> None:
    path.write_text(BASE)
    path.chmod(0)
    with pytest.raises(RecipeError, match=r"my\.toml: cannot be read \(Permission denied\)"):
        load(path)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("first_order", " (did you mean 'first-order'?)"),
        ("midpiont", " (did you mean 'midpoint'?)"),
        ("first-order.paper", " (did you mean 'first-order'?)"),
        ("zzzz", ""),
        ("", ""),
    ],
)
def test_an_unknown_name_lists_the_shipped_ones(name: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        load(name)
    assert str(caught.value) == f"no recipe '{name}': neither a shipped one ({SHIPPED}) nor a .toml file{hint}"
    assert isinstance(caught.value, RecipeError)


def test_a_preset_is_for_shipped_recipes(path: Path) -> None:
    path.write_text(BASE)
    with pytest.raises(
        RecipeError, match=r"my\.toml: a preset \('quick'\) can be chosen for shipped recipes only, not for files$"
    ):
        load(path, preset="quick")
    with pytest.raises(RecipeError, match=r"^no preset 'papr': choose 'quick' or 'paper' \(did you mean 'paper'\?\)$"):
        load("midpoint", preset="papr")


MESHES = '{}[data]\nkind = "meshes"\nfiles = ["meshes/a.msh", "{}"]\n'


def test_mesh_files_are_found_from_the_recipe_s_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = path.parent / "meshes"
    folder.mkdir()
    for name in ("a.msh", "b.msh"):
        (folder / name).write_text("")
    path.write_text(MESHES.format(BASE, folder / "b.msh"))
    monkeypatch.chdir("/")
    for source in (path, os.path.relpath(path)):
        data = load(source).data
        assert isinstance(data, Meshes)
        assert data.files == (str(folder / "a.msh"), str(folder / "b.msh"))


@pytest.mark.parametrize("name", ["none.msh", "meshes", "", "a\\u0007b"])
def test_a_mesh_file_that_is_not_there_is_named(path: Path, name: str) -> None:
    (path.parent / "meshes").mkdir()
    (path.parent / "meshes" / "a.msh").write_text("")
    message = refused_file(path, MESHES.format(BASE, name))
    assert message.startswith("field 'data.files")
    assert "expected text on one line" in message or f"there is no mesh file '{path.parent / name}'" in message


def test_reading_a_recipe_imports_no_numerical_library() -> None:
    code = "import sys, fluxforge.recipe as r; r.load('first-order'); print([m for m in sys.modules if '.' not in m])"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'msgspec'" in names
    assert not [heavy for heavy in ("jax", "numpy", "sympy", "equinox", "scipy") if f"'{heavy}'" in names]
