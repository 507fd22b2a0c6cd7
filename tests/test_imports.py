"""What importing the package must not do."""

import ast
import subprocess
import sys
from collections.abc import Container
from functools import cache
from pathlib import Path

import fluxforge

# Private, but the only place that says whether a device was opened; a change of JAX would fail the assertion below.
PROGRAM = """
import importlib, pkgutil, fluxforge
for each in pkgutil.walk_packages(fluxforge.__path__, "fluxforge."):
    if not each.name.endswith("__main__"):
        importlib.import_module(each.name)
from jax._src import xla_bridge
print(len(xla_bridge._backends))
import jax.numpy as jnp
jnp.zeros(1)
print(len(xla_bridge._backends))
"""


def test_no_module_opens_a_device_when_it_is_imported() -> None:
    """A process that has opened one has threads, and its forked children may wait for ever."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before == 0
    assert after > 0


def imports_of(module: str, path: Path, modules: Container[str]) -> set[str]:
    """The modules of the package that a file imports when it is imported itself."""
    imported = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{each.name}" for each in node.names)
            imported |= {name if name in modules else node.module for name in names}
        elif isinstance(node, ast.Import):
            imported |= {each.name for each in node.names}
    return {each for each in imported if each in modules and each != module}


def test_no_chain_of_imports_is_longer_than_25_files() -> None:
    root = Path(fluxforge.__file__).parent
    paths = {".".join(path.relative_to(root.parent).with_suffix("").parts): path for path in root.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    needed = {name: imports_of(name, path, modules) for name, path in modules.items()}

    @cache
    def chain(name: str) -> tuple[str, ...]:
        return (name, *max((chain(each) for each in needed[name]), key=len, default=()))

    longest = max(map(chain, modules), key=len)
    assert len(longest) <= 25, " → ".join(longest)


def test_completion_offers_public_names_and_subpackages_only() -> None:
    """In a new process: what the tests have imported is here in any case."""
    program = """
import fluxforge as ff
for module, subpackages in ((ff, {"errors", "expression", "pde"}), (ff.mesh, set())):
    shown = {name for name in dir(module) if not name.startswith("_")}
    assert shown == {*module.__all__} - {"__version__"} | subpackages, shown
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
