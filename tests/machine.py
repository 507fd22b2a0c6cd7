"""The processor and the libraries that decide the last digits of a result: the head of every test run."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

# Instruction sets, least first, by the words of /proc/cpuinfo that a processor needs for them.
INSTRUCTION_SETS = {
    "SSE4_2": {"sse4_2"},
    "AVX": {"avx"},
    "AVX2": {"avx2", "fma"},
    "AVX512": {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"},
}


def cpu_information(file: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    """Fields of the first processor in /proc/cpuinfo; empty where there is no such file."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n\n")[0].splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in pairs}


def instruction_sets(flags: set[str]) -> list[str]:
    """Names of the instruction sets that a processor with these flags has, least first."""
    return [name for name, needed in INSTRUCTION_SETS.items() if needed <= flags]


def flags() -> set[str]:
    """The processor's flags, as the system spells them."""
    return set(cpu_information().get("flags", "").split())


def blas_cores() -> str:
    """The core types whose kernels the loaded OpenBLAS libraries have chosen, with their numbers of threads."""
    import scipy.linalg  # noqa: F401  (it loads a library of its own)
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    words = {f"{pool.get('architecture', 'unknown')} × {pool['num_threads']}" for pool in pools}
    return ", ".join(sorted(words)) or "unknown"


def describe() -> list[str]:
    """Lines about the processor, its instruction sets, and the versions of what computes."""
    model = cpu_information().get("model name") or platform.processor() or platform.machine()
    names = ("numpy", "scipy", "jax", "jaxlib", "pyoperon")
    return [
        f"processor: {model}; instruction sets: {' '.join(instruction_sets(flags())) or 'unknown'}",
        f"python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in names),
        f"BLAS cores × threads: {blas_cores()}; XLA_FLAGS: {os.environ.get('XLA_FLAGS') or 'none'}",
    ]
