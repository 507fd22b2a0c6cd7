"""The free memory of the machine."""

import os
from pathlib import Path

# Control groups, version 2 then version 1: the memory limit of a container, and its use.
_GROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


def free_memory(meminfo: Path = Path("/proc/meminfo"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes still available, in the machine and in the container; None if the system does not report them."""
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
