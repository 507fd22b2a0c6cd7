"""Separability: whether a network's g(x, y) is a sum or a product of a function of x and one of y."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol, runtime_checkable

import numpy as np
import sympy as sp
from jaxtyping import Float

from fluxforge.distil._table import Table
from fluxforge.experiment._symmetry import SLACK, Check

# Values of either group that stand for its whole range.
ANCHORS = 64
# Groups are tried of at most so many columns: 31 ways to divide six.
MOST_COLUMNS = 6


@runtime_checkable
class ReducedFunction(Protocol):
    """The g of a reduced flux with its scale in fluxes, and the relative error of those: a network, or in its place."""

    @property
    def scale(self) -> float:
        """The size of g where the flux has its usual size."""

    @property
    def error(self) -> float:
        """Root mean square of the flux's error over that of the fluxes."""

    def function(self, columns: Float[np.ndarray, "*batch columns"]) -> Float[np.ndarray, "*batch"]:
        """G of columns."""


@dataclass(frozen=True)
class Separation:
    """Two groups of columns, by number, and whether g is the sum or the product of a function of each."""

    groups: tuple[tuple[int, ...], tuple[int, ...]]
    product: bool

    def combine(self, first: sp.Expr, second: sp.Expr) -> sp.Expr:
        """G from formulas of its parts."""
        return first * second if self.product else first + second

    def describe(self, names: tuple[str, ...]) -> str:
        """The property in words."""
        one, other = (", ".join(names[k] for k in group) for group in self.groups)
        return f"g is the {'product' if self.product else 'sum'} of a function of {one} and one of {other}"


def find_separation(network: ReducedFunction, table: Table) -> tuple[Separation | None, Check | None]:
    """The division of the columns under which the network's g separates best, and its check; None of one column.

    The separation is None if g differs from the best sum and product by more than three times the network's error.
    """
    tried = []
    for separation in _divisions(table.X.shape[1]):
        with np.errstate(all="ignore"):
            one, other = separate(network, table, separation)
            off = table.y - (one * other if separation.product else one + other)
        # In units of the fluxes, as the network's error is.
        defect = float(np.sqrt(np.mean(off**2))) / network.scale
        tried.append((defect if np.isfinite(defect) else np.inf, separation))
    if not tried:
        return None, None
    # Sums come first, and the fewest columns in a group: ties are decided by order.
    defect, best = min(tried, key=lambda each: each[0])
    check = Check("separability", best.describe(table.names), defect, SLACK * network.error)
    return (best if check.holds else None), check


def _divisions(columns: int) -> Iterator[Separation]:
    if not 2 <= columns <= MOST_COLUMNS:
        return
    for product in (False, True):
        for size in range(1, columns // 2 + 1):
            for group in combinations(range(columns), size):
                rest = tuple(k for k in range(columns) if k not in group)
                # A half and its complement are one division.
                if 2 * size < columns or group < rest:
                    yield Separation((group, rest), product)


def separate(
    network: ReducedFunction, table: Table, separation: Separation
) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"]]:
    """The two parts of g in the rows of a table, from the network at pairs of a row's one group and an anchor's other.

    For a product they are those of the best approximation of rank one between anchors; for a sum, means.
    """
    rows = np.unique(np.linspace(0, len(table.X) - 1, ANCHORS).astype(int))
    anchors = table.X[rows]
    one, other = separation.groups
    across = _pairs(network, table.X, anchors, other)  # g(x of a row, y of an anchor)
    along = _pairs(network, table.X, anchors, one)  # g(x of an anchor, y of a row)
    core = across[rows]
    if not separation.product:
        return across.mean(axis=1), along.mean(axis=1) - core.mean()
    left, sizes, right = np.linalg.svd(core)
    return across @ right[0], along @ left[:, 0] / sizes[0]


def _pairs(
    network: ReducedFunction, X: Float[np.ndarray, "rows columns"], anchors: np.ndarray, group: tuple[int, ...]
) -> Float[np.ndarray, "rows anchors"]:
    """G at every row of X with the columns of a group from every anchor."""
    both = np.repeat(X[:, None, :], len(anchors), axis=1)
    both[:, :, list(group)] = anchors[None, :, list(group)]
    return network.function(both)
