"""The samples of one network: named inputs and one output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp
from jaxtyping import Float
from numpy.typing import ArrayLike

from fluxforge.errors import InputError
from fluxforge.expression import WORDS
from fluxforge.scheme import symbol

FEWEST_ROWS = 10
_CONSTANT_WITHIN = 1e-6


@dataclass(frozen=True, eq=False)
class Table:
    """y[k] = network(X[k]): one row per sample, one column per name. What cannot be fitted is refused, by field."""

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
        """Whether y varies by less than a network in single precision rounds (10⁻⁶ of its size)."""
        return bool(np.ptp(self.y) <= _CONSTANT_WITHIN * np.max(np.abs(self.y)))

    @property
    def spread(self) -> float:
        """‖y − mean y‖, by which errors are measured."""
        return float(np.linalg.norm(self.y - np.mean(self.y)))

    @property
    def values(self) -> Mapping[sp.Symbol, Float[np.ndarray, " rows"]]:
        """The column of each symbol, as `evaluate` wants them."""
        return {symbol(name): self.X[:, k] for k, name in enumerate(self.names)}

    def thinned(self, rows: int, *, seed: int) -> "Table":
        """At most so many rows, drawn without replacement; all of them if the drawn ones show no variation."""
        if rows >= len(self.y):
            return self
        kept = np.sort(np.random.default_rng(seed).choice(len(self.y), size=rows, replace=False))
        y = self.y[kept]
        return self if np.ptp(y) <= _CONSTANT_WITHIN * np.ptp(self.y) else Table(self.names, self.X[kept], y)


def tabulate(names: Sequence[str], X: ArrayLike, y: ArrayLike) -> Table:
    """A `Table` in float64 from arrays of any float type; a column vector y is flattened."""
    return Table(tuple(names), _float64(X, "inputs", 2), _float64(y, "output", 1))


def refuse_constant(table: Table) -> None:
    """An error that says the value, if the output is constant: there is nothing to search for."""
    if table.is_constant:
        value = float(np.mean(table.y))
        raise InputError(
            f"table: the output is {value:.6g} in every row; take that constant as the formula, or train again"
        )


def _float64(values: ArrayLike, what: str, rank: int) -> np.ndarray:
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
