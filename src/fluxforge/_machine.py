"""The machine: free memory, mappings, processor, cores, and the versions and hardware that results depend on."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# Control groups, version 2 then version 1: the memory limit of a container, and its use.
_GROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))

# What Linux grants a process unless its administrator has set another number.
_MOST_MAPPINGS = 65_530

LIBRARIES = ("fluxforge", "jax", "equinox", "optax", "numpy", "scipy", "sympy", "gmsh", "pyoperon")


def free_memory(meminfo: Path = Path("/proc/meminfo"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Free memory in bytes, the lesser of the machine's and the container's; None if the system reports neither."""
    known = [size for size in (_free_in_machine(meminfo), _free_in_group(groups)) if size is not None]
    return min(known, default=None)


def _free_in_machine(meminfo: Path) -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, LookupError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _free_in_group(groups: Path) -> int | None:
    for limit, used in _GROUPS:
        try:
            return max(int((groups / limit).read_text()) - int((groups / used).read_text()), 0)
        except (OSError, ValueError):  # ValueError: "max", that is, no limit
            continue
    return None


def release_programs(maps: Path = Path("/proc/self/maps"), most: Path = Path("/proc/sys/vm/max_map_count")) -> bool:
    """Drop what JAX has compiled if this process has more than half of the memory mappings it may have.

    Every compiled program holds some mappings, a discovery about 2,000; at the limit XLA ends the process. Programs
    that are needed again are compiled again. Returns True if they were dropped; on systems without the file `maps`,
    which have no such limit, nothing is dropped.
    """
    try:
        held = maps.read_bytes().count(b"\n")
    except OSError:
        return False
    try:
        granted = int(most.read_text())
    except (OSError, ValueError):
        granted = _MOST_MAPPINGS
    if 2 * held <= granted:
        return False
    # Imported here: the command line reads this module before it needs JAX.
    import jax

    jax.clear_caches()
    return True


def describe_processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The model of the processor; the kind of machine where the system does not report a model."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next((model for model in models if model), "") or platform.processor() or platform.machine()


def count_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_threads() -> int:
    """The threads that XLA starts: one per core, unless PJRT_NPROC asks for another number."""
    setting = os.environ.get("PJRT_NPROC", "")
    return int(setting) if setting.isdigit() and int(setting) else count_cores()


def find_version(package: str) -> str | None:
    """The installed version of a package; None if it is not installed, or has no metadata."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def environment() -> dict[str, str]:
    """Versions of Python and the libraries, and the device: what a result depends on. Opens the JAX device."""
    # Imported here: the command line reads this module before it needs JAX.
    import jax

    versions = {"python": platform.python_version(), "platform": platform.machine()}
    for name in LIBRARIES:
        # gmsh may be absent, or be a system's module without metadata: the built-in generators take its place.
        versions[name] = find_version(name) or "unknown"
    device = jax.devices()[0]
    return versions | {"device": device.device_kind if device.platform != "cpu" else "cpu", "system": sys.platform}
