"""The engine PySR, which runs in Julia and is an optional dependency; and the engines by name."""

import math
import re
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any, final

import sympy as sp

from fluxforge.distil._backend import AbstractBackend, Explored, Search
from fluxforge.distil._operon import Operon
from fluxforge.distil._table import Table
from fluxforge.errors import ExpressionError, FluxforgeError, InputError, StorageError
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import symbol

_BINARY = ("+", "-", "*", "/", "min", "max")
_ISLAND = 27
"""Formulas in one of PySR's populations; `Search.population` counts those of all of them."""

_SHORTEST = 7
"""The smallest `maxsize` that PySR accepts."""

_SQUARE = re.compile(r"\bsquare\(")


@final
class PySR(AbstractBackend):
    """PySR in serial mode and double precision, in which the same seed gives the same results."""

    @property
    def name(self) -> str:
        """`pysr`."""
        return "pysr"

    def available(self) -> str | None:
        """None if PySR is installed; it is not imported, which would start Julia."""
        return None if find_spec("pysr") else "pysr is not installed: pip install 'fluxforge[pysr]'"

    def explore(self, table: Table, search: Search, *, seed: int, end: float) -> Explored:
        """The hall of fame of one search."""
        seconds = None if end == math.inf else max(end - time.monotonic(), 0.0)
        # PySR refuses names that SymPy has a meaning for, such as S.
        columns = {f"x{k}": symbol(name) for k, name in enumerate(table.names)}
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = import_module("pysr").PySRRegressor(
                    **_settings(search, seed=seed, seconds=seconds), output_directory=folder
                )
                model.fit(table.X, table.y, variable_names=list(columns))
                texts = [] if model.equations_ is None else [str(text) for text in model.equations_["equation"]]
            except OSError as error:
                raise StorageError(f"pysr: its folder cannot be written ({_first_line(error)})") from error
            except MemoryError:
                raise
            except Exception as error:
                raise FluxforgeError(f"pysr: the search failed ({_first_line(error)})") from error
        return Explored(list(_readable(texts, columns)), ended_by_clock=time.monotonic() >= end)


def _settings(search: Search, *, seed: int, seconds: float | None) -> dict[str, Any]:
    return {
        "binary_operators": [name for name in search.operators if name in _BINARY],
        "unary_operators": [name for name in search.operators if name not in _BINARY],
        "maxsize": max(_SHORTEST, search.max_complexity),
        "niterations": search.generations,
        "populations": max(2, search.population // _ISLAND),
        "population_size": _ISLAND,
        "timeout_in_seconds": seconds,
        "random_state": seed,
        "deterministic": True,
        "parallelism": "serial",
        "precision": 64,
        "batching": False,
        "progress": False,
        "verbosity": 0,
        "input_stream": "devnull",
    }


def _readable(texts: Iterable[str], columns: Mapping[str, sp.Symbol]) -> Iterable[sp.Expr]:
    """The formulas that our parser accepts; others have infinite constants or divide by zero."""
    for text in texts:
        with suppress(ExpressionError):
            yield parse(squares_as_powers(text), columns)


def squares_as_powers(text: str) -> str:
    """`square(x)` → `((x)**2)`, inside out: our grammar has no such function."""
    while calls := list(_SQUARE.finditer(text)):
        opening = calls[-1].end()
        closing = _find_closing(text, opening)
        text = f"{text[: calls[-1].start()]}(({text[opening:closing]})**2){text[closing + 1 :]}"
    return text


def _find_closing(text: str, at: int) -> int:
    """The position of the bracket that closes the one open at this position; the end of the text if there is none."""
    depth = 1
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return len(text)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


ENGINES: Mapping[str, AbstractBackend] = {backend.name: backend for backend in (Operon(), PySR())}


def engine(name: str) -> AbstractBackend:
    """The engine of that name; raises InputError for an unknown name, FluxforgeError if it is not installed."""
    if name not in ENGINES:
        raise InputError(f"no engine of symbolic regression is called {name!r:.60}; known: {', '.join(ENGINES)}")
    if hint := ENGINES[name].available():
        raise FluxforgeError(hint)
    return ENGINES[name]
