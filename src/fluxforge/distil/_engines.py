"""Engines of symbolic regression: PyOperon, genetic programming in C++, and PySR in Julia, which is optional."""

import math
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, TypeVar, final

import numpy as np
import sympy as sp

from fluxforge.distil._backend import AbstractBackend, Explored, Search
from fluxforge.distil._front import bounded_exponential, fit_scale
from fluxforge.distil._table import Table
from fluxforge.errors import ExpressionError, FluxforgeError, InputError, StorageError
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import symbol

OPERATIONS: Mapping[str, Callable[..., sp.Expr]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "Square": lambda a: a**2,
    "Sqrt": sp.sqrt,
    "Exp": bounded_exponential,
    "Log": sp.log,
    "Sin": sp.sin,
    "Cos": sp.cos,
    "Abs": sp.Abs,
    # PyOperon evaluates Fmin as the maximum and Fmax as the minimum; a test compares our formulas with its values.
    "Fmin": lambda a, b: sp.Max(a, b),
    "Fmax": lambda a, b: sp.Min(a, b),
}


def to_sympy(nodes: Sequence[Any], variables: Mapping[int, sp.Expr]) -> sp.Expr:
    """The expression of a tree in postfix order; `variables` maps each variable's hash to its expression.

    A variable node has its own coefficient. The operand written last is the first one: b a − is a − b.
    """
    stack: list[sp.Expr] = []
    for node in nodes:
        if node.IsVariable:
            stack.append(sp.Float(float(node.Value)) * variables[node.HashValue])
        elif node.IsConstant:
            stack.append(sp.Float(float(node.Value)))
        else:
            operands = [stack.pop() for _ in range(node.Arity)]
            stack.append(OPERATIONS[node.Type.name](*operands))
    return stack.pop()


Part = TypeVar("Part")

# Operators and PyOperon's node types; min and max are exchanged, as in OPERATIONS.
NODE_TYPES = {
    "+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "square": "Square", "sqrt": "Sqrt", "exp": "Exp", "log": "Log",
    "sin": "Sin", "cos": "Cos", "abs": "Abs", "min": "Fmax", "max": "Fmin",
}  # fmt: skip
# Operon's settings: the depth of trees, their length in the first population, steps of a local search, and the size of
# tournaments. Budgets are unlimited, since generations and the clock end a search.
_DEPTH = 10
_FIRST_LENGTH = 10
_LOCAL_STEPS = 5
_TOURNAMENT = 5
_NO_LIMIT = 10**12


class Evolution:
    """NSGA-II on (mean square error after linear scaling, length of the tree).

    PyOperon's objects point at each other without owning each other, so references to all of them are kept here. The
    number of threads does not change the result: each formula has random numbers of its own. PyOperon computes in
    single precision, so columns are scaled to a root mean square of one, and the output to mean zero and variance one;
    scale and offset of the output are fitted to each formula anyway.
    """

    def __init__(self, op: Any, table: Table, search: Search, *, seed: int) -> None:
        self._op, self._search = op, search
        self._parts: list[Any] = []
        self.stopped = False
        self._length = search.max_complexity
        self._sizes = np.sqrt(np.mean(table.X**2, axis=0))
        self._sizes[self._sizes == 0] = 1.0
        y = (table.y - np.mean(table.y)) / np.std(table.y)
        self._problem = self._problem_of(np.column_stack((table.X / self._sizes, y)))
        self._error = self._evaluator()
        self._rng = op.RandomGenerator(np.uint64(seed))
        self._algorithm = self._algorithm_of(seed)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Evolve until the generations are done, or until `stopped()` is true after one of them but the last."""
        checks = 0  # once after the first random population, and once after each generation

        def check() -> None:
            nonlocal checks
            checks += 1
            if not self.stopped and checks <= self._search.generations and stopped():
                self.stopped = True
                # PyOperon stops once its budget of evaluations is used up.
                self._error.Budget = 0

        self._algorithm.Run(self._rng, check, count_threads(), False)

    def trees(self) -> list[list[Any]]:
        """The nodes, in postfix order, of the formulas on the front."""
        return [list(individual.Genotype.Nodes) for individual in self._algorithm.BestFront]

    def variables(self, names: Sequence[str]) -> dict[int, sp.Expr]:
        """By hash, the expression of each variable: a column's symbol divided by the column's root mean square."""
        return {v.Hash: symbol(names[v.Index]) / sp.Float(float(self._sizes[v.Index])) for v in self._inputs}

    def _keep(self, part: Part) -> Part:
        self._parts.append(part)
        return part

    def _problem_of(self, columns: np.ndarray) -> Any:
        op, keep = self._op, self._keep
        dataset = keep(op.Dataset(np.asfortranarray(columns)))
        *self._inputs, target = sorted(dataset.Variables, key=lambda variable: variable.Index)
        problem = keep(op.Problem(dataset))
        problem.TrainingRange = op.Range(0, dataset.Rows)
        problem.TestRange = op.Range(dataset.Rows - 1, dataset.Rows)
        problem.Target = keep(target)
        self._hashes = problem.InputHashes = [variable.Hash for variable in self._inputs]
        kinds = [*(NODE_TYPES[name] for name in self._search.operators), "Constant", "Variable"]
        problem.ConfigurePrimitiveSet(sum(int(getattr(op.NodeType, kind)) for kind in kinds))
        self._primitives = problem.PrimitiveSet
        return problem

    def _evaluator(self) -> Any:
        op, keep = self._op, self._keep
        self._dispatch = op.DispatchTable()
        both = op.MultiEvaluator(self._problem)
        for part in (op.Evaluator(self._problem, self._dispatch, op.MSE(), True), op.LengthEvaluator(self._problem)):
            part.Budget = _NO_LIMIT
            both.Add(keep(part))
        both.Budget = _NO_LIMIT
        return both

    def _algorithm_of(self, seed: int) -> Any:
        op, keep = self._op, self._keep
        order = keep(op.CrowdedComparison())
        creator = keep(op.BalancedTreeCreator(self._primitives, self._hashes, 0.0))
        constants = keep(op.NormalCoefficientInitializer())
        constants.ParameterizeDistribution(0, 1)
        first = keep(op.UniformLengthTreeInitializer(creator))
        shortest, _ = self._primitives.FunctionArityLimits()
        first.ParameterizeDistribution(shortest + 1, min(_FIRST_LENGTH, self._length))
        first.MinDepth, first.MaxDepth = 1, 1000
        return op.NSGA2Algorithm(
            keep(self._settings(seed)), self._problem, first, constants,
            keep(self._offspring(order, creator, constants)), keep(op.KeepBestReinserter(order)), keep(op.RankSorter()),
        )  # fmt: skip

    def _settings(self, seed: int) -> Any:
        size = self._search.population
        return self._op.GeneticAlgorithmConfig(
            generations=self._search.generations, max_evaluations=_NO_LIMIT, local_iterations=_LOCAL_STEPS,
            population_size=size, pool_size=size, p_crossover=1.0, p_mutation=0.25, p_local=1.0, p_lamarck=1.0,
            epsilon=1e-5, seed=seed, max_time=_NO_LIMIT,
        )  # fmt: skip

    def _offspring(self, order: Any, creator: Any, constants: Any) -> Any:
        op, keep = self._op, self._keep
        selectors = [keep(op.TournamentSelector(order)) for _ in range(2)]
        for selector in selectors:
            selector.TournamentSize = _TOURNAMENT
        optimizer = keep(op.CoefficientOptimizer(keep(op.LMOptimizer(self._dispatch, self._problem, _LOCAL_STEPS, 0))))
        crossover = keep(op.SubtreeCrossover(0.9, _DEPTH, self._length))
        mutation = keep(self._mutation(creator, constants))
        return op.BasicOffspringGenerator(self._error, crossover, mutation, *selectors, optimizer)

    def _mutation(self, creator: Any, constants: Any) -> Any:
        op = self._op
        one, many, named = op.NormalOnePointMutation(), op.NormalMultiPointMutation(), op.DiscretePointMutation()
        for normal in (one, many):
            normal.ParameterizeDistribution(0, 1)
        for constant in op.Math.Constants:
            named.Add(constant, 1.0)
        grown = (creator, constants, _DEPTH, self._length)
        kinds = (
            one, many, named, op.ChangeVariableMutation(self._hashes), op.ChangeFunctionMutation(self._primitives),
            op.RemoveSubtreeMutation(self._primitives), op.InsertSubtreeMutation(*grown),
            op.ReplaceSubtreeMutation(*grown),
        )  # fmt: skip
        either = op.MultiMutation()
        for kind in kinds:
            either.Add(self._keep(kind), 1.0)
        return either


def count_threads() -> int:
    """The number of cores this process may use, at most PJRT_NPROC (of XLA) and OMP_NUM_THREADS (of OpenMP)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = (os.environ.get(name, "") for name in ("PJRT_NPROC", "OMP_NUM_THREADS"))
    return max(1, min([cores, *(int(text) for text in limits if text.isdigit())]))


@final
class Operon(AbstractBackend):
    """The default engine. Operon fits scale·tree + offset; both become part of the formula."""

    @property
    def name(self) -> str:
        """`operon`."""
        return "operon"

    def available(self) -> str | None:
        """None if PyOperon, a dependency of the package, is installed; otherwise how to install it."""
        return None if find_spec("pyoperon") else "operon is not installed: pip install pyoperon"

    def explore(self, table: Table, search: Search, *, seed: int, end: float) -> Explored:
        """The front of one evolution, each formula with scale and offset fitted on all rows of `table`."""
        evolution = Evolution(_pyoperon(), table, search, seed=seed)
        _run(evolution, end)
        variables = evolution.variables(table.names)
        formulas = [fit_scale(to_sympy(nodes, variables), table) for nodes in evolution.trees()]
        return Explored(formulas, ended_by_clock=evolution.stopped)


def _pyoperon() -> ModuleType:
    try:
        return import_module("pyoperon")
    except ImportError as error:
        raise FluxforgeError(
            f"operon: PyOperon cannot be loaded ({error}); pip install --force-reinstall pyoperon"
        ) from None


def _run(evolution: Evolution, end: float) -> None:
    """Run the evolution in a worker thread, so that an interrupt reaches this one; it stops within a generation."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(evolution.run, lambda: stop.is_set() or time.monotonic() >= end)
        try:
            running.result()
        except BaseException:
            stop.set()
            raise


_BINARY = ("+", "-", "*", "/", "min", "max")
_ISLAND_SIZE = 27
"""Formulas in one of PySR's populations; `Search.population` counts those of all of them."""

_LEAST_MAXSIZE = 7
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
        """The hall of fame of one search. Raises StorageError or FluxforgeError if PySR fails."""
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
        return Explored(list(_parse_readable(texts, columns)), ended_by_clock=time.monotonic() >= end)


def _settings(search: Search, *, seed: int, seconds: float | None) -> dict[str, Any]:
    return {
        "binary_operators": [name for name in search.operators if name in _BINARY],
        "unary_operators": [name for name in search.operators if name not in _BINARY],
        "maxsize": max(_LEAST_MAXSIZE, search.max_complexity),
        "niterations": search.generations,
        "populations": max(2, search.population // _ISLAND_SIZE),
        "population_size": _ISLAND_SIZE,
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


def _parse_readable(texts: Iterable[str], columns: Mapping[str, sp.Symbol]) -> Iterable[sp.Expr]:
    """The formulas that our parser accepts; those with infinite constants or a division by zero are skipped."""
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
