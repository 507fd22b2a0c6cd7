"""The run's own means: the compilation cache, and the order of files."""

import os
import subprocess
import sys
from pathlib import Path

import jax
from jax._src.lru_cache import LRUCache

from compiled import quick_flags
from long_files import LONG

TESTS = Path(__file__).parent
# Compiles a function that no test compiles, twice, and tells how often it was found compiled.
CODE = """
import jax, jax.monitoring
jax.config.update("jax_enable_x64", True)
told = []
jax.monitoring.register_event_listener(lambda event, **_: told.append(event))
for _ in range(2):
    jax.clear_caches()
    value = jax.jit(lambda x: x * 271.0 - 828.0)(2.0)
print(value, told.count("/jax/compilation_cache/cache_hits"))
"""


def test_a_process_finds_what_this_one_has_compiled_and_adds_nothing() -> None:
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == jax.config.values["jax_compilation_cache_dir"]

    def ask() -> str:
        return subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout.strip()

    assert ask() == "-286.0 0"  # it has written nothing at first
    assert jax.jit(lambda x: x * 271.0 - 828.0)(2.0) == -286.0
    assert ask() == "-286.0 2"


def test_an_entry_appears_whole_and_is_not_replaced(tmp_path: Path) -> None:
    cache = LRUCache(str(tmp_path), max_size=-1)
    cache.put("key", b"first")
    cache.put("key", b"second")
    assert cache.get("key") == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["key-cache"]


def test_xla_is_given_flags_it_knows_and_those_of_the_caller_come_first() -> None:
    assert "fusion" in quick_flags("0.10.2")
    assert "fusion" not in quick_flags("1.10.2")
    code = """
import importlib, os, conftest, jax
print(os.environ.pop("XLA_FLAGS"))
importlib.reload(conftest)
print(os.environ["XLA_FLAGS"], jax.jit(lambda x: x * 2.0)(3.0))
"""
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=TESTS,
        env={**os.environ, "XLA_FLAGS": ""},
    )
    assert told.stdout == f"\n{quick_flags()} 6.0\n"


def test_the_files_that_start_first_are_there() -> None:
    assert [name for name in LONG if not (TESTS / name).is_file()] == []
