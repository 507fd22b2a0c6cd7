"""What works on this machine."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from cli_runs import Cli

from fluxforge import _doctor, _machine
from fluxforge._doctor import Check, Examination, examine, free_memory

NAMES = {"python", "fluxforge", "jax", "devices", "64-bit mode", "gmsh", "meshio", "pyoperon", "pysr", "fipy"}
NAMES |= {"numba", "pyamg"}
NAMES |= {"c compiler", "free memory", "cores"}


def test_json_has_every_check(cli: Cli) -> None:
    told = cli("doctor", "--json")
    assert (told.code, told.err) == (0, "")
    assert told.json["ok"] is True
    checks = {check["name"]: check for check in told.json["checks"]}
    assert checks.keys() >= NAMES
    for check in checks.values():
        assert set(check) == {"name", "status", "found", "advice"}
        assert check["status"] in {"ok", "optional"}
        assert check["found"]
        assert bool(check["advice"]) == (check["status"] == "optional")


def test_table_has_every_check(cli: Cli) -> None:
    told = cli("doctor")
    assert told.code == 0
    assert all(name in told.out for name in NAMES)


def test_gmsh_that_does_not_load_is_optional_and_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = "gmsh needs the system library libGLU.so.1: install the package libglu1-mesa"
    monkeypatch.setattr("fluxforge.mesh._generate_gmsh.gmsh_problem", lambda: problem)
    report = examine()
    (check,) = (check for check in report.checks if check.name == "gmsh")
    assert report.ok
    assert check.status == "optional"
    assert check.found.startswith("gmsh needs the system library libGLU.so.1")
    assert check.advice == "install the package libglu1-mesa"


def test_an_extra_that_is_absent_is_optional_and_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_doctor, "find_spec", lambda name: None)
    report = examine()
    advice = {check.name: check.advice for check in report.checks if check.status == "optional"}
    assert report.ok
    assert advice["fipy"] == "pip install 'fluxforge[bench]'"
    assert advice["pysr"] == "pip install 'fluxforge[pysr]'"


def test_a_broken_dependency_is_missing_and_the_exit_code_1(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        if name == "meshio":
            raise OSError("libxml2.so.2: cannot open shared object file\nmore")

    monkeypatch.setattr(_doctor, "import_module", load)
    told = cli("doctor", "--json")
    assert told.code == 1
    assert told.json["ok"] is False
    (check,) = (check for check in told.json["checks"] if check["status"] == "missing")
    assert check["name"] == "meshio"
    assert check["found"] == "OSError: libxml2.so.2: cannot open shared object file"
    assert "pip install" in check["advice"]


def test_only_what_is_missing_spoils_the_examination() -> None:
    fine, extra, broken = Check("a", "ok", "1"), Check("b", "optional", "none"), Check("c", "missing", "none")
    assert Examination((fine, extra)).ok
    assert not Examination((fine, broken)).ok


def test_free_memory_is_read_from_the_kernels_file(tmp_path: Path) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:       100 kB\nMemAvailable:    42 kB\n")
    assert free_memory(told, tmp_path) == 42 * 1024


@pytest.mark.parametrize(
    "names", [("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")]
)
def test_free_memory_is_what_a_container_leaves(tmp_path: Path, names: tuple[str, str]) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemAvailable:    42 kB\n")
    (tmp_path / "memory").mkdir()
    for name, size in zip(names, ("30000\n", "10000\n"), strict=True):
        (tmp_path / name).write_text(size)
    assert free_memory(told, tmp_path) == 20_000
    (tmp_path / names[0]).write_text("max\n")
    assert free_memory(told, tmp_path) == 42 * 1024


@pytest.mark.parametrize("content", [None, "", "MemAvailable:\n", "MemFree: 1 kB\n"])
def test_free_memory_falls_back_to_what_the_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    told = tmp_path / "meminfo"
    if content is not None:
        told.write_text(content)
    answers = {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(_machine.os, "sysconf", answers.__getitem__)
    assert free_memory(told, tmp_path) == 40960
    monkeypatch.delattr(_machine.os, "sysconf")
    assert free_memory(told, tmp_path) is None


def test_compiled_programs_are_dropped_before_the_mappings_of_a_process_run_out(tmp_path: Path) -> None:
    """Past the last mapping XLA ends the process: what many discoveries in one process have compiled must go."""
    traced = []

    @jax.jit
    def twice(x: jax.Array) -> jax.Array:
        traced.append(x)
        return x + x

    maps, most = tmp_path / "maps", tmp_path / "max_map_count"
    twice(jnp.ones(3))
    assert _machine.release_programs(maps, most) is False, "a system without limits"
    maps.write_text("7f00-7f01 r-xp\n" * 100)
    assert _machine.release_programs(maps, most) is False, "far from what Linux grants"
    most.write_text("200\n")
    assert _machine.release_programs(maps, most) is False
    twice(jnp.ones(3))
    assert len(traced) == 1
    most.write_text("199\n")
    assert _machine.release_programs(maps, most) is True
    assert twice(jnp.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert len(traced) == 2


def test_there_is_a_core() -> None:
    assert _machine.count_cores() >= 1


def test_a_library_that_is_not_installed_does_not_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """gmsh may be missing: its version is part of what every discovery records."""
    monkeypatch.setattr(_machine, "LIBRARIES", ("numpy", "no-such-library"))
    versions = _machine.environment()
    assert versions["no-such-library"] == "unknown"
    assert versions["numpy"] != "unknown"
