"""What the package asks of the machine: free memory, cores, versions, and the mappings of a process."""

from pathlib import Path

import jax
import pytest

from fluxforge import _machine
from fluxforge._machine import free_memory


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


def test_compiled_programs_are_dropped_before_the_mappings_of_a_process_run_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the last mapping XLA ends the process: what many discoveries in one process have compiled must go."""
    dropped: list[str] = []
    # Not the programs of the other tests in this process, which would be compiled again.
    monkeypatch.setattr(jax, "clear_caches", lambda: dropped.append("all"))
    maps, most = tmp_path / "maps", tmp_path / "max_map_count"
    assert _machine.release_programs(maps, most) is False, "a system without limits"
    maps.write_text("7f00-7f01 r-xp\n" * 100)
    assert _machine.release_programs(maps, most) is False, "far from what Linux grants"
    most.write_text("200\n")
    assert _machine.release_programs(maps, most) is False
    assert dropped == []
    most.write_text("199\n")
    assert _machine.release_programs(maps, most) is True
    assert dropped == ["all"]


def test_there_is_a_core() -> None:
    assert _machine.count_cores() >= 1


def test_a_library_that_is_not_installed_does_not_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """gmsh may be missing: its version is part of what every discovery records."""
    monkeypatch.setattr(_machine, "LIBRARIES", ("numpy", "no-such-library"))
    versions = _machine.environment()
    assert versions["no-such-library"] == "unknown"
    assert versions["numpy"] != "unknown"
