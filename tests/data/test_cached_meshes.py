"""The cache of meshes: it gives back what was generated, whole, or meshes are generated again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors import SafetensorError

from fluxforge import recipe
from fluxforge.data import _meshes, cache_folder, generate_meshes, meshes
from fluxforge.mesh import Mesh, squares, write
from fluxforge.run import _arrays

PLAN: list[dict[str, str | int]] = [
    {"kind": "regular", "cells": 12, "seed": 1, "engine": "builtin"},
    {"kind": "irregular", "cells": 20, "seed": 2, "engine": "builtin"},
]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("FLUXFORGE_CACHE", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def same(one: list[Mesh], other: list[Mesh]) -> bool:
    def parts(mesh: Mesh) -> list[object]:
        arrays = [mesh.points, mesh.cells, *mesh.boundary.values()]
        return [[(a.dtype, a.shape, a.tobytes()) for a in arrays], list(mesh.boundary), mesh.notes, mesh.origin]

    return [parts(mesh) for mesh in one] == [parts(mesh) for mesh in other]


def only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_a_second_call_reads_what_the_first_one_wrote(cache: Path) -> None:
    """Meshes are read from the file and not generated: with the file of another plan in its place, they are those."""
    first = generate_meshes(PLAN)
    file = only_file(cache)
    assert file.name.startswith("meshes-")
    assert same(generate_meshes(PLAN), first)
    other = generate_meshes(PLAN[:1])
    (its_file,) = set(cache.iterdir()) - {file}
    its_file.replace(file)
    assert same(generate_meshes(PLAN), other)


def test_notes_are_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = Mesh(squares(2).points, squares(2).cells, squares(2).boundary, ("one", "two ≠ 2"), "ünamed")
    monkeypatch.setattr(_meshes, "generate", lambda **_: noted)
    first = generate_meshes(PLAN[:1])
    monkeypatch.setattr(_meshes, "generate", lambda **_: pytest.fail("made again"))
    assert generate_meshes(PLAN[:1])[0].notes == first[0].notes == ("one", "two ≠ 2")
    assert generate_meshes(PLAN[:1])[0].origin == "ünamed"


def test_other_words_are_other_meshes(cache: Path) -> None:
    plans = [PLAN, PLAN[:1], PLAN[::-1]]
    plans += [[{**PLAN[0], name: other}] for name, other in (("seed", 3), ("cells", 13), ("kind", "irregular"))]
    for plan in plans:
        generate_meshes(plan)
    assert len(list(cache.iterdir())) == len(plans)


def damaged(content: bytes) -> Iterator[bytes]:
    """Every hundredth byte changed, a type and shapes that NumPy lacks, the file cut, emptied, and replaced."""
    for place in [*range(0, len(content), 97), *range(8, 400, 7)]:
        spoilt = bytearray(content)
        spoilt[place] ^= 1 << (place % 8)
        yield bytes(spoilt)
    for entry, size in (
        (b'"F8_E4M3","shape":[1]', 1),
        (b'"F64","shape":[0,9223372036854775807,2]', 0),
        (b'"F64","shape":[%s]' % b",".join([b"1"] * 70), 8),
    ):
        header = b'{"a":{"dtype":%s,"data_offsets":[0,%d]}}' % (entry, size)
        yield len(header).to_bytes(8, "little") + header + b"0" * size
    yield content[:-1]
    yield content[: len(content) // 2]
    yield b""
    yield b"no mesh at all"


def test_a_damaged_file_is_never_believed(cache: Path) -> None:
    first = generate_meshes(PLAN)
    file = only_file(cache)
    content = file.read_bytes()
    for spoilt in damaged(content):
        file.write_bytes(spoilt)
        assert _arrays.read_arrays(file) is None, "a damaged file was taken for a whole one"
    file.write_bytes(content)
    assert same(generate_meshes(PLAN), first)
    assert file.read_bytes() == content


def test_a_damaged_file_is_made_again_and_mended(cache: Path) -> None:
    first = generate_meshes(PLAN)
    file = only_file(cache)
    file.write_bytes(file.read_bytes()[:-1])
    assert _arrays.read_arrays(file) is None
    assert same(generate_meshes(PLAN), first)
    assert _arrays.read_arrays(file) is not None
    assert same(generate_meshes(PLAN), first)


def test_a_cache_that_cannot_be_written_costs_time_not_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FLUXFORGE_CACHE", str(tmp_path / "file"))
    assert same(generate_meshes(PLAN), generate_meshes(PLAN))
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SafetensorError("I/O error")])
def test_a_full_disk_costs_time_not_results(cache: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(_arrays, "save_file", full)
    assert len(generate_meshes(PLAN[:1])) == 1
    assert list(cache.iterdir()) == []


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLUXFORGE_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.setenv("FLUXFORGE_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "fluxforge"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "fluxforge"


@pytest.fixture
def arguments(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str | int]]:
    """The arguments of all meshes that `meshes` asks for; none is generated."""
    plans: list[dict[str, str | int]] = []
    monkeypatch.setattr(_meshes, "generate_meshes", lambda plan: plans.extend(plan) or [])
    return plans


def test_kinds_take_turns_and_sizes_fill_their_range(arguments: list[dict[str, str | int]]) -> None:
    meshes(recipe.Meshes(meshes=200, cells=(30, 40), engine="builtin"), seed=7)
    assert [each["kind"] for each in arguments] == ["regular", "irregular"] * 100
    assert {each["cells"] for each in arguments} == set(range(30, 41))
    assert len({each["seed"] for each in arguments}) == 200
    assert {each["engine"] for each in arguments} == {"builtin"}


def test_the_seed_of_a_recipe_decides_its_meshes(arguments: list[dict[str, str | int]]) -> None:
    for seed in (1, 1, 2):
        meshes(recipe.Meshes(meshes=3, engine="builtin"), seed=seed)
    assert arguments[:3] == arguments[3:6]
    assert [each["seed"] for each in arguments[:3]] != [each["seed"] for each in arguments[6:]]


@pytest.mark.parametrize(("problem", "engine"), [(None, "gmsh"), ("no library", "builtin")])
def test_the_engine_is_settled_before_the_cache_is_asked(
    arguments: list[dict[str, str | int]], monkeypatch: pytest.MonkeyPatch, problem: str | None, engine: str
) -> None:
    monkeypatch.setattr(_meshes, "gmsh_problem", lambda: problem)
    meshes(recipe.Meshes(meshes=2), seed=0)
    assert {each["engine"] for each in arguments} == {engine}


def test_mesh_files_are_read_as_they_are(tmp_path: Path) -> None:
    write(squares(3), tmp_path / "a.msh")
    (read,) = meshes(recipe.Meshes(files=(str(tmp_path / "a.msh"),)), seed=0)
    assert len(read.cells) == 9
