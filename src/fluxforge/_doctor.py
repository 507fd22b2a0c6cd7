"""Checks of the installation: which components work, and what to install for the others."""

import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Literal

from fluxforge._machine import count_cores, find_version, free_memory

Status = Literal["ok", "missing", "optional"]
OLDEST_PYTHON = (3, 11)
REQUIRED = ("numpy", "scipy", "sympy", "matplotlib", "meshio", "h5py", "jax", "equinox", "numba", "pyamg")
COMPILERS = ("cc", "gcc", "clang")


@dataclass(frozen=True)
class Check:
    """One check: what was found, and what to install if the component does not work.

    `status` is `missing` for a required component that does not work, `optional` for one that only an extra needs.
    """

    name: str
    status: Status
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Examination:
    """The results of all checks."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether all required components work."""
        return all(check.status != "missing" for check in self.checks)

    def document(self) -> dict[str, Any]:
        """The checks as JSON types."""
        return {"ok": self.ok, "checks": [asdict(check) for check in self.checks]}


def examine() -> Examination:
    """Run all checks; nothing is installed, downloaded or changed."""
    return Examination(
        (
            _python(),
            Check("fluxforge", "ok", version("fluxforge")),
            *(_check_dependency(name) for name in REQUIRED),
            _devices(),
            _double_precision(),
            _gmsh(),
            _extra("pyoperon", "symbolic regression", "pip install pyoperon"),
            _extra("pysr", "symbolic regression with Julia", "pip install 'fluxforge[pysr]'"),
            _extra("ray", "sweeps on a cluster", "pip install 'fluxforge[ray]'"),
            _extra("fipy", "a peer of the benchmarks", "pip install 'fluxforge[bench]'"),
            _compiler(),
            _memory(),
            Check("cores", "ok", str(count_cores())),
        )
    )


def _python() -> Check:
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Check("python", "ok", platform.python_version())
    return Check("python", "missing", platform.python_version(), "install Python 3.11 or newer")


def _check_dependency(name: str) -> Check:
    """Check that a required dependency can be imported, and find its version."""

    def probe() -> str:
        import_module(name)
        return version(name)

    return _try_check(name, probe, f"pip install --force-reinstall {name}")


def _devices() -> Check:
    def list_devices() -> str:
        import jax

        return ", ".join(f"{device.platform}:{device.id} {device.device_kind}" for device in jax.devices())

    return _try_check("devices", list_devices, "JAX finds no device: set JAX_PLATFORMS=cpu, or reinstall jax")


def _double_precision() -> Check:
    def probe() -> str:
        import jax
        import jax.numpy as jnp

        with jax.enable_x64(True):
            tiny = float((jnp.asarray(1.0, "float64") + 2.0**-52) - 1.0)
        if tiny != 2.0**-52:
            raise ArithmeticError("1 + 2**-52 was rounded to 1")
        return "works"

    return _try_check(
        "64-bit mode", probe, "orders and bounds need float64: use a device that has it, or JAX_PLATFORMS=cpu"
    )


def _try_check(name: str, probe: Callable[[], str], advice: str) -> Check:
    try:
        return Check(name, "ok", probe())
    # Whatever a broken installation raises, the other checks should still be reported.
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        return Check(name, "missing", f"{type(error).__name__}: {first}", advice)


def _gmsh() -> Check:
    from fluxforge.mesh._generate_gmsh import gmsh_problem

    problem = gmsh_problem()
    if problem is None:
        return Check("gmsh", "ok", find_version("gmsh") or "version unknown")
    what, _, advice = problem.partition(": ")
    return Check("gmsh", "optional", f"{what}; the built-in mesh generator is used instead", advice)


def _extra(name: str, purpose: str, advice: str) -> Check:
    """Look up an optional package without importing it: pysr downloads Julia at its first import."""
    if find_spec(name) is not None:
        return Check(name, "ok", find_version(name) or "version unknown")
    return Check(name, "optional", f"not installed ({purpose})", advice)


def _compiler() -> Check:
    for name in COMPILERS:
        if (path := shutil.which(name)) is not None:
            return Check("c compiler", "ok", path)
    return Check("c compiler", "optional", "none found (it compiles exported C)", "install gcc or clang")


def _memory() -> Check:
    free = free_memory()
    return Check("free memory", "ok", "unknown" if free is None else f"{free / 2**30:.1f} GiB")
