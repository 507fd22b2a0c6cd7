"""gmsh: a missing library is named, nothing is printed, and the caller's session and signals are restored."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from types import ModuleType

import numpy as np
import pytest

from fluxforge.errors import InputError
from fluxforge.mesh import Mesh, generate, gmsh_problem
from fluxforge.mesh._generate_gmsh import DEBIAN_PACKAGES, OPTIONS, keep_sigpipe_ignored

PROBLEM = gmsh_problem()
needs_gmsh = pytest.mark.skipif(PROBLEM is not None, reason=str(PROBLEM))


def same(a: Mesh, b: Mesh) -> bool:
    return a.points.tobytes() == b.points.tobytes() and a.cells.tobytes() == b.cells.tobytes()


class _Refuse(MetaPathFinder):
    """An importer that fails the way gmsh does where a library of the system is missing."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> None:
        if fullname == "gmsh":
            raise self.error


@pytest.fixture
def refuse_gmsh(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Refuse]:
    finder = _Refuse(OSError("libGLU.so.1: cannot open shared object file: No such file or directory"))
    monkeypatch.delitem(sys.modules, "gmsh", raising=False)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    return finder


@pytest.mark.parametrize(("library", "package"), DEBIAN_PACKAGES.items())
def test_a_missing_library_is_named_with_its_package(refuse_gmsh: _Refuse, library: str, package: str) -> None:
    refuse_gmsh.error = OSError(f"{library}: cannot open shared object file: No such file or directory")
    problem = gmsh_problem()
    assert problem is not None
    assert f" {library}:" in problem
    assert f" {package} " in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError("libquux.so.7: cannot open shared object file"), "libquux.so.7"),
        (OSError("dlopen failed:\n  image not found"), "dlopen failed: image not found"),
        (ModuleNotFoundError("No module named 'gmsh'"), "not installed"),
    ],
)
def test_other_failures_of_gmsh_are_reported_in_one_line(refuse_gmsh: _Refuse, error: Exception, words: str) -> None:
    refuse_gmsh.error = error
    problem = gmsh_problem()
    assert problem is not None
    assert words in problem
    assert "\n" not in problem


def test_without_gmsh_the_builtin_engine_steps_in_and_says_why(refuse_gmsh: _Refuse) -> None:
    mesh = generate(cells=120, seed=4)
    assert same(mesh, generate(cells=120, seed=4, engine="builtin"))
    assert any("libGLU.so.1" in note and "libglu1-mesa" in note for note in mesh.notes)
    assert generate(cells=120, seed=4, engine="builtin").notes == ()


def test_asking_for_gmsh_where_it_does_not_load_is_an_input_error(refuse_gmsh: _Refuse) -> None:
    with pytest.raises(InputError, match=r"libGLU\.so\.1.*libglu1-mesa"):
        generate(engine="gmsh")


@needs_gmsh
def test_auto_is_gmsh_where_it_loads() -> None:
    assert same(generate(seed=2), generate(seed=2, engine="gmsh"))
    assert generate(seed=2).notes == ()


@needs_gmsh
def test_seed_zero_of_a_regular_gmsh_mesh_is_uniform() -> None:
    steps = [
        np.linalg.norm(np.diff(m.points[e], axis=1)[:, 0], axis=1)
        for s in (0, 1)
        for m in [generate(seed=s, engine="gmsh")]
        for e in [m.boundary["bottom"]]
    ]
    assert np.ptp(steps[0]) < 1e-6
    assert np.ptp(steps[1]) > 1e-3


@needs_gmsh
def test_what_a_user_has_open_in_gmsh_is_left_as_it_was() -> None:
    import gmsh

    alone = generate(kind="irregular", cells=150, seed=5, engine="gmsh")
    assert not gmsh.isInitialized()
    with keep_sigpipe_ignored():
        gmsh.initialize(interruptible=False)
    try:
        changed = dict.fromkeys(("Mesh.Algorithm", "Mesh.MeshSizeFactor", "Mesh.Smoothing", "Mesh.ElementOrder"), 3.0)
        for name, value in changed.items():
            gmsh.option.setNumber(name, value)
        before = {name: gmsh.option.getNumber(name) for name in OPTIONS}
        gmsh.model.add("theirs")
        gmsh.model.geo.addPoint(0, 0, 0)
        gmsh.model.geo.synchronize()
        gmsh.model.add("another")
        gmsh.model.setCurrent("theirs")
        models = gmsh.model.list()
        beside = generate(kind="irregular", cells=150, seed=5, engine="gmsh")
        assert gmsh.isInitialized()
        assert gmsh.model.getCurrent() == "theirs"
        assert gmsh.model.list() == models
        assert len(gmsh.model.getEntities()) == 1
        assert {name: gmsh.option.getNumber(name) for name in OPTIONS} == before
    finally:
        gmsh.finalize()
    assert same(alone, beside)


@needs_gmsh
def test_gmsh_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    generate(cells=50, engine="gmsh")
    assert capfd.readouterr() == ("", "")


CLOSED_PIPE = """
import os, threading
from fluxforge.mesh import generate

def make():
    generate(kind="regular", cells=40, engine="gmsh")

WHERE
reader, writer = os.pipe()
os.close(reader)
try:
    os.write(writer, b"x")
except BrokenPipeError:
    print("an error like any other")
"""
IN_A_THREAD = "own = threading.Thread(target=make); own.start(); own.join()"


@needs_gmsh
@pytest.mark.parametrize("where", ["make()", IN_A_THREAD], ids=["main thread", "another thread"])
def test_a_closed_pipe_does_not_kill_who_has_used_gmsh(where: str) -> None:
    # In a process of its own, which would otherwise end here without a word.
    command = [sys.executable, "-c", CLOSED_PIPE.replace("WHERE", where)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "an error like any other\n", "")
