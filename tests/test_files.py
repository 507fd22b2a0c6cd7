"""Atomic writes: a file is complete or absent."""

import json
import os
import stat
from pathlib import Path

import pytest

from fluxforge._files import atomic_path, read_document, write_document, write_text
from fluxforge.errors import DocumentError, InputError


def test_a_text_is_written_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "c.txt", "δ\n")
    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == "δ\n".encode()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["c.txt"]


def write_and_raise(path: Path, error: BaseException) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        raise error


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="half way"):
        write_and_raise(path, RuntimeError("half way"))
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["c.txt"]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_and_raise(tmp_path / "c.txt", KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []


def test_the_temporary_file_lies_beside_and_has_the_same_suffix(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "mesh.tar.vtu") as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".vtu"
        assert not (tmp_path / "mesh.tar.vtu").exists()
        temporary.write_text("x")
    assert (tmp_path / "mesh.tar.vtu").read_text() == "x"


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_has_the_rights_any_other_would_have(mask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_text(tmp_path / "c.txt", "x")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "c.txt").stat().st_mode) == mode


@pytest.mark.parametrize("name", ["folder", "file/c.txt", "x" * 300, "a\0b"])
def test_a_place_that_cannot_be_written_is_bad_input_and_stays_clean(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written") as caught:
        write_text(tmp_path / name, "x")
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "folder"]


def test_a_document_says_what_it_is(tmp_path: Path) -> None:
    write_document(tmp_path / "d.json", "thing", 3, {"α": [1, 2.5, None]})
    assert json.loads((tmp_path / "d.json").read_text(encoding="utf-8")) == {
        "format": "fluxforge-thing",
        "format_version": 3,
        "α": [1, 2.5, None],
    }
    assert "α" in (tmp_path / "d.json").read_text(encoding="utf-8")
    assert read_document(tmp_path / "d.json", "thing", 3)["α"] == [1, 2.5, None]
    assert read_document(str(tmp_path / "d.json"), "thing", 4)["format_version"] == 3


def test_numbers_json_does_not_have_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_document(tmp_path / "d.json", "thing", 1, {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a fluxforge thing"),
        ('{"format": "fluxforge-other", "format_version": 1}', r"should say 'fluxforge-thing'\)"),
        ('{"format": "fluxforge-thing"}', "'format_version' should be a positive whole number, got None"),
        ('{"format": "fluxforge-thing", "format_version": true}', "got True"),
        ('{"format": "fluxforge-thing", "format_version": 1.5}', "got 1.5"),
        (
            '{"format": "fluxforge-thing", "format_version": 3}',
            "has format_version 3, but this version of fluxforge reads at most 2",
        ),
        ('{"format": "fluxforge-thing", "format_version": ' + "7" * 5000 + "}", "."),
    ],
)
def test_what_is_no_document_of_that_kind_is_refused(text: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(DocumentError, match=match) as caught:
        read_document(path, "thing", 2)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [None, "{", "{}", '{"format": "fluxforge-thing", "format_version": 3}'])
def test_a_refused_document_is_named_on_one_line(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a\nb.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DocumentError, match=r"^[^\n]*/a\\nb\.json: [^\n]+$"):
        read_document(path, "thing", 2)


def test_a_document_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"none\.json: cannot be read \(No such file"):
        read_document(tmp_path / "none.json", "thing", 1)
    with pytest.raises(DocumentError, match="cannot be read"):
        read_document(tmp_path, "thing", 1)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DocumentError, match="is not JSON"):
        read_document(tmp_path / "bytes.json", "thing", 1)
