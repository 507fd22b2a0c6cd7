"""JAX at its strictest: 64-bit, no silent promotion of ranks. One thread per worker, one compilation cache per run."""

import gc
import os
import random
import sys

import jax
import matplotlib
import pytest
from threadpoolctl import threadpool_limits

import compiled
import machine
import type_checks
from long_files import LONG

# Workers share the cores already: more threads only disturb the others. The variables are for workers and for processes
# that tests start (PJRT_NPROC is XLA's); in this process, BLAS is already loaded and is told below.
THREADS = int(os.environ.get("FLUXFORGE_TEST_THREADS", "1"))
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PJRT_NPROC"):
    os.environ[_name] = str(THREADS)
threadpool_limits(THREADS)
os.environ.setdefault("XLA_FLAGS", compiled.quick_flags())  # XLA reads it when it compiles for the first time

# Importing and rewriting the tests makes millions of objects that stay: until they are collected, nothing is garbage.
gc.disable()
type_checks.install()
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
matplotlib.use("Agg")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="run files, and the tests of a file, in a random order"
    )


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        compiled.use(config.workerinput["compiled"])
    else:
        compiled.use(compiled.make_folder(config))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """The controller tells each worker where the run's compilations are."""
    node.workerinput["compiled"] = compiled.folder_of(node.config)


def pytest_report_header() -> list[str]:
    return machine.describe()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first; with --shuffle, files and their tests in the order of a seed, the same in every worker."""
    seed = config.getoption("--shuffle")
    places: dict[str, float] = {name: place for place, name in enumerate(LONG)}
    if seed is None:
        items.sort(key=lambda item: places.get(item.nodeid.split("::")[0].removeprefix("tests/"), len(LONG)))
        return
    rng = random.Random(seed)
    rng.shuffle(items)
    files = sorted({item.path for item in items})
    places = {str(path): rng.random() for path in files}
    items.sort(key=lambda item: places[str(item.path)])


def pytest_collection_finish() -> None:
    """PyOperon starts a thread per core; their number changes no result (see tests/distil/test_operon.py).

    What is imported by now stays until the end: the garbage collector need not look at it again and again. Nor need it
    look after every 700 new objects: with the thousands of traced and compiled functions that stay, that took a fifth
    of the time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    gc.enable()
    if (engines := sys.modules.get("fluxforge.distil._engines")) is not None:
        engines.count_threads = lambda: THREADS
