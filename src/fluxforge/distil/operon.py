"""PyOperon: genetic programming in C++, for error and length at once, constants by Levenberg–Marquardt."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import final

from fluxforge.distil._backend import AbstractBackend, Explored
from fluxforge.distil._operon_run import Evolution
from fluxforge.distil._operon_tree import to_sympy
from fluxforge.distil._refit import scaled
from fluxforge.distil._search import Search
from fluxforge.distil._table import Table
from fluxforge.errors import FluxforgeError


@final
class Operon(AbstractBackend):
    """The default engine. Operon fits scale·tree + offset; both become part of the formula."""

    @property
    def name(self) -> str:
        """`operon`."""
        return "operon"

    def available(self) -> str | None:
        """PyOperon is one wheel, and a dependency of the package."""
        return None if find_spec("pyoperon") else "operon is not installed: pip install pyoperon"

    def explore(self, table: Table, search: Search, *, seed: int, end: float) -> Explored:
        """The front of one evolution."""
        evolution = Evolution(_pyoperon(), table, search, seed=seed)
        _run(evolution, end)
        variables = evolution.variables(table.names)
        formulas = [scaled(to_sympy(nodes, variables), table) for nodes in evolution.trees()]
        return Explored(formulas, ended_by_clock=evolution.stopped)


def _pyoperon() -> ModuleType:
    try:
        return import_module("pyoperon")
    except ImportError as error:
        raise FluxforgeError(
            f"operon: PyOperon cannot be loaded ({error}); pip install --force-reinstall pyoperon"
        ) from None


def _run(evolution: Evolution, end: float) -> None:
    """Evolves beside this thread, which stays free to be interrupted; the evolution stops within a generation."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(evolution.run, lambda: stop.is_set() or time.monotonic() >= end)
        try:
            running.result()
        except BaseException:
            stop.set()
            raise
