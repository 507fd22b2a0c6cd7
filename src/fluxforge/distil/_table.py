"""Samples of a network's MLPs as tables, and formulas evaluated on a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp
from jaxtyping import Float
from numpy.typing import ArrayLike

from fluxforge.data._problem import Problem
from fluxforge.errors import ExpressionError, InputError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import WORDS, symbol
from fluxforge.gnn._network import Network
from fluxforge.gnn._standard import inputs

# With fewer rows, formulas cannot be distinguished.
FEWEST_ROWS = 10
# The relative round-off of a network in single precision.
_CONSTANT_WITHIN = 1e-6


@dataclass(frozen=True, eq=False)
class Table:
    """y[k] = network(X[k]): one row per sample, one column per name.

    Raises InputError for unusable names, too few rows, values that are not finite, and inputs that do not vary.
    """

    names: tuple[str, ...]
    X: Float[np.ndarray, "rows inputs"]
    y: Float[np.ndarray, " outputs"]

    def __post_init__(self) -> None:
        _check_names(self.names, self.X.shape[1])
        _check_rows(self.X, self.y)
        _check_finite(np.column_stack((self.X, self.y)), (*self.names, "the output"))
        if np.all(self.X[0] == self.X):
            raise InputError(f"table: all {len(self.X)} rows have the same inputs; sample the network at other points")

    @property
    def is_constant(self) -> bool:
        """Whether y varies by less than the round-off of a network in single precision, 10⁻⁶ of its size."""
        return bool(np.ptp(self.y) <= _CONSTANT_WITHIN * np.max(np.abs(self.y)))

    @property
    def spread(self) -> float:
        """‖y − mean y‖, to which errors are relative."""
        return float(np.linalg.norm(self.y - np.mean(self.y)))

    @property
    def values(self) -> Mapping[sp.Symbol, Float[np.ndarray, " rows"]]:
        """The column of each symbol, as input of `evaluate`."""
        return {symbol(name): self.X[:, k] for k, name in enumerate(self.names)}

    def draw_rows(self, rows: int, *, seed: int) -> "Table":
        """Draw at most `rows` rows without replacement; all of them if the drawn ones do not vary."""
        if rows >= len(self.y):
            return self
        kept = np.sort(np.random.default_rng(seed).choice(len(self.y), size=rows, replace=False))
        y = self.y[kept]
        return self if np.ptp(y) <= _CONSTANT_WITHIN * np.ptp(self.y) else Table(self.names, self.X[kept], y)


def tabulate(names: Sequence[str], X: ArrayLike, y: ArrayLike) -> Table:
    """A `Table` in float64 from arrays of any float type; a column vector y is flattened."""
    return Table(tuple(names), _to_float64(X, "inputs", 2), _to_float64(y, "output", 1))


def refuse_constant(table: Table) -> None:
    """Raise InputError, with the value, if the output is constant."""
    if table.is_constant:
        value = float(np.mean(table.y))
        raise InputError(
            f"table: the output is {value:.6g} in every row; take that constant as the formula, or train again"
        )


def _to_float64(values: ArrayLike, what: str, rank: int) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"table: the {what} cannot be read as numbers ({error})") from None
    if rank == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != rank:
        raise InputError(f"table: the {what} should be an array of rank {rank}, got the shape {array.shape}")
    return array


def _check_names(names: tuple[str, ...], columns: int) -> None:
    if len(names) != columns:
        raise InputError(f"table: {len(names)} names for {columns} columns of inputs; give one name per column")
    for name in names:
        if not (name.isidentifier() and name.isascii()) or name in WORDS:
            raise InputError(f"table: {name!r:.60} cannot name a column: letters, digits and _, and no function")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"table: more than one column is named {', '.join(twice)}; rename or drop one")


def _check_rows(X: np.ndarray, y: np.ndarray) -> None:
    if len(X) != len(y):
        raise InputError(f"table: {len(X)} rows of inputs and {len(y)} of output; give one output per row")
    if len(y) < FEWEST_ROWS:
        raise InputError(f"table: {len(y)} rows; a formula needs at least {FEWEST_ROWS}")


def _check_finite(columns: np.ndarray, names: tuple[str, ...]) -> None:
    bad = np.argwhere(~np.isfinite(columns))
    if len(bad):
        row, column = bad[0]
        count = len(np.unique(bad[:, 0]))
        raise InputError(
            f"table: {count} of {len(columns)} rows are not finite, the first is row {row} "
            f"({names[column]} is {columns[row, column]}); drop them"
        )


@dataclass(frozen=True)
class Sampled:
    """Samples of one output of one MLP: the name of the sum or field, the table, and the formula of each column.

    `kind` is `message` or `update`; `layer` counts from 0.
    """

    name: str
    kind: str
    layer: int
    table: Table
    columns: tuple[sp.Expr, ...]

    def translate(self, formula: sp.Expr) -> sp.Expr:
        """Rewrite a formula of the table's columns in the scheme's symbols."""
        return formula.subs(dict(zip(map(symbol, self.table.names), self.columns, strict=True)), simultaneous=True)


def sample(network: Network, problems: Problem, *, rows: int, seed: int = 0) -> list[Sampled]:
    """A table per output of every MLP, layer by layer, messages before update; `rows` of each, drawn at random."""
    tables = iter(inputs(network, problems))
    samples: list[Sampled] = []
    for number, layer in enumerate(network.layers):
        parts: list[tuple[Any, str]] = [*((m, "message") for m in layer.messages), (layer.update, "update")]
        for part, kind in parts:
            x = next(tables)
            chosen = np.random.default_rng([seed, len(samples)]).permutation(len(x))[:rows]
            y = np.asarray(part.f(x[chosen]), float)
            names = tuple(
                feature.name if isinstance(feature, sp.Symbol) else f"x{k + 1}"
                for k, feature in enumerate(part.features)
            )
            samples += [
                Sampled(name, kind, number, tabulate(names, np.asarray(x[chosen], float), y[:, k]), part.features)
                for k, name in enumerate(part.names)
            ]
    return samples


_NO_COLUMNS: Mapping[sp.Symbol, np.ndarray] = MappingProxyType({})


def predict(
    expr: sp.Expr, table: Table, constants: Mapping[sp.Symbol, Float[np.ndarray, "batch 1"]] = _NO_COLUMNS
) -> Float[np.ndarray, "*batch rows"]:
    """f(X; c) in float64, with one row per set of `constants`, if given; nan or infinite where f has no value."""
    try:
        with np.errstate(all="ignore"):
            f = evaluate(expr, {**table.values, **constants}, np)
    except ExpressionError:
        f = np.nan
    shapes = [table.y.shape, *(batch.shape for batch in constants.values())]
    return np.broadcast_to(np.asarray(f, dtype=np.float64), np.broadcast_shapes(*shapes))
