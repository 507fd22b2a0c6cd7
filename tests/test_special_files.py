"""Pipes, sockets, devices and folders where a file should be: refused at once wherever the package reads a file."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fluxforge._files import open_regular, read_document, read_regular
from fluxforge.data import cache_folder, generate_meshes
from fluxforge.errors import InputError
from fluxforge.mesh import read, read_cell_data
from fluxforge.paper import read_documents
from fluxforge.recipe import load as load_recipe
from fluxforge.run import RunFolder
from fluxforge.scheme import load as load_scheme
from fluxforge.stepping import read_field

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is at most 107 characters long
    try:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(path.name)
    finally:
        os.chdir(here)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (make_pipe, "a named pipe"),
    "socket": (make_socket, "a socket"),
    "device": (make_device, "a device"),
    "folder": (Path.mkdir, "folder|directory"),
}


def read_run(path: Path) -> None:
    with RunFolder.open(path.parent, warn=print):
        pass


def read_metrics(path: Path) -> None:
    with RunFolder.create(path.parent.parent / "run", description={}, warn=print) as run:
        path.rename(run.metrics.path)
        try:
            run.metrics.read()
        finally:
            run.metrics.path.rename(path)


def read_results(path: Path) -> None:
    read_documents(path.parent)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "mesh": ("a.msh", read),
    "vtu": ("a.vtu", read),
    "cell data": ("a.vtu", read_cell_data),
    "recipe": ("a.toml", load_recipe),
    "scheme": ("scheme.json", load_scheme),
    "document": ("a.json", lambda path: read_document(path, "part", 1)),
    "field": ("a.npy", lambda path: read_field(str(path), 3)),
    "field of a mesh file": ("a.vtu", lambda path: read_field(f"{path}:T", 3)),
    "run": ("run.json", read_run),
    "metrics": ("metrics.jsonl", read_metrics),
    "results": ("theorems.json", read_results),
}


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """A reader that waits for a pipe, or reads a device for ever, fails instead of hanging the tests."""

    def give_up(*_: object) -> None:
        raise AssertionError("waited for something that is no file")

    earlier = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, earlier)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused_by_name(reader: str, kind: str, tmp_path: Path) -> None:
    name, function = READERS[reader]
    (tmp_path / "inside").mkdir()
    path = tmp_path / "inside" / name
    make, words = KINDS[kind]
    make(path)
    with pytest.raises(InputError, match=words) as caught:
        function(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_a_checkpoint_that_is_no_file_is_passed_over(kind: str, tmp_path: Path) -> None:
    told: list[str] = []
    with RunFolder.create(tmp_path / "run", description={}, warn=told.append) as run:
        for step in (1, 2):
            run.checkpoints.save(step, {"x": 1.0 * step}, fingerprint="f")
        last = run.checkpoints.folder / "step-000000002.safetensors"
        last.unlink()
        KINDS[kind][0](last)
        checkpoint = run.checkpoints.latest({"x": 0.0}, fingerprint="f")
    assert checkpoint is not None
    assert checkpoint[0] == 1
    assert KINDS[kind][1] in told[0]


def test_a_mesh_cache_that_is_no_file_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXFORGE_CACHE", str(tmp_path))
    plan: list[dict[str, str | int]] = [{"kind": "regular", "cells": 16, "seed": 0, "engine": "builtin"}]
    (mesh,) = generate_meshes(plan)
    (kept,) = cache_folder().iterdir()
    kept.unlink()
    os.mkfifo(kept)
    (again,) = generate_meshes(plan)
    assert (again.points == mesh.points).all()


def test_plain_files_and_links_to_them_are_read(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    path.write_bytes(b"content")
    (tmp_path / "link").symlink_to(path)
    assert read_regular(path) == read_regular(tmp_path / "link") == b"content"
    with open_regular(path) as stream:
        assert stream.read(3) == b"con"


# ---- keys that are given twice -------------------------------------------------------------------------------------


def test_a_document_with_a_key_twice_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "scheme.json"
    path.write_text('{"format": "fluxforge-scheme", "format_version": 1, "name": "a", "name": "b"}')
    with pytest.raises(
        InputError, match=r"scheme.json: is not JSON that can be read \(the key 'name' is given twice\)"
    ):
        load_scheme(path)
    path.write_text('{"format": "fluxforge-part", "format_version": 1, "a": [{"b": {"c": 1, "d": 2, "c": 1}}]}')
    with pytest.raises(InputError, match="the key 'c' is given twice"):
        read_document(path, "part", 1)


def test_the_state_of_a_run_with_a_key_twice_is_refused(tmp_path: Path) -> None:
    told: list[str] = []
    with RunFolder.create(tmp_path / "run", description={"a": 1}, warn=told.append) as run:
        run.metrics.append({"step": 1, "loss": 0.5})
        run.metrics.path.write_text('{"step": 1, "loss": 0.5, "loss": 0.1}\n')
        with pytest.raises(
            InputError, match=r"metrics.jsonl: line 1 is not a record \(the key 'loss' is given twice\)"
        ):
            run.metrics.read()
        run.finish("train", {"a": 1})
        stage = run.path / "stages" / "train.json"
        stage.write_text(stage.read_text().replace('"stage": "train"', '"stage": "train", "stage": "train"'))
        assert run.read_stage("train") is None
        assert "the key 'stage' is given twice" in told[0]
    text = (tmp_path / "run" / "run.json").read_text()
    (tmp_path / "run" / "run.json").write_text(text.replace('"a": 1', '"a": 1, "a": 2'))
    with (
        pytest.raises(InputError, match=r"run.json: is not JSON that can be read \(the key 'a' is given twice\)"),
        RunFolder.open(tmp_path / "run", warn=told.append),
    ):
        pass
